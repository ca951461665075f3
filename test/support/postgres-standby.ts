import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "./postgres.js";
import { freePort, type TestServer } from "./postgres-server.js";

/** A server that follows another by its log, as a hot standby. */
export interface TestStandby {
  readonly url: string;
  /** From now on it applies so much later what the primary commits, such as `1h`, and has begun to wait with it. */
  delay(by: string): Promise<void>;
  /** No delay any more. */
  hurry(): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

/** What a base backup leaves out: what is the running server's own, and the log, which comes over the connection. */
const OWN = ["postmaster.pid", "postmaster.opts"];

/** Starts a standby of a server of the tests' own, from a base backup that is taken over SQL. */
export async function startStandby(primary: TestServer): Promise<TestStandby> {
  const folder = mkdtempSync(join(tmpdir(), "agstate-standby-"));
  // The server may run as another user, who must get to its data.
  chmodSync(folder, 0o755);
  const clean = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    await takeBackup(primary, folder);
    return await start(primary, folder, clean);
  } catch (error) {
    clean();
    throw error;
  }
}

async function takeBackup(primary: TestServer, folder: string): Promise<void> {
  const { uid, gid } = statSync(primary.directory);
  const data = join(folder, "data");
  const label = await withClient(async (client) => {
    await client.query("SELECT pg_backup_start('standby', true)");
    const copied = spawnSync("cp", ["-a", primary.directory, data], { encoding: "utf8" });
    if (copied.status !== 0) throw new Error(`the base backup was not copied: ${copied.stderr}`);
    const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
    return rows[0].labelfile as string;
  }, primary.url);
  for (const name of OWN) rmSync(join(data, name), { force: true });
  for (const name of readdirSync(join(data, "pg_wal"))) {
    rmSync(join(data, "pg_wal", name), { recursive: true });
  }
  const status = join(data, "pg_wal", "archive_status");
  mkdirSync(status, { mode: 0o700 });
  chownSync(status, uid, gid);
  for (const [name, text] of [
    ["backup_label", label],
    ["standby.signal", ""],
  ] as const) {
    writeFileSync(join(data, name), text, { mode: 0o600 });
    chownSync(join(data, name), uid, gid);
  }
}

async function start(primary: TestServer, folder: string, clean: () => void): Promise<TestStandby> {
  const { uid, gid } = statSync(primary.directory);
  const { hostname, port: from, username, password } = new URL(primary.url);
  const port = await freePort();
  const settings = [
    `primary_conninfo=host=${hostname} port=${from} user=${username} password=${password}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "hot_standby=on",
    // As many as the primary allows.
    "max_connections=200",
    "wal_retrieve_retry_interval=100ms",
    "fsync=off",
  ];
  const server = spawn(
    primary.program,
    ["-D", join(folder, "data"), "-p", String(port), ...settings.flatMap((s) => ["-c", s])],
    { ...(process.getuid?.() === 0 && { uid, gid }), stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  server.stderr.on("data", (text: Buffer) => {
    said = `${said}${text}`.slice(-10_000);
  });
  const gone = once(server, "exit");
  const kill = () => server.kill("SIGQUIT");
  process.once("exit", kill);
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill("SIGINT");
      await gone;
    }
    process.off("exit", kill);
  };
  const url = new URL(primary.url);
  url.port = String(port);
  const execute = (text: string, on = url.toString()) =>
    withClient(async (client) => (await client.query(text)).rows, on);
  const set = async (delay: string) => {
    await execute(`ALTER SYSTEM SET recovery_min_apply_delay = '${delay}'`);
    await execute("SELECT pg_reload_conf()");
  };
  const waits = async () =>
    (await execute("SELECT FROM pg_stat_activity WHERE wait_event = 'RecoveryApplyDelay'")).length >
    0;
  /** Whether it has applied something that the primary has done since the backup. */
  const follows = async () => {
    await execute("SELECT pg_current_xact_id()", primary.url);
    const applied = execute("SELECT FROM pg_last_xact_replay_timestamp() AS t WHERE t IS NOT NULL");
    return applied.then(
      (rows) => rows.length > 0,
      () => false,
    );
  };
  for (let tries = 0; !(await follows()); tries++) {
    if (server.exitCode !== null || tries > 600) {
      await stop();
      throw new Error(`the standby did not start:\n${said}`);
    }
    await sleep(50);
  }
  return {
    url: url.toString(),
    async delay(by) {
      await set(by);
      // The process that applies the log takes notice of it in its own time, and of transactions only.
      while (!(await waits())) await execute("SELECT pg_current_xact_id()", primary.url);
    },
    hurry: () => set("0"),
    async remove() {
      await stop();
      clean();
    },
  };
}
