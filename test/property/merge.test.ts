import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/index.js";
import { contestId } from "../../src/merge/contest.js";
import {
  type EngineInput,
  engineIsolation,
  engineMerge,
  inOrder,
} from "../support/merge-engine.js";
import {
  canon,
  differences,
  equal,
  isObject,
  kindOf,
  type Maybe,
  MergeModel,
  member,
} from "../support/merge-model.js";
import {
  anyIsolation,
  anyLists,
  anyPolicies,
  anyRecipe,
  anyValue,
  edited,
  HOSTILE,
  listsOf,
  pathsOf,
  RESOLVERS,
  someEdits,
  stateOf,
} from "../support/merge-values.js";
import { freshLink } from "../support/object-store.js";

/** `npm test` draws some hundreds of cases a property, the nightly run thousands. */
const RUNS = Number(process.env.AGSTATE_RUNS ?? 150);
const runs = (share = 1) => ({ numRuns: Math.max(5, Math.ceil(RUNS * share)) });

const threeSides = fc.record({ recipe: anyRecipe, a: someEdits, b: someEdits, shared: someEdits });

/** Merges by the engine and by the model, and expects one outcome. */
async function expectAsModel(input: EngineInput): Promise<void> {
  const model = new MergeModel(input.policies ?? {}, RESOLVERS);
  let expected: Maybe = input.ours;
  for (const source of input.sources) expected = model.merge(expected, source);
  const found = await engineMerge({ ...input, resolvers: RESOLVERS });
  // The result is stored as if it had been committed from nothing.
  const isolation = engineIsolation(input.isolation ?? []);
  const fresh = found.value === undefined ? undefined : freshLink(found.value, isolation);
  expect(found.id).toBe(fresh?.id);
  if (model.ambiguous) return;
  expect(inOrder(found.contests)).toEqual(inOrder([...model.contests.values()]));
  expect(differences(found.value, expected)).toEqual([]);
}

