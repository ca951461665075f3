import assert from "node:assert/strict";
import type { PendingRow, ScanPage, Storage } from "../../storage/port.js";
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
  refRow,
  send,
  workflow,
} from "../fixtures.js";

const REF = "refs/heads/canonical";

function row(key: string, index: number, text = `${key} ${index}`): PendingRow {
  return { key, index, body: Buffer.from(text) };
}

/** Rows as one text each. */
async function read(storage: Storage, prefixes: readonly string[] = [""], w = "w") {
  const rows = await storage.readPending(w, prefixes);
  return rows.map(textOf);
}

function textOf({ key, index, body }: PendingRow): string {
  return `${key} ${index}: ${Buffer.from(body)}`;
}

export const pendingCases: readonly ConformanceCase[] = [
  {
    name: "pending rows are read by prefixes of their keys, sorted by the bytes of keys, then by index",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const keys = [
        "a/b",
        "a/",
        "a",
        "b",
        "a/b/c",
        "a%",
        "a_",
        "a/\u{10ffff}",
        "a/\uffff",
        "A/b",
        "é",
      ];
      const rows = keys.flatMap((key) => [5, -3, 0].map((index) => row(key, index)));
      await send(storage, [], { pending: rows });
      await send(storage, [], { pending: [row("a/b", 0, "of another")], workflow: "other" });
      const expected = (prefixes: readonly string[]) =>
        rows
          .filter(({ key }) => prefixes.some((prefix) => key.startsWith(prefix)))
          .sort(
            (a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)) || a.index - b.index,
          )
          .map(textOf);
      for (const prefixes of [
        [""],
        ["a"],
        ["a/"],
        ["a/b"],
        ["b", "A", "a/b"],
        ["a%"],
        ["é"],
        ["x"],
        [],
      ])
        assert.deepEqual(await read(storage, prefixes), expected(prefixes), `${prefixes}`);
      assert.deepEqual(await read(storage, [""], "other"), ["a/b 0: of another"]);
      for (const limit of [0, 1, 4, rows.length, 100]) {
        const scanned = [];
        for (let after: string | null = null; ; ) {
          const page: ScanPage<PendingRow> = await storage.scanPending("w", after, limit);
          assert.ok(page.rows.length > 0 && page.rows.length <= Math.max(1, limit));
          scanned.push(...page.rows.map(textOf));
          after = page.next;
          if (after === null) break;
        }
        assert.deepEqual(scanned, expected([""]));
      }
      assert.deepEqual(await storage.scanPending("none", null, 9), { rows: [], next: null });
      assert.deepEqual(await read(storage, [""], "none"), []);
    },
  },
  {
    name: "of pending rows the first stays; one of an index below 0 is replaced",
    async run({ storage }) {
      await begin(storage, "w");
      const indexes = [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1];
      const given = (text: string) => indexes.map((index) => row("k", index, text));
      await send(storage, [], { pending: given("first") });
      await send(storage, [], {
        pending: [...given("second"), ...given("third"), row("k", 2, "new")],
      });
      assert.deepEqual(await read(storage), [
        "k -2147483648: third",
        "k -1: third",
        "k 0: first",
        "k 1: first",
        "k 2: new",
        "k 2147483647: first",
      ]);
    },
  },
  {
    name: "pending rows land with moves, and without those that are refused",
    async run({ storage }) {
      await begin(storage, "w");
      const [root, next, lost] = [commit(), commit(), commit()];
      const created = await send(storage, [move(REF, ABSENT, [root])], { pending: [row("k", 1)] });
      assert.equal(created.moves[0]?.outcome, "moved");
      const child = chain(1, root)[0]!;
      const objects = [blob("with the move")];
      const moved = await send(storage, [move(REF, at(root), [child])], {
        objects,
        pending: [row("k", 2), row("j", -2)],
      });
      assert.equal(moved.moves[0]?.outcome, "moved");
      await mustHold(storage, objects);
      const refused = [blob("with what is refused")];
      const late = chain(1, root)[0]!;
      const batch = { objects: refused, pending: [row("k", 3)] };
      assert.equal(
        (await send(storage, [move(REF, at(root), [late])], batch)).moves[0]?.outcome,
        "conflict",
      );
      const both = [move("refs/heads/a", ABSENT, [next]), move(REF, ABSENT, [lost])];
      const { moves } = await send(storage, both, { atomic: true, pending: [row("k", 4)] });
      assert.deepEqual(
        moves.map(({ outcome }) => outcome),
        ["skipped", "conflict"],
      );
      const again = await send(storage, [move(REF, at(root), [child])], { pending: [row("k", 5)] });
      assert.equal(again.moves[0]?.outcome, "landed");
      await mustNotHold(storage, [late.id, next.id, lost.id, refused[0]!.id]);
      assert.deepEqual(await read(storage), [
        "j -2: j -2",
        "k 1: k 1",
        "k 2: k 2",
        "k 3: k 3",
        "k 4: k 4",
        "k 5: k 5",
      ]);
    },
  },
  {
    name: "pending rows come with a workflow that is created, and not where there is none",
    async run({ storage }) {
      const batch = { objects: [], moves: [], atomic: true, pending: [row("k", 1)] };
      assert.equal((await storage.write({ ...batch, workflow: "w" })).workflow, "missing");
      const created = await storage.write({ ...batch, workflow: "w", create: workflow("w") });
      assert.deepEqual(created, { workflow: "created", moves: [] });
      const again = { ...batch, workflow: "w", create: workflow("w"), pending: [row("k", 2)] };
      assert.equal((await storage.write(again)).workflow, "exists");
      assert.deepEqual(await read(storage), ["k 1: k 1"]);
    },
  },
  {
    name: "many writers put pending rows at the same time, with moves and without",
    async run({ storage }) {
      const ids = Array.from({ length: 12 }, (_, i) => `w${i}`);
      await begin(storage, ...ids);
      const roots = ids.map(() => commit());
      await Promise.all(
        ids.map((w, i) => mustMove(storage, move(REF, ABSENT, [roots[i]!]), { workflow: w })),
      );
      const expected = ids.map(() => new Set<string>());
      await Promise.all(
        ids.flatMap((w, i) => {
          const child = chain(1, roots[i])[0]!;
          const own = [row("same", 0), row(`own ${i}`, i), row("special", -1)];
          for (const { key, index } of own) expected[i]?.add(`${key} ${index}: ${key} ${index}`);
          const stale = move(REF, at(child), [commit({ parents: [child] })]);
          return [
            send(storage, [], { workflow: w, pending: own }),
            send(storage, [move(REF, at(roots[i]!), [child])], {
              workflow: w,
              pending: own.slice(1),
            }),
            send(storage, [{ ...stale, ref: "refs/heads/none" }], { workflow: w, pending: own }),
            send(storage, [], { workflow: `not ${w}`, pending: own }),
          ];
        }),
      );
      for (const [i, w] of ids.entries()) {
        assert.deepEqual(new Set(await read(storage, [""], w)), expected[i]);
        assert.equal((await refRow(storage, REF, w))?.seq, 2);
        assert.deepEqual(await read(storage, [""], `not ${w}`), []);
      }
    },
  },
  {
    name: "pending rows are dropped by prefixes of their keys, before others are put",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const rows = ["a/1", "a/2", "a%", "ab", "b"].map((key) => row(key, 0));
      await send(storage, [], { pending: rows });
      await send(storage, [], { pending: rows, workflow: "other" });
      await send(storage, [], { dropPending: ["a/", "b"], pending: [row("a/1", 0, "anew")] });
      assert.deepEqual(await read(storage), ["a% 0: a% 0", "a/1 0: anew", "ab 0: ab 0"]);
      await send(storage, [], { dropPending: ["nothing"] });
      const root = commit();
      const answer = await send(storage, [move(REF, ABSENT, [root])], { dropPending: ["a/"] });
      assert.equal(answer.moves[0]?.outcome, "moved");
      const child = chain(1, root)[0]!;
      const appended = await send(storage, [move(REF, at(root), [child])], { dropPending: ["a%"] });
      assert.equal(appended.moves[0]?.outcome, "moved");
      assert.deepEqual(await read(storage), ["ab 0: ab 0"]);
      await send(storage, [], { dropPending: [""] });
      assert.deepEqual(await read(storage), []);
      assert.equal((await read(storage, [""], "other")).length, rows.length);
    },
  },
  {
    name: "pending rows of any bytes outlive collection, and the process",
    async run({ storage, reopen }) {
      await begin(storage, "w");
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      const bodies = [Buffer.alloc(0), bytes, Buffer.alloc(1 << 20, bytes)];
      const pending = bodies.map((body, index) => ({ key: "k".repeat(1024), index, body }));
      const root = commit();
      await mustMove(storage, move(REF, ABSENT, [root]));
      await send(storage, [], { pending });
      const [later, by] = [4_000_000_000, 7];
      await storage.condemn("w", [root.id], later, by);
      await storage.sweep("w", [root.id], by);
      await mustNotHold(storage, [root.id]);
      const held = async (from: Storage) => {
        const rows = await from.readPending("w", ["k"]);
        assert.deepEqual(
          rows.map(({ body }) => Buffer.from(body).toString("base64")),
          bodies.map((body) => body.toString("base64")),
        );
      };
      await held(storage);
      if (reopen === undefined) return;
      await storage.close();
      await held(await reopen());
    },
  },
];
