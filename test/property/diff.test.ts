import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { parsePointer } from "../../src/core/json-pointer.js";
import { type Change, diffLinks } from "../../src/merge/diff.js";
import { normalize } from "../../src/objects/normalize.js";
import { ObjectStore } from "../support/object-store.js";

const MAX = { maxBytes: 1 << 30 };

/** Applies changes to the older value; the result must be the newer one. */
function patch(before: JsonValue, changes: readonly Change[]): JsonValue {
  const root = { value: structuredClone(before) as JsonValue };
  const holderOf = (path: string): { holder: Record<string, JsonValue>; key: string } => {
    const tokens = ["value", ...parsePointer(path)];
    let holder = root as unknown as Record<string, JsonValue>;
    for (const token of tokens.slice(0, -1)) holder = holder[token] as Record<string, JsonValue>;
    return { holder, key: tokens.at(-1) as string };
  };
  // Removals by old index, from the back; then additions by new index, from the front; then the rest.
  for (const change of [...changes].reverse()) {
    if (change.kind !== "removed") continue;
    const { holder, key } = holderOf(change.path);
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  }
  for (const change of changes) {
    if (change.kind === "removed") continue;
    const { holder, key } = holderOf(change.path);
    if (Array.isArray(holder) && change.kind === "added")
      holder.splice(Number(key), 0, change.after);
    else {
      Object.defineProperty(holder, key, {
        value: change.after,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
  }
  return root.value;
}

async function diff(a: JsonValue, b: JsonValue) {
  const store = new ObjectStore();
  const left = store.write(normalize(a, MAX)).link;
  const right = store.write(normalize(b, MAX)).link;
  store.reads = 0;
  const changes: Change[] = [];
  for await (const change of diffLinks(store.reader(), left, right)) changes.push(change);
  return { changes, reads: store.reads };
}

const message = (i: number) => ({
  role: "user",
  content: `message ${i} ${"x".repeat(Math.abs(i) % 700)}`,
});

describe("diff", () => {
  it("describes any change of flat members and scalars exactly", async () => {
    const value = fc.dictionary(
      fc.constantFrom("a", "b", "c", "__proto__", "d/e", "~"),
      fc.oneof(fc.integer(), fc.string({ maxLength: 3000 }), fc.constant(null), fc.boolean()),
    );
    await fc.assert(
      fc.asyncProperty(value, value, async (a, b) => {
        const { changes } = await diff(a, b);
        expect(patch(a, changes)).toEqual(b);
      }),
      { numRuns: 200 },
    );
  });

  it("describes edits of long lists by the elements that changed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 50, max: 400 }),
        fc.array(fc.tuple(fc.nat(), fc.nat(3), fc.nat(3)), { minLength: 1, maxLength: 3 }),
        async (size, edits) => {
          const before = Array.from({ length: size }, (_, i) => message(i));
          const after: JsonValue[] = [...before];
          let inserted = 0;
          let removed = 0;
          for (const [at, del, add] of edits) {
            const index = at % (after.length + 1);
            const gone = after.splice(
              index,
              del,
              ...Array.from({ length: add }, (_, i) => `new ${at} ${i} ${edits.length}`),
            );
            removed += gone.length;
            inserted += add;
          }
          const { changes } = await diff({ m: before }, { m: after });
          expect(changes.length).toBeLessThanOrEqual(inserted + removed);
          const whole = changes.filter((c) => c.path.split("/").length <= 3);
          if (whole.length === changes.length)
            expect(patch({ m: before }, changes)).toEqual({ m: after });
        },
      ),
      { numRuns: 100 },
    );
  });

  it("names the very path of a deep change", async () => {
    const before = { m: Array.from({ length: 300 }, (_, i) => message(i)) };
    const after = structuredClone(before);
    (after.m[200] as { content: string }).content = "changed";
    const { changes } = await diff(before, after);
    expect(changes).toEqual([
      { kind: "changed", path: "/m/200/content", before: before.m[200]?.content, after: "changed" },
    ]);
  });

  it("reads with the change, not with the list", async () => {
    const before = { m: Array.from({ length: 20_000 }, (_, i) => message(i)) };
    const after = { m: [...before.m] };
    after.m.splice(9_000, 1, message(-5));
    after.m.splice(200, 0, message(-7));
    const { changes, reads } = await diff(before, after);
    expect(changes.map((c) => c.path)).toEqual(["/m/200", "/m/9001/content"]);
    expect(reads).toBeLessThan(60);
  });

  it("finds one changed key among 100,000 without reading the others", async () => {
    const before = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key-${i}`, i]));
    const { changes, reads } = await diff(before, { ...before, "key-777": -1, extra: null });
    expect(changes).toEqual([
      { kind: "added", path: "/extra", after: null },
      { kind: "changed", path: "/key-777", before: 777, after: -1 },
    ]);
    expect(reads).toBeLessThan(20);
  });
});
