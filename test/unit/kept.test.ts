import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { DEPTH_MAX } from "../../src/objects/format.js";
import { isSameJson, Kept } from "../../src/objects/kept.js";
import { normalize } from "../../src/objects/normalize.js";
import { jsonValues } from "../support/json.js";
import { usually } from "../support/runs.js";

type Part = object & JsonValue;

const part = fc.oneof(
  fc.array(jsonValues({ maxDepth: 2 })),
  fc.dictionary(fc.string(), jsonValues({ maxDepth: 2 })),
) as fc.Arbitrary<Part>;

/** What comes of it, or the error's code and details. */
function attempt(value: unknown, maxBytes: number, previous?: JsonValue) {
  try {
    return { value: normalize(value, { maxBytes, previous }) };
  } catch (error) {
    const { code, details, message } = error as { code: string; details: object; message: string };
    return { code, details, message };
  }
}

/** As many lists around a value. */
function nested(value: unknown, levels: number): unknown {
  return levels === 0 ? value : nested([value], levels - 1);
}

describe("Kept values", () => {
  it("are normalised as what they hold, the first time and later, up to the same limits", () => {
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 5 }),
        fc.array(fc.tuple(fc.array(fc.nat(4)), fc.integer({ min: 0, max: 200 })), { maxLength: 4 }),
        (parts, rounds) => {
          const kept = parts.map((each) => new Kept(structuredClone(each)));
          let previous: JsonValue | undefined;
          for (const [picks, maxBytes] of rounds) {
            const places = picks.filter((pick) => pick < parts.length);
            const plain = { at: places.map((place) => ({ held: parts[place] })) };
            const given = { at: places.map((place) => ({ held: kept[place] })) };
            const expected = attempt(plain, maxBytes, previous);
            const got = attempt(given, maxBytes, previous);
            expect(got).toStrictEqual(expected);
            if (expected.value !== undefined && previous !== undefined)
              expect(got.value === previous).toBe(isSameJson(expected.value, previous));
            previous = got.value ?? previous;
          }
        },
      ),
      { numRuns: usually(1000, 20_000) },
    );
  });

  it("count for the depth wherever they stand", () => {
    const inner = { list: [[{}], []] };
    const kept = new Kept(structuredClone(inner));
    normalize(kept, { maxBytes: 1000 });
    for (let levels = DEPTH_MAX - 6; levels <= DEPTH_MAX; levels++) {
      const expected = attempt(nested(inner, levels), 10_000);
      expect(attempt(nested(kept, levels), 10_000)).toStrictEqual(expected);
      expect(expected.code).toBe(levels + 4 > DEPTH_MAX ? "LIMIT_EXCEEDED" : undefined);
    }
    // What stands above does not count for what is below.
    const shallow = new Kept({});
    normalize([nested([], 200), shallow], { maxBytes: 10_000 });
    expect(attempt(nested(shallow, DEPTH_MAX - 1), 10_000).code).toBeUndefined();
    expect(shallow.size?.levels).toBe(0);
  });

  it("come to the very object of before, also when that was read anew", () => {
    const kept = new Kept({ a: [1, { b: "text" }] });
    const first = normalize([kept], { maxBytes: 1000 }) as JsonValue[];
    const moved = normalize([0, kept], { maxBytes: 1000, previous: first }) as JsonValue[];
    expect(moved[1]).toBe(first[0]);
    const reread = structuredClone(moved);
    expect(normalize([0, kept], { maxBytes: 1000, previous: reread })).toBe(reread);
    expect(normalize(kept, { maxBytes: 1000 })).toBe(reread[1]);
  });

  it("are walked once, be they members or items", () => {
    const kept = [new Kept({ a: 1 }), new Kept([1])] as const;
    normalize({ member: kept[0], list: [kept[1]] }, { maxBytes: 1000 });
    expect(kept.map(({ size }) => size)).toEqual([
      { bytes: 7, levels: 0 },
      { bytes: 4, levels: 0 },
    ]);
  });

  it("are their value to others", () => {
    const kept = new Kept({ a: [1] });
    expect(JSON.stringify({ kept })).toBe('{"kept":{"a":[1]}}');
  });
});
