import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifying } from "../../src/storage/decorators/verifying.js";
import type { ObjectRecord, Storage } from "../../src/storage/port.js";
import {
  ABSENT,
  ANY,
  begin,
  blob,
  commit,
  move,
  mustHold,
  mustMove,
} from "../../src/testing/fixtures.js";
import { append, open, REF, rawDatabase, tempDirectory, verify } from "./sqlite-helpers.js";

/** A closed store with 200 commits. */
async function filledStore(): Promise<string> {
  const path = await tempDirectory();
  const storage = await open(path, { create: true });
  await begin(storage, "w");
  await append(storage, 200, undefined, 400);
  await storage.close();
  return path;
}

const everything = async (storage: Storage) => {
  await storage.readRefs("w", { prefix: "" });
  await storage.scanCommits("w", null, 1000);
};

describe("a store whose file is not what it should be", () => {
  it("is not found, with the place and the remedy", async () => {
    const path = join(await tempDirectory(), "none");
    await expect(open(path)).rejects.toMatchObject({
      code: "STORE_NOT_FOUND",
      message: expect.stringMatching(new RegExp(`${path}.*agstate init`)),
    });
  });

  it("is garbage: damaged", async () => {
    const path = await tempDirectory();
    await writeFile(join(path, "store.db"), "this is no database ".repeat(1000));
    for (const create of [false, true]) {
      await expect(open(path, { create })).rejects.toMatchObject({ code: "STORE_DAMAGED" });
    }
  });

  it("is empty: damaged, until it is made anew", async () => {
    const path = await tempDirectory();
    await writeFile(join(path, "store.db"), "");
    await expect(open(path)).rejects.toMatchObject({ code: "STORE_DAMAGED" });
    await begin(await open(path, { create: true }), "w");
  });

  it("is cut off: damaged on opening, on reading, or told by the structural check", async () => {
    for (const size of [50, 1024, 4096, 20_000, 100_000]) {
      const path = await filledStore();
      await truncate(join(path, "store.db"), size);
      const outcome = (async () => {
        const storage = await open(path);
        await everything(storage);
        expect(await storage.checkStructure()).toEqual([]);
      })();
      const error = await outcome.then(
        () => null,
        (e: unknown) => e,
      );
      expect(error, `cut to ${size} bytes`).toMatchObject({ code: "STORE_DAMAGED" });
    }
  });

  it("has a newer schema: both versions and the remedy", async () => {
    const path = await filledStore();
    const db = rawDatabase(path);
    db.pragma("user_version = 7");
    db.close();
    await expect(open(path)).rejects.toMatchObject({
      code: "STORE_TOO_NEW",
      message: expect.stringMatching(/schema 7.*up to 2.*install/),
      details: { found: 7, known: 2 },
    });
  });

  it("has an older schema: brought up to date as it is opened, with all that it holds", async () => {
    const path = await filledStore();
    const db = rawDatabase(path);
    db.exec("DROP TABLE pending; DELETE FROM migrations WHERE name LIKE '0002%'");
    db.pragma("user_version = 1");
    db.close();
    const storage = await open(path);
    expect((await storage.describe()).schemaVersion).toBe(2);
    expect((await storage.scanCommits("w", null, 1000)).rows.length).toBe(200);
    const pending = [{ key: "k", index: 0, body: Buffer.from("x") }];
    await storage.write({ workflow: "w", objects: [], moves: [], atomic: true, pending });
    expect(await storage.readPending("w", ["k"])).toMatchObject([{ key: "k", index: 0 }]);
    expect(await storage.checkStructure()).toEqual([]);
    await storage.close();
    await (await open(path)).close();
  });

  it("belongs to another program: refused and left as it is", async () => {
    const path = await tempDirectory();
    const db = rawDatabase(path);
    db.exec("CREATE TABLE theirs (x)");
    for (const create of [false, true]) {
      await expect(open(path, { create })).rejects.toMatchObject({ code: "STORE_MISMATCH" });
    }
    expect(db.pragma("journal_mode", { simple: true })).toBe("delete");
  });

  it("stands in another region: refused", async () => {
    const path = await tempDirectory();
    const made = await open(path, { create: true, region: "eu-1" });
    expect((await made.describe()).region).toBe("eu-1");
    await expect(open(path, { region: "us-1" })).rejects.toMatchObject({ code: "STORE_MISMATCH" });
    expect((await (await open(path, { region: "eu-1" })).describe()).region).toBe("eu-1");
    expect((await (await open(path)).describe()).region).toBe("eu-1");
  });
});

