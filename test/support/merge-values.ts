import fc from "fast-check";
import type { JsonValue } from "../../src/index.js";
import { canon, isObject, type ModelResolver } from "./merge-model.js";

/** Keys that other systems stumble over, and that names in trees must escape. */
export const HOSTILE = [
  "__proto__",
  "constructor",
  "prototype",
  "",
  "a/b",
  "~",
  "*",
  "é\u{1F600}",
  "0",
  'id="1"',
  "\u0000",
];

const scalar: fc.Arbitrary<JsonValue> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -3, max: 9 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<JsonValue[]>(2 ** 53 - 1, 1 - 2 ** 53, 2 ** 53, 1e300, 0.5),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<JsonValue[]>(
      null,
      true,
      false,
      "",
      "a",
      "b",
      "ab",
      "\u{1F600}",
      "\uffff",
    ),
  },
);

const anyKey = fc.oneof(fc.constantFrom(...HOSTILE), fc.constantFrom("n", "m", "list", "o"));

/** A value of any type; equal ones come often. */
export const anyValue: fc.Arbitrary<JsonValue> = fc.letrec<{ node: JsonValue }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: fc.constantFrom<JsonValue[]>("line\n".repeat(600), "x".repeat(2100)) },
    { weight: 1, arbitrary: fc.array(tie("node"), { maxLength: 4 }) },
    {
      weight: 2,
      arbitrary: fc
        .array(fc.tuple(anyKey, tie("node")), { maxLength: 4 })
        .map((members) => Object.fromEntries(members) as JsonValue),
    },
  ),
})).node;

const sizes = (...most: number[]) => fc.constantFrom(...most, ...most, ...most);

/**
 * What a state is made of: a part for each rule (a wide object that fans out, a
 * list that is a tree, a list of objects with ids, a set, a text, counters), or
 * any value. It is not the state itself, so that failures stay readable.
 */
export const anyRecipe = fc.oneof(
  { weight: 1, arbitrary: fc.record({ value: anyValue }) },
  {
    weight: 6,
    arbitrary: fc.record({
      any: fc.array(fc.tuple(anyKey, anyValue), { maxLength: 4 }),
      counters: fc.array(fc.tuple(fc.constantFrom("a", "b", "__proto__"), scalar), {
        maxLength: 3,
      }),
      items: fc.oneof(sizes(0, 1, 3, 6), fc.constant(90)),
      lines: fc.oneof(sizes(0, 1, 4), fc.constant(200)),
      log: fc.oneof(sizes(0, 1, 3, 8), fc.constant(400)),
      n: scalar,
      tags: fc.uniqueArray(fc.constantFrom("t1", "t2", "t3", "t4", "t5"), { maxLength: 4 }),
      wide: fc.oneof(sizes(0, 2), fc.constantFrom(60, 255, 257, 300)),
    }),
  },
);
export type Recipe = typeof anyRecipe extends fc.Arbitrary<infer R> ? R : never;

export function stateOf(recipe: Recipe): JsonValue {
  if ("value" in recipe) return recipe.value;
  const { any, counters, items, lines, log, n, tags, wide } = recipe;
  const many = <T>(count: number, make: (i: number) => T) =>
    Array.from({ length: count }, (_, i) => make(i));
  return {
    any: Object.fromEntries(any),
    counters: Object.fromEntries(counters),
    items: many(items, (i) => ({
      id: i % 3 === 0 ? i : `i${i}`,
      n: i,
      tags: ["t1"],
      list: [`e${i}`],
    })),
    log: many(log, (i) => (i % 50 === 49 ? `entry ${i} ${"x".repeat(1100)}` : `entry ${i}`)),
    n,
    tags,
    text: many(lines, (i) => `line ${i} of a text\n`).join(""),
    wide: Object.fromEntries(
      many(wide, (i) => [`w${i}`, i % 40 === 7 ? { n: i, pad: "y".repeat(2100) } : i]),
    ),
  };
}

/** A change at some place of a state. */
export interface Edit {
  /** Which child is taken on the way down, level by level. */
  readonly picks: readonly number[];
  readonly what: number;
  readonly at: number;
  readonly key: string;
  readonly value: JsonValue;
  /** Goes into what is added to lists, so that few elements are made twice. */
  readonly tag: number;
}

