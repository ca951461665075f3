import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import {
  type ErrorCode,
  type JsonValue,
  type OpenStoreOptions,
  openStore,
  type Store,
  type Workflow,
} from "../../src/index.js";

export const BACKENDS = ["memory", "sqlite"] as const;
export type Backend = (typeof BACKENDS)[number];

/** A store of its own for one test, gone when the test ends. */
export interface TestStore {
  readonly store: Store;
  /** Where its files are; empty for the memory model. */
  readonly directory: string;
  /** The same store as a newcomer opens it: on SQLite a second connection with cold caches. */
  another(options?: OpenStoreOptions): Promise<Store>;
}

/** Makes a store that the running test owns. */
export async function makeStore(
  backend: Backend,
  options: OpenStoreOptions = {},
): Promise<TestStore> {
  const opened: Store[] = [];
  const open = async (url: string, how: OpenStoreOptions) => {
    const store = await openStore(url, how);
    opened.push(store);
    return store;
  };
  if (backend === "memory") {
    onTestFinished(() => closeAll(opened));
    const store = await open("memory:", options);
    return { store, directory: "", another: async () => store };
  }
  const directory = mkdtempSync(join(tmpdir(), "agstate-test-"));
  onTestFinished(async () => {
    await closeAll(opened);
    rmSync(directory, { recursive: true, force: true });
  });
  const store = await open(`sqlite:${directory}`, options);
  return {
    store,
    directory,
    another: (how = {}) => open(`sqlite:${directory}`, { ...options, create: false, ...how }),
  };
}

async function closeAll(stores: readonly Store[]): Promise<void> {
  for (const store of stores) await store.close();
}

/** What an error of agstate must look like to match. */
export function agstateError(code: ErrorCode, details: Record<string, unknown> = {}): unknown {
  return expect.objectContaining({
    name: "AgstateError",
    code,
    details: expect.objectContaining(details),
  });
}

/** All that a write could change in a workflow: its refs with their logs' hashes, and how much it holds. */
export async function snapshot(workflow: Workflow) {
  const refs = await workflow.internals.storage.readRefs(workflow.id, {
    prefix: "refs/",
    deleted: true,
  });
  return { refs, usage: await workflow.usage() };
}

/** Collects what an async iterable gives. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** An object with `__proto__` as an ordinary own key, as `JSON.parse` makes it. */
export function parsed(text: string): JsonValue {
  return JSON.parse(text) as JsonValue;
}