describe("rows that went bad", () => {
  const [good, other] = [blob("first object"), blob("a second, longer object")];
  const damages: Record<string, string> = {
    "one byte flipped": `UPDATE objects SET body = x'00' || substr(body, 2) WHERE id = @id`,
    "cut short": `UPDATE objects SET body = substr(body, 1, 5) WHERE id = @id`,
    "another object's bytes": `UPDATE objects SET body = (SELECT body FROM objects
      WHERE type = 3 AND id <> @id)
      WHERE id = @id`,
    "another type": "UPDATE objects SET type = 2 WHERE id = @id",
    "text in place of bytes": "UPDATE objects SET body = 'first object!' WHERE id = @id",
  };

  async function store() {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    await mustMove(storage, move(REF, ABSENT, [commit()]), { objects: [good, other] });
    return { storage, db: rawDatabase(path) };
  }

  for (const [name, sql] of Object.entries(damages)) {
    it(`${name}: read as corrupt, scanned without an error, healed by writing it again`, async () => {
      const { storage, db } = await store();
      expect(db.prepare(sql).run({ id: Buffer.from(good.id, "hex") }).changes).toBe(1);
      const verified = verifying(storage, verify);
      await expect(verified.readObjects("w", [good.id])).rejects.toMatchObject({
        code: "CORRUPT_OBJECT",
        details: { expected: good.id, actual: expect.stringMatching(/^[0-9a-f]{64}$/) },
      });
      await mustHold(verified, [other]);
      expect((await verified.scanObjects("w", null, 10)).rows.length).toBe(2);

      await mustMove(verified, move(REF, ANY, [commit()]), { objects: [good] });
      await mustHold(verified, [good, other]);
    });
  }

  it("an unknown type or kind is read as corrupt, scanned without an error, healed", async () => {
    for (const column of ["type", "kind"]) {
      const { storage, db } = await store();
      db.exec(`UPDATE objects SET ${column} = 9 WHERE type <> 1`);
      await expect(storage.readObjects("w", [good.id])).rejects.toMatchObject({
        code: "CORRUPT_OBJECT",
        details: { id: good.id, [column]: 9 },
      });
      expect((await storage.scanObjects("w", null, 10)).rows.length).toBe(2);
      await mustMove(storage, move(REF, ANY, [commit()]), { objects: [good, other] });
      await mustHold(storage, [good, other]);
    }
  });

  it("a commit with a flipped byte is read as corrupt", async () => {
    const { storage, db } = await store();
    db.exec("UPDATE objects SET body = x'00' || substr(body, 2) WHERE type = 1");
    const [row] = await storage.readRefs("w", { names: [REF] });
    const verified = verifying(storage, verify);
    await expect(verified.readCommits("w", [row!.id!])).rejects.toMatchObject({
      code: "CORRUPT_OBJECT",
      details: { expected: row!.id },
    });
  });

  it("inlined objects that end in the middle of one are corrupt", async () => {
    const { storage, db } = await store();
    const next = commit({ inline: [good] });
    await mustMove(storage, move(REF, ANY, [next]));
    db.exec("UPDATE objects SET inline = substr(inline, 1, length(inline) - 1)");
    await expect(storage.readCommits("w", [next.id])).rejects.toMatchObject({
      code: "CORRUPT_OBJECT",
    });
  });

  it("what is encoded in a way that is not known is refused, on read and on write", async () => {
    const { storage, db } = await store();
    const verified = verifying(storage, verify);
    db.prepare("UPDATE objects SET encoding = 3 WHERE id = ?").run(Buffer.from(good.id, "hex"));
    await expect(verified.readObjects("w", [good.id])).rejects.toMatchObject({
      code: "UNSUPPORTED_ENCODING",
    });
    const encoded: ObjectRecord = { ...good, encoding: 4 };
    const batch = { objects: [encoded] };
    await expect(mustMove(verified, move(REF, ANY, [commit()]), batch)).rejects.toMatchObject({
      code: "UNSUPPORTED_ENCODING",
    });
  });

  it("a tombstone is read as one, counts as no object, and gives way to the object", async () => {
    const { storage, db } = await store();
    const verified = verifying(storage, verify);
    const why = Buffer.from("erased by ada");
    const erase = "UPDATE objects SET kind = 1, body = ? WHERE id = ?";
    db.prepare(erase).run(why, Buffer.from(good.id, "hex"));
    const [found] = await verified.readObjects("w", [good.id]);
    expect(found).toEqual({ id: good.id, type: "blob", tombstone: why });
    expect((await verified.scanObjects("w", null, 10)).rows.length).toBe(2);
    expect((await verified.usage("w")).objects).toBe(1);
    await mustMove(verified, move(REF, ANY, [commit()]), { objects: [good] });
    await mustHold(verified, [good]);
  });

  it("an object that was not seen for half the grace period is freshened, a recent one is not", async () => {
    const path = await tempDirectory();
    let now = 1_700_000_000_000;
    const storage = await open(path, { create: true, graceMs: 100_000, now: () => now });
    await begin(storage, "w");
    const db = rawDatabase(path);
    const seenAt = () => db.prepare("SELECT seen_at FROM objects WHERE type = 3").pluck().get();
    const send = () => mustMove(storage, move(REF, ANY, [commit()]), { objects: [good] });
    await send();
    expect(seenAt()).toBe(1_700_000_000);
    now += 50_000;
    await send();
    expect(seenAt()).toBe(1_700_000_000);
    now += 1000;
    await send();
    expect(seenAt()).toBe(1_700_000_051);
  });
});

