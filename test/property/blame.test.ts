import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { type JsonValue, setOwn } from "../../src/core/json.js";
import { lastWriters } from "../../src/merge/blame.js";
import { canonicalText } from "../../src/objects/canonical.js";
import { blame } from "../../src/store/blame.js";
import { createStoreContext, Repository } from "../../src/store/repository.js";
import { BACKENDS, type Backend, makeStore } from "../support/stores.js";

/** A list element of the model: none is made twice, and their order in any list is that of their ranks. */
interface Element {
  readonly rank: number;
  readonly text: string;
}

/** A commit of the model. */
interface ModelCommit {
  readonly parents: readonly number[];
  readonly members: ReadonlyMap<string, JsonValue>;
  /** The members of an object of its own, large enough to be a tree. */
  readonly wide: ReadonlyMap<string, JsonValue>;
  readonly list: readonly Element[];
}

/** What is done to make a commit, on top of parts that come from its parents. */
interface Draw {
  readonly parents: readonly number[];
  /** For each part, which parent it is taken from. */
  readonly takes: readonly number[];
  readonly listTake: "first" | "last" | "union" | "common";
  readonly edits: readonly Edit[];
}

type Edit =
  | { readonly on: "members" | "wide"; readonly key: number; readonly value: JsonValue | undefined }
  | {
      readonly on: "list";
      readonly at: number;
      readonly remove: number;
      readonly add: readonly number[];
    };

const KEYS = ["a", "b/c", "~", "__proto__", "", "pad", "deep"];
const wideKey = (n: number) => `wide-${n % 40}`;

// Few values, so that commits write alike ones, and delete and write again.
const value: fc.Arbitrary<JsonValue | undefined> = fc.constantFrom<(JsonValue | undefined)[]>(
  1,
  2,
  null,
  "x".repeat(600),
  "line\n".repeat(700),
  { in: { x: 1, list: [1, 2] } },
  { in: { x: 2 } },
  [],
  {},
  undefined,
  undefined,
);

const edit: fc.Arbitrary<Edit> = fc.oneof(
  fc.record({ on: fc.constant("members" as const), key: fc.nat(KEYS.length - 1), value }),
  fc.record({ on: fc.constant("wide" as const), key: fc.nat(), value }),
  fc.record({
    on: fc.constant("list" as const),
    at: fc.nat(),
    remove: fc.nat(3),
    add: fc.array(fc.constantFrom(5, 80, 700, 1500, 2500), { maxLength: 4 }),
  }),
);

const draw: fc.Arbitrary<Draw> = fc.record({
  parents: fc.oneof(
    { weight: 3, arbitrary: fc.tuple(fc.nat()) },
    { weight: 2, arbitrary: fc.array(fc.nat(), { minLength: 1, maxLength: 3 }) },
  ),
  takes: fc.array(fc.nat(2), { minLength: 2, maxLength: 2 }),
  listTake: fc.constantFrom("first", "last", "union", "common"),
  edits: fc.array(edit, { maxLength: 3 }),
});

const history = fc.array(draw, { minLength: 3, maxLength: 25, size: "max" });

function build(draws: readonly Draw[]): ModelCommit[] {
  let made = 0;
  const commits: ModelCommit[] = [{ parents: [], members: new Map(), wide: new Map(), list: [] }];
  for (const { parents: picks, takes, listTake, edits } of draws) {
    // Near ones, so that lines run side by side and meet.
    const reach = Math.min(4, commits.length);
    const parents = [...new Set(picks.map((pick) => commits.length - 1 - (pick % reach)))];
    const from = parents.map((parent) => commits[parent]!);
    const members = new Map(from[takes[0]! % from.length]!.members);
    const wide = new Map(from[takes[1]! % from.length]!.wide);
    let list = mergedList(from, listTake);
    for (const e of edits) {
      if (e.on === "list") {
        const at = e.at % (list.length + 1);
        const low = list[at - 1]?.rank ?? 0;
        const high = list[at]?.rank ?? low + 1;
        const added = e.add.map((size, i) => ({
          // No two ranks are alike, or their order would differ from list to list.
          rank: low + ((high - low) * (i + 0.5 + 0.4 * ((made * 0.618) % 1))) / e.add.length,
          text: `element ${made++} ${"y".repeat(size)}`,
        }));
        list = [...list.slice(0, at), ...added, ...list.slice(at + e.remove)];
      } else {
        const target = e.on === "wide" ? wide : members;
        const key = e.on === "wide" ? wideKey(e.key) : KEYS[e.key]!;
        if (e.value === undefined) target.delete(key);
        else target.set(key, e.value);
      }
    }
    commits.push({ parents, members, wide, list });
  }
  return commits;
}

function mergedList(from: readonly ModelCommit[], take: Draw["listTake"]): Element[] {
  if (take === "first") return [...from[0]!.list];
  if (take === "last") return [...from.at(-1)!.list];
  const all = new Map(from.flatMap(({ list }) => list).map((e) => [e.text, e]));
  const kept = [...all.values()].filter(
    (e) => take === "union" || from.every(({ list }) => list.includes(e)),
  );
  return kept.sort((a, b) => a.rank - b.rank || (a.text < b.text ? -1 : 1));
}

function toObject(map: ReadonlyMap<string, JsonValue>): { [key: string]: JsonValue } {
  const object: { [key: string]: JsonValue } = {};
  for (const [key, v] of map) setOwn(object, key, v);
  return object;
}

