import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import { AgstateError } from "../../core/errors.js";
import { closedGuard } from "../decorators/closed-guard.js";
import type { BackendOptions, Storage } from "../port.js";
import { RoundTrips } from "../rows/round-trips.js";
import { codeOf, toldError, toStoreError } from "./errors.js";
import { GroupWriter } from "./group-writer.js";
import { retryWhileBusy } from "./retry.js";
import { refuseForeign, SCHEMA_VERSION, schemaVersion } from "./schema.js";
import { checkSideFiles, holdMainFile } from "./side-files.js";
import { SqliteStorage } from "./sqlite-storage.js";
import { prepareStatements } from "./statements.js";
import { WalNoter } from "./wal-note.js";
import { WorkflowNumbers } from "./workflow-numbers.js";

/** The database inside the store's directory. */
export const MAIN_FILE = "store.db";

export interface SqliteOptions extends BackendOptions {
  /** The store's directory. */
  readonly path: string;
  /** Whether to make the store when it is not there. */
  readonly create: boolean;
  /** How long a call waits for other processes. */
  readonly busyTimeoutMs: number;
  /** How long what nothing refers to is kept: rows not seen for half of it are freshened. */
  readonly graceMs: number;
  /** The region of the store: kept when it is made, compared when it is opened. */
  readonly region?: string | null;
  /** Largest size of the file in pages, so that tests can fill it. */
  readonly maxPageCount?: number;
}

/**
 * Opens, or makes, the store in a directory. Several processes may have it open at once.
 *
 * The directory must be on a local file system: the write-ahead log needs
 * memory that all processes share, which network file systems do not give.
 *
 * @throws AgstateError `STORE_NOT_FOUND`, `STORE_TOO_NEW`, `STORE_MISMATCH`, `STORE_DAMAGED`,
 *   `STORE_READONLY`, `STORE_FULL`, `STORE_BUSY`, `STORE_UNAVAILABLE`
 */
export async function openSqliteStorage(options: SqliteOptions): Promise<Storage> {
  const location = resolve(options.path);
  try {
    prepareDirectory(location, options.create);
    await checkSideFiles(join(location, MAIN_FILE));
    return await openDatabase(location, options);
  } catch (error) {
    throw toStoreError(error, location);
  }
}

function prepareDirectory(location: string, create: boolean): void {
  const main = join(location, MAIN_FILE);
  if (create) {
    makeDirectory(location);
    return;
  }
  if (!existsSync(main)) {
    throw new AgstateError(
      "STORE_NOT_FOUND",
      `there is no store at ${location}; make one with \`agstate init\``,
      { path: location },
    );
  }
  if (statSync(main).size === 0) {
    throw new AgstateError(
      "STORE_DAMAGED",
      `${main} is empty; restore a backup, or make a new store in its place with \`agstate init\``,
      { path: location },
    );
  }
}

/**
 * Makes a directory and those above it; the entry of each survives a power loss.
 *
 * Not `mkdir` with `recursive`: that syncs none of them, and says ENOENT where
 * the file system is read-only.
 */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  makeDirectory(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process made it in the meantime.
    if (!existsSync(path)) throw error;
  }
  syncDirectory(parent);
}

function syncDirectory(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

async function openDatabase(location: string, options: SqliteOptions): Promise<Storage> {
  const main = join(location, MAIN_FILE);
  const db = new Database(main, { timeout: 0, fileMustExist: !options.create });
  const unhold = holdMainFile(main);
  try {
    const retry = <T>(work: () => T) => retryWhileBusy(work, location, options.busyTimeoutMs);
    const version = await retry(() => {
      refuseForeign(db, location);
      configure(db, options);
      return schemaVersion(db);
    });
    if (version < SCHEMA_VERSION) await upgrade(db, location, options, version);
    const statements = prepareStatements(db);
    const region = await retry(() => statements.meta.get("region") ?? null);
    checkRegion(region, location, options);

    const noter = new WalNoter(`${main}-wal`, statements, options.randomHex);
    const numbers = new WorkflowNumbers(statements);
    const context = { statements, numbers, options, graceMs: options.graceMs };
    const { busyTimeoutMs } = options;
    const place = { "db.system.name": "sqlite", "db.namespace": location } as const;
    const trips = new RoundTrips(options.telemetry, place, basename(location), {
      codeOf,
      toldError,
    });
    const writer = new GroupWriter(db, context, noter, location, busyTimeoutMs, trips);
    const release = () => {
      noter.close();
      db.close();
      unhold();
    };
    return closedGuard(
      new SqliteStorage({
        db,
        statements,
        numbers,
        writer,
        trips,
        location,
        busyTimeoutMs,
        release,
      }),
    );
  } catch (error) {
    db.close();
    unhold();
    throw error;
  }
}

/**
 * Sets what SQLite does not keep in the file, and for a new file what it does.
 *
 * Pages of 4 KiB: measured on 1,000 commits with four objects each, 8 KiB saves
 * 8 % of the file and costs 15 % more a commit.
 */
export function configure(
  db: Database.Database,
  options: Pick<SqliteOptions, "maxPageCount">,
): void {
  db.pragma("page_size = 4096");
  if (db.pragma("journal_mode", { simple: true }) !== "wal") {
    const mode = db.pragma("journal_mode = WAL", { simple: true });
    if (mode !== "wal") {
      throw new AgstateError(
        "STORE_UNAVAILABLE",
        `${db.name} cannot have a write-ahead log here (journal mode is ${mode}); put the store on a local file system`,
        { path: db.name, mode },
      );
    }
  }
  db.pragma("synchronous = FULL");
  // On macOS a plain fsync does not reach the disk; elsewhere these do nothing.
  db.pragma("fullfsync = ON");
  db.pragma("checkpoint_fullfsync = ON");
  db.pragma("foreign_keys = OFF");
  db.pragma("secure_delete = ON");
  db.pragma("cache_size = -16384");
  db.pragma("wal_autocheckpoint = 1000");
  if (options.maxPageCount !== undefined) db.pragma(`max_page_count = ${options.maxPageCount}`);
}

/** Migrates under the write lock; whoever comes second finds it done. */
async function upgrade(
  db: Database.Database,
  location: string,
  options: SqliteOptions,
  version: number,
): Promise<void> {
  if (!options.create && version === 0) {
    throw new AgstateError(
      "STORE_NOT_FOUND",
      `the store at ${location} was never finished; make it with \`agstate init\``,
      { path: location },
    );
  }
  // Loaded here and not at the top: a store that is up to date should not pay for it.
  const { migrate } = await import("./migrate.js");
  const begin = () => db.exec("BEGIN IMMEDIATE");
  await retryWhileBusy(begin, location, options.busyTimeoutMs);
  try {
    if (schemaVersion(db) < SCHEMA_VERSION) await migrate(db, options, options.region ?? null);
    db.exec("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function checkRegion(found: unknown, location: string, { region }: SqliteOptions): void {
  if (region === undefined || region === null || region === found) return;
  throw new AgstateError(
    "STORE_MISMATCH",
    `store ${location} stands in region ${found ?? "(none declared)"}, not in ${region}; open it without a region, or name the store of that region`,
    { path: location, found, expected: region },
  );
}