const anyEdit: fc.Arbitrary<Edit> = fc.record({
  picks: fc.array(
    fc.oneof({ weight: 5, arbitrary: fc.nat(7) }, { weight: 1, arbitrary: fc.nat(300) }),
    { maxLength: 4 },
  ),
  what: fc.nat(5),
  at: fc.oneof({ weight: 4, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: fc.nat(400) }),
  key: anyKey,
  value: anyValue,
  tag: fc.nat(2000),
});

export const someEdits = fc.array(anyEdit, { maxLength: 5 });

/** A state after some edits. */
export function edited(state: JsonValue, edits: readonly Edit[]): JsonValue {
  return edits.reduce<JsonValue>((value, edit) => apply(value, edit, 0), state);
}

function apply(value: JsonValue, edit: Edit, depth: number): JsonValue {
  const pick = edit.picks[depth];
  if (pick !== undefined && Array.isArray(value) && value.length > 0) {
    const at = pick % value.length;
    return value.with(at, apply(value[at], edit, depth + 1));
  }
  if (pick !== undefined && isObject(value)) {
    const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    if (members.length > 0) {
      const member = members[pick % members.length] as [string, JsonValue];
      member[1] = apply(member[1], edit, depth + 1);
      return Object.fromEntries(members) as JsonValue;
    }
  }
  return here(value, edit);
}

function here(value: JsonValue, { what, at, key, value: given, tag }: Edit): JsonValue {
  if (what === 5) return given;
  if (typeof value === "number")
    return what < 4 && Number.isSafeInteger(value + at - 2) ? value + at - 2 : given;
  if (typeof value === "string") {
    if (what < 3) return `${value}added ${tag}\n`;
    return what === 3 ? `before\n${value}` : value.slice(value.indexOf("\n") + 1);
  }
  if (Array.isArray(value)) {
    const list = value as JsonValue[];
    const fresh = isObject(list[0]) ? { id: `new${tag % 8}`, n: at, tags: [] } : `tag ${tag}`;
    const place = at % (list.length + 1);
    if (what < 2) return [...list, fresh];
    if (what === 2) return list.toSpliced(place, 0, fresh);
    if (what === 3) return list.toSpliced(place, 1);
    const [moved] = list.slice(place, place + 1);
    return moved === undefined ? [...list, `t${tag % 6}`] : [...list.toSpliced(place, 1), moved];
  }
  if (isObject(value)) {
    const members = new Map(Object.entries(value));
    const own = [...members.keys()].sort();
    if (what < 2) members.set(key, given);
    else if (what === 2) members.set(`k${tag}`, given);
    else if (own.length > 0) members.delete(own[at % own.length] as string);
    return Object.fromEntries(members) as JsonValue;
  }
  return given;
}

const SENSIBLE: readonly (readonly [string, string])[] = [
  ["/counters/*", "sum"],
  ["/items", "by-id:id"],
  ["/items/*/n", "sum"],
  ["/items/*/tags", "union"],
  ["/items/*/list", "append"],
  ["/log", "append"],
  ["/n", "sum"],
  ["/tags", "union"],
  ["/text", "append"],
  ["/wide/*", "max"],
];
const PATHS = [
  ...SENSIBLE.map(([path]) => path),
  ...[
    "",
    "/*",
    "/*/*",
    "/*/*/*",
    "/any",
    "/any/*",
    "/any/__proto__",
    "/any/constructor",
    "/any/~1",
    "/any/a~1b/n",
    "/any/~0",
  ],
  ...[
    "/any/",
    "/counters",
    "/items/*",
    "/items/*/id",
    "/wide",
    "/log/*",
    "/any/*/n",
    "/__proto__",
    "/any/**",
    "/*/a",
  ],
];
const STRATEGIES = [
  ...[
    "append",
    "append",
    "by-id:id",
    "by-id:n",
    "custom:least",
    "custom:some",
    "manual",
    "max",
    "min",
  ],
  ...["ours", "sum", "sum", "theirs", "union"],
];

export const anyPolicies: fc.Arbitrary<Readonly<Record<string, string>>> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({}) },
  {
    weight: 2,
    arbitrary: fc.subarray([...SENSIBLE]).map((policies) => Object.fromEntries(policies)),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.subarray([...SENSIBLE]),
        fc.array(fc.tuple(fc.constantFrom(...PATHS), fc.constantFrom(...STRATEGIES)), {
          maxLength: 4,
        }),
      )
      .map(([some, others]) => Object.fromEntries([...some, ...others])),
  },
);

