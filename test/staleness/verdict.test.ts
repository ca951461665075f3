import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  Checker,
  CheckFunction,
  Compared,
  Observation,
  Resource,
  Tolerance,
} from "../../src/staleness/types.js";
import { judge, verdictOf } from "../../src/staleness/verdict.js";
import { usually } from "../support/runs.js";

const NOW = 1_700_000_000_000;
const SKEW = 300_000;
const HOUR = 3_600_000;

function resource(more: Partial<Resource> = {}): Resource {
  const usual = { version: "1", tolerance: "exact", observedAt: NOW, steps: [] } as const;
  return { type: "custom", id: "a", ...usual, ...more };
}

const found = (version: string): Observation => ({ kind: "version", version });

/** What is found, as the table of docs/staleness.md has its rows, and the verdict that it says. */
const ROWS: [
  row: string,
  version: string | null,
  Observation,
  checker: object | undefined,
  string,
][] = [
  ["the same version", "1", found("1"), undefined, "fresh"],
  ["compared as the same", "1", found("2"), comparing("same"), "fresh"],
  ["unchanged, as its source says", "1", { kind: "same" }, undefined, "fresh"],
  ["another version", "1", found("2"), undefined, "stale"],
  ["compared as changed", "1", found("1"), comparing("changed"), "stale"],
  ["gone", "1", { kind: "gone", why: "404" }, undefined, "stale"],
  ["gone, and no version on record", null, { kind: "gone", why: "404" }, undefined, "stale"],
  ["not told", "1", { kind: "unknown", why: "503" }, undefined, "unknown"],
  ["no version on record", null, found("1"), undefined, "unknown"],
  ["none on record, and said to be the same", null, { kind: "same" }, undefined, "unknown"],
  ["cannot be compared", "1", found("1"), comparing({ unknown: "in the future" }), "unknown"],
  ["a comparison that fails", "1", found("1"), { compare: fails }, "unknown"],
  ["an empty version", "1", found(""), undefined, "unknown"],
  ["a version of two lines", "1", found("1\n"), undefined, "unknown"],
  ["a version that is too long", "1", found("1".repeat(4097)), undefined, "unknown"],
];

function comparing(compared: Compared) {
  return { compare: () => compared };
}

function fails(): never {
  throw new Error("secret");
}

/** Tolerances with the age of what was read, and whether they let something go on that is not fresh. */
const TOLERANCES: [Tolerance, ageMs: number, tolerated: boolean][] = [
  ["exact", 0, false],
  ["exact", HOUR, false],
  [{ maxAgeMs: HOUR }, 0, true],
  [{ maxAgeMs: HOUR }, HOUR, true],
  [{ maxAgeMs: HOUR }, HOUR + 1, false],
  [{ maxAgeMs: HOUR }, -SKEW, true],
  [{ maxAgeMs: HOUR }, -SKEW - 1, false],
  [{ maxAgeMs: HOUR }, Number.NaN, false],
];

describe("a verdict", () => {
  for (const [row, version, observation, checker, verdict] of ROWS) {
    it(`on ${row} is ${verdict}`, () => {
      for (const [tolerance, ageMs, tolerated] of TOLERANCES) {
        const given = resource({ version, tolerance, observedAt: NOW - ageMs });
        const judging = { now: NOW, skewMs: SKEW };
        const checked = judge(given, observation, checker as Checker | undefined, judging);
        expect(checked).toMatchObject({
          resource: given,
          verdict,
          tolerated: verdict !== "fresh" && tolerated,
        });
        expect(checked.why).not.toBe("");
        expect(checked.why).not.toContain("secret");
      }
      const ignored = judge(
        resource({ version, tolerance: "ignore" }),
        observation,
        checker as Checker | undefined,
        { now: NOW },
      );
      expect(ignored).toMatchObject({
        found: "ignored",
        verdict: "fresh",
        tolerated: true,
        now: null,
      });
    });
  }

  it("tells the version that was found, and in one line what and why", () => {
    const checked = (observation: Observation) =>
      judge(resource(), observation, undefined, { now: NOW });
    expect(checked(found("2"))).toMatchObject({ found: "changed", now: "2" });
    expect(checked({ kind: "same" })).toMatchObject({ found: "same", now: "1" });
    const shown = `two\nlines \u202e\u0007${"😀".repeat(200)}`;
    const one = checked({ kind: "version", version: "2", shown }).shown as string;
    expect(one).toMatch(/^two lines 😀+\.\.\.$/u);
    expect(one.length).toBeLessThanOrEqual(200);
    expect(one.isWellFormed()).toBe(true);
    expect(checked({ kind: "gone", why: "a\r\nb" }).why).toBe("a b");
  });

  it("by a function compares versions as texts", () => {
    const check: CheckFunction = () => "1";
    expect(judge(resource(), found("1"), check, { now: NOW }).verdict).toBe("fresh");
    expect(judge(resource(), found("01"), check, { now: NOW }).verdict).toBe("stale");
  });

  it("on many is the worst of those that are not tolerated", () => {
    const one = fc.record({
      verdict: fc.constantFrom("fresh" as const, "stale" as const, "unknown" as const),
      tolerated: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 6 }), (given) => {
        const checked = given.map((each) => ({
          resource: resource(),
          found: "same" as const,
          now: null,
          why: "w",
          ...each,
        }));
        let worst = 0;
        for (const { verdict, tolerated } of given) {
          if (tolerated) continue;
          worst = Math.max(worst, { fresh: 0, unknown: 1, stale: 2 }[verdict]);
        }
        expect(verdictOf(checked)).toBe(["fresh", "unknown", "stale"][worst]);
      }),
      { numRuns: usually(500, 10_000) },
    );
  });
});
