import assert from "node:assert/strict";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  ANY,
  at,
  begin,
  blob,
  chain,
  commit,
  move,
  mustHold,
  mustMove,
  mustNotHold,
  refRow,
  sameCommit,
  send,
  sendOne,
  unknownId,
} from "../fixtures.js";

const REF = "refs/heads/canonical";

export const moveCases: readonly ConformanceCase[] = [
  {
    name: "a creation moves and answers the ref's row",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const one = move(REF, ABSENT, [root], { maxStep: 7 });
      const row = await mustMove(storage, one);
      assert.equal(row.name, REF);
      assert.equal(row.id, root.id);
      assert.equal(row.seq, 1);
      assert.equal(row.incarnation, one.incarnation);
      assert.equal(row.maxStep, 7);
      assert.deepEqual(await refRow(storage, REF), row);
      sameCommit((await storage.readCommits("w", [root.id]))[0], root);
    },
  },
  {
    name: "a wrong expected id is a conflict that tells the actual row and writes nothing",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const row = await mustMove(storage, move(REF, ABSENT, [root]));
      const late = commit({ parents: [root] });
      const object = blob("lost");
      const answer = await sendOne(storage, move(REF, at(late), [late]), { objects: [object] });
      assert.deepEqual(answer, { outcome: "conflict", actual: row });
      await mustNotHold(storage, [late.id, object.id]);
      assert.deepEqual(await refRow(storage, REF), row);
    },
  },
  {
    name: "an expected id on a ref that was never seen is a conflict and leaves no ref behind",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const answer = await sendOne(storage, move(REF, at(root), [root]));
      assert.deepEqual(answer, { outcome: "conflict", actual: null });
      assert.deepEqual(await storage.readRefs("w", { prefix: "", deleted: true }), []);
      assert.deepEqual(await storage.readReflog("w", REF, { limit: 10 }), []);
      await mustNotHold(storage, [root.id]);
    },
  },
  {
    name: "an expected number of the last log entry tells a ref that moved and came back",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const first = await mustMove(storage, move(REF, ABSENT, [root]));
      await mustMove(storage, move(REF, at(root), [commit({ parents: [root] })]));
      const back = await mustMove(storage, move(REF, ANY, [], { target: root.id }));
      const next = commit({ parents: [root] });
      const stale = { kind: "id", id: root.id, seq: first.seq } as const;
      const answer = await sendOne(storage, move(REF, stale, [next]));
      assert.deepEqual(answer, { outcome: "conflict", actual: back });
      await mustNotHold(storage, [next.id]);
      await mustMove(storage, move(REF, { ...stale, seq: back.seq }, [next]));
    },
  },
  {
    name: "expecting absence of a ref that exists is a conflict",
    async run({ storage }) {
      await begin(storage, "w");
      const row = await mustMove(storage, move(REF, ABSENT, [commit()]));
      const other = commit();
      const answer = await sendOne(storage, move(REF, ABSENT, [other]));
      assert.deepEqual(answer, { outcome: "conflict", actual: row });
      assert.deepEqual(await storage.readRefs("w", { prefix: "" }), [row]);
    },
  },
  {
    name: "expecting anything moves a ref that is absent, there, or deleted",
    async run({ storage }) {
      await begin(storage, "w");
      const [a, b, c] = [commit(), commit(), commit()];
      await mustMove(storage, move(REF, ANY, [a]));
      await mustMove(storage, move(REF, ANY, [b]));
      await mustMove(storage, move(REF, ANY, []));
      const row = await mustMove(storage, move(REF, ANY, [c]));
      assert.equal(row.id, c.id);
      assert.equal(row.seq, 4);
    },
  },
  {
    name: "deleting an absent ref is a conflict, whatever was expected",
    async run({ storage }) {
      await begin(storage, "w");
      for (const expect of [ANY, ABSENT, at(commit())]) {
        const answer = await sendOne(storage, move(REF, expect, []));
        assert.deepEqual(answer, { outcome: "conflict", actual: null });
      }
      assert.equal(await refRow(storage, REF), null);
    },
  },
  {
    name: "a target or a parent that is not stored is missing",
    async run({ storage }) {
      await begin(storage, "w");
      const target = unknownId();
      const answer = await sendOne(storage, move(REF, ABSENT, [], { target }));
      assert.deepEqual(answer, { outcome: "missing", ids: [target] });

      const [known, stranger, second] = [commit(), commit(), commit()];
      await mustMove(storage, move("refs/heads/other", ABSENT, [known]));
      const child = commit({ parents: [stranger, known, second] });
      assert.deepEqual(await sendOne(storage, move(REF, ABSENT, [child])), {
        outcome: "missing",
        ids: [stranger.id, second.id],
      });
      await mustNotHold(storage, [child.id]);
      assert.equal(await refRow(storage, REF), null);
    },
  },
  {
    name: "a ref may point to a commit that another ref brought",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      await mustMove(storage, move(REF, ABSENT, [root]));
      const fork = move("refs/heads/agents/a/x", ABSENT, [], { target: root.id });
      assert.equal((await mustMove(storage, fork)).id, root.id);
    },
  },
  {
    name: "a move brings a whole line of commits",
    async run({ storage }) {
      await begin(storage, "w");
      const line = chain(5);
      const row = await mustMove(storage, move(REF, ABSENT, line));
      assert.equal(row.seq, 1);
      const found = await storage.readCommits(
        "w",
        line.map((c) => c.id),
      );
      for (const [i, c] of line.entries()) sameCommit(found[i], c);
    },
  },
  {
    name: "the same batch sent again has landed and changes nothing",
    async run({ storage }) {
      await begin(storage, "w");
      const [root, next] = chain(2);
      await mustMove(storage, move(REF, ABSENT, [root!]));
      const again = move(REF, at(root!), [next!]);
      const row = await mustMove(storage, again);
      assert.deepEqual(await sendOne(storage, again), { outcome: "landed", row });
      await mustMove(storage, move(REF, at(next!), [commit({ parents: [next!] })]));
      const later = await refRow(storage, REF);
      assert.deepEqual(await sendOne(storage, again), { outcome: "landed", row: later });
      assert.deepEqual(await refRow(storage, REF), later);
      assert.equal((await storage.readReflog("w", REF, { limit: 10 })).length, 3);
    },
  },
  {
    name: "an atomic batch sent again has landed as a whole",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const moves = [
        move(REF, ABSENT, [root]),
        move("refs/tags/t", ABSENT, [], { target: root.id }),
      ];
      const first = await send(storage, moves, { atomic: true });
      const rows = first.moves.map((m) => (m.outcome === "moved" ? m.row : null));
      const second = await send(storage, moves, { atomic: true });
      assert.deepEqual(
        second.moves,
        rows.map((row) => ({ outcome: "landed", row })),
      );
    },
  },
  {
    name: "of an atomic batch all moves happen or none",
    async run({ storage }) {
      await begin(storage, "w");
      const [root, other] = [commit(), commit()];
      await mustMove(storage, move(REF, ABSENT, [root]));
      const next = commit({ parents: [root] });
      const object = blob("half");
      const moves = [
        move("refs/heads/new", ABSENT, [other]),
        move(REF, at(other), [next]),
        move("refs/heads/third", ABSENT, [], { target: root.id }),
      ];
      const row = await refRow(storage, REF);
      const refused = await send(storage, moves, { atomic: true, objects: [object] });
      assert.deepEqual(refused, {
        workflow: "ok",
        moves: [
          { outcome: "skipped" },
          { outcome: "conflict", actual: row },
          { outcome: "skipped" },
        ],
      });
      await mustNotHold(storage, [next.id, other.id, object.id]);
      assert.deepEqual(await storage.readRefs("w", { prefix: "", deleted: true }), [row]);

      moves[1] = move(REF, at(root), [next]);
      const done = await send(storage, moves, { atomic: true, objects: [object] });
      assert.deepEqual(
        done.moves.map((m) => m.outcome),
        ["moved", "moved", "moved"],
      );
      await mustHold(storage, [object]);
    },
  },
  {
    name: "without atomic each move is judged alone, and objects are stored when one won",
    async run({ storage }) {
      await begin(storage, "w");
      const [root, other] = [commit(), commit()];
      await mustMove(storage, move(REF, ABSENT, [root]));
      const loser = commit({ parents: [root] });
      const object = blob("kept");
      const answer = await send(
        storage,
        [move(REF, at(loser), [loser]), move("refs/heads/new", ABSENT, [other])],
        { objects: [object] },
      );
      assert.deepEqual(
        answer.moves.map((m) => m.outcome),
        ["conflict", "moved"],
      );
      await mustHold(storage, [object]);
      await mustNotHold(storage, [loser.id]);
    },
  },
  {
    name: "a move may build on a commit that an earlier move of the batch brings",
    async run({ storage }) {
      await begin(storage, "w");
      for (const atomic of [true, false]) {
        const root = commit();
        const child = commit({ parents: [root] });
        const answer = await send(
          storage,
          [
            move(`refs/heads/a-${atomic}`, ABSENT, [root]),
            move(`refs/heads/b-${atomic}`, ABSENT, [child]),
            move(`refs/tags/t-${atomic}`, ABSENT, [], { target: child.id }),
          ],
          { atomic },
        );
        assert.deepEqual(
          answer.moves.map((m) => m.outcome),
          ["moved", "moved", "moved"],
        );
      }
    },
  },
  {
    name: "two moves of a batch may bring the same commit, and both are logged",
    async run({ storage }) {
      await begin(storage, "w");
      for (const atomic of [true, false]) {
        const root = commit();
        const names = [`refs/heads/a-${atomic}`, `refs/heads/b-${atomic}`];
        const answer = await send(
          storage,
          names.map((name) => move(name, ABSENT, [root])),
          { atomic },
        );
        for (const [i, name] of names.entries()) {
          assert.equal(answer.moves[i]!.outcome, "moved");
          const log = await storage.readReflog("w", name, { limit: 5 });
          assert.deepEqual(
            log.map((entry) => [entry.ref, entry.seq, entry.new]),
            [[name, 1, root.id]],
          );
        }
      }
    },
  },
  {
    name: "a commit of a move that lost is no ground for another move",
    async run({ storage }) {
      await begin(storage, "w");
      await mustMove(storage, move(REF, ABSENT, [commit()]));
      const root = commit();
      const child = commit({ parents: [root] });
      const answer = await send(storage, [
        move(REF, ABSENT, [root]),
        move("refs/heads/b", ABSENT, [child]),
      ]);
      assert.equal(answer.moves[0]!.outcome, "conflict");
      assert.deepEqual(answer.moves[1], { outcome: "missing", ids: [root.id] });
    },
  },
  {
    name: "a batch without moves stores no objects",
    async run({ storage }) {
      await begin(storage, "w");
      const object = blob("orphan");
      assert.deepEqual(await send(storage, [], { objects: [object] }), {
        workflow: "ok",
        moves: [],
      });
      await mustNotHold(storage, [object.id]);
    },
  },
  {
    name: "a batch that moves one ref twice is refused",
    async run({ storage }) {
      await begin(storage, "w");
      const twice = [move(REF, ANY, [commit()]), move(REF, ANY, [commit()])];
      await assert.rejects(send(storage, twice), { code: "INVALID_ARGUMENT" });
      assert.equal(await refRow(storage, REF), null);
    },
  },
  {
    name: "of 50 writers that expect the same head exactly one wins",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      await mustMove(storage, move(REF, ABSENT, [root]));
      const rivals = Array.from({ length: 50 }, () => commit({ parents: [root] }));
      const answers = await Promise.all(
        rivals.map((rival) =>
          sendOne(storage, move(REF, at(root), [rival]), { objects: [blob(rival.id)] }),
        ),
      );
      const winners = answers.flatMap((a, i) => (a.outcome === "moved" ? [i] : []));
      assert.equal(winners.length, 1);
      const won = rivals[winners[0]!]!;
      assert.equal((await refRow(storage, REF))!.id, won.id);
      for (const answer of answers) {
        if (answer.outcome === "moved") continue;
        assert.equal(answer.outcome, "conflict");
        assert.equal(answer.actual?.id, won.id);
      }
      const losers = rivals.filter((rival) => rival !== won);
      await mustNotHold(
        storage,
        losers.flatMap((c) => [c.id, blob(c.id).id]),
      );
      await mustHold(storage, [blob(won.id)]);
    },
  },
  {
    name: "a line of writes sent at once, each on top of the one before, lands in order",
    async run({ storage }) {
      await begin(storage, "w");
      const line = chain(20);
      const answers = await Promise.all(
        line.map((c, i) => sendOne(storage, move(REF, i === 0 ? ABSENT : at(line[i - 1]!), [c]))),
      );
      assert.ok(answers.every((a) => a.outcome === "moved"));
      const row = await refRow(storage, REF);
      assert.equal(row!.id, line.at(-1)!.id);
      assert.equal(row!.seq, 20);
    },
  },
  {
    name: "writers that lost and try again lose nothing",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      await mustMove(storage, move(REF, ABSENT, [root]));
      const byId = new Map([[root.id, root]]);
      const worker = async () => {
        for (let done = 0; done < 10; ) {
          const head = byId.get((await refRow(storage, REF))!.id!)!;
          const next = commit({ parents: [head] });
          byId.set(next.id, next);
          const answer = await sendOne(storage, move(REF, at(head), [next]));
          if (answer.outcome === "moved") done++;
        }
      };
      await Promise.all([worker(), worker(), worker(), worker()]);
      const row = await refRow(storage, REF);
      assert.equal(row!.seq, 41);
      assert.equal((await storage.readGraph("w", [row!.id!], 100)).length, 41);
    },
  },
];
