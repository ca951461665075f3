import { mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { count, read, write } from "./files.js";
import { findParents } from "./hierarchy.js";

const PREFIX = "agstate-test-";
let made = 0;

/** A control group of a step. */
export interface Group {
  /** Directories whose `cgroup.procs` a process must write itself to before it allocates. */
  readonly folders: readonly string[];
  oomKills(): number;
  peakBytes(): number | null;
  /** Kills every process that is in it. */
  kill(): void;
  /** Kills what is in it and takes it away. */
  remove(): Promise<void>;
}

/** Tells whether a process of this machine is alive. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Takes away empty groups whose test process was killed before it could; one that is in use stays. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    try {
      rmdirSync(join(parent, name));
    } catch {
      // It is another's to remove, or not empty.
    }
  }
}

function makeBelow(parent: string): string {
  sweep(parent);
  const folder = join(parent, `${PREFIX}${process.pid}-${++made}`);
  mkdirSync(folder);
  return folder;
}

function kill(folder: string): number {
  const pids = (read(folder, "cgroup.procs") ?? "").split("\n").map(Number);
  // A 0 is a process that this one cannot see, and a group of processes to kill.
  const seen = pids.filter((pid) => pid > 0);
  for (const pid of seen) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }
  return seen.length;
}

async function remove(folder: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const left = kill(folder);
    try {
      rmdirSync(folder);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      // A killed process is in its group until the kernel has taken its memory back.
      if (tries === 200)
        throw new Error(`${folder} cannot be removed; ${left} processes are in it`, {
          cause: error,
        });
    }
    await sleep(50);
  }
}

function setLimit(
  way: "cgroup-v2" | "cgroup-v1",
  folder: string,
  limit: { readonly maxBytes: number; readonly highBytes?: number },
): void {
  const { maxBytes, highBytes } = limit;
  const taken =
    way === "cgroup-v2"
      ? write(folder, "memory.max", maxBytes) &&
        (highBytes === undefined || write(folder, "memory.high", highBytes))
      : write(folder, "memory.limit_in_bytes", maxBytes);
  if (!taken) throw new Error(`the kernel takes no limit of ${maxBytes} bytes for ${folder}`);
  // Without these a machine with swap puts off the kill; a kernel that knows no swap has no such files.
  if (way === "cgroup-v2") write(folder, "memory.swap.max", 0);
  else {
    write(folder, "memory.swappiness", 0);
    write(folder, "memory.memsw.limit_in_bytes", maxBytes);
  }
}

/**
 * Makes a control group with or without a limit.
 *
 * @throws Error when there is no place for it, or the kernel refuses.
 */
export async function makeGroup(
  way: "cgroup-v2" | "cgroup-v1",
  limit: { readonly maxBytes: number; readonly highBytes?: number } | undefined,
): Promise<Group> {
  const parents = findParents(way);
  if (typeof parents === "string") throw new Error(parents);
  const folder = makeBelow(parents.memory);
  const folders = [folder];
  const removeAll = async () => {
    for (const each of folders) await remove(each);
  };
  try {
    if (limit !== undefined) setLimit(way, folder, limit);
    if (parents.pressure !== null) folders.push(makeBelow(parents.pressure));
  } catch (error) {
    await removeAll();
    throw error;
  }
  const [events, peak] =
    way === "cgroup-v2"
      ? ["memory.events", "memory.peak"]
      : ["memory.oom_control", "memory.max_usage_in_bytes"];
  return {
    folders,
    oomKills: () => count(folder, events, "oom_kill") ?? 0,
    peakBytes: () => {
      const text = read(folder, peak);
      return text === null ? null : Number(text);
    },
    kill: () => void kill(folder),
    remove: removeAll,
  };
}
