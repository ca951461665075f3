import { describe, expect, it } from "vitest";
import { closedGuard } from "../../src/storage/decorators/closed-guard.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { verifying } from "../../src/storage/decorators/verifying.js";
import type { Storage } from "../../src/storage/port.js";
import { bytesOf } from "../../src/storage/rows/inline.js";
import {
  ABSENT,
  begin,
  blob,
  commit,
  move,
  mustMove,
  rootedCommit,
  tree,
} from "../../src/testing/fixtures.js";
import { conformanceSuite } from "../../src/testing/index.js";
import { verify } from "../fault/sqlite-helpers.js";
import { withReadBelow } from "../support/read-below.js";
import { memoryTarget } from "./targets.js";

const decorators: Readonly<Record<string, (storage: Storage) => Storage>> = {
  "the model with reads below objects": withReadBelow,
  "the verifying decorator": (storage) => verifying(withReadBelow(storage), verify),
  "the counting decorator": (storage) => counting(withReadBelow(storage)).storage,
  "the closed guard over itself": (storage) => closedGuard(closedGuard(withReadBelow(storage))),
};

for (const [name, decorate] of Object.entries(decorators)) {
  const open = async () => {
    const opened = await memoryTarget.open();
    return { ...opened, storage: decorate(opened.storage) };
  };
  conformanceSuite({ name, open }, { describe, it });
}

describe("the verifying decorator", () => {
  it("refuses to write an object, an inlined object or a commit under a wrong id", async () => {
    const { storage } = await memoryTarget.open();
    const verified = verifying(storage, verify);
    await begin(verified, "w");
    const wrong = { ...blob("a"), id: blob("b").id };
    const tries = [
      () => mustMove(verified, move("r", ABSENT, [commit()]), { objects: [wrong] }),
      () => mustMove(verified, move("r", ABSENT, [commit({ inline: [wrong] })])),
      () => mustMove(verified, move("r", ABSENT, [{ ...commit(), id: commit().id }])),
    ];
    for (const attempt of tries) {
      await expect(attempt()).rejects.toMatchObject({ code: "CORRUPT_OBJECT" });
    }
    expect(await storage.readRefs("w", { prefix: "", deleted: true })).toEqual([]);
  });
});

describe("what is read below objects", () => {
  it("comes without what is damaged, which is an error for who reads it", async () => {
    const { storage } = await memoryTarget.open();
    await begin(storage, "w");
    const [good, bad] = [blob("good"), blob("bad")];
    const damaged = { ...bad, body: Buffer.from("worse") };
    const encoded = { ...blob("encoded"), encoding: 3 };
    const top = tree(good, bad, encoded);
    const root = rootedCommit({ state: top });
    const wrong = { ...rootedCommit({ state: top }), id: commit().id };
    await mustMove(storage, move("r", ABSENT, [root, wrong]), {
      objects: [top, good, damaged, encoded],
    });
    const verified = verifying(withReadBelow(storage), verify);
    const request = { entries: ["state"], maxObjects: 10, maxBytes: 1000 };
    const below = await verified.readBelow!("w", { ...request, commits: [root.id, wrong.id] });
    expect(below.commits.map(({ id }) => id)).toEqual([root.id]);
    expect(below.objects.map(({ id }) => id).sort()).toEqual([top.id, good.id].sort());
    await expect(verified.readObjects("w", [bad.id])).rejects.toMatchObject({
      code: "CORRUPT_OBJECT",
    });
  });

  it("is counted as one call", async () => {
    const { storage } = await memoryTarget.open();
    await begin(storage, "w");
    const top = tree(blob("12345"), blob("67"));
    const root = rootedCommit({ state: top });
    const objects = [top, blob("12345"), blob("67")];
    await mustMove(storage, move("r", ABSENT, [root]), { objects });
    const counted = counting(withReadBelow(storage));
    const request = { entries: ["state"], maxObjects: 10, maxBytes: 1000 };
    await counted.storage.readBelow!("w", { ...request, commits: [root.id] });
    const inRow = root.body.length + bytesOf(root.inline[0]!).length;
    expect(counted.counts()).toMatchObject({
      calls: { readBelow: 1, readObjects: 0, readCommits: 0 },
      roundTrips: 1,
      objectsRead: 5,
      bytesRead: inRow + top.body.length + 7,
    });
  });
});

describe("the counting decorator", () => {
  it("counts calls, objects and bytes, both ways", async () => {
    const { storage } = await memoryTarget.open();
    const counted = counting(storage);
    await begin(counted.storage, "w");
    const [a, b] = [blob("12345"), blob("1234567")];
    const root = commit({ inline: [b] });
    await mustMove(counted.storage, move("r", ABSENT, [root]), { objects: [a] });
    await counted.storage.readObjects("w", [a.id, b.id]);
    await counted.storage.readCommits("w", [root.id]);
    await counted.storage.write({
      workflow: "w",
      objects: [],
      moves: [],
      atomic: true,
      pending: [0, 1].map((index) => ({ key: "k", index, body: Buffer.alloc(3) })),
    });
    await counted.storage.readPending("w", ["k"]);
    const size = root.body.length;
    expect(counted.counts()).toMatchObject({
      calls: { write: 3, readObjects: 1, readCommits: 1, readPending: 1, readRefs: 0 },
      roundTrips: 6,
      objectsWritten: 3,
      pendingWritten: 2,
      bytesWritten: 18 + size,
      objectsRead: 3,
      pendingRead: 2,
      bytesRead: 18 + size,
    });
    counted.reset();
    expect(counted.counts()).toMatchObject({ roundTrips: 0, objectsWritten: 0, bytesRead: 0 });
  });
});

describe("the closed guard", () => {
  it("closes what it guards once, after the calls under way", async () => {
    const events: string[] = [];
    let finish: () => void = () => {};
    const { storage } = await memoryTarget.open();
    const guarded = closedGuard({
      ...forward(storage),
      usage: async () => {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        events.push("answered");
        return { commits: 0, objects: 0, pending: 0, bytes: 0 };
      },
      close: async () => {
        events.push("closed");
      },
    });
    const call = guarded.usage("w");
    const closing = [guarded.close(), guarded.close()];
    await expect(guarded.usage("w")).rejects.toMatchObject({ code: "STORE_CLOSED" });
    finish();
    await Promise.all([call, ...closing]);
    expect(events).toEqual(["answered", "closed"]);
  });
});
