import { AgstateError } from "../../core/errors.js";
import type { Connection } from "./connection.js";
import { codeOf } from "./errors.js";
import { quoteIdentifier } from "./schema.js";

interface Rights {
  readonly role: string;
  readonly database: string;
  /** Whether the schema is there. */
  readonly there: boolean;
  readonly usage: boolean | null;
  readonly create: boolean | null;
}

/**
 * Says what is missing where the server refused to make or to read a schema: the right, and who
 * gives it how. Other errors stay as they are.
 */
export async function explainRefusal(
  connection: Connection,
  schema: string,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof AgstateError)) return error;
  const code = codeOf(error.cause);
  const { location } = connection;
  if (code === "42P07" || code === "42723") {
    return new AgstateError(
      "STORE_MISMATCH",
      `schema ${schema} of ${location} holds tables or functions that another program made; name another schema by ?schema=NAME (${(error.cause as Error).message})`,
      { location, schema, code },
      { cause: error.cause },
    );
  }
  if (code !== "42501") return error;
  const [rights] = await connection.query<Rights & Record<string, unknown>>(
    `SELECT current_user AS role, current_database() AS database, n.oid IS NOT NULL AS there,
        has_schema_privilege(n.oid, 'USAGE') AS usage, has_schema_privilege(n.oid, 'CREATE') AS create
      FROM (SELECT) AS one LEFT JOIN pg_namespace AS n ON n.nspname = $1`,
    [schema],
  );
  if (rights === undefined) return error;
  const { role, database } = rights;
  const [to, on, named] = [role, database, schema].map(quoteIdentifier);
  const [missing, remedy] = !rights.there
    ? [
        `CREATE on database ${database}`,
        `GRANT CREATE ON DATABASE ${on} TO ${to}; or CREATE SCHEMA ${named} AUTHORIZATION ${to};`,
      ]
    : rights.usage !== true
      ? [`USAGE on schema ${schema}`, `GRANT USAGE ON SCHEMA ${named} TO ${to};`]
      : rights.create !== true
        ? [`CREATE on schema ${schema}`, `GRANT CREATE ON SCHEMA ${named} TO ${to};`]
        : [`rights on the tables of schema ${schema}`, `have their owner GRANT them to ${to}`];
  return new AgstateError(
    "STORE_READONLY",
    `store ${location}: role ${role} lacks ${missing}; have an owner run: ${remedy} or run agstate migrate as a role that has it`,
    { location, schema, role, missing, code },
    { cause: error.cause },
  );
}

/**
 * Says what is missing where the server refused what only a maintainer may do, and who may; other errors stay as they
 * are.
 *
 * @param what what was refused, as "removing ..."
 * @param command what to run again
 */
export async function explainMaintainRefusal(
  connection: Connection,
  error: unknown,
  what: string,
  command: string,
): Promise<unknown> {
  if (!(error instanceof AgstateError) || codeOf(error.cause) !== "42501") return error;
  const { location } = connection;
  const [row] = await connection.query<{ role: string }>("SELECT current_user AS role");
  const { message } = error.cause as Error;
  const [, kind, name] = /^permission denied for (function|table) (.+)$/.exec(message) ?? [];
  const missing = kind === "function" ? `EXECUTE on function ${name}` : "rights on the tables";
  return new AgstateError(
    "STORE_READONLY",
    `store ${location}: role ${row?.role} lacks ${missing}, which ${what} needs (${message}); run ${command} as a member of the store's maintainer role, which agstate migrate --roles makes, or as the owner of its tables`,
    { location, role: row?.role, missing, code: "42501" },
    { cause: error.cause },
  );
}
