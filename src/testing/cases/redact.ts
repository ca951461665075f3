import assert from "node:assert/strict";
import type { ObjectId } from "../../core/ids.js";
import type {
  CommitRecord,
  ObjectRecord,
  Redaction,
  Storage,
  TombstoneRecord,
} from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  at,
  begin,
  blob,
  chain,
  commit,
  move,
  mustHold,
  mustMove,
  refRow,
  rootedCommit,
  sameCommit,
  sameTombstone,
  send,
  tree,
  unknownId,
} from "../fixtures.js";

const REF = "refs/heads/a";

/** A moment that everything was seen before, in seconds. */
const LATER = 4_000_000_000;

function buried({ id, type }: ObjectRecord, text = '{"why":"asked for"}'): TombstoneRecord {
  return { id, type, tombstone: Buffer.from(text) };
}

function redaction(rest: Partial<Redaction>): Redaction {
  return { tombstones: [], inline: [], grafts: [], ...rest };
}

const NOTHING = { objects: 0, inline: 0, grafts: 0, pending: 0, bytes: 0 };

async function commitOf(storage: Storage, { id }: { id: ObjectId }): Promise<CommitRecord> {
  const [found] = await storage.readCommits("w", [id]);
  assert.ok(found !== undefined, `commit ${id} is not stored`);
  return found;
}

