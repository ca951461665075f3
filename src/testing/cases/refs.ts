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
  mustMove,
  refRow,
  sameCommit,
  sendOne,
} from "../fixtures.js";

const REF = "refs/heads/agents/a/try";

export const refCases: readonly ConformanceCase[] = [
  {
    name: "a ref is read together with the commit that it points to",
    async run({ storage }) {
      await begin(storage, "w", "other");
      assert.equal(await storage.readHead("w", REF), undefined);
      const inline = [blob("in the row")];
      const line = chain(2);
      const last = { ...commit({ parents: line.slice(1), externalId: "x-1" }), inline };
      const row = await mustMove(storage, move(REF, ABSENT, [...line, last]));
      const head = await storage.readHead("w", REF);
      assert.deepEqual(head?.row, row);
      sameCommit(head?.commit, last);
      assert.equal(await storage.readHead("other", REF), undefined);
      const gone = await mustMove(storage, move(REF, at(last), []));
      assert.deepEqual(await storage.readHead("w", REF), { row: gone, commit: undefined });
    },
  },
  {
    name: "a deleted ref keeps its row, is not listed, and counts as absent",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const before = await mustMove(storage, move(REF, ABSENT, [root], { maxStep: 4 }));
      const gone = await mustMove(storage, move(REF, at(root), []));
      assert.deepEqual(
        { ...gone, logHash: "" },
        { ...before, id: null, seq: 2, logHash: "" },
        "a deletion changes only id, seq and log hash",
      );
      assert.deepEqual(await storage.readRefs("w", { prefix: "" }), []);
      assert.deepEqual(await storage.readRefs("w", { prefix: "", deleted: true }), [gone]);
      assert.deepEqual(await storage.readRefs("w", { names: [REF] }), [gone]);
      assert.deepEqual(await sendOne(storage, move(REF, at(root), [commit()])), {
        outcome: "conflict",
        actual: gone,
      });
    },
  },
  {
    name: "a ref made again goes on with seq and steps, under a new incarnation",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const first = await mustMove(storage, move(REF, ABSENT, [root], { maxStep: 4 }));
      await mustMove(storage, move(REF, at(root), []));
      const again = move(REF, ABSENT, [], { target: root.id, maxStep: 1 });
      const row = await mustMove(storage, again);
      assert.equal(row.seq, 3);
      assert.equal(row.maxStep, 4);
      assert.equal(row.incarnation, again.incarnation);
      assert.notEqual(row.incarnation, first.incarnation);
    },
  },
  {
    name: "the incarnation stays and the highest step never goes down while the ref lives",
    async run({ storage }) {
      await begin(storage, "w");
      const line = chain(4);
      const first = await mustMove(storage, move(REF, ABSENT, [line[0]!], { maxStep: 3 }));
      for (const [i, maxStep, expected] of [
        [1, 9, 9],
        [2, 2, 9],
        [3, 0, 9],
      ] as const) {
        const row = await mustMove(storage, move(REF, at(line[i - 1]!), [line[i]!], { maxStep }));
        assert.equal(row.maxStep, expected);
        assert.equal(row.incarnation, first.incarnation);
      }
      const reset = await mustMove(storage, move(REF, ANY, [], { target: line[0]!.id }));
      assert.equal(reset.maxStep, 9);
      assert.equal((await refRow(storage, REF))!.maxStep, 9);
    },
  },
  {
    name: "names that differ only in case are two refs",
    async run({ storage }) {
      await begin(storage, "w");
      const [upper, lower] = [commit(), commit()];
      await mustMove(storage, move("refs/heads/Main", ABSENT, [upper]));
      await mustMove(storage, move("refs/heads/main", ABSENT, [lower]));
      assert.equal((await refRow(storage, "refs/heads/Main"))!.id, upper.id);
      assert.equal((await refRow(storage, "refs/heads/main"))!.id, lower.id);
      assert.equal(await refRow(storage, "refs/heads/MAIN"), null);
    },
  },
  {
    name: "refs are sorted by the bytes of UTF-8, and a prefix is a prefix of bytes",
    async run({ storage }) {
      await begin(storage, "w");
      // U+1F600 is below U+FF5E in UTF-16, above it in UTF-8.
      const names = ["", "!", "%", "A", "_", "a", "a/b", "a_b", "é", "\uff5e", "😀", "\u{10ffff}"];
      const root = commit();
      await mustMove(storage, move("p/first", ABSENT, [root]));
      for (const name of [...names].reverse()) {
        await mustMove(storage, move(`p/x${name}`, ABSENT, [], { target: root.id }));
      }
      await mustMove(storage, move("p/y", ABSENT, [], { target: root.id }));
      const under = await storage.readRefs("w", { prefix: "p/x" });
      assert.deepEqual(
        under.map((row) => row.name),
        names.map((name) => `p/x${name}`),
      );
      const all = await storage.readRefs("w", { prefix: "" });
      assert.equal(all.length, names.length + 2);
      const none = await storage.readRefs("w", { prefix: "p/X" });
      assert.deepEqual(none, []);
      const reversed = names.map((name) => `p/x${name}`).reverse();
      assert.deepEqual(
        (await storage.readRefs("w", { names: [...reversed, "p/none", "p/x"] })).map((r) => r.name),
        names.map((name) => `p/x${name}`),
      );
    },
  },
  {
    name: "wildcards of SQL in a prefix stand for themselves",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      await mustMove(storage, move("h/a%b", ABSENT, [root]));
      await mustMove(storage, move("h/a_b", ABSENT, [], { target: root.id }));
      await mustMove(storage, move("h/axb", ABSENT, [], { target: root.id }));
      for (const prefix of ["h/a%", "h/a_"]) {
        const names = (await storage.readRefs("w", { prefix })).map((row) => row.name);
        assert.deepEqual(names, [`${prefix}b`]);
      }
    },
  },
];
