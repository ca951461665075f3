import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ZERO_ID } from "../../src/core/ids.js";
import { reflogEntryText } from "../../src/core/reflog-entry.js";
import type { Storage } from "../../src/storage/port.js";
import { begin, blob, digest } from "../../src/testing/fixtures.js";
import { child, open, REF, tempDirectory } from "./sqlite-helpers.js";

async function emptyStore(): Promise<string> {
  const path = await tempDirectory();
  const storage = await open(path, { create: true });
  await begin(storage, "w");
  await storage.close();
  return path;
}

/** Asserts that the store is sound, and that each acknowledged commit is on the ref, with what it brought. */
async function expectAll(storage: Storage, acknowledged: readonly string[]): Promise<void> {
  expect(await storage.checkStructure()).toEqual([]);
  const [row] = await storage.readRefs("w", { names: [REF] });
  const nodes = await storage.readGraph("w", row?.id ? [row.id] : [], 100_000);
  const reachable = new Set<string>(nodes.map(({ id }) => id));
  expect(acknowledged.filter((id) => !reachable.has(id))).toEqual([]);
  const beside = nodes.map(({ id }) => blob(`beside ${id}`).id);
  expect((await storage.readObjects("w", beside)).includes(undefined)).toBe(false);

  const log = await storage.readReflog("w", REF, { limit: 100_000 });
  expect(log.length).toBe(row?.seq ?? 0);
  let hash = row?.logHash ?? ZERO_ID;
  for (const entry of log) {
    expect(digest(reflogEntryText(entry))).toBe(hash);
    hash = entry.previous;
  }
}

describe("processes on one store", () => {
  it("that read the head and commit, four at once, 200 times each, lose nothing", async () => {
    const path = await emptyStore();
    const children = Array.from({ length: 4 }, () => child("append", [path, "200"]));
    const acknowledged = (await Promise.all(children.map((c) => c.success()))).flat();
    expect(new Set(acknowledged).size).toBe(800);
    const storage = await open(path);
    await expectAll(storage, acknowledged);
    expect((await storage.readRefs("w", { names: [REF] }))[0]!.seq).toBe(800);
  });

  it("that open a new store at the same moment make one", async () => {
    const path = join(await tempDirectory(), "new");
    const children = Array.from({ length: 6 }, () => child("create", [path]));
    const ids = (await Promise.all(children.map((c) => c.success()))).flat();
    expect(ids.length).toBe(6);
    expect(new Set(ids).size).toBe(1);
  });

  it("that are killed lose no acknowledged commit, and the store opens again each time", async () => {
    const path = await emptyStore();
    const acknowledged: string[] = [];
    for (let round = 0; round < 12; round++) {
      const children = Array.from({ length: 1 + (round % 3) }, () =>
        child("append", [path, "100000"]),
      );
      await children[0]!.printed(1 + ((round * 17) % 60));
      for (const lines of await Promise.all(children.map((c) => c.kill()))) {
        acknowledged.push(...lines);
      }
      if (round % 4 === 3) {
        const storage = await open(path);
        await expectAll(storage, acknowledged);
        await storage.close();
      }
    }
    await expectAll(await open(path), acknowledged);
  });
});
