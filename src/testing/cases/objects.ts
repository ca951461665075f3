import assert from "node:assert/strict";
import type { ObjectId } from "../../core/ids.js";
import type { ObjectRecord, ScanPage } from "../../storage/port.js";
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
  sameBytes,
  sameCommit,
  sameObject,
  send,
  tree,
  unknownId,
} from "../fixtures.js";

const REF = "refs/heads/canonical";

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i);

/** Follows a scan to its end. */
async function scanAll<Row extends { id: ObjectId }>(
  scan: (after: string | null) => Promise<ScanPage<Row>>,
  pageSize: number,
): Promise<Row[]> {
  const rows: Row[] = [];
  let after: string | null = null;
  do {
    const page: ScanPage<Row> = await scan(after);
    assert.ok(page.rows.length <= pageSize);
    rows.push(...page.rows);
    after = page.next;
    assert.ok(rows.length <= 10_000, "the scan does not end");
  } while (after !== null);
  return rows;
}

const sortedIds = (rows: readonly { id: ObjectId }[]) => rows.map(({ id }) => id).sort();

export const objectCases: readonly ConformanceCase[] = [
  {
    name: "bodies come back byte for byte: all byte values, empty, NUL, what is no UTF-8",
    async run({ storage }) {
      await begin(storage, "w");
      const objects = [
        blob(ALL_BYTES),
        blob(""),
        blob("\0"),
        blob(Uint8Array.of(0xff, 0xfe, 0x00, 0xc3, 0x28)),
        blob('{"a":"\\u0000"}'),
        tree(),
        tree(blob("x"), blob("y")),
      ];
      await mustMove(storage, move(REF, ABSENT, [commit()]), { objects });
      await mustHold(storage, objects);
    },
  },
  {
    name: "a body given as a view into a larger buffer is stored as the view",
    async run({ storage }) {
      await begin(storage, "w");
      const around = new Uint8Array(1000).fill(0x78);
      const object = blob(around.subarray(100, 200));
      await mustMove(storage, move(REF, ABSENT, [commit()]), { objects: [object] });
      const [found] = await storage.readObjects("w", [object.id]);
      assert.equal((found as ObjectRecord).body.length, 100);
    },
  },
  {
    name: "bytes that the caller changes after the answer are not the store's",
    async run({ storage }) {
      await begin(storage, "w");
      const body = Buffer.from("written");
      const object = blob(body);
      await mustMove(storage, move(REF, ABSENT, [commit()]), { objects: [object] });
      body.fill(0);
      const [first] = await storage.readObjects("w", [object.id]);
      sameBytes((first as ObjectRecord).body, Buffer.from("written"));
      (first as ObjectRecord).body.fill(0);
      const [second] = await storage.readObjects("w", [object.id]);
      sameBytes((second as ObjectRecord).body, Buffer.from("written"));
    },
  },
  {
    name: "answers have the order of the ids asked for, undefined where nothing is",
    async run({ storage }) {
      await begin(storage, "w");
      const [a, b] = [blob("a"), blob("b")];
      const [root, child] = chain(2) as [never, never];
      await mustMove(storage, move(REF, ABSENT, [root, child]), { objects: [a, b] });
      const none = unknownId();
      const objects = await storage.readObjects("w", [b.id, none, a.id, b.id]);
      assert.deepEqual(
        objects.map((o) => o?.id),
        [b.id, undefined, a.id, b.id],
      );
      const ids = [child, root].map((c: { id: ObjectId }) => c.id);
      const commits = await storage.readCommits("w", [ids[0]!, none, a.id, ids[1]!]);
      assert.deepEqual(
        commits.map((c) => c?.id),
        [ids[0], undefined, undefined, ids[1]],
      );
      assert.deepEqual(await storage.readObjects("w", [ids[0]!]), [undefined]);
      assert.deepEqual(await storage.readObjects("w", []), []);
      assert.deepEqual(await storage.readCommits("none", [ids[0]!]), [undefined]);
    },
  },
  {
    name: "a commit comes back whole: parents in order, dates, generation, inlined objects",
    async run({ storage }) {
      await begin(storage, "w");
      const bases = Array.from({ length: 9 }, () => commit({ time: 0 }));
      for (const [i, base] of bases.entries()) {
        await mustMove(storage, move(`refs/heads/b${i}`, ABSENT, [base]));
      }
      const inline = [tree(blob("x")), blob(ALL_BYTES), blob(""), tree()];
      const merge = commit({
        parents: bases,
        time: 253_402_300_799,
        message: "first\n\nsecond \u0001 é😀",
        externalId: "thread/checkpoint:1",
        inline,
      });
      await mustMove(storage, move(REF, ABSENT, [merge]));
      sameCommit((await storage.readCommits("w", [merge.id]))[0], merge);
      const found = await storage.readCommits(
        "w",
        bases.map(({ id }) => id),
      );
      for (const [i, base] of bases.entries()) sameCommit(found[i], base);
    },
  },
  {
    name: "writing an object again changes nothing, also twice in one batch",
    async run({ storage }) {
      await begin(storage, "w");
      const object = blob("same");
      const line = chain(3);
      await mustMove(storage, move(REF, ABSENT, [line[0]!]), { objects: [object, object] });
      await mustMove(storage, move(REF, at(line[0]!), [line[1]!]), { objects: [object] });
      await mustHold(storage, [object]);
      assert.equal((await storage.usage("w")).objects, 1);
    },
  },
  {
    name: "a batch of 5,000 objects lands whole",
    async run({ storage }) {
      await begin(storage, "w");
      const objects = Array.from({ length: 5000 }, (_, i) =>
        blob(`object ${i} ${"x".repeat(i % 97)}`),
      );
      await mustMove(storage, move(REF, ABSENT, [commit()]), { objects });
      await mustHold(storage, objects);
      const usage = await storage.usage("w");
      assert.equal(usage.objects, 5000);
    },
  },
  {
    name: "a body of 20 MB lands and comes back",
    async run({ storage }) {
      await begin(storage, "w");
      const body = Buffer.alloc(20_000_000);
      for (let i = 0; i < body.length; i += 4)
        body.writeUInt32LE(Math.imul(i, 0x9e3779b1) >>> 0, i);
      const object = blob(body);
      await mustMove(storage, move(REF, ABSENT, [commit({ inline: [object] })]), {
        objects: [object],
      });
      await mustHold(storage, [object]);
    },
  },
  {
    name: "scans go through everything once, whatever the page size",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const objects = Array.from({ length: 23 }, (_, i) => blob(`object ${i}`));
      const line = chain(17);
      await mustMove(storage, move(REF, ABSENT, line), { objects });
      await mustMove(storage, move(REF, ABSENT, [commit()]), {
        objects: [blob("elsewhere")],
        workflow: "other",
      });
      for (const pageSize of [1, 4, 17, 23, 100]) {
        const found = await scanAll((after) => storage.scanObjects("w", after, pageSize), pageSize);
        assert.deepEqual(sortedIds(found), sortedIds(objects));
        for (const object of objects) {
          sameObject(
            found.find(({ id }) => id === object.id),
            object,
          );
        }
        const commits = await scanAll(
          (after) => storage.scanCommits("w", after, pageSize),
          pageSize,
        );
        assert.deepEqual(sortedIds(commits), sortedIds(line));
        for (const c of line) {
          sameCommit(
            commits.find(({ id }) => id === c.id),
            c,
          );
        }
      }
      assert.deepEqual(await storage.scanObjects("none", null, 10), { rows: [], next: null });
    },
  },
  {
    name: "ids are found by any number of leading digits, commits first",
    async run({ storage }) {
      await begin(storage, "w");
      const objects = Array.from({ length: 200 }, (_, i) => blob(`object ${i}`));
      const line = chain(40);
      await mustMove(storage, move(REF, ABSENT, line), { objects });
      const commits = line.map(({ id }) => ({ id, type: "commit" }));
      const rest = objects.map(({ id, type }) => ({ id, type }));
      const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
      const expected = (prefix: string) =>
        [...commits.sort(byId), ...rest.sort(byId)].filter(({ id }) => id.startsWith(prefix));
      const known = [objects[0]!.id, line[0]!.id];
      const prefixes = known.flatMap((id) => [0, 1, 2, 3, 7, 8, 63, 64].map((n) => id.slice(0, n)));
      for (const prefix of [...prefixes, "f", "00", "fff"]) {
        assert.deepEqual(await storage.findIds("w", prefix, 1000), expected(prefix), prefix);
        assert.deepEqual(await storage.findIds("w", prefix, 3), expected(prefix).slice(0, 3));
      }
      assert.deepEqual(await storage.findIds("w", "", 45), expected("").slice(0, 45));
      assert.deepEqual(await storage.findIds("none", "", 10), []);
    },
  },
  {
    name: "usage counts commits, objects, pending rows and the bytes of bodies, inlined ones included",
    async run({ storage }) {
      await begin(storage, "w");
      const nothing = { commits: 0, objects: 0, pending: 0, bytes: 0 };
      assert.deepEqual(await storage.usage("w"), nothing);
      const objects = [blob("12345"), tree(blob("x")), blob("")];
      const inline = [blob("1234567"), tree()];
      const line = [commit({ inline }), commit()];
      await mustMove(storage, move(REF, ABSENT, [line[0]!]), { objects });
      await mustMove(storage, move("refs/heads/other", ABSENT, [line[1]!]));
      const pending = [0, 1].map((index) => ({ key: "k", index, body: Buffer.alloc(3) }));
      await send(storage, [], { pending });
      const bytes = [...objects, ...inline, ...line, ...pending].reduce(
        (sum, { body }) => sum + body.length,
        0,
      );
      assert.deepEqual(await storage.usage("w"), { commits: 2, objects: 5, pending: 2, bytes });
      assert.deepEqual(await storage.usage("none"), nothing);
    },
  },
  {
    name: "an object is not found where only another workflow holds it",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const object = blob("mine");
      const root = commit();
      await mustMove(storage, move(REF, ABSENT, [root]), { objects: [object] });
      await mustNotHold(storage, [object.id, root.id], "other");
      assert.deepEqual(await storage.findIds("other", "", 10), []);
    },
  },
];
