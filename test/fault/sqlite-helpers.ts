import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import { AgstateError } from "../../src/core/errors.js";
import { DEFAULT_LIMITS } from "../../src/core/limits.js";
import type { Verify } from "../../src/storage/decorators/verifying.js";
import type { CommitRecord, Storage } from "../../src/storage/port.js";
import { openSqliteStorage, type SqliteOptions } from "../../src/storage/sqlite/open.js";
import { commit, digest, move, mustMove, randomHex } from "../../src/testing/fixtures.js";

export const REF = "refs/heads/canonical";

/** A new directory that goes away with the test. */
export async function tempDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "agstate-fault-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Opens a store that is closed with the test. */
export async function open(path: string, rest: Partial<SqliteOptions> = {}): Promise<Storage> {
  const storage = await openSqliteStorage({
    path,
    create: false,
    busyTimeoutMs: 10_000,
    graceMs: DEFAULT_LIMITS.graceMs,
    digest,
    randomHex,
    now: Date.now,
    ...rest,
  });
  onTestFinished(() => storage.close());
  return storage;
}

/** A connection of another program to the store's file. */
export function rawDatabase(path: string): Database.Database {
  const db = new Database(join(path, "store.db"), { timeout: 0 });
  onTestFinished(() => {
    db.close();
  });
  return db;
}

/** Appends commits to a ref of workflow `w`, one write each; gives the last. */
export async function append(
  storage: Storage,
  count: number,
  base?: CommitRecord,
  messageBytes = 100,
): Promise<CommitRecord> {
  let head = base;
  for (let i = 0; i < count; i++) {
    const message = "m".repeat(messageBytes);
    const next = commit({ parents: head === undefined ? [] : [head], message });
    const expect =
      head === undefined ? { kind: "absent" as const } : { kind: "id" as const, id: head.id };
    await mustMove(storage, move(REF, expect, [next]));
    head = next;
  }
  return head!;
}

/** Checks a body against its id, as the layer above does. */
export const verify: Verify = (type, id, body) => {
  const hash = createHash("sha256").update(`${type} ${body.length}\0`).update(body);
  const actual = hash.digest("hex");
  if (actual === id) return;
  throw new AgstateError("CORRUPT_OBJECT", `${type} ${id} hashes to ${actual}`, {
    expected: id,
    actual,
  });
};

/** Runs a script of `children/`, which uses the built package (`npm run build`). */
export function child(script: string, args: readonly string[]): Child {
  const path = fileURLToPath(new URL(`children/${script}.mjs`, import.meta.url));
  const process = spawn(globalThis.process.execPath, [path, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  return new Child(process);
}

/** A running script: its lines as they come, and its end. */
export class Child {
  readonly lines: string[] = [];
  #errors = "";
  readonly #end: Promise<number | null>;
  #waiting: { count: number; resolve: () => void } | null = null;

  constructor(readonly process: ChildProcess) {
    let rest = "";
    process.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop()!;
      this.lines.push(...parts);
      if (this.#waiting !== null && this.lines.length >= this.#waiting.count) {
        this.#waiting.resolve();
      }
    });
    process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    this.#end = new Promise((resolve) => process.on("close", (code) => resolve(code)));
  }

  /** Waits until the script has printed so many lines, or ended. */
  async printed(count: number): Promise<void> {
    const reached = new Promise<void>((resolve) => {
      this.#waiting = { count, resolve };
    });
    if (this.lines.length >= count) return;
    await Promise.race([reached, this.#end]);
  }

  /** Waits for the end and gives the lines; the script must not have failed. */
  async success(): Promise<string[]> {
    const code = await this.#end;
    if (code !== 0) throw new Error(`the child ended with ${code}: ${this.#errors}`);
    return this.lines;
  }

  /** Kills it with SIGKILL and waits until it is gone. */
  async kill(): Promise<string[]> {
    this.process.kill("SIGKILL");
    await this.#end;
    return this.lines;
  }
}
