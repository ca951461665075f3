/**
 * What it costs to bring an agent's state into the store because memory is short: time, bytes written, and the memory that
 * it takes at its peak, by which `reserveBytes` has to be sized.
 *
 * Each flush is that of a guarded branch in a process of its own, on an embedded store and on a PostgreSQL server of the run's
 * own: idle, and in a control group that is limited so that nine tenths of its memory are in use, while another process of
 * the group reads a file that does not fit beside. There the reserve is what the flush took at most when it was idle.
 *
 * Prints a table and writes `bench/results/flush.json`. With `--quick` it does a fraction of the work and writes nothing.
 */
import { fork, spawnSync } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeMemoryGroup } from "./lib/memory-group.mjs";
import { dropSchemas, schemaBytes, schemaUrl, startServer } from "./lib/postgres-server.mjs";
import { Report } from "./lib/report.mjs";
import { discard, scratch } from "./lib/scratch.mjs";
import { median } from "./lib/stats.mjs";

const quick = process.argv.includes("--quick");
const MB = 1e6;
const MiB = 2 ** 20;
const ROUNDS = quick ? 1 : 3;
const CASES = [
  { name: "1 MB", bytes: MB, changedShare: 1 },
  { name: "10 MB", bytes: 10 * MB, changedShare: 1 },
  { name: "100 MB", bytes: 100 * MB, changedShare: 1 },
  { name: "1 % of 100 MB", bytes: 100 * MB, changedShare: 0.01 },
].slice(0, quick ? 2 : undefined);
/** What is in use of the limit when the flush begins; the watch acts from 0.85 on. */
const USED_SHARE = 0.9;
/** More than there is beside what is in use, so that the kernel has to drop some of it again and again. */
const READ_BYTES = 256 * MiB;
const RESERVE_MIN_BYTES = 16 * MiB;
const CHILD = fileURLToPath(new URL("./lib/flush-child.mjs", import.meta.url));

let schemas = 0;

const report = new Report();
report.opening();
const folder = scratch();
const readFile = join(folder, "read");
const whyNot = await whyNoPressure();
if (whyNot === null) {
  writeFileSync(readFile, randomFillSync(Buffer.alloc(READ_BYTES)), { flush: true });
}
const server = await startServer();

for (const { name: storeName, place } of [
  { name: "SQLite", place: placeInSqlite },
  { name: "PostgreSQL", place: placeInPostgres },
]) {
  report.heading(`A guarded branch on ${storeName}, ${ROUNDS} times each`);
  for (const { name, ...what } of CASES) {
    const label = `${storeName}, ${name}`;
    const idle = await rounds(place, { ...what, isPressed: false, reserveBytes: 0 });
    tell(`${label}, idle`, idle);
    report.figure(`${label}: objects written`, median(of(idle, "handedOver")) / MB, "MB");
    const written = of(idle, "written");
    if (written.length > 0) report.figure(`${label}: on disk`, median(written) / MB, "MB");
    else report.skipped(`${label}: on disk`, "MB", null, "the kernel does not say");
    const peak = Math.max(RESERVE_MIN_BYTES, ...of(idle, "peakBytes"));
    const reserveBytes = Math.ceil(peak / MiB) * MiB;
    if (whyNot !== null) {
      report.skipped(`${label}, pressed: time`, "ms", null, whyNot);
      continue;
    }
    const pressed = await rounds(place, { ...what, isPressed: true, reserveBytes });
    tell(`${label}, pressed`, pressed);
    report.figure(`${label}, pressed: reserve`, reserveBytes / MiB, "MiB");
    const killed = pressed.filter((flush) => flush === null).length;
    report.figure(`${label}, pressed: killed`, killed, `of ${ROUNDS}`);
  }
}
await server.stop();
discard(folder);
report.closing("flush", quick);

function of(flushes, key) {
  return flushes.flatMap((flush) => flush?.[key] ?? []);
}

function tell(label, flushes) {
  const times = of(flushes, "ms");
  const peaks = of(flushes, "peakBytes").map((bytes) => bytes / MiB);
  if (times.length > 0) {
    report.figure(`${label}: time`, median(times), "ms");
    report.figure(`${label}: longest`, Math.max(...times), "ms");
  }
  if (peaks.length > 0) {
    report.figure(`${label}: peak`, median(peaks), "MiB");
    report.figure(`${label}: greatest peak`, Math.max(...peaks), "MiB");
  }
}

async function whyNoPressure() {
  const group = makeMemoryGroup();
  if (typeof group === "string") return group;
  await group.remove();
  return null;
}

async function rounds(place, what) {
  const flushes = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { url, before, after } = await place();
    const args = [JSON.stringify({ ...what, url })];
    const flush = await (what.isPressed ? pressedFlush(args, before) : idleFlush(args, before));
    const more = await after();
    flushes.push(flush && { ...flush, ...more });
  }
  return flushes;
}

async function idleFlush(args, before) {
  const child = fork(CHILD, args, { execArgv: ["--expose-gc"] });
  return followed(child, before);
}

/** Null where the process was killed. */
async function pressedFlush(args, before) {
  forgetFile(readFile);
  const group = makeMemoryGroup();
  try {
    const stdio = ["ignore", "inherit", "inherit", "ipc"];
    const child = group.spawn(process.execPath, ["--expose-gc", CHILD, ...args], { stdio });
    return await followed(child, async () => {
      await before();
      const { usedBytes } = group.memory();
      group.spawn("sh", ["-c", 'while cat "$0"; do :; done', readFile], { stdio: "ignore" });
      // Only what the group has read itself counts as its own.
      while (group.memory().cacheBytes < usedBytes * (1 - USED_SHARE)) await sleep(20);
      await group.setLimit(group.memory().usedBytes / USED_SHARE);
    });
  } finally {
    await group.remove();
  }
}

/** Has the kernel drop a file from the page cache, where it counts for whoever read it first. */
function forgetFile(path) {
  const { status, stderr } = spawnSync("dd", [`if=${path}`, "iflag=nocache", "count=0"]);
  if (status !== 0) throw new Error(`the page cache of a file could not be dropped: ${stderr}`);
}

async function followed(child, before) {
  let flush = null;
  const exit = once(child, "exit");
  child.on("message", async (message) => {
    if (message !== "ready") flush = message;
    else await before().then(() => child.send("go"));
  });
  const [code, signal] = await exit;
  if (code !== 0 && signal !== "SIGKILL") throw new Error(`a flush ended with ${signal ?? code}`);
  return flush;
}

async function placeInSqlite() {
  const directory = scratch();
  return {
    url: `sqlite:${directory}`,
    before: async () => undefined,
    after: async () => discard(directory),
  };
}

/** What the server writes is its log, and its tables' pages later on. */
async function placeInPostgres() {
  const schema = `flush_${++schemas}`;
  const count = async () => {
    const { rows } = await server.pool.query("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
    return Number(rows[0].bytes) + (await schemaBytes(server, schema));
  };
  let begun = 0;
  return {
    url: schemaUrl(server, schema),
    before: async () => {
      begun = await count();
    },
    after: async () => {
      const written = (await count()) - begun;
      await dropSchemas(server, [schema]);
      return { written };
    },
  };
}
