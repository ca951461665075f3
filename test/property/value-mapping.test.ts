import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { applyOperations, type StateOperation } from "../../src/objects/draft/operations.js";
import { reconcile } from "../../src/objects/draft/reconcile.js";
import { compileIsolation, type Isolation, isolationOfKey } from "../../src/objects/isolation.js";
import { normalize } from "../../src/objects/normalize.js";
import { freshLink, ObjectStore } from "../support/object-store.js";
import { usually } from "../support/runs.js";

const MAX = { maxBytes: 1 << 30 };

/** A small deterministic generator, so that a failing seed can be run again. */
function random(seed: number) {
  let s = seed >>> 0 || 1;
  const next = () => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    s >>>= 0;
    return s / 2 ** 32;
  };
  const int = (max: number) => Math.floor(next() * max);
  const pick = <T>(list: readonly T[]) => list[int(list.length)] as T;
  return { next, int, pick };
}
type Random = ReturnType<typeof random>;

const WORDS = ["alpha ", "béta ", "γάμμα\n", "𝒟elta ", "e\n", '"q" ', "\u0000", "line\r\n", "😀😀"];

function text(r: Random, size: number): string {
  let out = "";
  while (out.length < size) out += r.next() < 0.3 ? `${r.int(1e9)} ` : r.pick(WORDS);
  return out;
}

/** Sizes around every threshold of the format. */
const SIZES = [0, 1, 5, 20, 100, 255, 500, 511, 512, 513, 1000, 1022, 1023, 1024, 1025, 1026];
const LARGE = [2040, 2044, 2045, 2046, 2047, 2048, 2049, 2050, 3000, 5000, 20_000];

function element(r: Random, depth = 0): JsonValue {
  const kind = r.int(depth > 2 ? 5 : 8);
  if (kind === 0) return r.int(1000) / 8;
  if (kind === 1) return r.pick([null, true, false, 0, "", [], {}] as JsonValue[]);
  if (kind <= 4) return "x".repeat(Math.max(0, r.pick(SIZES) - r.int(4))) + text(r, r.int(30));
  if (kind === 5) return text(r, r.pick(LARGE));
  if (kind === 6) return list(r, r.int(30), depth + 1);
  return object(r, r.int(12), depth + 1);
}

function list(r: Random, n: number, depth = 0): JsonValue[] {
  return Array.from({ length: n }, () => element(r, depth));
}

const KEYS = [
  "a",
  "b",
  "__proto__",
  "constructor",
  "",
  ".git",
  "git~1",
  "a/b",
  "{",
  "[0",
  '"',
  "ключ",
];