export const redactCases: readonly ConformanceCase[] = [
  {
    name: "a tombstone stands in the place of an object, in every read, and in one workflow",
    async run({ storage, reopen }) {
      await begin(storage, "w", "other");
      const [gone, kept, big] = [blob("gone"), blob("kept"), blob("x".repeat(100_000))];
      const top = tree(gone, kept);
      const objects = [gone, kept, big, top];
      await mustMove(storage, move(REF, ABSENT, chain(1)), { objects });
      await mustMove(storage, move(REF, ABSENT, chain(1)), { objects: [gone], workflow: "other" });
      const before = await storage.usage("w");
      const tombstones = [gone, big, top].map((object) => buried(object));
      const none = { ...buried(blob("never stored")), id: unknownId() };
      const redacted = await storage.redact("w", redaction({ tombstones: [...tombstones, none] }));
      const bytes = [gone, big, top].reduce((sum, { body }) => sum + body.length, 0);
      assert.deepEqual(redacted, { ...NOTHING, objects: 3, bytes });

      const check = async (from: Storage) => {
        const read = await from.readObjects("w", [big.id, gone.id, top.id]);
        for (const [i, object] of [big, gone, top].entries())
          sameTombstone(read[i], buried(object));
        const { rows } = await from.scanObjects("w", null, 10);
        assert.equal(rows.length, 4);
        for (const row of rows)
          if (row.id !== kept.id) sameTombstone(row, buried(objects.find((o) => o.id === row.id)!));
        await mustHold(from, [kept]);
        await mustHold(from, [gone], "other");
        const after = await from.usage("w");
        assert.equal(after.objects, before.objects - 3);
        assert.equal(after.bytes, before.bytes - bytes);
        assert.deepEqual(await from.findIds("w", gone.id, 2), [{ id: gone.id, type: "blob" }]);
      };
      await check(storage);
      assert.deepEqual(await storage.redact("w", redaction({ tombstones })), NOTHING);
      if (reopen === undefined) return;
      await storage.close();
      await check(await reopen());
    },
  },
  {
    name: "for a collection only what it has condemned, and nobody sent or built on since, becomes a tombstone",
    async run({ storage }) {
      await begin(storage, "w");
      const [gone, sent, others, kept] = [blob("gone"), blob("sent"), blob("others"), blob("kept")];
      const [lost, built] = [commit({ inline: [gone] }), commit({ inline: [gone] })];
      await mustMove(storage, move(REF, ABSENT, [lost]), { objects: [gone, sent, others, kept] });
      // Not what a ref is at: that is found by reading refs.
      const above = commit({ parents: [built] });
      await mustMove(storage, move("refs/heads/b", ABSENT, [built, above]));
      await storage.condemn(
        "w",
        [gone, sent, lost, built].map(({ id }) => id),
        LATER,
        7,
      );
      await storage.condemn("w", [others.id], LATER, 8);
      const next = commit({ parents: [built] });
      await mustMove(storage, move("refs/heads/c", ABSENT, [next]), { objects: [sent] });
      const request = redaction({
        tombstones: [gone, sent, others, kept].map((object) => buried(object)),
        inline: [lost.id, built.id],
        condemnedBy: 7,
      });
      const { objects, inline } = await storage.redact("w", request);
      assert.deepEqual({ objects, inline }, { objects: 1, inline: 1 });
      await mustHold(storage, [sent, others, kept]);
      sameTombstone((await storage.readObjects("w", [gone.id]))[0], buried(gone));
      sameTombstone((await commitOf(storage, lost)).inline[0], buried(gone));
      sameCommit(await commitOf(storage, built), built);
      const { rows } = await storage.scanSeen("w", "blob", LATER, null, 9);
      assert.deepEqual(
        rows.filter(({ erased }) => erased).map(({ id }) => id),
        [gone.id],
      );
    },
  },
  {
    name: "the first tombstone stays",
    async run({ storage }) {
      await begin(storage, "w");
      const gone = blob("gone");
      await mustMove(storage, move(REF, ABSENT, chain(1)), { objects: [gone] });
      await storage.redact("w", redaction({ tombstones: [buried(gone, "first")] }));
      await storage.redact("w", redaction({ tombstones: [buried(gone, "second")] }));
      const [found] = await storage.readObjects("w", [gone.id]);
      sameTombstone(found, buried(gone, "first"));
    },
  },
  {
    name: "copies in the rows of the commits named become tombstones, and the rest of these rows stays",
    async run({ storage, reopen }) {
      await begin(storage, "w");
      const [gone, kept, empty] = [blob("gone"), blob("kept in the row"), blob("")];
      const root = rootedCommit({ step: gone, state: kept }, [gone, kept, empty]);
      const next = rootedCommit({ step: gone }, [empty, gone], [root]);
      const last = rootedCommit({ step: gone }, [gone], [next]);
      const before = { objects: [gone] };
      await mustMove(storage, move(REF, ABSENT, [root]), before);
      await mustMove(storage, move(REF, at(root), [next, last]));
      const usage = await storage.usage("w");
      const request = redaction({
        tombstones: [buried(gone), buried(empty, "")],
        inline: [next.id, root.id, unknownId()],
      });
      const redacted = await storage.redact("w", request);
      assert.deepEqual(redacted, {
        ...NOTHING,
        objects: 1,
        inline: 4,
        bytes: 3 * gone.body.length,
      });
      const buriedIn = (record: CommitRecord): CommitRecord => ({
        ...record,
        inline: record.inline.map((object) => {
          const stone = request.tombstones.find(({ id }) => id === object.id);
          return stone ?? object;
        }),
      });
      const check = async (from: Storage) => {
        sameCommit(await commitOf(from, root), buriedIn(root));
        sameCommit(await commitOf(from, next), buriedIn(next));
        sameCommit(await commitOf(from, last), last);
        sameCommit((await from.readHead("w", REF))?.commit, last);
        const { rows } = await from.scanCommits("w", null, 10);
        for (const record of [root, next])
          sameCommit(
            rows.find(({ id }) => id === record.id),
            buriedIn(record),
          );
        const after = await from.usage("w");
        assert.equal(after.objects, usage.objects - 5);
        assert.equal(after.bytes, usage.bytes - redacted.bytes);
      };
      await check(storage);
      assert.deepEqual(await storage.redact("w", request), NOTHING);
      if (reopen === undefined) return;
      await storage.close();
      await check(await reopen());
    },
  },
  {
    name: "a write that sends a buried object brings it back",
    async run({ storage }) {
      await begin(storage, "w");
      const [one, two] = [blob("one"), blob("two")];
      const [root, next, last] = chain(3) as [CommitRecord, CommitRecord, CommitRecord];
      await mustMove(storage, move(REF, ABSENT, [root]), { objects: [one, two] });
      await storage.redact("w", redaction({ tombstones: [buried(one), buried(two)] }));
      // By the way of a plain append, and of several moves.
      await mustMove(storage, move(REF, at(root), [next]), { objects: [one] });
      const moves = [
        move(REF, at(next), [last]),
        move("refs/tags/t", ABSENT, [], { target: root.id }),
      ];
      await send(storage, moves, { objects: [two] });
      await mustHold(storage, [one, two]);
      const { objects } = await storage.redact("w", redaction({ tombstones: [buried(one)] }));
      assert.equal(objects, 1);
    },
  },
  {
    name: "a grafted commit has the parents that remain, and logs and all else of it stay",
    async run({ storage, reopen }) {
      await begin(storage, "w");
      const [root, next] = chain(2) as [CommitRecord, CommitRecord];
      const [side] = chain(1) as [CommitRecord];
      const merged = commit({ parents: [next, side], inline: [blob("in the row")] });
      const top = commit({ parents: [merged], externalId: "e" });
      await mustMove(storage, move(REF, ABSENT, [root]));
      await mustMove(storage, move(REF, at(root), [next]));
      await mustMove(storage, move("refs/heads/b", ABSENT, [side]));
      await mustMove(storage, move(REF, at(next), [merged]));
      await mustMove(storage, move(REF, at(merged), [top]));
      const log = await storage.readReflog("w", REF, { limit: 10 });
      assert.equal(log.length, 4);
      const grafts = [
        { id: top.id, parents: [] },
        { id: merged.id, parents: [side.id, unknownId()] },
        { id: unknownId(), parents: [] },
      ];
      const redacted = await storage.redact("w", redaction({ grafts }));
      assert.deepEqual(redacted, { ...NOTHING, grafts: 2 });
      const check = async (from: Storage) => {
        sameCommit(await commitOf(from, merged), { ...merged, parents: [side.id] });
        sameCommit(await commitOf(from, top), { ...top, parents: [] });
        sameCommit(await commitOf(from, next), next);
        assert.deepEqual(await from.readReflog("w", REF, { limit: 10 }), log);
        const graph = async (...ids: ObjectId[]) =>
          (await from.readGraph("w", ids, 10)).map(({ id }) => id).sort();
        assert.deepEqual(await graph(top.id), [top.id]);
        assert.deepEqual(await graph(merged.id), [merged.id, side.id].sort());
      };
      await check(storage);
      assert.deepEqual(await storage.redact("w", redaction({ grafts })), NOTHING);
      // What is not a parent of the row does not become one.
      await storage.redact("w", redaction({ grafts: [{ id: merged.id, parents: [next.id] }] }));
      assert.deepEqual((await commitOf(storage, merged)).parents, []);
      await mustMove(storage, move(REF, at(top), chain(1, top)));
      assert.equal((await refRow(storage, REF))?.seq, 5);
      if (reopen === undefined) return;
      await storage.redact("w", redaction({ grafts: [{ id: next.id, parents: [] }] }));
      await storage.close();
      const again = await reopen();
      sameCommit(await commitOf(again, next), { ...next, parents: [] });
      assert.deepEqual((await again.readReflog("w", REF, { limit: 10 })).slice(1), log);
    },
  },
  {
    name: "pending rows go one by one",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const row = (key: string, index: number) => ({
        key,
        index,
        body: Buffer.from(`${key}${index}`),
      });
      const pending = [row("k", 0), row("k", 1), row("k", -1), row("kk", 0), row("\u{1F642}", 5)];
      await send(storage, [], { pending });
      await send(storage, [], { pending, workflow: "other" });
      const gone = [
        { key: "k", index: 1 },
        { key: "\u{1F642}", index: 5 },
        { key: "k", index: 7 },
        { key: "none", index: 0 },
      ];
      const redacted = await storage.redact("w", redaction({ pending: gone }));
      assert.deepEqual(redacted, { ...NOTHING, pending: 2, bytes: 2 + 5 });
      const left = async (w: string) =>
        (await storage.readPending(w, [""])).map(({ key, index }) => `${key} ${index}`);
      assert.deepEqual(await left("w"), ["k -1", "k 0", "kk 0"]);
      assert.equal((await left("other")).length, 5);
      assert.deepEqual(await storage.redact("w", redaction({ pending: gone })), NOTHING);
    },
  },
  {
    name: "a redaction of nothing, or in no workflow, changes nothing",
    async run({ storage }) {
      await begin(storage, "w");
      const one = blob("one");
      await mustMove(storage, move(REF, ABSENT, chain(1)), { objects: [one] });
      assert.deepEqual(await storage.redact("w", redaction({})), NOTHING);
      const tombstones = [buried(one)];
      assert.deepEqual(await storage.redact("none", redaction({ tombstones })), NOTHING);
      await mustHold(storage, [one]);
    },
  },
];
