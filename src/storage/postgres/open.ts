import { AgstateError } from "../../core/errors.js";
import { DEFAULT_LIMITS } from "../../core/limits.js";
import { closedGuard } from "../decorators/closed-guard.js";
import type { BackendOptions, Storage } from "../port.js";
import { Connection } from "./connection.js";
import { GroupWriter } from "./group-writer.js";
import {
  checkVersion,
  type MigrationStatus,
  migrate,
  migrationStatus,
  type Setup,
} from "./migrate.js";
import { PostgresStorage } from "./postgres-storage.js";
import { queries } from "./queries.js";
import { quoteIdentifier } from "./schema.js";
import { parseTarget } from "./target.js";
import { ServerWatching } from "./watch.js";
import { WorkflowKeys } from "./workflow-keys.js";
import { WorkflowWriters } from "./workflow-writers.js";

export interface PostgresOptions extends BackendOptions {
  readonly url: string;
  /** Makes the schema when it does not exist, and brings an older one up to date. */
  readonly create: boolean;
  readonly region?: string | undefined;
  /** How long a call goes on trying while the server is away, in milliseconds. */
  readonly busyTimeoutMs: number;
  /** How long what nothing refers to is kept: rows not seen for half of it are freshened. */
  readonly graceMs: number;
  /** The tables are distributed by workflow: each call is for one. */
  readonly distributed?: boolean | undefined;
  readonly poolMax?: number;
  /** A statement is given up after this, in milliseconds. */
  readonly statementTimeoutMs?: number;
}

/**
 * Opens a store in a schema of a PostgreSQL database.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `STORE_NOT_FOUND`, `STORE_TOO_NEW`, `STORE_MISMATCH`, `STORE_UNAVAILABLE`
 */
export async function openPostgresStorage(options: PostgresOptions): Promise<Storage> {
  const { target, connection } = connect(options);
  try {
    await prepare(connection, target.schema, options);
    const schema = quoteIdentifier(target.schema);
    const keys = new WorkflowKeys(options.digest);
    const distributed = target.distributed || options.distributed === true;
    const { graceMs } = options;
    const context = { connection, keys, options, schema, graceMs, distributed };
    const writer = distributed ? new WorkflowWriters(context) : new GroupWriter(context);
    const watching = new ServerWatching({
      connection,
      queries: queries(schema),
      keys,
      schema,
      randomHex: options.randomHex,
      // What a worker of a distributed store notifies does not reach its coordinator.
      poll: distributed || target.watch === "poll",
    });
    const parts = {
      connection,
      schema,
      queries: queries(schema),
      keys,
      writer,
      watching,
      distributed,
    };
    const storage = new PostgresStorage(parts);
    await checkRegion(storage, options.region);
    return closedGuard(storage);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Where a schema stands, and, unless it is only asked, after it was brought up to date. */
export async function migratePostgres(
  options: Omit<PostgresOptions, "create">,
  dryRun: boolean,
  setup: Setup = {},
): Promise<Omit<MigrationStatus, "standby"> & { readonly location: string }> {
  const { target, connection } = connect(options);
  try {
    const before = await migrationStatus(connection, target.schema);
    checkVersion(before.applied, target.schema);
    if (!dryRun && (before.pending.length > 0 || Object.keys(setup).length > 0)) {
      await migrate(connection, target.schema, options, options.region ?? null, setup);
    }
    const { applied, pending } = before;
    return { applied, pending, location: connection.location };
  } finally {
    await connection.close();
  }
}

function connect(options: Omit<PostgresOptions, "create">) {
  const target = parseTarget(options.url);
  const { poolMax, statementTimeoutMs } = { ...DEFAULT_LIMITS, ...options };
  const connection = new Connection({
    target,
    poolMax: target.poolMax ?? poolMax,
    retryForMs: options.busyTimeoutMs,
    statementTimeoutMs: target.statementTimeoutMs ?? statementTimeoutMs,
    telemetry: options.telemetry,
  });
  return { target, connection };
}

async function prepare(
  connection: Connection,
  schema: string,
  options: PostgresOptions,
): Promise<void> {
  // Cheap, and without a lock, for all who find everything done.
  const { applied, pending, standby } = await migrationStatus(connection, schema);
  if (standby) connection.suspectReplica();
  checkVersion(applied, schema);
  if (pending.length === 0) return;
  if (!options.create) {
    throw new AgstateError(
      "STORE_NOT_FOUND",
      applied.length === 0
        ? `there is no store at ${connection.location}; make one with agstate init`
        : `the store at ${connection.location} is of an older version; bring it up to date with agstate migrate`,
      { location: connection.location, schema, pending },
    );
  }
  await migrate(connection, schema, options, options.region ?? null);
}

async function checkRegion(storage: Storage, wanted: string | undefined): Promise<void> {
  if (wanted === undefined) return;
  const { region, location } = await storage.describe();
  if (region === wanted) return;
  throw new AgstateError(
    "STORE_MISMATCH",
    `the store at ${location} stands in region ${region ?? "(none)"}, not ${wanted}`,
    { location, region, wanted },
  );
}
