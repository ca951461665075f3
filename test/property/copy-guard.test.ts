import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CopyGuard } from "../../src/residency/guard/guard.js";
import { KEPT_MIN_UNITS, RUN_UNITS, saysNothing } from "../../src/residency/guard/run-index.js";
import { usually } from "../support/runs.js";

const OWNER = { hash: "a".repeat(64), region: "us", workflow: "trip" };

/** Few letters, so that texts share much by chance as well. */
const letters = (of: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...of), minLength, maxLength });

/** The longest run that two texts share, by trying all. */
function longestShared(a: string, b: string): string {
  let longest = "";
  for (let from = 0; from < a.length; from++) {
    while (from + longest.length < a.length) {
      const run = a.slice(from, from + longest.length + 1);
      if (!b.includes(run)) break;
      longest = run;
    }
  }
  return longest;
}

/** Whether a run of 31 units has no piece that says nothing, so that all of it is kept. */
function tells(run: string): boolean {
  for (let at = 0; at + 24 <= run.length; at++) if (saysNothing(run, at, 24)) return false;
  return true;
}

describe("the guard against copies", () => {
  it("finds every run of 31 units that a text shares with a payload, whatever its alignment", () => {
    fc.assert(
      fc.property(
        letters("abcdefgh \n", RUN_UNITS, 120),
        fc.nat(),
        fc.nat(),
        letters('abcdefgh \\"', 0, 80),
        letters('abcdefgh \\"', 0, 80),
        (payload, from, more, before, after) => {
          const at = from % (payload.length - RUN_UNITS + 1);
          const run = payload.slice(at, at + RUN_UNITS + (more % 8));
          fc.pre(tells(run));
          const guard = new CopyGuard();
          guard.add(OWNER, { answer: [payload] });
          expect(guard.find(before + run + after, "eu")).toEqual(OWNER);
          expect(guard.find(before + run + after, "us")).toBeUndefined();
        },
      ),
      { numRuns: usually(1500, 50_000) },
    );
  });

  it("finds nothing where less is shared than a piece", () => {
    fc.assert(
      fc.property(letters("ab", 0, 200), letters("ab", 0, 200), (payload, text) => {
        const guard = new CopyGuard();
        guard.add(OWNER, payload);
        const found = guard.find(text, "eu") !== undefined;
        const shared = longestShared(payload, text);
        const least = payload.length <= RUN_UNITS ? payload.length : 24;
        if (found) expect(shared.length).toBeGreaterThanOrEqual(least);
        if (shared.length >= RUN_UNITS && tells(shared)) expect(found).toBe(true);
        if (shared === payload && payload.length >= KEPT_MIN_UNITS && tells(payload)) {
          expect(found).toBe(!saysNothing(payload));
        }
      }),
      { numRuns: usually(1000, 30_000) },
    );
  });

  it("finds a string of 16 to 31 units as a whole, with what stands around it, and no shorter one", () => {
    fc.assert(
      fc.property(
        letters("abcdefghij", 1, RUN_UNITS),
        letters("xyz", 0, 40),
        letters("xyz", 0, 40),
        (payload, before, after) => {
          fc.pre(!saysNothing(payload));
          const guard = new CopyGuard();
          guard.add(OWNER, { [payload]: 1 });
          const found = guard.find(before + payload + after, "eu");
          expect(found).toEqual(payload.length < KEPT_MIN_UNITS ? undefined : OWNER);
        },
      ),
      { numRuns: usually(500, 20_000) },
    );
  });

  it("finds what JSON has escaped, once, twice or three times over", () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom(...'abcdef"\\\n\t\u0001é\u2028'),
          minLength: RUN_UNITS,
          maxLength: 60,
        }),
        fc.integer({ min: 1, max: 3 }),
        (payload, times) => {
          fc.pre(tells(payload.slice(0, RUN_UNITS)) && !payload.includes("\\"));
          const guard = new CopyGuard();
          guard.add(OWNER, payload);
          let text = payload;
          for (let i = 0; i < times; i++) text = JSON.stringify({ said: text });
          expect(guard.find(text, "eu")).toEqual(OWNER);
        },
      ),
      { numRuns: usually(500, 20_000) },
    );
  });

  it("lets go of what came first when there is no more room, and of nothing else", () => {
    fc.assert(
      fc.property(
        fc.array(letters("abcdefghijklmnop", 40, 60), { minLength: 1, maxLength: 12 }),
        (payloads) => {
          const distinct = [...new Set(payloads)];
          const guard = new CopyGuard(200);
          for (const [i, payload] of distinct.entries()) {
            guard.add({ ...OWNER, hash: String(i) }, payload);
          }
          let units = 0;
          for (let i = distinct.length - 1; i >= 0; i--) {
            const payload = distinct[i] as string;
            units += payload.length;
            expect(guard.find(payload, "eu")?.hash).toBe(units <= 200 ? String(i) : undefined);
          }
        },
      ),
      { numRuns: usually(250, 5000) },
    );
  });
});

describe("what is no secret", () => {
  it("is a short text that home had before the payload came, and never a long one", () => {
    const guard = new CopyGuard();
    expect(guard.find("look-up-a-customer", "eu")).toBeUndefined();
    guard.add(OWNER, { tool: "look-up-a-customer", other: "another-tool-of-it" });
    expect(guard.find("look-up-a-customer", "eu")).toBeUndefined();
    expect(guard.find("look-up-a-customer", "ap")).toEqual(OWNER);
    expect(guard.find("another-tool-of-it", "eu")).toEqual(OWNER);
    expect(guard.find("another-tool-of-it", "eu")).toEqual(OWNER);
  });

  it("is not what went into the payload's own region", () => {
    const guard = new CopyGuard();
    expect(guard.find("a number of 20 digits", "us")).toBeUndefined();
    guard.add(OWNER, "a number of 20 digits");
    expect(guard.find("a number of 20 digits", "eu")).toEqual(OWNER);
  });

  it("is a line of dashes, white space, or a table's frame", () => {
    const guard = new CopyGuard();
    const nothing = ["-".repeat(80), " \n".repeat(40), "|---".repeat(20), " ".repeat(40)];
    guard.add(OWNER, nothing);
    for (const text of nothing) expect(guard.find(text, "eu")).toBeUndefined();
  });
});
