import pg from "pg";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import { type Finding, good, warning, wrong } from "../../core/finding.js";
import { DEFAULT_LIMITS } from "../../core/limits.js";
import { toldMessage } from "../../core/server-error.js";
import type { Run } from "./connection.js";
import { diagnoseSchema } from "./diagnose-schema.js";
import { diagnoseServer } from "./diagnose-server.js";
import { codeOf, toStoreError } from "./errors.js";
import { runWithin, toldProcess } from "./run-within.js";
import { type PostgresTarget, parseTarget } from "./target.js";

const TIMEOUT_MS = 10_000;

/**
 * Looks at a PostgreSQL store, the server and the way to it; changes nothing.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a URL that names no place
 */
export async function diagnosePostgres(
  url: string,
): Promise<{ readonly location: string; readonly findings: Finding[] }> {
  const target = parseTarget(url);
  const location = target.shown;
  const findings: Finding[] = [];
  const one = newClient(target);
  const two = newClient(target);
  try {
    try {
      await one.connect();
    } catch (error) {
      return { location, findings: [unreachable(error)] };
    }
    const run: Run = (text, values) => runWithin(one, { text, values }, TIMEOUT_MS);
    findings.push(...(await diagnoseServer(run, target.poolMax ?? DEFAULT_LIMITS.poolMax)));
    findings.push(await diagnosePooler(one, two));
    findings.push(...(await diagnoseSchema(run, target.schema)));
  } catch (error) {
    findings.push(interrupted(error, location));
  } finally {
    await Promise.all([one, two].map((client) => client.end().catch(() => undefined)));
  }
  return { location, findings };
}

function newClient(target: PostgresTarget): pg.Client {
  const client = new pg.Client({
    connectionString: target.connectionString,
    connectionTimeoutMillis: TIMEOUT_MS,
    application_name: "agstate doctor",
  });
  // The call under way tells of it.
  client.on("error", () => undefined);
  return client;
}

function unreachable(error: unknown): Finding {
  const code = codeOf(error);
  const message = toldMessage(error) || code;
  const remedy = /^28/.test(code)
    ? "Check user and password in the store's URL, and pg_hba.conf on the server."
    : code === "3D000"
      ? "Make the database (CREATE DATABASE ... ENCODING 'UTF8'), or name another in the store's URL."
      : code === "ENOTFOUND"
        ? "Check the host name in the store's URL."
        : /^53300/.test(code)
          ? "Close sessions, put a pooler in front of the server, or raise max_connections."
          : "Check host and port in the store's URL, and that the server runs and lets this machine in.";
  return wrong("server", "STORE_UNAVAILABLE", `The server cannot be used: ${message}.`, remedy);
}

/** What is left unknown when a look failed in its midst. */
function interrupted(error: unknown, location: string): Finding {
  const call = { location, poolMax: 2, statementTimeoutMs: TIMEOUT_MS, unknown: false };
  const known = toStoreError(error, call);
  if (!(known instanceof AgstateError)) throw error;
  const code = isAgstateError(known) ? known.code : "STORE_UNAVAILABLE";
  return wrong(
    "server",
    code,
    `The rest could not be looked at: ${toldMessage(error)}.`,
    "Run agstate doctor again; if it says the same, look into the server's log.",
  );
}

/**
 * Whether a pooler stands between: it tells the client of a server process that is none of the
 * server's. Where a session then has another server process than before, it lends them for a transaction only.
 */
async function diagnosePooler(one: pg.Client, two: pg.Client): Promise<Finding> {
  const pid = async (client: pg.Client) =>
    (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid;
  const first = await pid(one);
  if (toldProcess(one) === first) return good("pooler", "No pooler stands before the server.");
  await two.connect();
  await two.query("BEGIN");
  const lent = await pid(two);
  const second = await pid(one);
  await two.query("ROLLBACK");
  if (lent !== first && second === first)
    return good("pooler", "A pooler stands before the server; it lends connections for a session.");
  return warning(
    "pooler",
    "A pooler in transaction mode stands before the server. Everything works; a statement's time limit is kept by the client, not the server, and what watches a store polls.",
    "None is needed. For limits that hold when a client dies: ALTER ROLE ... SET statement_timeout.",
  );
}
