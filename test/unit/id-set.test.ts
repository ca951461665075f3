import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IdSet } from "../../src/core/id-set.js";
import type { ObjectId } from "../../src/core/ids.js";
import { randomHex } from "../../src/testing/index.js";

/** Ids of which many begin alike, so that they meet in the table. */
const ids = fc.array(
  fc
    .tuple(fc.constantFrom("00000000", "00000001", "ff030000"), fc.integer({ min: 0, max: 40 }))
    .map(([head, n]) => `${head}${n.toString(16).padStart(56, "0")}` as ObjectId),
  { maxLength: 200 },
);

describe("a set of ids", () => {
  it("holds what was added and nothing else", () => {
    fc.assert(
      fc.property(ids, ids, (added, asked) => {
        const set = new IdSet();
        const model = new Set<ObjectId>();
        // The id of zeroes is no object's.
        const none = "0".repeat(64);
        for (const id of added.filter((each) => each !== none)) {
          expect(set.add(id)).toBe(!model.has(id));
          model.add(id);
        }
        expect(set.size).toBe(model.size);
        for (const id of [...added, ...asked]) {
          if (id !== none) expect(set.has(id)).toBe(model.has(id));
        }
      }),
    );
  });

  it("grows", () => {
    const set = new IdSet();
    const all = Array.from({ length: 20_000 }, () => randomHex(32) as ObjectId);
    for (const id of all) expect(set.add(id)).toBe(true);
    expect(set.size).toBe(all.length);
    expect(all.every((id) => set.has(id) && !set.add(id))).toBe(true);
    expect(all.some((id) => set.has(`${id.slice(1)}0` as ObjectId))).toBe(false);
  });
});
