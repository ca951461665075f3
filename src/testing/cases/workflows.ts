import assert from "node:assert/strict";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  at,
  begin,
  blob,
  commit,
  move,
  mustHold,
  mustMove,
  refRow,
  send,
  sendOne,
  workflow,
} from "../fixtures.js";

const REF = "refs/heads/canonical";

export const workflowCases: readonly ConformanceCase[] = [
  {
    name: "a workflow is created together with its first move and comes back as it was given",
    async run({ storage }) {
      const create = workflow("w", {
        classification: "regulated",
        storageRegion: "eu-1",
        retentionPolicy: "P30D",
        isolation: '{"paths":["/a/\u0001b","/é"]}',
        createdAt: 253_402_300_799_999,
      });
      const root = commit();
      const answer = await storage.write({
        workflow: "w",
        create,
        objects: [blob("x")],
        moves: [move("refs/audit/workflow", ABSENT, [root])],
        atomic: true,
      });
      assert.equal(answer.workflow, "created");
      assert.equal(answer.moves[0]!.outcome, "moved");
      assert.deepEqual({ ...(await storage.readWorkflow("w")) }, create);
      assert.equal((await refRow(storage, "refs/audit/workflow"))!.id, root.id);
      await mustHold(storage, [blob("x")]);
    },
  },
  {
    name: "what a workflow declares is changed for it alone, and so often as asked",
    async run({ storage, reopen }) {
      await begin(storage, "w", "other");
      const [before, other] = [
        await storage.readWorkflow("w"),
        await storage.readWorkflow("other"),
      ];
      const declared = { classification: "sensitive", retentionPolicy: "P1Y" } as const;
      assert.equal(await storage.redeclare("w", declared), true);
      assert.equal(await storage.redeclare("w", declared), true);
      assert.equal(await storage.redeclare("none", declared), false);
      const again = reopen === undefined ? storage : await reopen();
      assert.deepEqual({ ...(await again.readWorkflow("w")) }, { ...before, ...declared });
      assert.deepEqual({ ...(await again.readWorkflow("other")) }, { ...other });
      await again.redeclare("w", { ...declared, retentionPolicy: null });
      assert.equal((await again.readWorkflow("w"))!.retentionPolicy, null);
    },
  },
  {
    name: "creating a workflow that exists refuses the whole batch",
    async run({ storage }) {
      await begin(storage, "w");
      const answer = await storage.write({
        workflow: "w",
        create: workflow("w", { classification: "public" }),
        objects: [blob("x")],
        moves: [move(REF, ABSENT, [commit()])],
        atomic: false,
      });
      assert.deepEqual(answer, { workflow: "exists", moves: [{ outcome: "skipped" }] });
      assert.equal((await storage.readWorkflow("w"))!.classification, "internal");
      assert.equal(await refRow(storage, REF), null);
    },
  },
  {
    name: "of 20 creations of one workflow exactly one wins",
    async run({ storage }) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          storage.write({
            workflow: "w",
            create: workflow("w", { createdAt: i }),
            objects: [],
            moves: [move(REF, ABSENT, [commit()])],
            atomic: true,
          }),
        ),
      );
      const created = answers.flatMap((a, i) => (a.workflow === "created" ? [i] : []));
      assert.equal(created.length, 1);
      assert.equal((await storage.readWorkflow("w"))!.createdAt, created[0]);
      assert.equal((await refRow(storage, REF))!.seq, 1);
    },
  },
  {
    name: "a completed workflow's branches move to no commit, and everything else does",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const [root, audit] = [commit(), commit()];
      const AUDIT = "refs/audit/workflow";
      await mustMove(storage, move(REF, ABSENT, [root]));
      await mustMove(storage, move(AUDIT, ABSENT, [audit]));
      await mustMove(storage, move(REF, ABSENT, [root]), { workflow: "other" });
      const stale = { ...at(root), seq: 1 };
      const lost = await storage.write({
        workflow: "w",
        objects: [],
        moves: [move(REF, at(audit), [])],
        atomic: true,
        complete: 1_800_000_000_000,
      });
      assert.equal(lost.moves[0]!.outcome, "conflict");
      assert.equal((await storage.readWorkflow("w"))!.completedAt, null);
      const done = commit({ parents: [audit] });
      const last = commit({ parents: [root] });
      const completion = {
        workflow: "w",
        objects: [],
        moves: [move(REF, at(root), [last]), move(AUDIT, at(audit), [done])],
        atomic: true,
        complete: 1_800_000_000_000,
      };
      const answer = await storage.write(completion);
      assert.deepEqual(
        answer.moves.map(({ outcome }) => outcome),
        ["moved", "moved"],
      );
      assert.equal((await storage.readWorkflow("w"))!.completedAt, 1_800_000_000_000);
      const [listed] = await storage.readWorkflows({ limit: 1, after: "other" });
      assert.equal(listed!.completedAt, 1_800_000_000_000);

      const next = commit({ parents: [last] });
      const closed = { outcome: "closed" };
      const kept = blob("of a refused move");
      assert.deepEqual(
        await sendOne(storage, move(REF, at(last), [next]), { objects: [kept] }),
        closed,
      );
      assert.deepEqual(await sendOne(storage, move(REF, stale, [next])), closed);
      assert.deepEqual(
        await sendOne(storage, move(REF, at(last), [], { target: root.id })),
        closed,
      );
      assert.deepEqual(
        await sendOne(storage, move("refs/heads/new", ABSENT, [], { target: last.id })),
        closed,
      );
      assert.deepEqual(
        (
          await send(
            storage,
            [move("refs/tags/v1", ABSENT, [], { target: last.id }), move(REF, at(last), [next])],
            { atomic: true },
          )
        ).moves,
        [{ outcome: "skipped" }, closed],
      );
      assert.equal((await refRow(storage, REF))!.id, last.id);
      assert.deepEqual(await storage.readObjects("w", [kept.id]), [undefined]);
      assert.deepEqual(await storage.readCommits("w", [next.id]), [undefined]);
      // What was sent before is told to have landed, also now.
      const again = await storage.write(completion);
      assert.deepEqual(
        again.moves.map(({ outcome }) => outcome),
        ["landed", "landed"],
      );
      assert.equal((await storage.readWorkflow("w"))!.completedAt, 1_800_000_000_000);

      await mustMove(storage, move("refs/tags/v1", ABSENT, [], { target: last.id }));
      await mustMove(storage, move(AUDIT, at(done), [commit({ parents: [done] })]));
      await mustMove(storage, move(REF, at(last), [], { target: null }));
      const elsewhere = commit({ parents: [root] });
      await mustMove(storage, move(REF, at(root), [elsewhere]), { workflow: "other" });
    },
  },
  {
    name: "writing to a workflow that is not there writes nothing",
    async run({ storage }) {
      const answer = await send(storage, [move(REF, ABSENT, [commit()])]);
      assert.deepEqual(answer, { workflow: "missing", moves: [{ outcome: "skipped" }] });
      assert.equal(await storage.readWorkflow("w"), undefined);
      assert.deepEqual(await storage.readWorkflows({ limit: 10 }), []);
      assert.deepEqual(await storage.readRefs("w", { prefix: "" }), []);
    },
  },
  {
    name: "the catalogue is paged in the order of the bytes of ids",
    async run({ storage }) {
      const ids = ["A", "B", "a", "a b", "a/b", "é", "\uff5e", "😀"];
      await begin(storage, ...[...ids].reverse());
      const list = async (limit: number, after?: string) => {
        const options = after === undefined ? { limit } : { limit, after };
        return (await storage.readWorkflows(options)).map((w) => w.id);
      };
      assert.deepEqual(await list(100), ids);
      const paged: string[] = [];
      for (let page = await list(3); page.length > 0; page = await list(3, page.at(-1))) {
        assert.ok(page.length <= 3);
        paged.push(...page);
      }
      assert.deepEqual(paged, ids);
      assert.deepEqual(await list(100, "\uff5e"), ["😀"]);
      assert.deepEqual(await list(2, "a "), ["a b", "a/b"]);
    },
  },
  {
    name: "two workflows hold the same ids and names without touching each other",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const root = commit({ externalId: "x" });
      const object = blob("shared");
      await mustMove(storage, move(REF, ABSENT, [root], { maxStep: 5 }), { objects: [object] });
      assert.equal(await refRow(storage, REF, "other"), null);
      assert.deepEqual(await storage.readReflog("other", REF, { limit: 5 }), []);
      assert.deepEqual(await storage.readGraph("other", [root.id], 5), []);

      const there = move(REF, ABSENT, [root], { maxStep: 1 });
      const row = await mustMove(storage, there, { objects: [object], workflow: "other" });
      assert.equal(row.seq, 1);
      assert.equal(row.maxStep, 1);
      await mustHold(storage, [object], "other");
      await mustMove(storage, move(REF, at(root), []));
      assert.equal((await refRow(storage, REF, "other"))!.id, root.id);
      assert.equal((await storage.readReflog("other", REF, { limit: 5 })).length, 1);

      const child = commit({ parents: [root] });
      const fork = move("refs/heads/x", ABSENT, [], { target: child.id });
      await mustMove(storage, move("refs/heads/y", ABSENT, [child]));
      assert.deepEqual(await sendOne(storage, fork, { workflow: "other" }), {
        outcome: "missing",
        ids: [child.id],
      });
    },
  },
];
