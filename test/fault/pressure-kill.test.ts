import { beforeAll, describe, expect, it } from "vitest";
import { limitWay, runLimited, type StepEnd } from "../support/memory-limit.js";

const MIB = 1 << 20;
const { way, missing } = await limitWay();
const suffix = way === null ? `: none here (${missing.join("; ")})` : ` (${way})`;

/** What a step said, by the word that its line begins with. */
function said(end: StepEnd, word: string): unknown[] {
  return end.stdout
    .split("\n")
    .filter((line) => line.startsWith(`${word} `))
    .map((line) => JSON.parse(line.slice(word.length + 1)));
}

interface Taken {
  readonly digest: string;
  readonly notes: number;
}

interface Found extends Taken {
  readonly reason: string;
  readonly message: string;
  readonly inFlight: readonly number[];
}

describe.skipIf(way === null)(`an agent under a real limit of memory${suffix}`, () => {
  const script = "test/fault/children/pressured-agent.mjs";
  const limit = { maxBytes: 320 * MIB };
  const timeoutMs = 90_000;

  async function live(mode: string, rest: { sigterm?: { onLine: string } } = {}) {
    const resume = { script, args: ["resume"], timeoutMs };
    const ends = await runLimited(way!, [
      { script, args: [mode], limit, timeoutMs, ...rest },
      resume,
    ]);
    return ends as [StepEnd, StepEnd];
  }

  /** What was in memory is in the store, whole, as it was last taken from there. */
  function expectSaved(first: StepEnd, resumed: StepEnd, reason: string): Found {
    const found = said(resumed, "found")[0] as Found;
    expect(found.reason, first.stdout + resumed.stdout).toBe(reason);
    const taken = said(first, "asked") as Taken[];
    const safe = said(first, "notice").filter((each) => (each as { code: string }).code === "safe");
    expect(safe.length).toBeGreaterThan(0);
    // The last pass may have been cut off by the kill before it landed.
    const known = taken.slice(safe.length - 1).map(({ digest, notes }) => ({ digest, notes }));
    expect(known).toContainEqual({ digest: found.digest, notes: found.notes });
    expect(said(resumed, "problems")).toEqual([[]]);
    return found;
  }

  describe("that is killed by the kernel", () => {
    let grown: StepEnd;
    let resumed: StepEnd;

    beforeAll(async () => {
      [grown, resumed] = await live("grow");
    }, 900_000);

    it("had its state brought into the store before, and its reserve given back", () => {
      expect(grown).toMatchObject({ code: null, signal: "SIGKILL" });
      expect(grown.oomKills).toBeGreaterThanOrEqual(1);
      expect(said(grown, "pressure")[0]).toEqual({
        reason: "memory-pressure",
        level: expect.stringMatching(/^(pressure|critical)$/),
        releasedBytes: 16 * MIB,
      });
      const found = expectSaved(grown, resumed, "memory-pressure");
      expect(found.message).toMatch(
        /^emergency checkpoint: memory is (critically )?short: \d+% of 320 MiB/,
      );
      expect(found.notes).toBeGreaterThan(800);
      expect(found.inFlight.length).toBe(1);
    });

    it("goes on from there, and does nothing twice that it had done", () => {
      expect(resumed).toMatchObject({ code: 0, signal: null });
      expect(said(resumed, "answer")).toEqual(["done"]);
      expect(said(resumed, "effects")).toEqual([["1", "2", "3", "4", "5", "6"]]);
    });
  });

  it("ends by itself where it was told so, once everything is in the store", async () => {
    const [ended, resumed] = await live("exit");
    expect(ended).toMatchObject({ code: 75, signal: null, oomKills: 0 });
    expectSaved(ended, resumed, "memory-pressure");
    expect(said(resumed, "effects")).toEqual([["1", "2", "3", "4", "5", "6"]]);
  }, 900_000);

  it("does the same when it is told to end, and then ends by the signal", async () => {
    const [told, resumed] = await live("told", { sigterm: { onLine: "waiting" } });
    expect(told).toMatchObject({ code: null, signal: "SIGTERM", oomKills: 0 });
    const found = expectSaved(told, resumed, "sigterm");
    expect(found.message).toBe("checkpoint: the process was told to end (SIGTERM)");
    expect(found.notes).toBe(400);
    expect(said(resumed, "answer")).toEqual(["done"]);
  }, 900_000);
});
