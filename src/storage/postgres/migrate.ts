import { readdirSync } from "node:fs";
import { MigrationError, Umzug } from "umzug";
import { AgstateError } from "../../core/errors.js";
import type { BackendOptions } from "../port.js";
import type { Connection, Run } from "./connection.js";
import { distribute, isDistributed } from "./distribute.js";
import { MIGRATIONS } from "./files.js";
import { explainRefusal } from "./refusal.js";
import { grantRoles, type RoleNames, rolesOf } from "./roles.js";
import { quoteIdentifier, SCHEMA_VERSION } from "./schema.js";
import { readScript } from "./script.js";

/** Of the advisory lock under which schemas are made: "agstate" in bytes, kept below 2^63. */
const LOCK = "27416938473579621";

/** A migration may go through all rows of a large store. */
const LIMITS = { statementMs: 600_000, idleMs: 60_000 } as const;

/** What is made of a schema beyond its tables and functions. */
export interface Setup {
  readonly roles?: RoleNames;
  /** Over the workers of Citus. */
  readonly distributed?: boolean;
}

/**
 * Brings a schema up to date and gives a new store its identity, in one
 * transaction; of several processes one does the work and the others wait.
 *
 * The lock is the transaction's, so that it goes with a process that dies, behind a pooler too. What
 * was set up on the tables and functions there were is set up on new ones as well.
 *
 * @throws AgstateError `STORE_TOO_NEW`, `STORE_READONLY` where a right is missing, `STORE_MISMATCH`
 *   where the schema holds tables of somebody else, `STORE_BUSY` where another process takes too long
 */
export async function migrate(
  connection: Connection,
  schema: string,
  options: BackendOptions,
  region: string | null,
  setup: Setup = {},
): Promise<void> {
  try {
    await connection.transaction(LIMITS, async (run) => {
      await run("SELECT pg_advisory_xact_lock($1)", [LOCK]);
      // Not IF NOT EXISTS alone: that asks for the right to make schemas where there is nothing to make.
      const [found] = await run<{ there: boolean }>(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS there",
        [schema],
      );
      if (found?.there !== true) await run(`CREATE SCHEMA ${quoteIdentifier(schema)}`);
      await run(`SET LOCAL search_path TO ${quoteIdentifier(schema)}`);
      const { done } = await applied(run, schema);
      checkVersion(done, schema);
      await runMigrations(run, schema, done);
      await fillMeta(run, options, region);
      if (setup.distributed === true || (await isDistributed(run, schema)))
        await distribute(run, schema);
      const roles = setup.roles ?? (await rolesOf(run, schema));
      if (roles !== null) await grantRoles(run, schema, roles);
    });
  } catch (error) {
    throw await explainRefusal(connection, schema, error);
  }
}

/** The names of the migrations that a schema has had, none when there is no such schema yet; and what server it is on. */
async function applied(run: Run, schema: string): Promise<{ done: string[]; standby: boolean }> {
  const table = `${quoteIdentifier(schema)}.migrations`;
  const [row] = await run<{ there: string | null; standby: boolean }>(
    "SELECT to_regclass($1) AS there, pg_is_in_recovery() AS standby",
    [table],
  );
  const standby = row?.standby === true;
  if (row?.there == null) return { done: [], standby };
  const found = await run<{ name: string }>(`SELECT name FROM ${table} ORDER BY name`);
  return { done: found.map(({ name }) => name), standby };
}

/** Which migrations a schema has had, and which it lacks. */
export interface MigrationStatus {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** Whether the server follows another. */
  readonly standby: boolean;
}

export async function migrationStatus(
  connection: Connection,
  schema: string,
): Promise<MigrationStatus> {
  try {
    return await readStatus((text, values) => connection.query(text, values), schema);
  } catch (error) {
    throw await explainRefusal(connection, schema, error);
  }
}

export async function readStatus(run: Run, schema: string): Promise<MigrationStatus> {
  const { done, standby } = await applied(run, schema);
  const pending = migrationFiles().filter((name) => !done.includes(name));
  return { applied: done, pending, standby };
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

async function runMigrations(run: Run, schema: string, done: readonly string[]): Promise<void> {
  const umzug = new Umzug({
    logger: undefined,
    migrations: migrationFiles().map((name) => ({
      name,
      up: async () => {
        await run(readScript(name, { schema }));
      },
    })),
    storage: {
      executed: async () => [...done],
      async logMigration({ name }) {
        await run("INSERT INTO migrations (name) VALUES ($1)", [name]);
      },
      async unlogMigration() {
        throw new Error("migrations only go forward");
      },
    },
  });
  try {
    await umzug.up();
  } catch (error) {
    // What the server said, without what Umzug puts around it.
    throw error instanceof MigrationError ? error.cause : error;
  }
}

async function fillMeta(run: Run, options: BackendOptions, region: string | null): Promise<void> {
  await run(
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
