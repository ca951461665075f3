import assert from "node:assert/strict";
import type { ObjectId } from "../../core/ids.js";
import type { SeenRow, Storage } from "../../storage/port.js";
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
  mustNotHold,
  tree,
  unknownId,
} from "../fixtures.js";

/** A moment that everything was seen before, in seconds. */
const LATER = 4_000_000_000;

/** The number of a collection. */
const BY = 2 ** 53 - 1;

const idsOf = (rows: readonly { id: ObjectId }[]) => rows.map(({ id }) => id).sort();

async function scan(
  storage: Storage,
  type: SeenRow["type"],
  before = LATER,
  limit = 2,
): Promise<SeenRow[]> {
  const rows: SeenRow[] = [];
  for (let after: string | null = null; ; ) {
    const page = await storage.scanSeen("w", type, before, after, limit);
    assert.ok(page.rows.length <= limit);
    rows.push(...page.rows);
    after = page.next;
    if (after === null) return rows;
  }
}

export const collectCases: readonly ConformanceCase[] = [
  {
    name: "collection sees each row of a kind once, with when it was seen",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const blobs = Array.from({ length: 5 }, (_, i) => blob(`blob ${i}`));
      const trees = [tree(blobs[0]!), tree(blobs[1]!, blobs[2]!)];
      const inline = [blob("in the row")];
      const [root, head] = chain(2) as [ReturnType<typeof commit>, ReturnType<typeof commit>];
      const commits = [{ ...root, inline }, head];
      const since = Math.floor(Date.now() / 1000);
      await mustMove(storage, move("refs/heads/a", ABSENT, commits), {
        objects: [...blobs, ...trees],
      });
      assert.deepEqual(idsOf(await scan(storage, "blob")), idsOf(blobs));
      assert.deepEqual(idsOf(await scan(storage, "tree", LATER, 1)), idsOf(trees));
      const seen = await scan(storage, "commit");
      assert.deepEqual(idsOf(seen), idsOf(commits));
      for (const { id, generation, seenAt, bytes, type } of seen) {
        const row = commits.find((c) => c.id === id)!;
        assert.equal(generation, row.generation);
        assert.equal(type, "commit");
        assert.ok(bytes >= row.body.length);
        assert.ok(seenAt >= since && seenAt <= Date.now() / 1000);
      }
      assert.deepEqual(await scan(storage, "commit", since), []);
      assert.deepEqual((await storage.scanSeen("other", "blob", LATER, null, 9)).rows, []);
    },
  },
  {
    name: "what is condemned is swept, and nothing else",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const [gone, kept, young] = [blob("gone"), blob("kept"), blob("young")];
      const rest = { objects: [gone, kept, young] };
      await mustMove(storage, move("refs/heads/a", ABSENT, chain(1)), rest);
      await mustMove(storage, move("refs/heads/a", ABSENT, chain(1)), {
        ...rest,
        workflow: "other",
      });
      await storage.condemn("w", [gone.id, unknownId()], LATER, BY);
      await storage.condemn("w", [young.id], 1_000_000_000, BY);
      const { removed, spared } = await storage.sweep("w", [gone.id, young.id, unknownId()], BY);
      assert.equal(removed, 1);
      assert.deepEqual(spared, [young.id]);
      await mustNotHold(storage, [gone.id]);
      await mustHold(storage, [kept, young]);
      await mustHold(storage, [gone], "other");
      assert.deepEqual(await storage.sweep("w", [], BY), { removed: 0, spared: [] });
    },
  },
  {
    name: "a collection sweeps only what it has condemned itself",
    async run({ storage }) {
      await begin(storage, "w");
      const [one, two] = [blob("one"), blob("two")];
      const [head] = chain(1) as [ReturnType<typeof commit>];
      await mustMove(storage, move("refs/heads/a", ABSENT, [head]), { objects: [one, two] });
      const ids = [one.id, head.id];
      await storage.condemn("w", [...ids, two.id], LATER, 1);
      await storage.condemn("w", ids, LATER, 2);
      assert.deepEqual(await storage.sweep("w", [head.id], 1), { removed: 0, spared: [head.id] });
      const first = await storage.sweep("w", [one.id, two.id], 1);
      assert.deepEqual(first, { removed: 1, spared: [one.id] });
      assert.deepEqual(await storage.sweep("w", ids, 2), { removed: 2, spared: [] });
    },
  },
  {
    name: "sending a condemned object spares it",
    async run({ storage }) {
      await begin(storage, "w");
      const [sent, unsent] = [blob("sent again"), blob("not sent")];
      const [one, two] = chain(2) as [ReturnType<typeof commit>, ReturnType<typeof commit>];
      await mustMove(storage, move("refs/heads/a", ABSENT, [one]), { objects: [sent, unsent] });
      await storage.condemn("w", [sent.id, unsent.id], LATER, BY);
      // Also by the way of a plain append, which a backend may have a quicker call for.
      await mustMove(storage, move("refs/heads/a", at(one), [two]), { objects: [sent] });
      const { removed, spared } = await storage.sweep("w", [sent.id, unsent.id], BY);
      assert.equal(removed, 1);
      assert.deepEqual(spared, [sent.id]);
      await mustHold(storage, [sent]);
      await mustNotHold(storage, [unsent.id]);
    },
  },
  {
    name: "building on a condemned commit spares it, and with it all commits of the sweep",
    async run({ storage }) {
      const ways = ["target", "parent", "needed"] as const;
      for (const [i, way] of ways.entries()) {
        if (i === 0) await begin(storage, "w");
        const ref = `refs/heads/${way}`;
        const old = chain(3);
        await mustMove(storage, move(ref, ABSENT, old));
        await mustMove(storage, move(ref, at(old[2]!), [], { target: null }));
        const ids = old.map(({ id }) => id);
        await storage.condemn("w", ids, LATER, BY);
        const again = `refs/heads/${way}-again`;
        const built = commit({ parents: way === "parent" ? [old[1]!] : [] });
        if (way === "target") {
          await mustMove(storage, move(again, ABSENT, [], { target: old[1]!.id }));
        } else {
          const needs = way === "needed" ? [old[1]!.id] : [];
          const answer = await storage.write({
            workflow: "w",
            objects: [],
            needs,
            moves: [move(again, ABSENT, [built])],
            atomic: true,
          });
          assert.equal(answer.moves[0]?.outcome, "moved");
        }
        assert.deepEqual(
          await storage.sweep("w", ids, BY),
          { removed: 0, spared: [old[1]!.id] },
          way,
        );
        const commits = await storage.readCommits("w", ids);
        assert.ok(commits.every((c) => c !== undefined));
        assert.deepEqual(await storage.sweep("w", [old[2]!.id], BY), { removed: 1, spared: [] });
      }
    },
  },
  {
    name: "a batch that needs a commit which is not stored moves nothing",
    async run({ storage }) {
      await begin(storage, "w");
      const absent = unknownId();
      const batch = {
        workflow: "w",
        objects: [blob("x")],
        needs: [absent],
        moves: [move("refs/heads/a", ABSENT, chain(1))],
        atomic: true,
      };
      const answer = await storage.write(batch);
      assert.deepEqual(answer.moves, [{ outcome: "missing", ids: [absent] }]);
      await mustNotHold(storage, [blob("x").id]);
      assert.deepEqual(await storage.readRefs("w", { prefix: "refs/", deleted: true }), []);
    },
  },
  {
    name: "a log is whole after the commits that it tells of were swept",
    async run({ storage }) {
      await begin(storage, "w");
      const ref = "refs/heads/a";
      const line = chain(4);
      let head = await mustMove(storage, move(ref, ABSENT, [line[0]!]));
      for (const [i, next] of line.slice(1).entries()) {
        const log = { actor: "grace", reason: `step ${i}`, time: 1_700_000_000_000 + i, trace: "" };
        head = await mustMove(storage, move(ref, at(line[i]!), [next], { log }));
      }
      head = await mustMove(storage, move(ref, at(line[3]!), [], { target: null }));
      const before = await storage.readReflog("w", ref, { limit: 100 });
      const ids = line.map(({ id }) => id);
      await storage.condemn("w", ids, LATER, BY);
      assert.deepEqual(await storage.sweep("w", ids.slice(2), BY), { removed: 2, spared: [] });
      assert.deepEqual(await storage.sweep("w", ids.slice(0, 2), BY), { removed: 2, spared: [] });
      await mustNotHold(storage, ids);
      assert.equal(before.length, 5);
      assert.deepEqual(await storage.readReflog("w", ref, { limit: 100 }), before);
      assert.equal(before[0]?.hash, head.logHash);
      const [fresh] = chain(1) as [ReturnType<typeof commit>];
      const made = await mustMove(storage, move(ref, ABSENT, [fresh]));
      assert.equal(made.seq, 6);
      assert.deepEqual((await storage.readReflog("w", ref, { limit: 9 })).slice(1), before);
    },
  },
  {
    name: "what refs were moved away from is known for a time",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const line = chain(3);
      const side = chain(1);
      const log = (time: number) => ({ log: { actor: "a", reason: "r", time, trace: "" } });
      await mustMove(storage, move("refs/heads/a", ABSENT, line, log(1000)));
      await mustMove(storage, move("refs/heads/b", ABSENT, side, log(1000)));
      await mustMove(
        storage,
        move("refs/heads/a", at(line[2]!), [], { target: line[0]!.id, ...log(2000) }),
      );
      await mustMove(
        storage,
        move("refs/heads/b", at(side[0]!), [], { target: null, ...log(3000) }),
      );
      const since = async (time: number) => (await storage.readAbandoned("w", time)).sort();
      assert.deepEqual(await since(1), [line[2]!.id, side[0]!.id].sort());
      assert.deepEqual(await since(2001), [side[0]!.id]);
      assert.deepEqual(await since(3001), []);
      assert.deepEqual(await storage.readAbandoned("other", 0), []);
      const swept = await storage.sweep("w", [], BY);
      assert.equal(swept.removed, 0);
    },
  },
  {
    name: "a writer loses nothing beside a collector that condemns, reads refs, then sweeps",
    async run({ storage }) {
      await begin(storage, "w");
      const shared = Array.from({ length: 12 }, (_, i) => blob(`shared ${i}`));
      // Each commit keeps the objects that its message counts up.
      const kept = ({ body }: { body: Uint8Array }) =>
        Buffer.from(body).toString().split("\n\n")[1]!.split(",").map(Number);
      let head = commit({ message: "0" });
      await mustMove(storage, move("refs/heads/a", ABSENT, [head]), { objects: [shared[0]!] });
      let stop = false;
      const collector = (async () => {
        while (!stop) {
          // Let others come in where everything is done at once.
          await new Promise(setImmediate);
          const ids = shared.map(({ id }) => id);
          await storage.condemn("w", ids, LATER, BY);
          const [row] = await storage.readRefs("w", { names: ["refs/heads/a"] });
          const [at] = await storage.readCommits("w", [row!.id!]);
          const live = new Set(kept(at!));
          await storage.sweep(
            "w",
            ids.filter((_, i) => !live.has(i)),
            BY,
          );
        }
      })();
      try {
        for (let round = 0; round < 60; round++) {
          const numbers = shared.map((_, i) => i).filter((i) => (i + round) % 3 === 0);
          const next = commit({ parents: [head], message: numbers.join(",") });
          const objects = numbers.map((i) => shared[i]!);
          await mustMove(storage, move("refs/heads/a", at(head), [next]), { objects });
          head = next;
          await mustHold(storage, objects);
        }
      } finally {
        stop = true;
        await collector;
      }
    },
  },
];
