import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./postgres-server.js";

/** Where pgbouncer is installed, if it is; Debian puts it where only root looks for programs. */
export const PGBOUNCER = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"]
  .map((folder) => join(folder, "pgbouncer"))
  .find((path) => existsSync(path));

/** What the installed pgbouncer says it is. */
export function pgbouncerVersion(): string {
  const { stdout } = spawnSync(PGBOUNCER as string, ["--version"], { encoding: "utf8" });
  return stdout.split("\n")[0]?.trim() ?? "";
}

/** A pooler in front of a server. */
export interface Pooler {
  /** The way to the server's database through it. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts pgbouncer on loopback in front of a server, in transaction mode, with few connections. */
export async function startPgbouncer(serverUrl: string, poolSize: number): Promise<Pooler> {
  const { hostname, port, username, password, pathname } = new URL(serverUrl);
  const folder = mkdtempSync(join(tmpdir(), "agstate-pgbouncer-"));
  chmodSync(folder, 0o755);
  const listen = await freePort();
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(
    config,
    `[databases]
* = host=${hostname} port=${port || 5432} user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
`,
  );
  // It does not run as root; any other user can run it.
  const user = process.getuid?.() === 0 ? userIds("postgres") : {};
  if (user.uid !== undefined) chownSync(config, user.uid, user.gid as number);
  const pooler = spawn(PGBOUNCER as string, [config], {
    ...user,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [pooler.stdout, pooler.stderr]) {
    stream.on("data", (text: Buffer) => {
      said = `${said}${text}`.slice(-10_000);
    });
  }
  const gone = once(pooler, "exit");
  const stop = async () => {
    if (pooler.exitCode === null && pooler.signalCode === null) {
      pooler.kill("SIGQUIT");
      await gone;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 0; !(await answers(listen)); tries++) {
    if (pooler.exitCode !== null || tries > 200) {
      await stop();
      throw new Error(`pgbouncer did not start:\n${said}`);
    }
    await sleep(50);
  }
  return { url: `postgres://somebody@127.0.0.1:${listen}${pathname}`, stop };
}

function userIds(name: string): { uid?: number; gid?: number } {
  const id = (flag: string) => Number(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
