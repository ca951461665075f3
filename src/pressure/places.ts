import type { Files } from "./files.js";
import { type Mount, parseGroups, parseMounts } from "./parse.js";

/** Where a process is in one hierarchy of control groups: directories as they are mounted. */
export interface Place {
  /** From its own to the outermost that is mounted. */
  readonly directories: readonly string[];
  /** Its path as the kernel says it. */
  readonly path: string;
}

/** Where a process is; null where it is in no such hierarchy, or its place there cannot be seen. */
export interface Places {
  readonly v2: Place | null;
  /** Of version 1's memory controller. */
  readonly memory: Place | null;
  /** Of version 1's processor controller. */
  readonly cpu: Place | null;
  /** Whether the kernel says anything of the process's control groups. */
  readonly isTold: boolean;
  /** The path of the group that accounts for memory, where no mount shows it. */
  readonly unseen: string | null;
}

const MOUNTS = "/proc/self/mountinfo";

/**
 * Finds the control groups of a process.
 *
 * Mounts are the reader's own: it is through these that the files are read, and the paths of another
 * process are told as seen from the reader's namespace as well.
 *
 * @returns null where nothing can be said at the moment, such as with too many open files.
 */
export function findPlaces(files: Files, pid: number | "self"): Places | null {
  const told = `/proc/${pid}/cgroup`;
  const groups = parseGroups(files.readAll(told) ?? "");
  const mounts = parseMounts(files.readAll(MOUNTS) ?? "");
  if (files.isPassing(told) || files.isPassing(MOUNTS)) return null;
  const find = (path: string | undefined, shows: (mount: Mount) => boolean): Place | null =>
    path === undefined ? null : locate(path, mounts.filter(shows), files);
  const pathOf = (controller: string) =>
    groups.find(({ controllers }) => controllers.includes(controller))?.path;
  const findV1 = (controller: string) =>
    find(
      pathOf(controller),
      ({ type, options }) => type === "cgroup" && options.includes(controller),
    );
  const unified = groups.find(({ hierarchy }) => hierarchy === 0)?.path;
  const v2 = find(unified, ({ type }) => type === "cgroup2");
  const memory = findV1("memory");
  // Version 2's is often not mounted, and rightly, where version 1 has the controllers.
  const isSeen = v2 !== null || memory !== null;
  const unseen = isSeen ? null : (pathOf("memory") ?? unified ?? null);
  return { v2, memory, cpu: findV1("cpu"), isTold: groups.length > 0, unseen };
}

/**
 * The directories of a group in the mount that shows most of the way to the root.
 *
 * A directory that is not there is left out, as that of a group which was just removed: those above it hold all the same.
 */
function locate(path: string, mounts: readonly Mount[], files: Files): Place | null {
  let best: { directories: readonly string[]; missing: number; depth: number } | null = null;
  for (const { root, point } of mounts) {
    const names = namesBelow(path, root);
    if (names === null || !files.exists(point)) continue;
    const all = names.map((_, i) => [trimSlash(point), ...names.slice(0, i + 1)].join("/"));
    const found = [point, ...all].reverse();
    const missing = found.findIndex((directory) => files.exists(directory));
    const directories = found.slice(missing);
    const depth = namesOf(root).length;
    const isBetter =
      best === null || missing < best.missing || (missing === best.missing && depth < best.depth);
    if (isBetter) best = { directories, missing, depth };
  }
  return best && { directories: best.directories, path };
}

/** The names that lead from the mounted part of a hierarchy to a group; null where it is not in that part. */
function namesBelow(path: string, root: string): string[] | null {
  const names = namesOf(path);
  const above = namesOf(root);
  if (!above.every((name, i) => names[i] === name)) return null;
  const below = names.slice(above.length);
  // What lies outside of the namespace has no names.
  return below.includes("..") ? null : below;
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}

function trimSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}