describe("merging values", () => {
  it("gives what a naive merge of whole values gives, conflicts included", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyRecipe,
        fc.array(someEdits, { minLength: 2, maxLength: 4 }),
        someEdits,
        anyPolicies,
        anyIsolation,
        fc.array(fc.nat(1000), { maxLength: 3 }),
        async (recipe, sides, shared, policies, isolation, marks) => {
          const base = stateOf(recipe);
          // Sides that have edits in common: equal changes, and equal parts.
          const both = edited(base, shared);
          const [ours, ...theirs] = sides.map((edits, i) =>
            edited((edits.length + i) % 2 === 0 ? base : both, edits),
          );
          const unknown = marks.length === 3 ? pathsOf(base, marks) : [];
          const sources = theirs.map((value) => ({ base, unknown, theirs: value }));
          await expectAsModel({ ours, sources, policies, isolation });
        },
      ),
      runs(),
    );
  });

  it("does so where many sides change one short list", async () => {
    await fc.assert(
      fc.asyncProperty(anyLists, async (drawn) => {
        const { base, versions, policies } = listsOf(drawn);
        const [ours, ...theirs] = versions;
        await expectAsModel({
          ours,
          sources: theirs.map((value) => ({ base, theirs: value })),
          policies,
        });
      }),
      runs(2),
    );
  });

  it("takes what one side changed exactly, whatever the policies, and leaves what is equal", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyRecipe,
        someEdits,
        anyPolicies,
        anyIsolation,
        async (recipe, edits, policies, isolation) => {
          const base = stateOf(recipe);
          const changed = edited(base, edits);
          for (const [b, ours, theirs, result] of [
            [base, base, changed, changed],
            [base, changed, base, changed],
            [base, undefined, base, undefined],
            [base, base, undefined, undefined],
            [undefined, undefined, changed, changed],
            [changed, changed, changed, changed],
          ] as const) {
            const merge = {
              ours,
              sources: [{ base: b, theirs }],
              policies,
              resolvers: RESOLVERS,
              isolation,
            };
            const found = await engineMerge(merge);
            expect(differences(found.value, result)).toEqual([]);
            expect(found.contests).toEqual([]);
          }
        },
      ),
      runs(0.15),
    );
  });

  it("leaves what both sides made equal, where nothing counts", async () => {
    await fc.assert(
      fc.asyncProperty(anyRecipe, someEdits, anyPolicies, async (recipe, edits, policies) => {
        const base = stateOf(recipe);
        const both = edited(base, edits);
        const counting = Object.values(policies).some((strategy) =>
          ["sum", "append"].includes(strategy),
        );
        fc.pre(!counting);
        const found = await engineMerge({
          ours: both,
          sources: [{ base, theirs: both }],
          policies,
          resolvers: RESOLVERS,
        });
        expect(differences(found.value, both)).toEqual([]);
        expect(found.contests).toEqual([]);
      }),
      runs(0.3),
    );
  });

  it("loses nothing that one side alone changed", async () => {
    let checked = 0;
    await fc.assert(
      fc.asyncProperty(threeSides, async ({ recipe, a, b }) => {
        const base = stateOf(recipe);
        const [ours, theirs] = [edited(base, a), edited(base, b)];
        const { value, contests } = await engineMerge({ ours, sources: [{ base, theirs }] });
        const look = (path: string[], x: Maybe, o: Maybe, t: Maybe, result: Maybe): void => {
          const key = canon(path);
          if (contests.some((contest) => canon([...contest.path]) === key)) return;
          const only = equal(x, o) ? { is: t } : equal(x, t) || equal(o, t) ? { is: o } : null;
          if (only !== null) {
            checked++;
            expect(differences(result, only.is, path.join("/"))).toEqual([]);
          } else if ([o, t].every(isObject)) {
            expect(isObject(result)).toBe(true);
            const keys = new Set(
              [x, o, t, result].flatMap((side) => Object.keys(isObject(side) ? side : {})),
            );
            for (const k of keys)
              look([...path, k], member(x, k), member(o, k), member(t, k), member(result, k));
          } else {
            // Both changed it and nothing is in conflict: both lists were only appended to.
            const lists = [x, o, t] as JsonValue[][];
            const [before, mine, other] = lists as [JsonValue[], JsonValue[], JsonValue[]];
            expect(mine.slice(0, before.length)).toEqual(before);
            expect(result).toEqual([...mine, ...other.slice(before.length)]);
          }
        };
        look([], base, ours, theirs, value);
      }),
      runs(0.6),
    );
    expect(checked).toBeGreaterThan(RUNS);
  });

  it("names only conflicts of real and differing values, by their right kinds", async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(threeSides, anyPolicies, async ({ recipe, a, b, shared }, policies) => {
        const base = stateOf(recipe);
        const both = edited(base, shared);
        const [ours, theirs] = [edited(both, a), edited(both, b)];
        const { contests } = await engineMerge({
          ours,
          sources: [{ base, theirs }],
          policies,
          resolvers: RESOLVERS,
        });
        for (const { path, ours: mine, claims } of contests) {
          seen++;
          expect(claims.length).toBe(1);
          const [claim] = claims as [(typeof claims)[0]];
          const at = (side: Maybe) => lookIn(side, path);
          expect([claim.base, mine, claim.theirs]).toEqual([at(base), at(ours), at(theirs)]);
          expect(claim.kind).toBe(kindOf(claim.base, true, mine, claim.theirs));
          expect(equal(claim.base, mine) || equal(claim.base, claim.theirs)).toBe(false);
          // Equal numbers conflict only where both count and the sum is not exact.
          const numbers = typeof mine === "number" && typeof claim.theirs === "number";
          if (!(numbers && Object.values(policies).includes("sum")))
            expect(equal(mine, claim.theirs)).toBe(false);
        }
      }),
      runs(0.6),
    );
    expect(seen).toBeGreaterThan(RUNS / 20);
  });
});

describe("a conflict's id", () => {
  const side = fc.option(fc.constantFrom<JsonValue[]>(1, 2, "1", null, [1]), { nil: undefined });
  const claim = fc.record({
    kind: fc.constantFrom<("edit/edit" | "type")[]>("edit/edit", "type"),
    base: side,
    theirs: side,
  });
  const contest = fc.record({
    path: fc.array(fc.constantFrom("a", "b", "/", "a/b", '"'), { maxLength: 3 }),
    ours: side,
    claims: fc.array(claim, { minLength: 1, maxLength: 2 }),
  });

  it("is that of its path, its values and its kinds, and of nothing else", () => {
    const stored = (value: Maybe) => (value === undefined ? undefined : { value });
    const idOf = ({
      path,
      ours,
      claims,
    }: {
      path: string[];
      ours: Maybe;
      claims: { kind: "edit/edit" | "type"; base: Maybe; theirs: Maybe }[];
    }) =>
      contestId({
        path,
        ours: stored(ours),
        claims: claims.map(({ kind, base, theirs }, source) => ({
          source,
          kind,
          baseKnown: true,
          base: stored(base),
          theirs: stored(theirs),
        })),
      });
    const told = (value: { ours: Maybe; claims: { base: Maybe; theirs: Maybe }[] }) =>
      JSON.stringify(value, (_, v) => (v === undefined ? "absent" : v));
    fc.assert(
      fc.property(contest, contest, contest, (one, another, third) => {
        const [claimed] = third.claims as [(typeof third.claims)[0]];
        const [first, ...rest] = one.claims as [(typeof third.claims)[0]];
        const likes = [
          another,
          one,
          { ...one, ours: third.ours },
          { ...one, path: third.path },
          ...(["kind", "base", "theirs"] as const).map((part) => ({
            ...one,
            claims: [{ ...first, [part]: claimed[part] }, ...rest],
          })),
          { ...one, claims: [...one.claims].reverse() },
        ];
        for (const like of likes) expect(idOf(like) === idOf(one)).toBe(told(like) === told(one));
      }),
      runs(),
    );
  });
});

