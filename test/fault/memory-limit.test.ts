import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { findParents } from "../support/memory-limit/hierarchy.js";
import { limitWay, runLimited, type StepEnd } from "../support/memory-limit.js";

const MIB = 1 << 20;
const LIMIT_MIB = 192;
const limit = { maxBytes: LIMIT_MIB * MIB };
const { way, missing } = await limitWay();
const suffix = way === null ? `: none here (${missing.join("; ")})` : ` (${way})`;

describe.skipIf(way === null)(`a real limit of memory${suffix}`, () => {
  let grown: StepEnd;
  let cached: StepEnd;
  let free: StepEnd;
  let told: StepEnd;

  // In one go: a virtual machine takes a while to start.
  beforeAll(async () => {
    const children = "test/fault/children";
    const timeoutMs = 60_000;
    const ends = await runLimited(way!, [
      { script: `${children}/grow.mjs`, args: [`${2 * LIMIT_MIB}`], limit, timeoutMs },
      { script: `${children}/read-much.mjs`, args: [`${4 * LIMIT_MIB}`], limit, timeoutMs },
      { script: `${children}/grow.mjs`, args: [`${2 * LIMIT_MIB}`], timeoutMs },
      {
        script: `${children}/wait-for-term.mjs`,
        env: { WORD: "it's a $WORD" },
        limit: { ...limit, highBytes: limit.maxBytes - 16 * MIB },
        sigterm: { onLine: "rea" },
        timeoutMs,
      },
    ]);
    [grown, cached, free, told] = ends as [StepEnd, StepEnd, StepEnd, StepEnd];
  }, 900_000);

  it("ends a process that takes more, by a kill of the kernel", () => {
    expect(grown).toMatchObject({ code: null, signal: "SIGKILL", stderr: "" });
    expect(grown.oomKills).toBeGreaterThanOrEqual(1);
    const mib = [...grown.stdout.matchAll(/^holds (\d+) MiB$/gm)].map((match) => Number(match[1]));
    expect(mib.at(-1)).toBeGreaterThan(LIMIT_MIB / 4);
    expect(mib.at(-1)).toBeLessThan(LIMIT_MIB);
  });

  it("lets page cache fill what is left, and takes it back", () => {
    expect(cached).toMatchObject({ code: 0, signal: null, oomKills: 0 });
    expect(cached.stdout).toBe(`read ${4 * LIMIT_MIB} MiB\n`);
    if (cached.peakBytes !== null) expect(cached.peakBytes).toBeGreaterThan(0.9 * limit.maxBytes);
  });

  it("does not hold for a step without one", () => {
    expect(free).toMatchObject({ code: 0, signal: null, oomKills: 0 });
    expect(free.stdout).toContain(`done with ${2 * LIMIT_MIB} MiB\n`);
    if (free.peakBytes !== null) expect(free.peakBytes).toBeGreaterThan(2 * limit.maxBytes);
  });

  it("gives up on a step that takes too long, and leaves no control group", async () => {
    const script = "test/fault/children/wait-for-term.mjs";
    const run = runLimited(way!, [{ script, env: { WORD: "w" }, limit, timeoutMs: 2000 }]);
    await expect(run).rejects.toThrow(`${script} took longer than`);
    if (way === "vm") return;
    const parents = findParents(way!);
    if (typeof parents === "string") throw new Error(parents);
    const folders = [parents.memory, parents.pressure ?? parents.memory];
    const left = folders.flatMap((folder) => readdirSync(folder));
    expect(left.filter((name) => name.startsWith(`agstate-test-${process.pid}-`))).toEqual([]);
  });

  it("lets a step be told to end at a line, and steps share a folder", () => {
    expect(told).toMatchObject({ code: 7, signal: null, oomKills: 0 });
    expect(told.stdout).toBe("ready\ntold to end, beside it's a $WORD much\n");
  });
});