function stateOf({ members, wide, list }: ModelCommit): JsonValue {
  const state = toObject(members);
  if (wide.size > 0) state.wide = toObject(wide);
  if (list.length > 0) state.list = list.map(({ text }) => text);
  return state;
}

/** What a question sees in a commit, as text; undefined when it is not there. */
type View = (commit: ModelCommit) => string | undefined;

const member =
  (part: "members" | "wide", key: string, ...below: string[]): View =>
  (commit) => {
    let at: JsonValue | undefined = commit[part].get(key);
    for (const token of below) {
      at =
        typeof at === "object" && at !== null && Object.hasOwn(at, token)
          ? (at as { [key: string]: JsonValue })[token]
          : undefined;
    }
    return at === undefined ? undefined : JSON.stringify(at);
  };

const element =
  (text: string): View =>
  ({ list }) =>
    list.some((e) => e.text === text) ? text : undefined;

/** Who wrote what a question sees, one commit after another. */
function model(commits: readonly ModelCommit[], tip: number, view: View): string | null {
  for (let at = tip; ; ) {
    const commit = commits[at]!;
    const seen = view(commit);
    const same = commit.parents.find((parent) => view(commits[parent]!) === seen);
    if (same === undefined) {
      if (seen !== undefined) return `wrote ${at}`;
      return commit.parents.length === 0 ? null : `removed ${at}`;
    }
    at = same;
  }
}

/** Writes the model's commits, and reads them back with nothing cached. */
async function write(backend: Backend, commits: readonly ModelCommit[]) {
  const { store } = await makeStore(backend);
  const workflow = await store.createWorkflow("w");
  const ids: string[] = [(await workflow.canonical()).head.id];
  for (const [i, commit] of commits.entries()) {
    if (i === 0) continue;
    const [from, ...mergeParents] = commit.parents.map((parent) => ids[parent]!);
    const branch = await workflow.branch({ agent: "a", branch: `b${i}`, from: from! });
    const options = { state: stateOf(commit), mergeParents, allowEmpty: true, message: `${i}` };
    ids.push((await branch.commit(options)).id);
  }
  const { context, keys } = workflow.internals;
  const repository = new Repository(createStoreContext(context), "w", null, keys);
  return { repository, ids, indexOf: new Map(ids.map((id, i) => [id, i])) };
}

async function check(backend: Backend, draws: readonly Draw[]): Promise<void> {
  const commits = build(draws);
  const { repository, ids, indexOf } = await write(backend, commits);
  const tips = [commits.length - 1, commits.length - 2];

  const asked: [string[], View][] = [
    ...KEYS.map((key): [string[], View] => [[key], member("members", key)]),
    [["deep", "in", "x"], member("members", "deep", "in", "x")],
    [["b/c", "in", "list"], member("members", "b/c", "in", "list")],
    ...[...Array(40).keys()].map((n): [string[], View] => [
      ["wide", wideKey(n)],
      member("wide", wideKey(n)),
    ]),
  ];
  const answers = await lastWriters(
    repository,
    tips.map((tip) => ids[tip] as ObjectId),
    asked.map(([path]) => path),
  );
  tips.forEach((tip, row) => {
    const found = answers[row]!.map((a) => a && `${a.kind} ${indexOf.get(a.commit.id)}`);
    expect(found).toEqual(asked.map(([, view]) => model(commits, tip, view)));
    expect(answers[row]!.some((a) => a?.boundary)).toBe(false);
  });

  const tip = tips[0]!;
  const last = commits[tip]!;
  const state = stateOf(last) as { [key: string]: JsonValue };
  const revision = ids[tip]!;
  const lines = async (pointer: string) =>
    (await blame(repository, revision, pointer)).map(
      (line) => `${line.path} ${line.from} ${line.to} wrote ${indexOf.get(line.commit.id)}`,
    );
  if (Object.keys(state).length > 0) {
    const wholes: [string, View][] = Object.keys(state).map((key) => [
      `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      (commit) => {
        const there = stateOf(commit) as { [key: string]: JsonValue };
        return Object.hasOwn(there, key) ? canonicalText(there[key]!) : undefined;
      },
    ]);
    const expected = wholes.map(([path, view]) => `${path} null null ${model(commits, tip, view)}`);
    expect([...(await lines(""))].sort()).toEqual(expected.sort());
  }
  if (last.list.length > 0) {
    const writers = last.list.map((e) => model(commits, tip, element(e.text)));
    const expected: string[] = [];
    for (let from = 0; from < writers.length; ) {
      let to = from + 1;
      while (writers[to] === writers[from]) to++;
      expected.push(`/list/${from} ${from} ${to} ${writers[from]}`);
      from = to;
    }
    expect(await lines("/list")).toEqual(expected);

    const single = await lastWriters(
      repository,
      [revision as ObjectId],
      last.list.map((_, i) => ["list", String(i)]),
    );
    expect(single[0]!.map((a) => a && `${a.kind} ${indexOf.get(a.commit.id)}`)).toEqual(writers);
  }
}

describe.each(BACKENDS)("blame on random histories (%s)", (backend) => {
  it("names the commit that a walk from commit to commit finds", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (draws) => {
        await check(backend, draws);
      }),
      { numRuns: backend === "memory" ? 150 : 25 },
    );
  });
});
