import { type Finding, good, warning, wrong } from "../../core/finding.js";
import type { Run } from "./connection.js";

/** The oldest version that is supported, as the server counts. */
const VERSION_MIN = 140_000;

/** Clocks that differ by more are worth a word: times of commits are the clients'. */
const SKEW_MAX_MS = 2000;

interface Server extends Record<string, unknown> {
  readonly version: string;
  readonly number: number;
  readonly standby: boolean;
  readonly read_only: string;
  readonly encoding: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly autovacuum: string;
  readonly most: number;
  readonly used: number;
}

const SERVER = `SELECT current_setting('server_version') AS version,
    current_setting('server_version_num')::int AS number, pg_is_in_recovery() AS standby,
    current_setting('default_transaction_read_only') AS read_only,
    current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('autovacuum') AS autovacuum,
    least(current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int,
      (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
      (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())
    ) AS most,
    (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database) AS used`;

/** Looks at the server that a session is on. */
export async function diagnoseServer(run: Run, poolMax: number): Promise<Finding[]> {
  const [server] = await run<Server>(SERVER);
  if (server === undefined) throw new Error("the server tells nothing of itself");
  return [
    versionOf(server),
    ...roleOf(server),
    server.encoding === "UTF8"
      ? good("encoding", "The database is encoded in UTF8.")
      : wrong(
          "encoding",
          "STORE_UNAVAILABLE",
          `The database is encoded in ${server.encoding}; names and ids need UTF8.`,
          "Make a database with ENCODING 'UTF8' TEMPLATE template0, and name it in the store's URL.",
        ),
    ...durabilityOf(server),
    server.autovacuum === "on"
      ? good("autovacuum", "autovacuum is on.")
      : warning(
          "autovacuum",
          "autovacuum is off: dead rows of refs pile up, and statistics grow old.",
          "Set autovacuum = on on the server, or run VACUUM (ANALYZE) regularly.",
        ),
    connectionsOf(server, poolMax),
    await clockOf(run),
  ];
}

function versionOf({ version, number }: Server): Finding {
  const [short] = version.split(" ");
  if (number >= VERSION_MIN) return good("server", `PostgreSQL ${short} answers.`);
  return wrong(
    "server",
    "STORE_UNAVAILABLE",
    `PostgreSQL ${short} answers; agstate needs 14 or newer.`,
    "Bring the server up to date (pg_upgrade).",
  );
}

function roleOf({ standby, read_only }: Server): Finding[] {
  if (standby)
    return [
      wrong(
        "writable",
        "STORE_READONLY",
        "The server is a standby: it can be read, and takes no writes.",
        "Name the primary in the store's URL, or promote this server.",
      ),
    ];
  if (read_only === "on")
    return [
      wrong(
        "writable",
        "STORE_READONLY",
        "Transactions are read-only here (default_transaction_read_only is on).",
        "ALTER ROLE or ALTER DATABASE ... SET default_transaction_read_only = off, if that is meant to be.",
      ),
    ];
  return [good("writable", "The server is a primary and takes writes.")];
}

function durabilityOf(server: Server): Finding[] {
  const lost = {
    fsync: "a power loss may lose acknowledged commits, or damage the database",
    full_page_writes: "a power loss may leave torn pages, a damaged database",
    synchronous_commit: "a crash may lose the last acknowledged commits",
  } as const;
  const settings = Object.keys(lost) as (keyof typeof lost)[];
  return settings.map((name) =>
    server[name] === "off"
      ? warning(name, `${name} is off: ${lost[name]}.`, `Set ${name} = on on the server.`)
      : good(name, `${name} is ${server[name]}.`),
  );
}

function connectionsOf({ most, used }: Server, poolMax: number): Finding {
  const free = Math.max(0, most - used);
  const facts = `A store holds at most ${poolMax} connections; the server allows ${most}, ${free} of them free now`;
  if (poolMax <= free) return good("connections", `${facts}.`);
  return warning(
    "connections",
    `${facts}: calls may wait, or find no place.`,
    "Lower poolMax (?pool_max= in the store's URL), raise max_connections, or put a pooler between.",
  );
}

async function clockOf(run: Run): Promise<Finding> {
  const before = Date.now();
  const [row] = await run<{ now: string }>(
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now",
  );
  const after = Date.now();
  // The server read its clock at some time between.
  const server = Number(row?.now);
  const skew = server < before ? before - server : Math.max(0, server - after);
  const far = skew < 1000 ? `${skew} ms` : `${Math.round(skew / 1000)} s`;
  if (skew <= SKEW_MAX_MS) return good("clock", `The clocks of client and server agree (${far}).`);
  return warning(
    "clock",
    `The server's clock is ${far} ${server < before ? "behind" : "ahead of"} this machine's; commits bear the times of the machines that make them.`,
    "Have both clocks set by NTP.",
  );
}
