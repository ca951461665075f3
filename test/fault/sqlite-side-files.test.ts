import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { begin } from "../../src/testing/fixtures.js";
import { append, child, open, REF, rawDatabase, tempDirectory } from "./sqlite-helpers.js";

const MAIN = "store.db";
const WAL = "store.db-wal";

/** A copy of the store as a crash would leave it: the files as they are while it is open. */
async function crashed(path: string): Promise<string> {
  const copy = await tempDirectory();
  for (const file of [MAIN, WAL]) await cp(join(path, file), join(copy, file));
  return copy;
}

describe("a main file and a write-ahead log", () => {
  it("of different ages are refused, and left as they are", async () => {
    const path = await tempDirectory();
    const first = await open(path, { create: true });
    await begin(first, "w");
    let head = await append(first, 20);
    await first.close();
    const backup = await readFile(join(path, MAIN));

    const second = await open(path);
    head = await append(second, 30, head);
    await second.close();
    const third = await open(path);
    await append(third, 30, head);

    const copy = await crashed(path);
    const sound = await open(copy);
    expect((await sound.readRefs("w", { names: [REF] }))[0]!.seq).toBe(80);
    await sound.close();

    const mixed = await crashed(path);
    await writeFile(join(mixed, MAIN), backup);
    const log = await readFile(join(mixed, WAL));
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(open(mixed)).rejects.toMatchObject({
        code: "STORE_MISMATCH",
        message: expect.stringMatching(/store\.db-wal.*Restore.*from one backup/),
      });
    }
    expect((await readFile(join(mixed, MAIN))).equals(backup)).toBe(true);
    expect((await readFile(join(mixed, WAL))).equals(log)).toBe(true);

    // The remedy that the message names.
    await rm(join(mixed, WAL));
    const restored = await open(mixed);
    expect((await restored.readRefs("w", { names: [REF] }))[0]!.seq).toBe(20);
  });

  it("of different ages are refused after the log was restarted under a process that lives on", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    let head = await append(storage, 20);
    const checkpoint = () => {
      const db = rawDatabase(path);
      db.pragma("wal_checkpoint(PASSIVE)");
      db.close();
    };
    checkpoint();
    const backup = await readFile(join(path, MAIN));
    for (let round = 0; round < 3; round++) {
      head = await append(storage, 20, head);
      checkpoint();
    }
    await append(storage, 20, head);
    const mixed = await crashed(path);
    await open(mixed);
    const broken = await crashed(path);
    await writeFile(join(broken, MAIN), backup);
    await expect(open(broken)).rejects.toMatchObject({ code: "STORE_MISMATCH" });
  });

  it("that belong together are never refused: crashes between any two writes", async () => {
    const path = await tempDirectory();
    let storage = await open(path, { create: true });
    await begin(storage, "w");
    let head = await append(storage, 1);
    for (let round = 0; round < 60; round++) {
      head = await append(storage, 1 + (round % 5), head, (round % 4) * 3000);
      if (round % 7 === 3) rawDatabase(path).pragma("wal_checkpoint(PASSIVE)");
      if (round % 11 === 5) {
        await storage.close();
        storage = await open(path);
        if (round % 2) head = await append(storage, 1, head);
      }
      const copy = await open(await crashed(path));
      expect((await copy.readRefs("w", { names: [REF] }))[0]!.id).toBe(head.id);
      await copy.close();
    }
  });

  it("that belong together are never refused: kills and other processes", async () => {
    const path = await tempDirectory();
    const first = await open(path, { create: true });
    await begin(first, "w");
    await first.close();
    for (let round = 0; round < 10; round++) {
      const children = [child("append", [path, "100000"]), child("append", [path, "100000"])];
      await children[0]!.printed(5 + round * 13);
      // A newcomer, while the others write, checkpoint and restart the log.
      for (let i = 0; i < 5; i++) await (await open(path)).close();
      await Promise.all(children.map((c) => c.kill()));
      await (await open(path)).close();
    }
  });

  it("that belong together are never refused: after SQLite wrote every page anew", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    const saved = join(await tempDirectory(), MAIN);
    const head = await append(storage, 20);
    await rawDatabase(path).backup(saved);
    let later = head;
    for (let round = 0; round < 3; round++) {
      later = await append(storage, 20, later);
      rawDatabase(path).pragma("wal_checkpoint(PASSIVE)");
    }

    // An older backup written over the open store breaks the chain of notes.
    const backup = new Database(saved);
    await backup.backup(join(path, MAIN));
    backup.close();
    for (const statement of ["SELECT 1", "VACUUM"]) {
      rawDatabase(path).exec(statement);
      const copy = await open(await crashed(path));
      expect((await copy.readRefs("w", { names: [REF] }))[0]!.id).toBe(head.id);
      await copy.close();
    }
    await append(storage, 1, head);
    await open(await crashed(path));
  });
});
