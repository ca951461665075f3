import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Absence, PressureSample } from "../../src/pressure/types.js";
import { CliSandbox } from "../support/cli.js";

const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));

/** What the kernel here lets be seen of memory, which other platforms do not. */
const hasMeminfo = existsSync("/proc/meminfo");

/** A folder without a store: the command needs none. */
function sandbox(): CliSandbox {
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  return box;
}

type Told = PressureSample & { date: string; absences?: Absence[] };

/** A command in a process of its own, which is there no longer when the test is over. */
function start(args: readonly string[]) {
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"] });
  let [said, errors] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, said, errors }));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, ended, heard: () => once(child.stdout, "data") };
}

/** A process that does nothing but wait. */
async function startIdle() {
  const idle = start(["-e", "process.stdin.resume(); console.log()"]);
  await idle.heard();
  return idle;
}

describe.runIf(hasMeminfo)("agstate pressure", () => {
  it("prints a block once, in 80 columns and without colours", () => {
    const out = sandbox().ok(["pressure", "--once"]);
    expect(out).toMatch(/^Limits on the memory of this process {2}\d\d:\d\d:\d\dZ$/m);
    expect(out).toMatch(/^ {2}\/proc\/meminfo {2}the machine/m);
    expect(out).toMatch(/^ {4}\[[#: |]{20}\] +\d+ % {2}\S+ \wB of \S+ \wB {2}cache \S+ \wB$/m);
    expect(out).toMatch(/^Ever since the control group began$/m);
    expect(out).not.toContain("\u001b");
    for (const line of out.split("\n")) expect(line.length, line).toBeLessThanOrEqual(80);
  });

  it("prints a line a sample where its output is read by a program, notes before the first", () => {
    const lines = sandbox()
      .ok(["pressure", "--count", "3", "--interval", "50ms"])
      .trimEnd()
      .split("\n");
    const samples = lines.filter((line) => /^\d\d:\d\d:\d\dZ/.test(line));
    expect(samples).toHaveLength(3);
    expect(lines.slice(-3)).toEqual(samples);
    for (const line of samples) expect(line).toMatch(/Z +\d+ % {2}\S+ \wB of \S+ \wB {2}\S/);
  });

  it("prints a JSON value a sample, with what is missing on the first", () => {
    const told = sandbox().json<Told>(["pressure", "-n", "3", "--interval", "50ms"]);
    expect(told).toHaveLength(3);
    expect(told.map(({ absences }) => Array.isArray(absences))).toEqual([true, false, false]);
    for (const { date, levels } of told) {
      expect(new Date(date).toISOString()).toBe(date);
      const machine = levels.at(-1) as PressureSample["levels"][number] & { ratio: number };
      expect(machine.source).toBe("machine");
      expect(machine.ratio).toBe(machine.usedBytes / machine.limitBytes);
    }
    expect(told[1]!.at).toBeGreaterThan(told[0]!.at);
  });

  it("says from where on agstate would act", () => {
    const box = sandbox();
    expect(box.ok(["pressure", "--once"])).toContain("agstate acts (85 %; of a machine 95 %)");
    const out = box.ok(["pressure", "--once", "--usage", "70%"]);
    expect(out).toContain("agstate acts (70 %; of a machine 90 %)");
  });

  it.each(["SIGINT", "SIGTERM"] as const)("ends well on %s", async (signal) => {
    const { child, ended, heard } = start([MAIN, "pressure", "--interval", "1h"]);
    await heard();
    child.kill(signal);
    expect(await ended).toMatchObject({ code: 0, signal: null, errors: "" });
  });

  it("ends quietly when its reader goes", () => {
    const result = sandbox().shell(
      '{ $AGSTATE pressure --interval 50ms; echo "exit $?" >&2; } | head -n 1',
    );
    expect(result.stderr).toBe("exit 0\n");
  });

  it("watches another process, and says when that has ended", async () => {
    const idle = await startIdle();
    const { ended, heard } = start([
      MAIN,
      "pressure",
      "--pid",
      `${idle.child.pid}`,
      "--interval",
      "50ms",
    ]);
    await heard();
    idle.child.kill("SIGKILL");
    const { code, errors } = await ended;
    expect(code).toBe(0);
    expect(errors).toBe(`agstate: process ${idle.child.pid} has ended\n`);
  });

  it.each([
    [["--pid", "one"], 'the process "one" is not a number'],
    [["--pid", "0"], 'the process "0" is not a number'],
    [["--pid", "-5"], 'the process "-5" is not a number'],
    [["--pid", "2147483646"], "there is no process 2147483646"],
    [["--interval", "soon"], 'the interval "soon" is not a time'],
    [["--interval", "10ms"], 'the interval "10ms" is too short'],
    [["--interval", "30d"], 'the interval "30d" is too long'],
    [["--usage", "0"], 'the usage "0" is not a part of a limit'],
    [["--usage", "101"], 'the usage "101" is not a part of a limit'],
    [["--usage", "most"], 'the usage "most" is not a part of a limit'],
  ])("refuses %j", (args, message) => {
    const box = sandbox();
    const { status, stdout, stderr } = box.run(["pressure", "--once", ...args]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^agstate: .*\(INVALID_ARGUMENT\)\n$/);
    expect(stderr).toContain(message);
    const json = box.run(["--json", "pressure", "--once", ...args]);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: "INVALID_ARGUMENT" } });
  });

  it("refuses a count that is none, and one beside --once", () => {
    const box = sandbox();
    for (const args of [["-n", "0"], ["-n", "2", "--once"], ["5"]]) {
      const { status, stdout, stderr } = box.run(["pressure", ...args]);
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toMatch(/^agstate: [^\n]+\n$/);
    }
  });

  it("sees the limit of a control group that a process is in", async ({ skip }) => {
    const group = `/sys/fs/cgroup/memory/agstate-e2e-${process.pid}`;
    if (!existsSync("/sys/fs/cgroup/memory/memory.limit_in_bytes")) return skip("no version 1");
    onTestFinished(() => {
      if (existsSync(group)) rmdirSync(group);
    });
    try {
      mkdirSync(group);
    } catch {
      return skip("no control group can be made here");
    }
    const idle = await startIdle();
    writeFileSync(`${group}/memory.limit_in_bytes`, `${256 * 2 ** 20}`);
    writeFileSync(`${group}/cgroup.procs`, `${idle.child.pid}`);
    const box = sandbox();
    const pid = `${idle.child.pid}`;
    const [told] = box.json<Told>(["pressure", "--once", "--pid", pid]);
    expect(told?.levels[0]).toMatchObject({ path: group, limitBytes: 256 * 2 ** 20 });
    const out = box.ok(["pressure", "--once", "--pid", pid]);
    expect(out).toContain(`Limits on the memory of process ${pid}`);
    expect(out).toMatch(new RegExp(`^ {2}${group} {2}cgroup v1$`, "m"));
    expect(out).toContain(" of 268 MB  cache ");
  });
});

describe.runIf(!hasMeminfo)("agstate pressure, where nothing can be seen", () => {
  it("says so, and ends", () => {
    const [told] = sandbox().json<Told>(["pressure"]);
    expect(told?.absences?.map(({ what }) => what)).toEqual(["platform"]);
  });
});