function object(r: Random, n: number, depth = 0): { [key: string]: JsonValue } {
  const out = {};
  for (let i = 0; i < n; i++) {
    const key = r.next() < 0.3 ? r.pick(KEYS) : `k${r.int(2000)}`;
    Object.defineProperty(out, key, {
      value: element(r, depth),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return out;
}

function escapeToken(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** A random edit, and the same edit done by hand on a plain value. */
function randomEdit(r: Random, value: JsonValue): { op: StateOperation; after: JsonValue } {
  const copy = JSON.parse(JSON.stringify(value)) as JsonValue;
  let at = copy;
  let path = "";
  let parent: { get: () => JsonValue; set: (v: JsonValue) => void } | null = null;
  for (let depth = 0; depth < 4; depth++) {
    const here = at;
    if (typeof here !== "object" || here === null) break;
    const keys = Object.keys(here);
    if (keys.length === 0 || r.next() < 0.3) break;
    const key = r.pick(keys);
    const holder = here as Record<string, JsonValue>;
    parent = {
      get: () => holder[key] as JsonValue,
      set: (v) => {
        Object.defineProperty(holder, key, {
          value: v,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      },
    };
    path += `/${escapeToken(key)}`;
    at = holder[key] as JsonValue;
  }
  const done = (op: StateOperation, replacement: JsonValue) => {
    if (parent === null) return { op, after: replacement };
    parent.set(replacement);
    return { op, after: copy };
  };
  if (Array.isArray(at) && r.next() < 0.8) {
    const before = at;
    const values = list(r, r.pick([0, 1, 1, 1, 2, 5, 40]));
    if (r.next() < 0.4) {
      return done({ op: "append", path, values }, [...before, ...values]);
    }
    const index = r.int(before.length + 1);
    const deleteCount = r.int(Math.min(before.length - index, r.pick([1, 3, 50, 1000])) + 1);
    const after = [...before];
    after.splice(index, deleteCount, ...values);
    return done({ op: "splice", path, index, deleteCount, values }, after);
  }
  if (typeof at === "string" && r.next() < 0.7) {
    const more = text(r, r.pick([0, 1, 20, 600, 3000]));
    return done({ op: "text-append", path, text: more }, at + more);
  }
  if (typeof at === "object" && at !== null && !Array.isArray(at) && r.next() < 0.8) {
    const target = at as Record<string, JsonValue>;
    const keys = Object.keys(target);
    if (keys.length > 0 && r.next() < 0.45) {
      const key = r.pick(keys);
      delete target[key];
      return { op: { op: "delete", path: `${path}/${escapeToken(key)}` }, after: copy };
    }
    const key = r.next() < 0.2 ? r.pick(KEYS) : `k${r.int(2000)}`;
    const value = element(r);
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
    return { op: { op: "set", path: `${path}/${escapeToken(key)}`, value }, after: copy };
  }
  const replacement = element(r);
  return done({ op: "set", path, value: replacement }, replacement);
}

const STARTS: Record<string, (r: Random) => JsonValue> = {
  empty: () => ({}),
  conversation: (r) => ({ messages: list(r, 150), topic: "t", notes: text(r, 6000) }),
  numbers: (r) => ({ n: Array.from({ length: 1500 }, () => r.int(1e6)) }),
  same: () => ({ n: Array.from({ length: 1200 }, () => 7), s: "ab\n".repeat(3000) }),
  // Around the 256 keys of a fan-out, with values so small that a blob is near.
  keys: (r) =>
    Object.fromEntries(Array.from({ length: 250 + r.int(100) }, (_, i) => [i.toString(36), 1])),
  wide: (r) => Object.fromEntries(Array.from({ length: 700 }, (_, i) => [`key${i}`, r.int(99)])),
  mixed: (r) => object(r, 40),
};

async function chain(seed: number, steps: number, policy: Isolation | null): Promise<void> {
  const r = random(seed);
  const store = new ObjectStore();
  const start = STARTS[r.pick(Object.keys(STARTS))] as (r: Random) => JsonValue;
  let value = normalize(start(r), MAX);
  let { link } = store.write(value, policy);
  for (let step = 0; step < steps; step++) {
    const before = value;
    let ops: StateOperation[] = [];
    let after = before;
    for (let i = r.pick([1, 1, 1, 2, 4]); i > 0; i--) {
      const edit = randomEdit(r, after);
      ops.push(edit.op);
      after = edit.after;
    }
    value = normalize(after, { ...MAX, previous: before });
    const byState = r.next() < 0.5;
    if (byState) ops = [];
    const result = await store.edit(
      link,
      async (context, draft) =>
        byState
          ? reconcile(context, draft, before, value)
          : applyOperations(context, draft, ops, MAX.maxBytes),
      policy,
    );
    const rebuilt = freshLink(value, policy);
    if (result.link.id !== rebuilt.id) {
      throw new Error(
        `seed ${seed} step ${step} ${byState ? "state" : JSON.stringify(ops).slice(0, 300)}`,
      );
    }
    link = result.link;
    if (step % 4 === 0) expect(await store.read(link)).toEqual(value);
  }
}

describe("value mapping", () => {
  it("gives one id to one value, by any path of updates", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1 }), async (seed) => {
        await chain(seed, 25, null);
      }),
      { numRuns: usually(20, 800) },
    );
  });

  it("does so under an isolation policy, too", async () => {
    const policy = isolationOfKey(
      compileIsolation([
        "/state/messages/*",
        "/state/a",
        "/state/k1/b",
        "/state/*/k2",
        "/state/n/*",
      ]),
      "state",
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1 }), async (seed) => {
        await chain(seed, 20, policy);
      }),
      { numRuns: usually(10, 400) },
    );
  });

  it("does so when one commit edits many places of a long list", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1 }),
        fc.integer({ min: 20, max: 2500 }),
        fc.integer({ min: 1, max: 40 }),
        async (seed, size, spread) => {
          const r = random(seed);
          const make = (i: number): JsonValue =>
            i % 17 === 0 ? text(r, 1100) : `${i} ${text(r, i % 90)}`;
          const before = normalize({ l: Array.from({ length: size }, (_, i) => make(i)) }, MAX);
          const list = [...(before as { l: JsonValue[] }).l];
          let at = r.int(spread);
          while (at < list.length) {
            list[at] = r.next() < 0.2 ? text(r, 1500) : make(at);
            at += 1 + r.int(spread);
          }
          const after = normalize({ l: list }, { ...MAX, previous: before });
          const store = new ObjectStore();
          const { link } = store.write(before);
          const result = await store.edit(link, (context, draft) =>
            reconcile(context, draft, before, after),
          );
          expect(result.link.id).toBe(freshLink(after).id);
        },
      ),
      { numRuns: usually(15, 600) },
    );
  });

  it("decodes what it encoded", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 6, noUnicodeString: false }), async (value) => {
        const v = normalize(value, MAX);
        const store = new ObjectStore();
        expect(await store.read(store.write(v).link)).toEqual(v);
      }),
      { numRuns: 500 },
    );
  });
});