/** Custom resolvers whose answers cover all that one may say. */
export const RESOLVERS: Readonly<Record<string, ModelResolver>> = {
  least: ({ ours, theirs }) => ({
    take: canon(theirs) < canon(ours) ? "theirs" : "ours",
  }),
  some: ({ path, base, ours, theirs }) => {
    const size = JSON.stringify([base ?? null, ours ?? null, theirs ?? null]).length;
    if (size % 3 === 0) return undefined;
    // A commit without any state would read as null.
    return size % 3 === 1 && path.length > 0 ? { delete: true } : { value: { made: size } };
  },
};

/** Isolation policies: what of a state is held apart from its surroundings. */
export const anyIsolation = fc.subarray(
  [
    "/state/n",
    "/state/items/*/n",
    "/state/log/*",
    "/state/any/*",
    "/state/wide/w1",
    "/state/counters",
    "/state/text",
  ],
  { maxLength: 3 },
);

/** Some paths of a state, none below another; elements of the list of objects are named by their ids. */
export function pathsOf(state: JsonValue, picks: readonly number[]): string[][] {
  const all: string[][] = [];
  const walk = (value: JsonValue, path: string[]): void => {
    if (path.length > 0) all.push(path);
    if (path.length === 3) return;
    if (isObject(value))
      for (const key of Object.keys(value).slice(0, 12))
        walk(value[key] as JsonValue, [...path, key]);
    else if (Array.isArray(value)) {
      for (const element of value.slice(0, 5)) {
        if (isObject(element) && "id" in element)
          walk(element, [...path, `id=${JSON.stringify(element.id)}`]);
      }
    }
  };
  walk(state, []);
  const chosen: string[][] = [];
  const within = (a: string[], b: string[]) => b.every((token, i) => a[i] === token);
  for (const pick of picks) {
    const path = all[pick % Math.max(all.length, 1)];
    if (path !== undefined && !chosen.some((other) => within(path, other) || within(other, path)))
      chosen.push(path);
  }
  return chosen;
}

/** Changes of a short list of objects or of texts, dense enough for both sides to meet at one element. */
const anyListChange = fc.record({
  what: fc.constantFrom<("edit" | "delete" | "insert" | "append" | "rotate")[]>(
    "edit",
    "edit",
    "delete",
    "insert",
    "append",
    "append",
    "rotate",
  ),
  at: fc.nat(6),
  n: fc.nat(9),
});

/** A short list, several versions of it, and the policies of its elements. */
export const anyLists = fc.record({
  size: fc.nat(5),
  pad: fc.constantFrom(0, 0, 700, 2100),
  sides: fc.array(fc.array(anyListChange, { maxLength: 4 }), { minLength: 2, maxLength: 4 }),
  policies: fc.oneof(
    fc.subarray<[string, string]>([
      ["/l", "by-id:id"],
      ["/l/*/n", "sum"],
      ["/l/*", "theirs"],
      ["/l/*/f", "max"],
    ]),
    fc.constantFrom<[string, string][][]>(
      [["/l", "append"]],
      [["/l", "union"]],
      [["/l", "by-id:id"]],
      [["/l", "by-id:id"]],
    ),
  ),
});

/** The base and the versions of {@link anyLists}; elements are objects where they merge by id. */
export function listsOf({
  size,
  pad,
  sides,
  policies,
}: typeof anyLists extends fc.Arbitrary<infer T> ? T : never) {
  const objects = policies.some(([, strategy]) => strategy === "by-id:id");
  const text = "z".repeat(pad);
  const element = (id: string, n: number): JsonValue =>
    objects ? { f: n, id, n, text } : `${id} ${n} ${text}`;
  const base = Array.from({ length: size }, (_, i) => element(`e${i}`, 0));
  const versions = sides.map((changes, side) => {
    let list = base;
    for (const [i, { what, at, n }] of changes.entries()) {
      const place = list.length === 0 ? 0 : at % list.length;
      const old = list[place];
      // Some additions have the name of another side's.
      const fresh = element(n < 2 ? `new ${n}` : `${side}.${i}`, n);
      if (what === "append" || (what === "edit" && old === undefined)) list = [...list, fresh];
      else if (what === "insert") list = list.toSpliced(place, 0, fresh);
      else if (what === "delete") list = list.toSpliced(place, 1);
      else if (what === "rotate") list = [...list.slice(1), ...list.slice(0, 1)];
      else
        list = list.with(place, isObject(old) ? { ...old, [n % 2 === 0 ? "n" : "f"]: n } : fresh);
    }
    return { l: list as JsonValue };
  });
  return { base: { l: base as JsonValue }, versions, policies: Object.fromEntries(policies) };
}
