import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LimitedStep, StepEnd } from "../memory-limit.js";
import { type Group, makeGroup } from "./group.js";
import { findParents } from "./hierarchy.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const TMPFS_MAGIC = 0x01021994;
const COULD_NOT_ENTER = 125;

/** Puts the shell in the groups, and then becomes the command: so nothing is allocated outside of them. */
const ENTER = `while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit ${COULD_NOT_ENTER}; shift; done; shift; exec "$@"`;

const enter = (group: Group, command: readonly string[]) => [
  "-c",
  ENTER,
  "sh",
  ...group.folders,
  "--",
  ...command,
];

/** Says why this machine cannot limit a process by control groups of a version, or null when it can. */
export async function whyNoGroup(way: "cgroup-v2" | "cgroup-v1"): Promise<string | null> {
  const parents = findParents(way);
  if (typeof parents === "string") return parents;
  let group: Group;
  try {
    group = await makeGroup(way, { maxBytes: 1 << 26 });
  } catch (error) {
    return (error as Error).message;
  }
  try {
    const { status, stderr } = spawnSync("sh", enter(group, ["true"]), { encoding: "utf8" });
    return status === 0 ? null : `no process may enter ${group.folders[0]}: ${stderr.trim()}`;
  } finally {
    await group.remove();
  }
}

/** Makes a folder on a disk: a file system in memory would count against the limit, and could not be dropped. */
function makeWork(): string {
  const onDisk = [tmpdir(), "/var/tmp"].find(
    (path) => existsSync(path) && statfsSync(path).type !== TMPFS_MAGIC,
  );
  return mkdtempSync(join(onDisk ?? ROOT, "agstate-limited-"));
}

async function runStep(group: Group, step: LimitedStep, work: string): Promise<StepEnd> {
  const command = [process.execPath, join(ROOT, step.script), ...(step.args ?? [])];
  const child = spawn("sh", enter(group, command), {
    cwd: ROOT,
    env: { ...process.env, ...step.env, WORK: work },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  let told = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    const line = step.sigterm?.onLine;
    if (told || line === undefined || !`\n${stdout}`.includes(`\n${line}`)) return;
    told = true;
    child.kill("SIGTERM");
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    group.kill();
  }, step.timeoutMs);
  const closed = once(child, "close");
  await once(child, "exit");
  clearTimeout(timer);
  // What the step left running holds its output open.
  group.kill();
  const [code, signal] = (await closed) as [number | null, string | null];
  if (late || code === COULD_NOT_ENTER)
    throw new Error(
      `${step.script} ${late ? `took longer than ${step.timeoutMs} ms` : "could not enter its group"}\n${stdout}${stderr}`,
    );
  return {
    code,
    signal,
    stdout,
    stderr,
    oomKills: group.oomKills(),
    peakBytes: group.peakBytes(),
  };
}

/** Runs steps, each in a new control group of this machine. */
export async function runInGroups(
  way: "cgroup-v2" | "cgroup-v1",
  steps: readonly LimitedStep[],
): Promise<StepEnd[]> {
  const work = makeWork();
  const ends: StepEnd[] = [];
  try {
    for (const step of steps) {
      const group = await makeGroup(way, step.limit);
      try {
        ends.push(await runStep(group, step, work));
      } finally {
        await group.remove();
      }
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return ends;
}
