import assert from "node:assert/strict";
import type { Storage } from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  at,
  begin,
  blob,
  chain,
  move,
  mustMove,
  randomHex,
  send,
  tree,
} from "../fixtures.js";

/** A moment that everything was seen before, in seconds. */
const LATER = 4_000_000_000;

/** All that a workflow has, in the order of the store. */
async function all(storage: Storage, w: string): Promise<unknown[]> {
  const refs = await storage.readRefs(w, { prefix: "", deleted: true });
  const logs = await Promise.all(
    refs.map(({ name }) => storage.readReflog(w, name, { limit: 99 })),
  );
  return [
    await storage.readWorkflow(w),
    refs,
    logs,
    (await storage.scanCommits(w, null, 999)).rows,
    (await storage.scanObjects(w, null, 999)).rows,
    (await storage.scanPending(w, null, 999)).rows,
    (await storage.scanSeen(w, "blob", LATER, null, 999)).rows,
    await storage.usage(w),
    await storage.describe(),
  ];
}

export const compactCases: readonly ConformanceCase[] = [
  {
    name: "compaction gives back space, changes nothing, and may be repeated",
    async run({ storage, beside }) {
      await begin(storage, "w", "other");
      const gone = Array.from({ length: 200 }, () => blob(randomHex(2000)));
      const kept = [blob("kept"), blob(randomHex(1000))];
      const line = chain(3);
      const branch = move("refs/heads/a", ABSENT, line);
      await mustMove(storage, branch, { objects: [...gone, ...kept, tree(...kept)] });
      await mustMove(storage, move("refs/tags/t", ABSENT, chain(1)), { workflow: "other" });
      await send(storage, [], { pending: [{ key: "k", index: 1, body: Buffer.from("row") }] });
      const ids = gone.map(({ id }) => id);
      await storage.condemn("w", ids, LATER, 1);
      assert.deepEqual(await storage.sweep("w", ids, 1), { removed: ids.length, spared: [] });
      const before = [await all(storage, "w"), await all(storage, "other")];

      const first = await storage.compact();
      assert.ok(first.bytesAfter > 0 && first.bytesAfter <= first.bytesBefore);
      assert.deepEqual([await all(storage, "w"), await all(storage, "other")], before);
      const second = await storage.compact();
      assert.ok(second.bytesAfter <= second.bytesBefore);

      if (beside !== undefined) {
        const other = await beside();
        assert.deepEqual(await all(other, "w"), before[0]);
        await other.compact();
      }
      const [next] = chain(1, line[2]);
      await mustMove(storage, move("refs/heads/a", at(line[2]!), [next!]));
      assert.deepEqual(await storage.checkStructure(), []);
    },
  },
];
