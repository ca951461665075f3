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
import { newSchema } from "./postgres.js";

export type Backend = "memory" | "sqlite" | "postgres";

/** What the same tests run on: the embedded backends, or, in the project that has a server, that. */
export const BACKENDS = (process.env.AGSTATE_TEST_BACKENDS ?? "memory,sqlite").split(
  ",",
) as Backend[];

/** Where a store of a backend may be made, and what removes it. */
export interface Place {
  readonly url: string;
  /** Where its files are; empty where it has none. */
  readonly directory: string;
  readonly remove: () => void | Promise<void>;
}

/** A place that nobody else has. */
export function newPlace(backend: Backend): Place {
  if (backend === "memory") return { url: "memory:", directory: "", remove: () => undefined };
  if (backend === "postgres") {
    const { url, drop } = newSchema();
    return { url, directory: "", remove: drop };
  }
  const directory = mkdtempSync(join(tmpdir(), "agstate-test-"));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  return { url: `sqlite:${directory}`, directory, remove };
}

/** A store of its own for one test, gone when the test ends. */
export interface TestStore {
  readonly store: Store;
  readonly url: string;
  /** Where its files are; empty where it has none. */
  readonly directory: string;
  /** The same store as a newcomer opens it: a second connection with cold caches, where data can be shared. */
  another(options?: OpenStoreOptions): Promise<Store>;
}

/** Makes a store that the running test owns. */
export async function makeStore(
  backend: Backend,
  options: OpenStoreOptions = {},
): Promise<TestStore> {
  const { url, directory, remove } = newPlace(backend);
  const opened: Store[] = [];
  const open = async (how: OpenStoreOptions) => {
    const store = await openStore(url, how);
    opened.push(store);
    return store;
  };
  onTestFinished(async () => {
    await closeAll(opened);
    await remove();
  });
  const store = await open(options);
  return {
    store,
    url,
    directory,
    another: async (how = {}) =>
      backend === "memory" ? store : open({ ...options, create: false, ...how }),
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
