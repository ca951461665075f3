import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ANY, begin, blob, commit, move, mustMove, randomHex } from "../../src/testing/fixtures.js";
import { append, open, rawDatabase, tempDirectory } from "./sqlite-helpers.js";

const LATER = 4_000_000_000;

const filesOf = (path: string) =>
  Buffer.concat(
    ["store.db", "store.db-wal"].map((name) => readFileSync(join(path, name), { flag: "a+" })),
  );

describe("compacting a SQLite store", () => {
  it("gives the bytes back, and leaves nothing of what is gone in the files", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true });
    await begin(storage, "w");
    const gone = Array.from({ length: 300 }, (_, i) => blob(`marker-${i} ${randomHex(2000)}`));
    const kept = blob("what stays");
    await mustMove(storage, move("refs/heads/a", ANY, [commit()]), { objects: [...gone, kept] });
    expect(filesOf(path).includes("marker-")).toBe(true);
    const ids = gone.map(({ id }) => id);
    await storage.condemn("w", ids, LATER, 1);
    await storage.sweep("w", ids, 1);
    const { bytesBefore, bytesAfter } = await storage.compact();
    expect(bytesBefore).toBeGreaterThan(1_200_000);
    expect(bytesAfter).toBeLessThan(100_000);
    expect(statSync(join(path, "store.db")).size).toBe(bytesAfter);
    expect(filesOf(path).includes("marker-")).toBe(false);
    expect(filesOf(path).includes("what stays")).toBe(true);
  });

  it("is busy while another reads an older state, and ends when it is run again", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true, busyTimeoutMs: 60 });
    await begin(storage, "w");
    const head = await append(storage, 20);
    const other = rawDatabase(path);
    other.exec("BEGIN");
    expect(other.prepare("SELECT count(*) FROM objects WHERE type = 1").pluck().get()).toBe(20);
    const busy = { code: "STORE_BUSY", message: expect.stringMatching(/\d+ ms.*busyTimeoutMs/) };
    await expect(storage.compact()).rejects.toMatchObject(busy);
    other.exec("COMMIT");
    const { bytesAfter } = await storage.compact();
    expect(statSync(join(path, "store.db")).size).toBe(bytesAfter);
    await append(storage, 1, head);
    expect(await storage.checkStructure()).toEqual([]);
  });

  it("lets a connection that was open go on, and the store be opened anew", async () => {
    const path = await tempDirectory();
    const [one, two] = [await open(path, { create: true }), await open(path)];
    await begin(one, "w");
    let head = await append(one, 30);
    for (let round = 0; round < 3; round++) {
      await two.compact();
      head = await append(one, 10, head);
      head = await append(two, 10, head);
    }
    const three = await open(path);
    expect((await three.readCommits("w", [head.id]))[0]?.generation).toBe(90);
    expect(await three.checkStructure()).toEqual([]);
  });
});
