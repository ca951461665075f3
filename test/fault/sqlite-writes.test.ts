import { describe, expect, it } from "vitest";
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
  refRow,
  sendOne,
} from "../../src/testing/fixtures.js";
import { open, REF, rawDatabase, tempDirectory } from "./sqlite-helpers.js";

const OTHER = "refs/heads/other";

async function store(maxPageCount?: number) {
  const path = await tempDirectory();
  const rest = maxPageCount === undefined ? {} : { maxPageCount };
  const storage = await open(path, { create: true, ...rest });
  await begin(storage, "w");
  return { path, storage };
}

describe("a batch that is sent again after its ref was set back", () => {
  for (const others of [0, 1]) {
    it(`has landed and writes nothing, in one transaction with ${others} others`, async () => {
      const { path, storage } = await store();
      const [root, next] = chain(2);
      const erased = blob("to be erased");
      await mustMove(storage, move(REF, ABSENT, [root!]));
      const again = move(REF, at(root!), [next!]);
      await mustMove(storage, again, { objects: [erased] });
      await mustMove(storage, move(REF, at(next!), [], { target: root!.id }));
      const row = await refRow(storage, REF);
      rawDatabase(path)
        .prepare("UPDATE objects SET kind = 1, body = x'00' WHERE id = ?")
        .run(Buffer.from(erased.id, "hex"));

      const [answer] = await Promise.all([
        sendOne(storage, again, { objects: [erased] }),
        ...Array.from({ length: others }, () => mustMove(storage, move(OTHER, ANY, [commit()]))),
      ]);
      expect(answer).toEqual({ outcome: "landed", row });
      expect(await refRow(storage, REF)).toEqual(row);
      expect((await storage.readReflog("w", REF, { limit: 10 })).length).toBe(3);
      expect((await storage.readObjects("w", [erased.id]))[0]).toHaveProperty("tombstone");
    });
  }

  it("has landed though its expectation fails, or a parent is missing", async () => {
    const { path, storage } = await store();
    const [root, next, last] = chain(3);
    await mustMove(storage, move(REF, ABSENT, [root!, next!, last!]));
    const row = await refRow(storage, REF);
    expect(await sendOne(storage, move(REF, at(next!), [last!]))).toEqual({
      outcome: "landed",
      row,
    });
    rawDatabase(path).prepare("DELETE FROM objects WHERE id = ?").run(Buffer.from(next!.id, "hex"));
    expect(await sendOne(storage, move(REF, ANY, [last!]))).toEqual({ outcome: "landed", row });
    const onNothing = move(REF, ANY, [commit({ parents: [next!] })]);
    expect(await sendOne(storage, onNothing)).toEqual({ outcome: "missing", ids: [next!.id] });
  });
});

