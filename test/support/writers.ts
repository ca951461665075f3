import { expect } from "vitest";
import { openStore, type Store, type Workflow } from "../../src/index.js";

/** Does a piece of work with a store, and closes it. */
export async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Commits on a branch of its own until told to stop; gives the ids that were acknowledged. */
export async function commitUntil(
  workflow: Workflow,
  agent: string,
  over: () => boolean,
): Promise<string[]> {
  const branch = await workflow.branch({ agent, branch: "work" });
  const ids: string[] = [];
  while (!over()) {
    const n = ids.length + 1;
    ids.push((await branch.commit({ state: { n, text: `${agent} `.repeat(50) } })).id);
  }
  return ids;
}

/** Expects each branch to hold exactly what was acknowledged, in order, and the store to be sound. */
export async function expectAcknowledged(
  url: string,
  acknowledged: readonly string[][],
): Promise<void> {
  await withStore(url, async (store) => {
    const workflow = await store.workflow("w");
    for (const [k, ids] of acknowledged.entries()) {
      const branch = await workflow.branch(`a${k}/work`);
      const held: string[] = [];
      for await (const { id } of branch.log({ limit: ids.length })) held.push(id);
      expect(held.reverse()).toEqual(ids);
      expect(await branch.state("/n")).toBe(ids.length);
    }
    const report = await workflow.fsck();
    expect(report.problems).toEqual([]);
    // Genesis, canonical's first, and nothing but what was acknowledged.
    expect(report.commits).toBe(2 + acknowledged.flat().length);
  });
}
