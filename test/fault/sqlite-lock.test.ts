import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ANY, begin, commit, move, mustMove } from "../../src/testing/fixtures.js";
import { append, open, REF, rawDatabase, tempDirectory } from "./sqlite-helpers.js";

describe("a store that others use", () => {
  it("is busy when the write lock is held for longer than a call may wait", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true, busyTimeoutMs: 60 });
    await begin(storage, "w");
    const head = await append(storage, 2);
    const other = rawDatabase(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(append(storage, 1, head)).rejects.toMatchObject({
      code: "STORE_BUSY",
      message: expect.stringMatching(/\d+ ms.*busyTimeoutMs/),
    });
    expect((await storage.readRefs("w", { names: [REF] }))[0]!.id).toBe(head.id);
    other.exec("ROLLBACK");
    await append(storage, 1, head);
  });

  it("waits without blocking the event loop, and lands once the lock is free", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    const other = rawDatabase(path);
    other.exec("BEGIN IMMEDIATE");
    let landed = false;
    const writing = append(storage, 1).then(() => {
      landed = true;
    });
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(landed).toBe(false);
    other.exec("COMMIT");
    await writing;
  });

  it("is written to while a reader holds an old snapshot open", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    let head = await append(storage, 1);
    const reader = rawDatabase(path);
    reader.exec("BEGIN");
    const seen = reader.prepare("SELECT count(*) FROM objects WHERE type = 1").pluck();
    expect(seen.get()).toBe(1);
    // Enough for several checkpoints, none of which can finish.
    head = await append(storage, 600, head, 6000);
    expect(seen.get()).toBe(1);
    reader.exec("COMMIT");
    expect(seen.get()).toBe(601);
    await append(storage, 600, head, 6000);
    expect(await storage.checkStructure()).toEqual([]);
  });

  it("is backed up while it is written to, and the copy is whole", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    const head = await append(storage, 50);
    const target = await tempDirectory();
    const backup = rawDatabase(path).backup(join(target, "store.db"));
    await append(storage, 100, head);
    await backup;
    const copy = await open(target);
    const [row] = await copy.readRefs("w", { names: [REF] });
    expect(row!.seq).toBeGreaterThanOrEqual(50);
    expect((await copy.readReflog("w", REF, { limit: 1000 })).length).toBe(row!.seq);
    expect(await copy.checkStructure()).toEqual([]);
  });

  it("is made once when many open it at the same moment", async () => {
    const path = join(await tempDirectory(), "a", "b");
    const stores = await Promise.all(Array.from({ length: 8 }, () => open(path, { create: true })));
    const ids = await Promise.all(stores.map(async (s) => (await s.describe()).storeId));
    expect(new Set(ids).size).toBe(1);
    await begin(stores[0]!, "w");
    await Promise.all(stores.map((s, i) => mustMove(s, move(`refs/heads/b${i}`, ANY, [commit()]))));
    expect((await stores[7]!.readRefs("w", { prefix: "" })).length).toBe(8);
  });
});
