import { describe, expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";

interface Cost {
  readonly read: number;
  readonly written: number;
  readonly bytes: number;
  readonly roundTrips: number;
}

/** What a merge costs that reads nothing from caches: one key and one list element changed on each side. */
async function costOfMerge(items: number, valueBytes: number): Promise<Cost> {
  let counter: CountingStorage | undefined;
  const store = await openStore("memory:", {
    // Too small to keep anything.
    limits: { cacheMaxBytes: 1 },
    wrap: (storage) => {
      counter = counting(storage);
      return counter.storage;
    },
  });
  const keyed = Object.fromEntries(
    Array.from({ length: items }, (_, i) => [`k${i}`, `${i} `.repeat(valueBytes / 4)]),
  );
  const log = Array.from({ length: items }, (_, i) => `entry ${i} ${"x".repeat(valueBytes / 10)}`);
  const workflow = await store.createWorkflow("w", { state: { items: keyed, log } });
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  const change = (who: string, key: number) => [
    { op: "set", path: `/items/k${key}`, value: `by ${who}` } as const,
    { op: "append", path: "/log", value: `by ${who}` } as const,
  ];
  await branch.update(change("branch", 1));
  await (await workflow.canonical()).update(change("canonical", 2));
  counter?.reset();
  expect((await workflow.merge(["a/b"])).status).toBe("merged");
  const counts = (counter as CountingStorage).counts();
  await store.close();
  return {
    read: counts.objectsRead,
    written: counts.objectsWritten,
    bytes: counts.bytesRead + counts.bytesWritten,
    roundTrips: counts.roundTrips,
  };
}

describe("merging a one-key change", () => {
  it("reads and writes a number of objects that grows with the log of the state", async () => {
    const costs: Cost[] = [];
    for (const items of [100, 1000, 10_000]) costs.push(await costOfMerge(items, 1000));
    const [small, , large] = costs as [Cost, Cost, Cost];
    for (const { read, written } of costs) {
      expect(read).toBeLessThan(100);
      expect(written).toBeLessThan(20);
    }
    // A hundred times the state: a few more levels.
    expect(large.read / small.read).toBeLessThan(2);
    expect(large.written / small.written).toBeLessThan(2);
    expect(large.bytes / small.bytes).toBeLessThan(3);
  });

  it("into an object of 100,000 keys reads a few buckets", async () => {
    const { read, written } = await costOfMerge(100_000, 20);
    expect(read).toBeLessThan(100);
    expect(written).toBeLessThan(20);
  });
});
