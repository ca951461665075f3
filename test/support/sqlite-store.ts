import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { openStore, type Store, type Workflow } from "../../src/index.js";

/** Makes a folder that is removed when the test ends. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "agstate-process-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Names a place for a store that is not there yet and is removed when the test ends. */
export function storePlace(): string {
  return join(scratchFolder(), "store");
}

/** Runs a piece of work with the store open, and closes it. */
export async function withStore<T>(path: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(`sqlite:${path}`);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Runs a piece of work with a workflow of the store, and closes the store. */
export function withWorkflow<T>(
  path: string,
  id: string,
  work: (workflow: Workflow, store: Store) => Promise<T>,
): Promise<T> {
  return withStore(path, async (store) => work(await store.workflow(id), store));
}

/** Expects that neither agstate nor SQLite finds anything wrong; answers how many commits there are. */
export async function expectSound(workflow: Workflow, store: Store): Promise<number> {
  const report = await workflow.fsck();
  expect(report.problems).toEqual([]);
  expect(await store.checkStructure()).toEqual([]);
  return report.commits;
}
