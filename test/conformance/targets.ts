import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_LIMITS } from "../../src/core/limits.js";
import { createMemoryStorage } from "../../src/storage/memory/memory-storage.js";
import type { BackendOptions, Storage } from "../../src/storage/port.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { openSqliteStorage } from "../../src/storage/sqlite/open.js";
import { type ConformanceTarget, digest, randomHex } from "../../src/testing/index.js";
import { newSchema } from "../support/postgres.js";

const options: BackendOptions & { graceMs: number } = {
  graceMs: DEFAULT_LIMITS.graceMs,
  digest,
  randomHex,
  now: Date.now,
};

export const memoryTarget: ConformanceTarget = {
  name: "memory",
  async open() {
    const storage = createMemoryStorage(options);
    return { storage, destroy: () => storage.close() };
  },
};

export const sqliteTarget: ConformanceTarget = {
  name: "sqlite",
  async open() {
    const path = await mkdtemp(join(tmpdir(), "agstate-conformance-"));
    const opened: Storage[] = [];
    const open = async (create: boolean) => {
      const storage = await openSqliteStorage({ ...options, path, create, busyTimeoutMs: 5000 });
      opened.push(storage);
      return storage;
    };
    return {
      storage: await open(true),
      reopen: () => open(false),
      beside: () => open(false),
      async destroy() {
        for (const storage of opened) await storage.close();
        await rm(path, { recursive: true });
      },
    };
  },
};

/** A schema of its own for each case, on the server that the tests have, or by the given way to it. */
export const postgresTarget = (name = "postgres", through?: () => string): ConformanceTarget => ({
  name,
  // By another way it is the same server.
  small: through !== undefined,
  async open() {
    const { url, drop } = newSchema(through?.());
    const opened: Storage[] = [];
    const open = async (create: boolean) => {
      const storage = await openPostgresStorage({ ...options, url, create, busyTimeoutMs: 5000 });
      opened.push(storage);
      return storage;
    };
    return {
      storage: await open(true),
      reopen: () => open(false),
      beside: () => open(false),
      async destroy() {
        for (const storage of opened) await storage.close();
        await drop();
      },
    };
  },
});
