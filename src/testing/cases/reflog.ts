import assert from "node:assert/strict";
import { ZERO_ID } from "../../core/ids.js";
import { reflogEntryText } from "../../core/reflog-entry.js";
import type { CommitRecord as C, Storage } from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  ANY,
  at,
  begin,
  chain,
  commit,
  digest,
  move,
  mustMove,
  refRow,
  sendOne,
} from "../fixtures.js";

const REF = "refs/heads/canonical";

/** Asserts that the log from its newest entry is whole, and gives it. */
async function wholeLog(storage: Storage, ref: string, length: number) {
  const log = await storage.readReflog("w", ref, { limit: 10_000 });
  assert.equal(log.length, length);
  const row = await refRow(storage, ref);
  let hash = row!.logHash;
  for (const [i, entry] of log.entries()) {
    assert.equal(entry.ref, ref);
    assert.equal(entry.seq, length - i);
    assert.equal(entry.hash, hash, `entry ${entry.seq} is not what the one after it names`);
    assert.equal(digest(reflogEntryText(entry)), hash, `entry ${entry.seq} hashes to its hash`);
    hash = entry.previous;
  }
  assert.equal(hash, ZERO_ID);
  return log;
}

export const reflogCases: readonly ConformanceCase[] = [
  {
    name: "every kind of move has an entry, and the entries make a chain of hashes",
    async run({ storage }) {
      await begin(storage, "w");
      const [a, b, c, d, e, f] = chain(6) as [C, C, C, C, C, C];
      const forest = commit();
      const merge = commit({ parents: [f, forest] });
      await mustMove(storage, move("refs/heads/other", ABSENT, [forest]));
      const steps = [
        move(REF, ABSENT, [a]),
        move(REF, at(a), [b]),
        move(REF, at(b), [c, d]),
        move(REF, at(d), [], { target: a.id }),
        move(REF, at(a), []),
        move(REF, ABSENT, [], { target: d.id }),
        move(REF, at(d), [], { target: d.id }),
        move(REF, at(d), [e]),
        move(REF, at(e), [f]),
        move(REF, ANY, [merge]),
        move(REF, ANY, []),
        move(REF, ABSENT, [commit({ parents: [merge] })]),
        move(REF, ANY, [commit()]),
      ];
      const heads: string[] = [ZERO_ID];
      for (const [i, step] of steps.entries()) {
        const log = {
          actor: `actor ${i}`,
          reason: i % 2 ? "" : `reason é😀 ${i}`,
          time: i,
          trace: `t${i}`,
        };
        const row = await mustMove(storage, { ...step, log });
        heads.push(row.id ?? ZERO_ID);
      }
      const entries = await wholeLog(storage, REF, steps.length);
      for (const [i, entry] of [...entries].reverse().entries()) {
        assert.equal(entry.old, heads[i]);
        assert.equal(entry.new, heads[i + 1]);
        assert.equal(entry.actor, `actor ${i}`);
        assert.equal(entry.reason, i % 2 ? "" : `reason é😀 ${i}`);
        assert.equal(entry.time, i);
        assert.equal(entry.trace, `t${i}`);
      }
    },
  },
  {
    name: "who, why, when and trace come back even where the commit says the same",
    async run({ storage }) {
      await begin(storage, "w");
      const texts = [
        "",
        "ada",
        "ada <ada@w>",
        "a message",
        "commit: a message",
        "null",
        "00-ab-01",
      ];
      let parent = commit();
      await mustMove(storage, move(REF, ABSENT, [parent]));
      for (const actor of texts) {
        for (const reason of texts) {
          const next = commit({ parents: [parent], message: "a message\n\nand more" });
          const log = { actor, reason, time: 253_402_300_799_999, trace: reason };
          await mustMove(storage, move(REF, at(parent), [next], { log }));
          const [entry] = await storage.readReflog("w", REF, { limit: 1 });
          assert.deepEqual(
            { actor: entry!.actor, reason: entry!.reason, time: entry!.time, trace: entry!.trace },
            log,
          );
          parent = next;
        }
      }
      await wholeLog(storage, REF, 1 + texts.length ** 2);
    },
  },
  {
    name: "the log goes on over deletion and creation, each life under its incarnation",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const lives = [move(REF, ABSENT, [root]), move(REF, ABSENT, [], { target: root.id })];
      await mustMove(storage, lives[0]!);
      await mustMove(storage, move(REF, at(root), []));
      await mustMove(storage, lives[1]!);
      const next = commit({ parents: [root] });
      await mustMove(storage, move(REF, at(root), [next]));
      const log = await wholeLog(storage, REF, 4);
      const [first, second] = lives.map((life) => life.incarnation);
      assert.deepEqual(
        log.map((entry) => entry.incarnation),
        [second, second, first, first],
      );
    },
  },
  {
    name: "a log is paged by seq",
    async run({ storage }) {
      await begin(storage, "w");
      const line = chain(25);
      for (const [i, c] of line.entries()) {
        await mustMove(storage, move(REF, i === 0 ? ABSENT : at(line[i - 1]!), [c]));
      }
      const read = async (limit: number, fromSeq?: number) => {
        const options = fromSeq === undefined ? { limit } : { limit, fromSeq };
        return (await storage.readReflog("w", REF, options)).map((entry) => entry.seq);
      };
      assert.deepEqual(await read(3), [25, 24, 23]);
      assert.deepEqual(await read(3, 22), [22, 21, 20]);
      assert.deepEqual(await read(3, 19), [19, 18, 17]);
      assert.deepEqual(await read(2, 12), [12, 11]);
      assert.deepEqual(await read(5, 2), [2, 1]);
      assert.deepEqual(await read(5, 0), []);
      assert.deepEqual(await read(0), []);
      assert.deepEqual(await read(2, 1000), [25, 24]);
      const pages = [];
      for (let from = 25; from > 0; from -= 4) {
        pages.push(...(await storage.readReflog("w", REF, { limit: 4, fromSeq: from })));
      }
      assert.deepEqual(pages, await storage.readReflog("w", REF, { limit: 100 }));
      await mustMove(storage, move(REF, ANY, [], { target: line[3]!.id }));
      assert.deepEqual(await read(2, 22), [22, 21]);
      await wholeLog(storage, REF, 26);
    },
  },
  {
    name: "a refused move leaves no entry, and refs have logs of their own",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      await mustMove(storage, move(REF, ABSENT, [root]));
      await sendOne(storage, move(REF, ABSENT, [commit()]));
      await mustMove(storage, move("refs/heads/other", ABSENT, [], { target: root.id }));
      await wholeLog(storage, REF, 1);
      await wholeLog(storage, "refs/heads/other", 1);
      assert.deepEqual(await storage.readReflog("w", "refs/heads/none", { limit: 5 }), []);
    },
  },
];
