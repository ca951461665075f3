import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { freePort } from "./postgres-server.js";

const PROGRAM = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"].find(
  (path) => spawnSync(path, ["--version"]).status === 0,
);

/** Whether pgbouncer is installed here. */
export const HAS_POOLER = PROGRAM !== undefined;

/** Starts a pgbouncer before a server for one test; each transaction may get another connection. Answers the URL. */
export async function startPooler(serverUrl: string): Promise<string> {
  const server = new URL(serverUrl);
  const folder = mkdtempSync(join(tmpdir(), "agstate-pooler-"));
  // It may run as another user, who must get to its settings.
  chmodSync(folder, 0o777);
  const port = await freePort();
  const settings = join(folder, "pgbouncer.ini");
  writeFileSync(
    settings,
    `[databases]
* = host=${server.hostname} port=${server.port} user=${server.username} password=${server.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`,
  );
  const asRoot = process.getuid?.() === 0;
  const pooler = spawn(PROGRAM as string, [settings], {
    stdio: "ignore",
    // It refuses to run as root.
    ...(asRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {}),
  });
  onTestFinished(async () => {
    const gone = once(pooler, "exit");
    if (pooler.exitCode === null && pooler.kill("SIGKILL")) await gone;
    rmSync(folder, { recursive: true, force: true });
  });
  const through = new URL(serverUrl);
  through.port = String(port);
  await untilListening(port);
  return through.toString();
}

function idOf(flag: string): number {
  return Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout);
}

async function untilListening(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = connect(port, "127.0.0.1");
    const up = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (up) return;
    await sleep(50);
  }
  throw new Error("pgbouncer did not start");
}