/** What stands at a path; an element of a list is named by its member `id` or `n`. */
function lookIn(value: Maybe, path: readonly string[]): Maybe {
  let at = value;
  for (const token of path) {
    if (!Array.isArray(at)) at = member(at, token);
    else
      at = at.find((e: JsonValue) =>
        ["id", "n"].some((key) => token === `${key}=${JSON.stringify(member(e, key))}`),
      );
  }
  return at;
}

describe("what a merge reads", () => {
  const wide = (own: object) => ({
    ...Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`key ${i}`, { i }])),
    ...own,
  });
  const log = Array.from({ length: 5000 }, (_, i) => `entry ${i}`);
  const base = { wide: wide({}), log };

  it("is nothing where both sides are equal, however far they are from the base", async () => {
    const both = { wide: wide({ "key 7": 0, new: 1 }), log: [...log, "more"] };
    const { reads } = await engineMerge({ ours: both, sources: [{ base, theirs: both }] });
    expect(reads).toBe(0);
  });

  it("is what lies on the way to what differs", async () => {
    const ours = { wide: wide({ "key 7": 0 }), log: [...log, "ours"] };
    const theirs = { wide: wide({ "key 4000": 0 }), log: [...log, "theirs"] };
    const { reads, stored, value } = await engineMerge({ ours, sources: [{ base, theirs }] });
    expect(value).toEqual({
      wide: wide({ "key 7": 0, "key 4000": 0 }),
      log: [...log, "ours", "theirs"],
    });
    expect(stored).toBeGreaterThan(1000);
    expect(reads).toBeLessThan(50);
  });
});

