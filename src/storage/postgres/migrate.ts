import { readdirSync, readFileSync } from "node:fs";
import type { PoolClient } from "pg";
import { Umzug } from "umzug";
import { AgstateError } from "../../core/errors.js";
import type { BackendOptions } from "../port.js";
import type { Connection } from "./connection.js";
import { MIGRATIONS } from "./files.js";
import { quoteIdentifier, SCHEMA_VERSION } from "./schema.js";

/** Of the advisory lock under which schemas are made: "agstate" in bytes, kept below 2^63. */
const LOCK = "27416938473579621";

/**
 * Brings a schema up to date and gives a new store its identity, in one
 * transaction; of several processes one does the work and the others wait.
 *
 * @throws AgstateError `STORE_TOO_NEW`
 */
export async function migrate(
  connection: Connection,
  schema: string,
  options: BackendOptions,
  region: string | null,
): Promise<void> {
  const client = await connection.own();
  let failed: Error | undefined;
  try {
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock($1)", [LOCK]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schema)}`);
    await client.query(`SET LOCAL search_path TO ${quoteIdentifier(schema)}`);
    const done = await applied(client, schema);
    checkVersion(done, schema);
    await runMigrations(client, schema, done);
    await fillMeta(client, options, region);
    await client.query("COMMIT");
  } catch (error) {
    failed = error as Error;
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  } finally {
    client.release(failed);
  }
}

/** The names of the migrations that a schema has had; none when there is no such schema yet. */
async function applied(client: Pick<PoolClient, "query">, schema: string): Promise<string[]> {
  const table = `${quoteIdentifier(schema)}.migrations`;
  const { rows } = await client.query<{ there: string | null }>("SELECT to_regclass($1) AS there", [
    table,
  ]);
  if (rows[0]?.there == null) return [];
  const found = await client.query<{ name: string }>(`SELECT name FROM ${table} ORDER BY name`);
  return found.rows.map(({ name }) => name);
}

/** Which migrations a schema has had, and which it lacks. */
export interface MigrationStatus {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
}

export async function migrationStatus(
  connection: Connection,
  schema: string,
): Promise<MigrationStatus> {
  const client = await connection.own();
  try {
    const done = await applied(client, schema);
    return { applied: done, pending: migrationFiles().filter((name) => !done.includes(name)) };
  } finally {
    client.release();
  }
}

/** @throws AgstateError `STORE_TOO_NEW` */
export function checkVersion(done: readonly string[], schema: string): void {
  const newest = Math.max(0, ...done.map(numberOf));
  if (newest <= SCHEMA_VERSION) return;
  throw new AgstateError(
    "STORE_TOO_NEW",
    `schema ${schema} is of version ${newest}; this agstate knows ${SCHEMA_VERSION} and older, so install a newer one`,
    { schema, version: newest, known: SCHEMA_VERSION },
  );
}

async function runMigrations(
  client: PoolClient,
  schema: string,
  done: readonly string[],
): Promise<void> {
  const umzug = new Umzug({
    logger: undefined,
    migrations: migrationFiles().map((name) => ({
      name,
      up: async () => {
        await client.query(migrationText(name, schema));
      },
    })),
    storage: {
      executed: async () => [...done],
      async logMigration({ name }) {
        await client.query("INSERT INTO migrations (name) VALUES ($1)", [name]);
      },
      async unlogMigration() {
        throw new Error("migrations only go forward");
      },
    },
  });
  await umzug.up();
}

/** A migration as the server takes it: `:"schema"` is psql's way to write a variable as a name. */
function migrationText(name: string, schema: string): string {
  const text = readFileSync(new URL(name, MIGRATIONS), "utf8");
  return text.replaceAll(':"schema"', () => quoteIdentifier(schema));
}

async function fillMeta(
  client: PoolClient,
  options: BackendOptions,
  region: string | null,
): Promise<void> {
  await client.query(
    `INSERT INTO meta (key, value) VALUES ('store_id', $1), ('created', $2), ('region', $3)
      ON CONFLICT DO NOTHING`,
    [options.randomHex(16), String(options.now()), region],
  );
}

function migrationFiles(): string[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name) && numberOf(name) <= SCHEMA_VERSION)
    .sort();
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}
