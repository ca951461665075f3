import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAgstateError } from "../../src/index.js";
import { checkResource, checkResourceList } from "../../src/staleness/resource.js";
import { parseTolerance, toleranceText } from "../../src/staleness/tolerance.js";
import { usually } from "../support/runs.js";
import { agstateError } from "../support/stores.js";

const NOW = 1_700_000_000_000;
const check = (given: unknown) => checkResource(given, { now: NOW });
const LINE = { type: "http", id: "https://example.com/a" };

describe("a resource", () => {
  it("needs a type and an id, and says the strictest of the rest", () => {
    expect(check(LINE)).toEqual({
      ...LINE,
      version: null,
      tolerance: "exact",
      observedAt: NOW,
      steps: [],
    });
  });

  it("may say all that there is", () => {
    const all = { ...LINE, version: 'etag:"a"', tolerance: { maxAgeMs: 5 }, observedAt: 7 };
    expect(check({ ...all, steps: [3, 1, 3] })).toEqual({ ...all, steps: [1, 3] });
    expect(check({ ...LINE, observedAt: new Date(7), tolerance: "max-age=1h" })).toMatchObject({
      observedAt: 7,
      tolerance: { maxAgeMs: 3_600_000 },
    });
  });

  const REFUSED: [member: string, values: unknown[]][] = [
    ["type", [undefined, null, "", "1a", "a b", "__proto__", "a/b", "a".repeat(101), 1]],
    ["id", [undefined, null, "", "a\0b", "a\nb", "a\u2028b", "\ud800", 1]],
    ["version", ["", "a\nb", 1, {}]],
    ["tolerance", [null, "", "max-age=", "max-age=0s", "max-age=-1h", "max-age=1", "max-age=1x"]],
    ["tolerance", ["max-age=1e3h", "EXACT", {}, { maxAgeMs: 0 }, { maxAgeMs: 1.5 }, []]],
    ["tolerance", [{ maxAgeMs: 1, more: 1 }, { maxAgeMs: Number.POSITIVE_INFINITY }]],
    ["observedAt", [null, -1, 0.5, Number.NaN, 1e15, "2024-01-01", new Date(Number.NaN)]],
    ["steps", [null, {}, [-1], [0.5], ["1"], new Array(1)]],
  ];
  for (const [member, values] of REFUSED) {
    it(`is refused with a wrong ${member}: ${values.length} ways`, () => {
      for (const value of values) {
        const error = agstateError("INVALID_VALUE", { field: member });
        expect(() => check({ ...LINE, [member]: value })).toThrow(error);
      }
    });
  }

  it("is refused as something else, and with members that are not known", () => {
    for (const given of [null, [], "http", { ...LINE, verison: "a" }]) {
      expect(() => check(given)).toThrow(agstateError("INVALID_VALUE"));
    }
    expect(() => check({ ...LINE, verison: "a" })).toThrow(/verison/);
  });

  it("has an id and a version of at most 4,096 bytes, and its id is not in the error", () => {
    const longest = "é".repeat(2048);
    expect(check({ ...LINE, id: longest, version: longest }).id).toBe(longest);
    for (const member of ["id", "version"]) {
      const error = agstateError("LIMIT_EXCEEDED", { field: member });
      expect(() => check({ ...LINE, [member]: `${longest}a` })).toThrow(error);
    }
    expect(() => check({ ...LINE, id: "https://u:secret@h/\n" })).not.toThrow(/secret/);
  });

  it("comes in lists of at most 10,000, and is named by its place there", () => {
    const list = (given: unknown) => checkResourceList(given, { now: NOW });
    expect(list([LINE, { ...LINE, type: "file" }]).map(({ type }) => type)).toEqual([
      "http",
      "file",
    ]);
    expect(list(new Array(10_000).fill(LINE))).toHaveLength(10_000);
    expect(() => list(new Array(10_001).fill(LINE))).toThrow(agstateError("LIMIT_EXCEEDED"));
    const error = agstateError("INVALID_VALUE", { at: "/1", field: "id" });
    expect(() => list([LINE, { type: "http" }])).toThrow(error);
    expect(() => list({})).toThrow(agstateError("INVALID_VALUE"));
    expect(() => list(new Array(1))).toThrow(agstateError("INVALID_VALUE"));
  });

  /** Values that are nearly right, and such that are not. */
  const odd = fc.oneof(
    fc.anything(),
    fc.constantFrom("exact", "ignore", "http", "max-age=5m", "etag:x", 0, 1, NOW, "", "a\0"),
    fc.array(fc.integer({ min: -1, max: 5 })),
    fc.record({ maxAgeMs: fc.integer() }),
  );

  it("is never let through in another form than an envelope keeps", () => {
    let passed = 0;
    fc.assert(
      fc.property(
        fc.record(
          { type: odd, id: odd, version: odd, tolerance: odd, observedAt: odd, steps: odd },
          { requiredKeys: [] },
        ),
        fc.subarray(["type", "id", "version", "tolerance", "observedAt", "steps"]),
        (given, right) => {
          const all = { ...LINE, version: "v", tolerance: "exact", observedAt: 1, steps: [1] };
          const mixed: Record<string, unknown> = { ...given };
          for (const member of right) mixed[member] = all[member as keyof typeof all];
          let resource: ReturnType<typeof check>;
          try {
            resource = check(mixed);
          } catch (error) {
            expect(isAgstateError(error, "INVALID_VALUE", "LIMIT_EXCEEDED")).toBe(true);
            return;
          }
          passed++;
          expect(JSON.parse(JSON.stringify(resource))).toEqual(resource);
          expect(resource.type).toMatch(/^[A-Za-z][A-Za-z0-9._+-]*$/);
          for (const text of [resource.id, resource.version ?? "v"]) {
            expect(text).toMatch(/^[^\p{Cc}\p{Cs}\u2028\u2029]+$/u);
          }
          expect(resource.observedAt).toBeGreaterThanOrEqual(0);
          expect(resource.steps).toEqual([...new Set(resource.steps)].sort((a, b) => a - b));
          expect(resource.steps.every((step) => Number.isInteger(step) && step >= 0)).toBe(true);
          expect(parseTolerance(toleranceText(resource.tolerance))).toEqual(resource.tolerance);
        },
      ),
      { numRuns: usually(2000, 100_000) },
    );
    // Else nothing was held against anything.
    expect(passed).toBeGreaterThan(20);
  });
});
