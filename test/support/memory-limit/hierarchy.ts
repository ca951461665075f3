import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { read, write } from "./files.js";

/** Where control groups can be made, as directories. */
export interface Parents {
  /** Of the group whose memory is limited. */
  readonly memory: string;
  /** Of a group of version 2 without a limit, for a `memory.pressure` of its own; null where there is no such mount. */
  readonly pressure: string | null;
}

interface Mount {
  readonly root: string;
  readonly path: string;
}

/** Finds where a hierarchy is mounted: version 2, or the one of version 1 that has a controller. */
function mountOf(type: "cgroup" | "cgroup2", controller?: string): Mount | null {
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [found, , options = ""] = after.split(" ");
    if (found !== type) continue;
    if (controller !== undefined && !options.split(",").includes(controller)) continue;
    const [, , , root = "/", path = ""] = before.split(" ");
    return { root, path };
  }
  return null;
}

/** Finds the directory of this process's own group, or null when it is outside of what is mounted. */
function ownGroup(mount: Mount, controllers: string): string | null {
  for (const line of readFileSync("/proc/self/cgroup", "utf8").split("\n")) {
    const [, names = "", ...path] = line.split(":");
    const here = controllers === "" ? names === "" : names.split(",").includes(controllers);
    if (!here) continue;
    const below = posix.relative(mount.root, path.join(":"));
    return below.startsWith("..") ? null : join(mount.path, below);
  }
  return null;
}

const gives = (path: string, file: string) =>
  (read(path, file) ?? "").split(/\s+/).includes("memory");

/**
 * Finds the nearest group of version 2 whose children have the memory controller.
 *
 * A group with processes of its own gives its children none, so this is seldom the group of this process;
 * only the root of the machine has both, and is asked to.
 */
function parentInV2(mount: Mount, own: string): string | null {
  for (let path = own; ; path = dirname(path)) {
    const isRoot = read(path, "cgroup.type") === null;
    if (isRoot && gives(path, "cgroup.controllers") && !gives(path, "cgroup.subtree_control"))
      write(path, "cgroup.subtree_control", "+memory");
    if (gives(path, "cgroup.subtree_control")) return path;
    if (path === mount.path) return null;
  }
}

/** Finds where groups can be made in a way, or says why there is no such place. */
export function findParents(way: "cgroup-v2" | "cgroup-v1"): Parents | string {
  if (process.platform !== "linux") return "this is not Linux";
  const v2 = mountOf("cgroup2");
  const ownV2 = v2 === null ? null : ownGroup(v2, "");
  if (way === "cgroup-v2") {
    if (v2 === null || ownV2 === null) return "no control groups of version 2 are mounted";
    const memory = parentInV2(v2, ownV2);
    return memory === null
      ? "no group above this process gives its children the memory controller"
      : { memory, pressure: null };
  }
  const v1 = mountOf("cgroup", "memory");
  const memory = v1 === null ? null : ownGroup(v1, "memory");
  if (memory === null) return "no memory controller of version 1 is mounted";
  return { memory, pressure: ownV2 };
}
