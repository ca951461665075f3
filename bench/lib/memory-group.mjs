import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Files } from "../../dist/pressure/files.js";
import { parseKeyed } from "../../dist/pressure/parse.js";
import { findPlaces } from "../../dist/pressure/places.js";

const PREFIX = "agstate-bench-";
const ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"';

/** What differs between the versions of control groups. */
const KINDS = {
  v1: {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file", "total_active_file"],
  },
  v2: {
    limit: "memory.max",
    usage: "memory.current",
    cache: ["inactive_file", "active_file", "slab_reclaimable"],
  },
};

let made = 0;

/**
 * Makes a control group without a limit of memory; it and what runs in it are gone when `remove` is called.
 *
 * @returns the group, or why none can be had here, as text
 */
export function makeMemoryGroup() {
  const places = findPlaces(new Files(""), "self");
  const parentV2 = places?.v2?.directories.find((directory) => givesMemory(directory));
  const parentV1 = places?.memory?.directories[0];
  const parent = parentV2 ?? parentV1;
  if (parent === undefined) return "no control group that accounts for memory can be made here";
  const folder = join(parent, `${PREFIX}${process.pid}-${++made}`);
  try {
    mkdirSync(folder);
  } catch (error) {
    return `no control group can be made here (${error.code})`;
  }
  return new MemoryGroup(folder, KINDS[parentV2 === undefined ? "v1" : "v2"]);
}

function givesMemory(directory) {
  try {
    return readFileSync(join(directory, "cgroup.subtree_control"), "utf8").includes("memory");
  } catch {
    return false;
  }
}

class MemoryGroup {
  constructor(folder, kind) {
    this.folder = folder;
    this.kind = kind;
  }

  /** Starts a command that is in the group before it takes any memory. */
  spawn(command, args, options) {
    return spawn("sh", ["-c", ENTER, this.folder, command, ...args], options);
  }

  /** What is in use, page cache taken out, and how much page cache there is. */
  memory() {
    const { usage, cache } = this.kind;
    const stat = parseKeyed(this.#read("memory.stat"));
    const cacheBytes = cache.reduce((sum, key) => sum + (stat.get(key) ?? 0), 0);
    return { usedBytes: Number(this.#read(usage)) - cacheBytes, cacheBytes };
  }

  /** Sets the limit; the kernel first drops page cache that is above it, and may need several attempts. */
  async setLimit(bytes) {
    for (let left = 50; ; left--) {
      try {
        writeFileSync(join(this.folder, this.kind.limit), String(Math.ceil(bytes)));
        return;
      } catch (error) {
        if (error.code !== "EBUSY" || left === 0) throw error;
        await sleep(20);
      }
    }
  }

  /** Ends what is in the group, and removes it. */
  async remove() {
    for (let left = 200; ; left--) {
      for (const pid of this.#read("cgroup.procs").split("\n").filter(Boolean)) {
        try {
          process.kill(Number(pid), "SIGKILL");
        } catch {
          // It has ended by itself.
        }
      }
      try {
        rmdirSync(this.folder);
        return;
      } catch (error) {
        if (left === 0) throw error;
        await sleep(50);
      }
    }
  }

  #read(name) {
    return readFileSync(join(this.folder, name), "utf8");
  }
}
