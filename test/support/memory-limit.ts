import { runInGroups, whyNoGroup } from "./memory-limit/groups.js";
import { runInVm, whyNoVm } from "./memory-limit/vm.js";

/** How a real limit on memory is set: by a control group of this machine, of either version, or of a virtual machine. */
export type LimitWay = "cgroup-v2" | "cgroup-v1" | "vm";

/** A script that Node runs, with nothing on its standard input. */
export interface LimitedStep {
  /** A plain `.mjs` file, as a path below the project's folder; it imports the library from `dist`. */
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** None: the process has a control group of its own all the same. Version 1 knows no `highBytes`. */
  readonly limit?: { readonly maxBytes: number; readonly highBytes?: number };
  /** On a machine that is not emulated; the vm has ten times as long. */
  readonly timeoutMs: number;
  /** SIGTERM is sent at the first line of standard output that begins with this. */
  readonly sigterm?: { readonly onLine: string };
}

/** How a step ended. */
export interface StepEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** How many processes the kernel killed in the control group for want of memory. */
  readonly oomKills: number;
  /** The most that the control group ever held, page cache included; null where the kernel does not say. */
  readonly peakBytes: number | null;
}

const WAYS: readonly LimitWay[] = ["cgroup-v2", "cgroup-v1", "vm"];

/**
 * Finds the first way that this machine has, and says what the ones before it lack.
 *
 * `AGSTATE_TEST_LIMIT` forces one. The vm is there when `AGSTATE_TEST_VM_DIR` names the folder that
 * `scripts/pressure-vm.mjs prepare` made, and qemu is installed.
 *
 * @throws Error when the forced way is unknown or not there, so that nothing is skipped that was asked for.
 */
export async function limitWay(): Promise<{ way: LimitWay | null; missing: string[] }> {
  const forced = process.env.AGSTATE_TEST_LIMIT || undefined;
  if (forced !== undefined && !WAYS.some((way) => way === forced))
    throw new Error(`AGSTATE_TEST_LIMIT is "${forced}": it takes ${WAYS.join(", ")}`);
  const missing: string[] = [];
  for (const way of WAYS) {
    if (forced !== undefined && way !== forced) continue;
    const reason = way === "vm" ? whyNoVm() : await whyNoGroup(way);
    if (reason === null) return { way, missing };
    missing.push(`${way}: ${reason}`);
  }
  if (forced !== undefined) throw new Error(`AGSTATE_TEST_LIMIT asks for ${missing[0]}`);
  return { way: null, missing };
}

/**
 * Runs steps one after another; they share an empty folder on a real disk, whose path is `WORK` in their environment.
 *
 * Nothing of them is left afterwards: no process, no control group, no file.
 *
 * @throws Error when a step takes longer than it may, with what it said.
 */
export async function runLimited(way: LimitWay, steps: readonly LimitedStep[]): Promise<StepEnd[]> {
  return way === "vm" ? runInVm(steps) : runInGroups(way, steps);
}
