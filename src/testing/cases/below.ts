import assert from "node:assert/strict";
import type { ObjectId } from "../../core/ids.js";
import type { Below, BelowRequest, ObjectRecord, Storage } from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  begin,
  blob,
  commit,
  move,
  mustMove,
  rawTree,
  rootedCommit,
  sameCommit,
  sameObject,
  tree,
  unknownId,
} from "../fixtures.js";

const REF = "refs/heads/canonical";
const MUCH = { maxObjects: 1000, maxBytes: 1_000_000 };

/** Reads below, where the storage has that; it may be left out. */
type ReadBelow = (request: Partial<BelowRequest>, w?: string) => Promise<Below>;

function onlyWithHint(
  name: string,
  run: (storage: Storage, read: ReadBelow) => Promise<void>,
): ConformanceCase {
  return {
    name,
    async run({ storage }) {
      if (storage.readBelow === undefined) return;
      const read = storage.readBelow.bind(storage);
      await run(storage, (request, w = "w") => read(w, { ...MUCH, ...request }));
    },
  };
}

/** Asserts that an answer holds exactly these objects, each once and as it was written. */
function holds({ objects }: Below, expected: readonly ObjectRecord[]): void {
  const ids = objects.map(({ id }) => id);
  assert.deepEqual([...ids].sort(), expected.map(({ id }) => id).sort());
  for (const object of expected) sameObject(objects[ids.indexOf(object.id)], object);
}

/** Objects of several levels, some of them reached in several ways; and who refers to whom. */
function layers() {
  const blobs = Array.from({ length: 300 }, (_, i) => blob(`leaf ${i}`));
  const low = [tree(...blobs.slice(0, 150)), tree(...blobs.slice(100)), tree(blob(""))];
  const shared = tree(...low);
  const lone = blob("x".repeat(5000));
  const top = tree(shared, lone, low[2]!, blobs[7]!);
  const parents = new Map<ObjectId, ObjectRecord[]>();
  const link = (parent: ObjectRecord, children: readonly ObjectRecord[]) => {
    for (const { id } of children) parents.set(id, [...(parents.get(id) ?? []), parent]);
  };
  link(low[0]!, blobs.slice(0, 150));
  link(low[1]!, blobs.slice(100));
  link(low[2]!, [blob("")]);
  link(shared, low);
  link(top, [shared, lone, low[2]!, blobs[7]!]);
  return { top, shared, low, blobs, parents, all: [top, shared, lone, ...low, ...blobs, blob("")] };
}

async function store(storage: Storage, objects: readonly ObjectRecord[]): Promise<void> {
  await begin(storage, "w", "other");
  await mustMove(storage, move(REF, ABSENT, [commit()]), { objects });
}