describe("the structural check", () => {
  const faults: Record<string, [string, string]> = {
    "a ref to nowhere": ["UPDATE refs SET id = zeroblob(32)", "ref without its commit"],
    "a parent list that does not parse": [
      "UPDATE objects SET parents = x'00' WHERE generation = 5",
      "commit whose parents do not parse",
    ],
    "a generation that is too low": [
      "UPDATE objects SET generation = 2 WHERE generation = 5",
      "commit whose generation contradicts its parents",
    ],
    "a root that is none": [
      "UPDATE objects SET generation = 3 WHERE generation = 1",
      "commit whose generation contradicts its parents",
    ],
    "an unknown kind": [
      `INSERT INTO objects (wf, type, kind, encoding, seen_at, id, body)
       VALUES (1, 3, 9, 0, 0, zeroblob(32), x'')`,
      "object of unknown kind or type",
    ],
    "a row of no workflow": [
      "UPDATE objects SET wf = 99 WHERE generation = 9",
      "row of a workflow that is not in the catalogue",
    ],
    "an index that lost an entry": [
      `PRAGMA writable_schema = ON;
       UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema
         WHERE name = 'reflog_seq') WHERE name = 'objects_id'`,
      "damaged file",
    ],
  };

  for (const [name, [sql, what]] of Object.entries(faults)) {
    it(`tells of ${name}`, async () => {
      const path = await filledStore();
      const db = rawDatabase(path);
      db.unsafeMode(true);
      db.exec(sql);
      db.close();
      const problems = await (await open(path)).checkStructure();
      expect(problems.map((problem) => problem.what)).toContain(what);
    });
  }
});

describe("a log that was tampered with", () => {
  it("shows its gap, and a changed entry no longer hashes to what the next one names", async () => {
    const path = await filledStore();
    const db = rawDatabase(path);
    db.exec("UPDATE objects SET log_seq = NULL WHERE log_seq = 50");
    db.exec("UPDATE objects SET log_actor = 'mallory' WHERE log_seq = 150");
    const storage = await open(path);
    const log = await storage.readReflog("w", REF, { limit: 1000 });
    expect(log.at(-1)!.seq).toBe(51);
    expect(log.length).toBe(150);
    expect(log.find((entry) => entry.seq === 150)!.actor).toBe("mallory");
  });
});
