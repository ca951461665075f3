import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Which process it is, so that another on the same machine can tell whether it still runs. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** The boot of the machine and the space in which `pid` counts; null where the system does not tell. */
  readonly space: string | null;
  /** When it began, in clock ticks since the boot; null where the system does not tell. */
  readonly began: string | null;
}

export function thisProcess(): ProcessIdentity {
  const { pid } = process;
  return { host: hostname(), pid, space: processSpace(), began: beginning(pid) };
}

/**
 * Whether a process is known to be gone: it ran on this very boot of this machine, as numbered here, and
 * there is none of its number, or another one that began later. False when that cannot be told.
 */
export function isGone({ pid, space, began }: ProcessIdentity): boolean {
  if (space === null || began === null || space !== processSpace()) return false;
  return beginning(pid) !== began;
}

/** Linux alone tells; elsewhere null. */
function processSpace(): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return null;
  }
}

/** The 22nd field of `/proc/PID/stat` (proc(5)); the second, in parentheses, may hold anything. */
function beginning(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie does nothing any more.
    return state === "Z" ? null : (fields[18] ?? null);
  } catch {
    return null;
  }
}
