import { isAgstateError } from "../../core/errors.js";
import { type Finding, good, warning, wrong } from "../../core/finding.js";
import type { Run } from "./connection.js";
import { checkVersion, readStatus } from "./migrate.js";
import { quoteIdentifier, SCHEMA_VERSION } from "./schema.js";

/** What a store does to its tables, besides reading them. */
const WRITES: Readonly<Record<string, readonly string[]>> = {
  workflows: ["INSERT"],
  commits: ["INSERT", "UPDATE"],
  objects: ["INSERT", "UPDATE"],
  refs: ["INSERT", "UPDATE"],
  reflog: ["INSERT"],
  pending: ["INSERT", "UPDATE"],
};

/** Functions that only a maintainer calls. */
const COLLECTING = ["condemn", "redact", "sweep"];

/** Functions that the ones that write call: with their own rights where they have an owner's. */
const INNER = ["notify_watchers"];

/** Tables with fewer dead rows than this are not worth a word. */
const DEAD_MIN = 50_000;

interface Place extends Record<string, unknown> {
  readonly role: string;
  readonly database: string;
  readonly there: boolean;
  readonly usage: boolean | null;
  readonly create_in: boolean | null;
  readonly create_schema: boolean;
}

/** Looks at the store's schema: whether it is there, how new it is, what the role may do, and its tables. */
export async function diagnoseSchema(run: Run, schema: string): Promise<Finding[]> {
  const [place] = await run<Place>(
    `SELECT current_user AS role, current_database() AS database, n.oid IS NOT NULL AS there,
        has_schema_privilege(n.oid, 'USAGE') AS usage,
        has_schema_privilege(n.oid, 'CREATE') AS create_in,
        has_database_privilege(current_database(), 'CREATE') AS create_schema
      FROM (SELECT) AS one LEFT JOIN pg_namespace AS n ON n.nspname = $1`,
    [schema],
  );
  if (place === undefined) return [];
  const to = quoteIdentifier(place.role);
  if (place.there && place.usage !== true)
    return [
      wrong(
        "schema",
        "STORE_READONLY",
        `Role ${place.role} may not use schema ${schema}.`,
        `An owner runs: GRANT USAGE ON SCHEMA ${quoteIdentifier(schema)} TO ${to};`,
      ),
    ];
  const status = await readStatus(run, schema);
  const version = versionOf(status, schema);
  const mayMigrate = place.there ? place.create_in === true : place.create_schema;
  const needsMigration = status.pending.length > 0;
  const create =
    needsMigration && !mayMigrate
      ? [
          warning(
            "create",
            `Role ${place.role} lacks CREATE on ${place.there ? `schema ${schema}` : `database ${place.database}`}, which making or changing the tables needs.`,
            `Run agstate migrate as a role that has it, or: GRANT CREATE ON ${place.there ? `SCHEMA ${quoteIdentifier(schema)}` : `DATABASE ${quoteIdentifier(place.database)}`} TO ${to};`,
          ),
        ]
      : [];
  if (status.applied.length === 0) return [version, ...create];
  return [
    version,
    ...create,
    await rightsOf(run, schema, place.role),
    await deadRowsOf(run, schema),
  ];
}

function versionOf(status: Awaited<ReturnType<typeof readStatus>>, schema: string): Finding {
  const { applied, pending } = status;
  try {
    checkVersion(applied, schema);
  } catch (error) {
    if (!isAgstateError(error)) throw error;
    return wrong("schema", error.code, `${error.message}.`, "Install a newer agstate.");
  }
  if (applied.length === 0)
    return wrong(
      "schema",
      "STORE_NOT_FOUND",
      `There is no store in schema ${schema}.`,
      "Make it with agstate init, or name another schema by ?schema=NAME in the store's URL.",
    );
  if (pending.length > 0)
    return wrong(
      "schema",
      "STORE_NOT_FOUND",
      `Schema ${schema} lacks ${pending.length} of ${applied.length + pending.length} migrations: ${pending.join(", ")}.`,
      "Run agstate migrate.",
    );
  return good("schema", `Schema ${schema} is of version ${SCHEMA_VERSION}, the newest known.`);
}