describe("what a connection remembers", () => {
  it("gives way to what another connection wrote", async () => {
    const { path, storage } = await store();
    const another = await open(path);
    const line = chain(4);
    await mustMove(storage, move(REF, ABSENT, [line[0]!]));
    await mustMove(storage, move(REF, at(line[0]!), [line[1]!]));
    await mustMove(another, move(REF, at(line[1]!), [line[2]!]));
    const actual = await refRow(another, REF);
    const lost = move(REF, at(line[1]!), [commit({ parents: [line[1]!] })]);
    expect(await sendOne(storage, lost)).toEqual({ outcome: "conflict", actual });
    expect((await mustMove(storage, move(REF, at(line[2]!), [line[3]!]))).seq).toBe(4);
    expect((await storage.readReflog("w", REF, { limit: 10 })).length).toBe(4);
  });

  it("is no ref that a transaction wrote which was rolled back", async () => {
    const { storage } = await store(60);
    const [root, next] = chain(2);
    await mustMove(storage, move(REF, ABSENT, [root!]));
    const large = blob(Buffer.alloc(1_000_000, 7));
    const [moved, failed] = await Promise.allSettled([
      sendOne(storage, move(REF, at(root!), [next!])),
      sendOne(storage, move(OTHER, ANY, [commit()]), { objects: [large] }),
    ]);
    expect(failed).toMatchObject({ status: "rejected", reason: { code: "STORE_FULL" } });
    expect(moved).toMatchObject({ value: { outcome: "moved", row: { seq: 2 } } });
  });

  it("is no workflow whose creation was rolled back", async () => {
    const path = await tempDirectory();
    let thief = () => {};
    const now = () => {
      thief();
      return 1_700_000_000_000;
    };
    const storage = await open(path, { create: true, maxPageCount: 60, now });
    await begin(storage, "w");
    const db = rawDatabase(path);
    // Before each batch is tried again alone, another connection takes the number.
    thief = () => {
      thief = () => {};
      setImmediate(() =>
        db.exec(`INSERT INTO workflows (created_at, id, classification, isolation)
          VALUES (0, 'y', 'internal', '{}')`),
      );
    };
    const large = blob(Buffer.alloc(1_000_000, 7));
    const [, moved, failed] = await Promise.allSettled([
      begin(storage, "x"),
      sendOne(storage, move(REF, ABSENT, [commit()]), { workflow: "x" }),
      sendOne(storage, move(OTHER, ANY, [commit()]), { objects: [large] }),
    ]);
    expect(failed).toMatchObject({ status: "rejected", reason: { code: "STORE_FULL" } });
    expect(moved).toMatchObject({ value: { outcome: "moved" } });
    expect(await storage.readRefs("y", { prefix: "" })).toEqual([]);
    expect((await storage.readRefs("x", { prefix: "" })).length).toBe(1);
    expect(db.prepare("SELECT id FROM workflows ORDER BY wf").pluck().all()).toEqual([
      "w",
      "y",
      "x",
    ]);
  });
});

describe("a row whose type went bad", () => {
  it("is no commit any more, and one again when the commit is written", async () => {
    const { path, storage } = await store();
    const root = commit();
    await mustMove(storage, move(REF, ABSENT, [root]));
    await mustMove(storage, move(OTHER, ABSENT, [commit()]));
    rawDatabase(path)
      .prepare("UPDATE objects SET type = 3 WHERE id = ?")
      .run(Buffer.from(root.id, "hex"));
    expect(await storage.readCommits("w", [root.id])).toEqual([undefined]);
    expect((await storage.checkStructure()).map(({ what }) => what)).toEqual([
      "ref without its commit",
    ]);
    expect((await mustMove(storage, move(OTHER, ANY, [root]))).id).toBe(root.id);
    expect((await storage.readCommits("w", [root.id]))[0]).toEqual(root);
    expect((await storage.readReflog("w", OTHER, { limit: 10 })).map(({ seq }) => seq)).toEqual([
      2, 1,
    ]);
    expect(await storage.checkStructure()).toEqual([]);
  });

  it("is no object any more, and is scanned as a commit that cannot be", async () => {
    const { path, storage } = await store();
    const good = blob("an object");
    const [root, next] = chain(2);
    await mustMove(storage, move(REF, ABSENT, [root!]), { objects: [good] });
    rawDatabase(path)
      .prepare("UPDATE objects SET type = 1 WHERE id = ?")
      .run(Buffer.from(good.id, "hex"));
    expect(await storage.readObjects("w", [good.id])).toEqual([undefined]);
    expect((await storage.scanObjects("w", null, 10)).rows).toEqual([]);
    const { rows } = await storage.scanCommits("w", null, 10);
    expect(rows.find(({ id }) => id === good.id)).toMatchObject({ parents: [], generation: 0 });
    expect((await storage.checkStructure()).length).toBeGreaterThan(0);
    await mustMove(storage, move(REF, ANY, [next!]), { objects: [good] });
    await mustHold(storage, [good]);
    expect(await storage.checkStructure()).toEqual([]);
  });
});
