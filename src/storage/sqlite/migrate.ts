import { readdirSync, readFileSync } from "node:fs";
import type { Database } from "better-sqlite3";
import { Umzug } from "umzug";
import type { BackendOptions } from "../port.js";
import { SCHEMA_VERSION, schemaVersion } from "./schema.js";
import { encodeNote } from "./wal-note.js";

/** Where the numbered SQL files are, from `src/` and from `dist/` alike. */
const MIGRATIONS = new URL("../../../migrations/sqlite/", import.meta.url);

/**
 * Brings the schema up to date and gives a new store its identity.
 *
 * The caller holds the write lock, so of several processes that open a new
 * store one does the work and the others find it done.
 */
export async function migrate(
  db: Database,
  options: BackendOptions,
  region: string | null,
): Promise<void> {
  const isNew = schemaVersion(db) === 0;
  const umzug = new Umzug<Database>({
    context: db,
    logger: undefined,
    migrations: migrationFiles().map((name) => ({
      name,
      up: async () => db.exec(readFileSync(new URL(name, MIGRATIONS), "utf8")),
    })),
    storage: {
      // The first migration makes the table.
      async executed() {
        if (schemaVersion(db) === 0) return [];
        return db.prepare<[], string>("SELECT name FROM migrations").pluck().all();
      },
      async logMigration({ name }) {
        db.prepare("INSERT INTO migrations (name) VALUES (?)").run(name);
        db.pragma(`user_version = ${numberOf(name)}`);
      },
      async unlogMigration() {
        throw new Error("migrations only go forward");
      },
    },
  });
  await umzug.up();
  if (isNew) fillMeta(db, options, region);
}

function migrationFiles(): string[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name) && numberOf(name) <= SCHEMA_VERSION)
    .sort();
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}

function fillMeta(db: Database, options: BackendOptions, region: string | null): void {
  const put = db.prepare("INSERT INTO meta (key, value) VALUES (?, ?)");
  put.run("store_id", options.randomHex(16));
  put.run("created", String(options.now()));
  put.run("region", region);
  put.run("wal_note", encodeNote({ token: options.randomHex(8), previous: "0".repeat(16) }));
}
