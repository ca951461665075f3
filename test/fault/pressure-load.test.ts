import { beforeAll, describe, expect, it } from "vitest";
import { limitWay, runLimited, type StepEnd } from "../support/memory-limit.js";
import { usually } from "../support/runs.js";

const MIB = 1 << 20;
const { way, missing } = await limitWay();
const suffix = way === null ? `: none here (${missing.join("; ")})` : ` (${way})`;

interface Told {
  readonly level: string;
  readonly kinds: readonly string[];
  readonly used: number;
  readonly at: string | undefined;
}

function told(end: StepEnd): Told[] {
  return end.stdout
    .split("\n")
    .filter((line) => line.startsWith("pressure "))
    .map((line) => JSON.parse(line.slice("pressure ".length)));
}

describe.skipIf(way === null)(`a watch under a real limit of memory${suffix}`, () => {
  const script = "test/fault/children/watched-load.mjs";
  const cacheMib = usually(160, 512);
  const holdSeconds = usually(14, 60);
  let cached: StepEnd;
  let thrashed: StepEnd;
  let held: StepEnd;

  beforeAll(async () => {
    const step = (args: readonly (string | number)[], maxMib: number) => ({
      script,
      args: args.map(String),
      limit: { maxBytes: maxMib * MIB },
      timeoutMs: 180_000,
    });
    const ends = await runLimited(way!, [
      step(["cache", 4 * cacheMib], cacheMib),
      step(["thrash", 200, 60], 160),
      step(["hold", holdSeconds], 256),
    ]);
    [cached, thrashed, held] = ends as [StepEnd, StepEnd, StepEnd];
  }, 1_500_000);

  it("takes page cache of four times the limit for no pressure", () => {
    expect(cached).toMatchObject({ code: 0, stderr: "", oomKills: 0 });
    expect(told(cached)).toEqual([]);
    if (cached.peakBytes !== null) expect(cached.peakBytes).toBeGreaterThan(0.95 * cacheMib * MIB);
  });

  it("sees tasks wait for files that were dropped, though little is in use, in the control group itself", () => {
    expect(thrashed).toMatchObject({ code: 0, stderr: "", oomKills: 0 });
    expect(told(thrashed), thrashed.stdout).toEqual([
      {
        level: "pressure",
        kinds: ["stall"],
        used: expect.any(Number),
        at: expect.stringMatching(/^\/.*\/memory\.pressure$/),
      },
    ]);
    expect(told(thrashed)[0]?.used).toBeLessThan(0.85);
  });

  it("tells usage that is held at the threshold once, however long that is", () => {
    expect(held).toMatchObject({ code: 0, stderr: "", oomKills: 0 });
    expect(told(held)).toMatchObject([{ level: "pressure", kinds: ["usage"] }]);
    expect(held.stdout).toContain('level "pressure"\ntold 1\n');
  });
});
