import { describe, expect, it } from "vitest";
import { type OpenStoreOptions, openStore, type StateOperation } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import type { Storage } from "../../src/storage/port.js";
import { type Reticence, withReadBelow } from "../support/read-below.js";

/** Too small to keep anything between calls, and large enough for all. */
const CACHES = [1, 64_000_000];

/** How much a hint may leave out: nothing, a part, everything. */
const RETICENCE: Readonly<Record<string, Reticence>> = {
  "everything below": {},
  "two thirds of what is below": {
    keepsBack: (id) => Number.parseInt(id.slice(0, 2), 16) % 3 === 0,
  },
  "nothing at all": { keepsBack: () => true },
};

const STATE = {
  items: Object.fromEntries(
    Array.from({ length: 700 }, (_, i) => [`k${i}`, `item ${i}`.repeat(9)]),
  ),
  log: Array.from({ length: 400 }, (_, i) => ({ n: i, text: "x".repeat(i % 60) })),
  text: Array.from({ length: 500 }, (_, i) => `line ${i}\n`).join(""),
  nested: { a: { b: ["y".repeat(3000), { c: "z".repeat(2500) }] }, empty: {} },
};

/** What a store answers: a state read as a whole and by a path, differences, and a merge of two branches. */
async function answers(options: OpenStoreOptions) {
  const store = await openStore("memory:", options);
  const workflow = await store.createWorkflow("w", {
    state: { ...STATE, n: 0 },
    policies: { "/n": "sum", "/log": "append" },
  });
  const names: string[] = [];
  for (const [k, who] of ["a", "b"].entries()) {
    const branch = await workflow.branch({ agent: who, branch: "x" });
    const edits: StateOperation[] = [
      { op: "set", path: `/items/k${k}`, value: who },
      { op: "set", path: "/items/k600", value: who },
      { op: "append", path: "/log", value: { by: who } },
      { op: "set", path: "/n", value: k + 1 },
    ];
    await branch.update(edits);
    names.push(branch.name);
  }
  await (await workflow.canonical()).update([{ op: "set", path: "/items/k5", value: "ours" }]);
  const preview = await workflow.preview(names);
  const contested = preview.conflicts.map(({ path, kind }) => ({ path, kind }));
  const merged = await workflow.merge(names, { policies: { "/items/*": "theirs" } });
  const { root } = await workflow.internals.commitAt(merged.commit!.id);
  const state = await workflow.stateAt(merged.commit!.id);
  const part = await workflow.stateAt("canonical", "/nested/a/b/1/c");
  const changes = await workflow.diff("canonical~1", "canonical");
  await store.close();
  return { contested, id: root.state!.id, state, part, changes };
}

describe("reading below objects is but a hint", () => {
  for (const [what, reticence] of Object.entries(RETICENCE)) {
    it.each(CACHES)(`that answers ${what}, with a cache of %d bytes`, async (cacheMaxBytes) => {
      const wrap = (storage: Storage) => withReadBelow(storage, reticence);
      const limits = { cacheMaxBytes };
      expect(await answers({ limits, wrap })).toEqual(await answers({ limits }));
    });
  }

  it("reads a state in one call where all is answered", async () => {
    let counter: CountingStorage | undefined;
    const wrap = (storage: Storage) => {
      counter = counting(withReadBelow(storage));
      return counter.storage;
    };
    const store = await openStore("memory:", { limits: { cacheMaxBytes: 1 }, wrap });
    const workflow = await store.createWorkflow("w", { state: STATE });
    const branch = await workflow.canonical();
    counter!.reset();
    expect(await branch.state()).toEqual(STATE);
    expect(counter!.counts().roundTrips).toBe(1);
    await store.close();
  });
});