async function rightsOf(run: Run, schema: string, role: string): Promise<Finding> {
  const tables = await run<TableRights>(
    `SELECT c.relname AS name, has_table_privilege(c.oid, 'SELECT') AS select,
        has_table_privilege(c.oid, 'INSERT') AS insert,
        has_any_column_privilege(c.oid, 'UPDATE') AS update,
        pg_has_role(c.relowner, 'USAGE') AS owner
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') ORDER BY c.relname`,
    [schema],
  );
  const functions = await run<FunctionRights>(
    `SELECT p.proname AS name, bool_and(has_function_privilege(p.oid, 'EXECUTE')) AS execute,
        bool_and(p.prosecdef) AS definer, bool_or(p.provolatile = 'v') AS writes
      FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
      WHERE n.nspname = $1 GROUP BY p.proname ORDER BY p.proname`,
    [schema],
  );
  const forReading: string[] = [];
  const forWriting: string[] = [];
  // A function that runs with its owner's rights needs none of the caller's on the tables.
  const asOwner = functions.some(({ name, definer }) => name === "write_batches" && definer);
  for (const { name, select, insert, update } of tables) {
    if (!select) forReading.push(`SELECT on ${name}`);
    const needed = asOwner ? [] : (WRITES[name] ?? []);
    if (needed.includes("INSERT") && !insert) forWriting.push(`INSERT on ${name}`);
    if (needed.includes("UPDATE") && !update) forWriting.push(`UPDATE on ${name}`);
  }
  for (const { name, execute, writes } of functions) {
    if (execute || COLLECTING.includes(name) || (asOwner && INNER.includes(name))) continue;
    (writes ? forWriting : forReading).push(`EXECUTE on function ${name}`);
  }
  if (forReading.length > 0)
    return wrong(
      "rights",
      "STORE_READONLY",
      `Role ${role} lacks what reading needs: ${forReading.join(", ")}.`,
      "An owner of the schema GRANTs these to the role, or makes it a member of a role of agstate migrate --roles.",
    );
  const owner = tables.every((table) => table.owner);
  if (asOwner && owner)
    return good("rights", `Role ${role} is a maintainer: it may read, write, collect and migrate.`);
  if (asOwner && forWriting.length > 0)
    return good("rights", `Role ${role} is a reader: it may read, and not write.`);
  if (forWriting.length > 0)
    return warning(
      "rights",
      `Role ${role} can read, and lacks what writing needs: ${forWriting.join(", ")}.`,
      "If it is to write, an owner of the schema GRANTs these to the role.",
    );
  const beyond = tables.filter(({ name, insert, update }) => name in WRITES && (insert || update));
  if (asOwner && beyond.length > 0)
    return warning(
      "rights",
      `Role ${role} may read and write, and may change ${beyond.map(({ name }) => name).join(", ")} past the functions that write.`,
      `A writer needs no right on these tables but SELECT: REVOKE the others.`,
    );
  return good(
    "rights",
    asOwner
      ? `Role ${role} is a writer: it may read and write, and neither delete nor rewrite history.`
      : `Role ${role} may read and write.`,
  );
}

interface TableRights extends Record<string, unknown> {
  readonly name: string;
  readonly select: boolean;
  readonly insert: boolean;
  readonly update: boolean;
  /** Whether it has the rights of the table's owner. */
  readonly owner: boolean;
}

interface FunctionRights extends Record<string, unknown> {
  readonly name: string;
  readonly execute: boolean;
  readonly definer: boolean;
  readonly writes: boolean;
}

async function deadRowsOf(run: Run, schema: string): Promise<Finding> {
  const rows = await run<{ name: string; live: string; dead: string; off: boolean }>(
    `SELECT s.relname AS name, s.n_live_tup AS live, s.n_dead_tup AS dead,
        coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false) AS off
      FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid
      WHERE s.schemaname = $1 ORDER BY s.relname`,
    [schema],
  );
  const bloated = rows.filter(
    ({ live, dead }) => Number(dead) > DEAD_MIN && Number(dead) > Number(live),
  );
  const off = rows.filter((row) => row.off);
  if (bloated.length === 0 && off.length === 0)
    return good("dead rows", "The tables have few dead rows.");
  const facts = [
    ...bloated.map(({ name, live, dead }) => `${name} has ${dead} dead rows and ${live} live ones`),
    ...off.map(({ name }) => `autovacuum is switched off for ${name}`),
  ];
  return warning(
    "dead rows",
    `${facts.join("; ")}.`,
    "Run VACUUM (ANALYZE) on them, switch autovacuum on, and look for transactions that are open for long.",
  );
}