export const belowCases: readonly ConformanceCase[] = [
  onlyWithHint(
    "what lies below objects is read, each once, after what refers to it",
    async (s, read) => {
      const { top, low, all, parents } = layers();
      const beside = blob("not below");
      await store(s, [...all, beside]);
      const whole = await read({ ids: [top.id, unknownId(), top.id] });
      holds(whole, all);
      const met = new Set<ObjectId>([top.id]);
      for (const { id } of whole.objects) {
        const known = id === top.id || (parents.get(id) ?? []).some((parent) => met.has(parent.id));
        assert.ok(known, `object ${id} came before all that refers to it`);
        met.add(id);
      }
      holds(await read({ ids: [beside.id, low[2]!.id] }), [beside, low[2]!, blob("")]);
      holds(await read({ ids: [unknownId()] }), []);
      holds(await read({}), []);
      assert.deepEqual((await read({ ids: [top.id] })).commits, []);
    },
  ),
  onlyWithHint(
    "nothing is read below objects beyond the limits, and nothing less",
    async (s, read) => {
      const { top, all } = layers();
      await store(s, all);
      const size = (objects: Below["objects"]) =>
        objects.reduce((sum, object) => sum + (object as ObjectRecord).body.length, 0);
      for (const maxObjects of [0, 1, 2, 5, 100, all.length]) {
        const { objects } = await read({ ids: [top.id], maxObjects });
        assert.equal(objects.length, maxObjects);
        assert.equal(new Set(objects.map(({ id }) => id)).size, maxObjects);
      }
      assert.equal((await read({ ids: [top.id], maxBytes: 10 })).objects.length, 0);
      for (const maxBytes of [top.body.length, 7000, 20_000]) {
        const { objects } = await read({ ids: [top.id], maxBytes });
        assert.ok(objects.length >= 1 && size(objects) <= maxBytes);
      }
    },
  ),
  onlyWithHint(
    "objects that are known are not read, nor what only they lead to",
    async (s, read) => {
      const { top, shared, low, blobs, all } = layers();
      await store(s, all);
      const known = [shared.id, unknownId(), shared.id];
      const rest = all.filter(
        (object) => object !== shared && object !== low[0] && object !== low[1],
      );
      const left = rest.filter((object) => !blobs.includes(object) || object === blobs[7]);
      holds(await read({ ids: [top.id], known }), left);
      holds(await read({ ids: [top.id], known: [top.id] }), []);
    },
  ),
  onlyWithHint(
    "a line of first parents is read with what entries of their root trees lead to",
    async (s, read) => {
      const steps = Array.from({ length: 6 }, (_, i) => tree(blob(`of step ${i}`)));
      const beside = commit();
      const line = [rootedCommit({ step: steps[0]!, state: blob("not asked for") })];
      for (let i = 1; i < 6; i++) {
        const parents = i === 3 ? [line[i - 1]!, beside] : [line[i - 1]!];
        line.push(rootedCommit({ step: steps[i]!, state: blob("not asked for") }, [], parents));
      }
      const objects = [...steps, ...steps.map((_, i) => blob(`of step ${i}`))];
      await store(s, [...objects, blob("not asked for")]);
      await mustMove(s, move("refs/heads/beside", ABSENT, [beside]));
      await mustMove(s, move("refs/heads/line", ABSENT, line));
      const from = line[5]!.id;
      const asked = { entries: ["step"] };
      const whole = await read({ ...asked, line: { from, commits: 100 } });
      assert.deepEqual(
        whole.commits.map(({ id }) => id),
        line.map(({ id }) => id).reverse(),
      );
      for (const [i, found] of [...whole.commits].reverse().entries()) sameCommit(found, line[i]!);
      holds(whole, objects);
      const some = await read({ ...asked, line: { from, commits: 2 } });
      assert.deepEqual(
        some.commits.map(({ id }) => id),
        [line[5]!.id, line[4]!.id],
      );
      holds(some, [steps[5]!, steps[4]!, blob("of step 5"), blob("of step 4")]);
      assert.deepEqual(await read({ ...asked, line: { from, commits: 0 } }), {
        commits: [],
        objects: [],
      });
      const unknown = { from: unknownId(), commits: 5 };
      assert.deepEqual(await read({ ...asked, line: unknown }), { commits: [], objects: [] });
      assert.deepEqual((await read({ line: { from, commits: 9 } }, "other")).commits, []);
    },
  ),
  onlyWithHint("a tree that is none does not hinder what is read beside it", async (s, read) => {
    const hidden = blob("hidden");
    const id = Buffer.from(hidden.id, "hex");
    const entry = (name: string) => Buffer.concat([Buffer.from(`100644 ${name}\0`), id]);
    const broken = [
      rawTree(Buffer.from("no entry")),
      rawTree(Buffer.alloc(31)),
      rawTree(entry("a").subarray(0, -1)),
      rawTree(Buffer.concat([entry("a"), Buffer.from("100644 b")])),
    ];
    const good = tree(blob("seen"));
    const long = rawTree(entry("n".repeat(1000)));
    await store(s, [...broken, good, blob("seen"), hidden]);
    holds(await read({ ids: [...broken, good].map((o) => o.id) }), [...broken, good, blob("seen")]);
    await mustMove(s, move("refs/heads/b", ABSENT, [commit()]), { objects: [long, tree()] });
    holds(await read({ ids: [tree().id, long.id] }), [tree(), long, hidden]);
  }),
  onlyWithHint("what lies below objects is read in one workflow only", async (s, read) => {
    const { top, all } = layers();
    await store(s, all);
    const rooted = rootedCommit({ state: top });
    await mustMove(s, move("refs/heads/b", ABSENT, [rooted]));
    for (const w of ["other", "none"]) {
      holds(await read({ ids: [top.id] }, w), []);
      const nothing = await read({ commits: [rooted.id], entries: ["state"] }, w);
      assert.deepEqual({ ...nothing }, { commits: [], objects: [] });
    }
    // A tree of one workflow does not lead to objects that only another has.
    await mustMove(s, move(REF, ABSENT, [commit()]), { objects: [top], workflow: "other" });
    holds(await read({ ids: [top.id] }, "other"), [top]);
  }),
  onlyWithHint(
    "commits are read with what the named entries of their root trees lead to",
    async (s, read) => {
      const { top, shared, low, all } = layers();
      await store(s, all);
      const small = blob("in the row");
      const a = rootedCommit({ state: top, step: low[2]!, policy: small }, [small]);
      const b = rootedCommit({ state: low[2]! });
      const none = rootedCommit({});
      const bare = commit({ inline: [blob("no root tree")] });
      const without = commit();
      const made = [a, b, none, bare, without];
      await mustMove(s, move("refs/heads/b", ABSENT, made), { objects: [shared] });
      const ids = [...made.map(({ id }) => id), unknownId(), a.id];
      const found = await read({ commits: ids, entries: ["state", "policy"] });
      assert.equal(found.commits.length, made.length);
      for (const one of made)
        sameCommit(
          found.commits.find(({ id }) => id === one.id),
          one,
        );
      holds(found, all);
      holds(await read({ commits: [a.id, b.id], entries: ["step"] }), [low[2]!, blob("")]);
      holds(await read({ commits: [a.id] }), []);
      holds(await read({ commits: [b.id], ids: [a.id], entries: ["state"] }), [low[2]!, blob("")]);
      const few = await read({ commits: [a.id], entries: ["state"], maxObjects: 0 });
      assert.deepEqual([few.commits.length, few.objects.length], [1, 0]);
    },
  ),
];