describe("merging several sources", () => {
  const keyAt = (n: number) => HOSTILE[n] ?? `k${n}`;
  /** Edits of different members of one object: each source has some that no other touches. */
  const disjoint = fc.record({
    size: fc.constantFrom(0, 3, 40, 257),
    sources: fc.array(
      fc.array(fc.tuple(fc.nat(400), fc.constantFrom("set", "delete", "deep"), anyValue), {
        minLength: 1,
        maxLength: 4,
      }),
      { minLength: 2, maxLength: 4 },
    ),
    order: fc.nat(23),
    big: fc.boolean(),
  });

  it("commutes and associates where they changed different members", async () => {
    await fc.assert(
      fc.asyncProperty(disjoint, async ({ size, sources, order, big }) => {
        const pad = big ? "p".repeat(2100) : "";
        const root = new Map<string, JsonValue>(
          Array.from({ length: size }, (_, i) => [keyAt(i), { pad, deep: { i } }]),
        );
        const object = (members: Map<string, JsonValue>) => ({
          in: { deeper: Object.fromEntries(members) },
        });
        const base = object(root);
        const all = new Map(root);
        const sides = sources.map((edits, i) => {
          const members = new Map(root);
          for (const [at, what, value] of edits) {
            // Members whose number has the remainder i are this source's own.
            const key = keyAt(at - (at % sources.length) + i);
            for (const side of [members, all]) {
              if (what === "delete") side.delete(key);
              else if (what === "set") side.set(key, value);
              else side.set(key, { ...(root.get(key) as object), deep: value });
            }
          }
          return object(members);
        });
        const expected = object(all);
        const id = freshLink(expected).id;
        const permuted = [...sides].sort(
          (x, y) => ((sides.indexOf(x) * 7 + order) % 5) - ((sides.indexOf(y) * 7 + order) % 5),
        );
        const octopus = async (first: JsonValue, rest: readonly JsonValue[]) =>
          engineMerge({ ours: first, sources: rest.map((theirs) => ({ base, theirs })) });

        for (const [first, ...rest] of [sides, permuted, [base, ...permuted]] as unknown as [
          JsonValue,
          ...JsonValue[],
        ][]) {
          const merged = await octopus(first, rest);
          expect(differences(merged.value, expected)).toEqual([]);
          expect([merged.id, merged.contests]).toEqual([id, []]);
        }
        // (a b) c and a (b c): pairs first, then what they make.
        let pairs: JsonValue[] = permuted;
        while (pairs.length > 1) {
          const [last, before] = [pairs.at(-1), pairs.at(-2)] as [JsonValue, JsonValue];
          const pair = await octopus(before, [last]);
          expect(pair.contests).toEqual([]);
          pairs = [...pairs.slice(0, -2), pair.value as JsonValue];
        }
        expect(freshLink(pairs[0] as JsonValue).id).toBe(id);
      }),
      runs(0.06),
    );
  });

  const merged = async (strategy: string, base: Maybe, values: readonly JsonValue[]) => {
    const at = (value: Maybe) => (value === undefined ? {} : { x: value });
    const [ours, ...others] = values;
    const { value, contests } = await engineMerge({
      ours: at(ours),
      sources: others.map((theirs) => ({ base: at(base), theirs: at(theirs) })),
      policies: { "/x": strategy },
    });
    return { value: member(value, "x"), contests };
  };

  it("sums all that each added, and conflicts where that is not exact", async () => {
    const number = fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: -1000, max: 1000 }) },
      { weight: 1, arbitrary: fc.maxSafeInteger() },
      { weight: 1, arbitrary: fc.constantFrom(0.5, 2 ** 53, 1e300, -(2 ** 53)) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.option(number, { nil: undefined }),
        fc.array(number, { minLength: 2, maxLength: 5 }),
        async (base, values) => {
          const { value, contests } = await merged("sum", base, values);
          const from = base ?? 0;
          const whole = [from, ...values].every(Number.isSafeInteger);
          const changed = values.filter((v) => v !== base);
          if (!whole) {
            // One change is no sum.
            if (changed.length > 1) expect(contests.length).toBe(1);
            return;
          }
          const partial: bigint[] = [];
          let total = BigInt(from);
          for (const v of values) {
            total += BigInt(v) - BigInt(from);
            partial.push(total);
          }
          const exact = partial.every(
            (sum) =>
              sum >= BigInt(Number.MIN_SAFE_INTEGER) && sum <= BigInt(Number.MAX_SAFE_INTEGER),
          );
          if (exact) {
            expect(contests).toEqual([]);
            expect(BigInt(value as number)).toBe(total);
          } else expect(contests.length).toBe(1);
        },
      ),
      runs(),
    );
  });

  it("makes unions that do not depend on the order of the sources, and that a second time changes nothing", async () => {
    const set = fc.uniqueArray(
      fc.oneof(
        fc.nat(6),
        fc.constantFrom<JsonValue[]>("a", { a: 1 }, [1], null, "z".repeat(1100), "y".repeat(1100)),
      ),
      {
        selector: canon,
        maxLength: 8,
      },
    );
    await fc.assert(
      fc.asyncProperty(set, fc.array(set, { minLength: 2, maxLength: 4 }), async (base, sides) => {
        const sorted = (value: Maybe) => (value as JsonValue[]).map(canon).sort();
        const one = await merged("union", base, sides);
        const other = await merged("union", base, [...sides].reverse());
        expect([...one.contests, ...other.contests]).toEqual([]);
        expect(sorted(one.value)).toEqual(sorted(other.value));
        const inAll = (x: JsonValue) => sides.every((side) => side.some((y) => equal(x, y)));
        const expected = [
          ...base.filter(inAll),
          ...sides.flat().filter((x) => !base.some((y) => equal(x, y))),
        ];
        expect(sorted(one.value)).toEqual([...new Set(expected.map(canon))].sort());
        const again = await merged("union", base, [one.value as JsonValue, ...sides]);
        expect(sorted(again.value)).toEqual(sorted(one.value));
      }),
      runs(0.6),
    );
  });

  it("takes the greatest and the least, whatever the order", async () => {
    const same = fc.oneof(
      fc.array(
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (x === 0 ? 0 : x)),
        { minLength: 3, maxLength: 5 },
      ),
      fc.array(fc.constantFrom("", "a", "B", "ab", "\u{1F600}", "\uffff", "é"), {
        minLength: 3,
        maxLength: 5,
      }),
    );
    await fc.assert(
      fc.asyncProperty(same, fc.constantFrom("max", "min"), async ([base, ...values], strategy) => {
        const changed = values.filter((value) => value !== base) as (string | number)[];
        const bytes = (value: string | number) => Buffer.from(String(value));
        const ordered = [...changed].sort((x, y) =>
          typeof x === "number" ? x - (y as number) : Buffer.compare(bytes(x), bytes(y)),
        );
        for (const sides of [values, [...values].reverse()] as JsonValue[][]) {
          const { value, contests } = await merged(strategy, base as JsonValue, sides);
          expect(contests).toEqual([]);
          expect(value).toBe((strategy === "max" ? ordered.at(-1) : ordered[0]) ?? base);
        }
      }),
      runs(0.6),
    );
  });

  it("appends what each side added, in its order, ours first; to lists and to texts", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(0, 2, 30, 400),
        fc.array(fc.tuple(fc.nat(40), fc.boolean()), { minLength: 2, maxLength: 4 }),
        fc.constantFrom<("append" | "default")[]>("append", "default"),
        async (size, sides, how) => {
          const base = Array.from({ length: size }, (_, i) => `b${i}`);
          const added = sides.map(([count, equalOnes], s) =>
            Array.from({ length: count }, (_, i) => (equalOnes ? `same${i}` : `${s}.${i}`)),
          );
          const values = added.map((run) => [...base, ...run]);
          const { value, contests } = await merged(
            how === "append" ? "append" : "by-id:none",
            base,
            how === "append" ? values : [],
          );
          if (how === "append") {
            expect(contests).toEqual([]);
            expect(value).toEqual([...base, ...added.flat()]);
            const texts = values.map((list) => list.map((line) => `${line}\n`).join(""));
            const text = await merged("append", base.map((line) => `${line}\n`).join(""), texts);
            expect(text.value).toBe([...base, ...added.flat()].map((line) => `${line}\n`).join(""));
            return;
          }
          // Default rules: equal sides are one change, others are two.
          const [ours, theirs] = values as [string[], string[]];
          const result = await engineMerge({ ours, sources: [{ base, theirs }] });
          expect(result.contests).toEqual([]);
          expect(result.value).toEqual(
            equal(ours, theirs) ? ours : [...ours, ...theirs.slice(size)],
          );
        },
      ),
      runs(0.4),
    );
  });

  it("appends each addition once, however the lists repeat themselves or were turned about", async () => {
    const list = fc.array(fc.nat(3), { maxLength: 8 });
    const part = fc.record({ keep: fc.boolean(), drop: fc.nat(3), more: list });
    await fc.assert(
      fc.asyncProperty(
        list,
        part,
        part,
        fc.constantFrom(0, 700, 1100),
        async (drawn, a, b, pad) => {
          const element = (n: number): JsonValue => (pad === 0 ? n : `${n} ${"w".repeat(pad)}`);
          const base = drawn.map(element);
          const [ours, theirs] = [a, b].map(({ keep, drop, more }) => [
            ...(keep ? base : base.filter((_, i) => i % 4 !== drop)),
            ...more.map(element),
          ]) as [JsonValue[], JsonValue[]];
          fc.pre(!equal(base, ours) && !equal(base, theirs));
          const { value, contests } = await merged("append", base, [ours, theirs]);
          const inner = [ours, theirs].filter((side) => !equal(side.slice(0, base.length), base));
          if (inner.length < 2) expect(contests).toEqual([]);
          if (contests.length > 0) return;
          const count = (side: Maybe, x: JsonValue) =>
            (side as JsonValue[]).filter((y) => equal(x, y)).length;
          for (const x of [0, 1, 2, 3].map(element)) {
            const [o, t, was, is] = [ours, theirs, base, value].map((side) => count(side, x)) as [
              number,
              number,
              number,
              number,
            ];
            if (inner.length < 2) expect(is).toBe(o + t - was);
            // Where both removed the same, that is one removal.
            else expect(is).toBeGreaterThanOrEqual(Math.max(o, t));
          }
        },
      ),
      runs(),
    );
  });

  it("takes one side, or none, where it is told so", async () => {
    await fc.assert(
      fc.asyncProperty(anyValue, anyValue, anyValue, async (base, ours, theirs) => {
        fc.pre(!equal(base, ours) && !equal(base, theirs) && !equal(ours, theirs));
        expect(await merged("ours", base, [ours, theirs])).toEqual({ value: ours, contests: [] });
        expect(await merged("theirs", base, [ours, theirs])).toEqual({
          value: theirs,
          contests: [],
        });
        const { value, contests } = await merged("manual", base, [ours, theirs]);
        expect(value).toEqual(ours);
        expect(contests.map(({ path }) => path)).toEqual([["x"]]);
      }),
      runs(0.3),
    );
  });
});
