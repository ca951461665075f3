import { AgstateError } from "../../core/errors.js";
import type { Compacted } from "../port.js";
import type { Connection } from "./connection.js";

/** A table of the store, quoted with its schema. */
interface Table {
  readonly name: string;
  /** Whether the role may compact it: the server only warns where it may not. */
  readonly owned: boolean;
}

/** A distributed table is empty where its coordinator stands. */
const SIZES = (total: string) =>
  `SELECT coalesce(sum(${total}(c.oid)), 0)::text AS bytes FROM pg_class AS c
    WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p')`;

/**
 * Writes each table of a schema anew, with its indexes, without the rows that are gone, and gathers its statistics.
 *
 * `VACUUM FULL` locks one table after another for all others while it does so, and needs as much free space as the
 * largest takes. Rows that a transaction may still see, anywhere in the database, stay until it has ended. What was
 * written is in the server's log (WAL), and its old statistics in `pg_statistic`, until the server is done with them.
 */
export async function compact(connection: Connection, schema: string): Promise<Compacted> {
  const tables = await connection.query<Table & Record<string, unknown>>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name, pg_has_role(c.relowner, 'USAGE') AS owned
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.oid = $1::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname`,
    [schema],
  );
  const foreign = tables.find(({ owned }) => !owned);
  if (foreign !== undefined) throw await notOwned(connection, foreign.name);
  const bytesBefore = await sizeOf(connection, schema);
  await connection.maintain(tables.map(({ name }) => `VACUUM (FULL, ANALYZE) ${name}`));
  return { bytesBefore, bytesAfter: await sizeOf(connection, schema) };
}

async function sizeOf(connection: Connection, schema: string): Promise<number> {
  const distributed = await connection.query(
    `SELECT FROM ${schema}.meta WHERE key = 'distributed' LIMIT 1`,
  );
  const total = distributed.length > 0 ? "citus_total_relation_size" : "pg_total_relation_size";
  const [row] = await connection.query<{ bytes: string }>(SIZES(total), [schema]);
  return Number(row?.bytes ?? 0);
}

async function notOwned(connection: Connection, table: string): Promise<AgstateError> {
  const { location } = connection;
  const [row] = await connection.query<{ role: string }>("SELECT current_user AS role");
  return new AgstateError(
    "STORE_READONLY",
    `store ${location}: role ${row?.role} does not own table ${table}, which compacting it needs; run agstate compact as a member of the store's maintainer role, which agstate migrate --roles makes, or as the owner of its tables`,
    { location, role: row?.role, table },
  );
}
