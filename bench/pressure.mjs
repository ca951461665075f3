/**
 * What a watch on a process's memory costs at its usual rate, and how soon it acts.
 *
 * Idle processes with and without a watch run side by side, so that what else the machine does is the same for all: free, in a
 * control group whose limit is far off, and in one whose limit is so near that the watch looks four times as often. Then
 * processes take memory steadily until their watch tells them that it is short.
 *
 * Prints a table and writes `bench/results/pressure.json`. With `--quick` it does a fraction of the work and writes nothing.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { makeMemoryGroup } from "./lib/memory-group.mjs";
import { Report } from "./lib/report.mjs";
import { median } from "./lib/stats.mjs";

const quick = process.argv.includes("--quick");
const MiB = 2 ** 20;
const IDLE_ROUNDS = quick ? 1 : 3;
const IDLE_MS = quick ? 3000 : 30_000;
const FILLING_ROUNDS = quick ? 2 : 9;
const FILLED_BYTES = 192 * MiB;
/** 50 MiB a second at most. */
const FILL_EVERY_MS = 20;
const CPU_MOST_PERCENT = 0.5;
/** A share of the limit that is near the threshold of 0.85, and not above it. */
const NEAR_SHARE = 0.78;
const FAR_SHARE = 0.25;
const IDLE = fileURLToPath(new URL("./lib/idle-child.mjs", import.meta.url));
const FILLING = fileURLToPath(new URL("./lib/filling-child.mjs", import.meta.url));

const report = new Report();
report.opening();
const whyNot = await whyNoGroup();

report.heading(`Idle for ${IDLE_MS / 1000} s, ${IDLE_ROUNDS} times, per cent of one core`);
const kinds = [
  { name: "without a watch", isWatched: false, share: null },
  { name: "with a watch", isWatched: true, share: null },
  ...(whyNot === null
    ? [
        { name: "in a control group", isWatched: true, share: FAR_SHARE },
        { name: "near its limit", isWatched: true, share: NEAR_SHARE },
      ]
    : []),
];
const rounds = [];
for (let round = 0; round < IDLE_ROUNDS; round++) rounds.push(await Promise.all(kinds.map(idle)));
const columns = kinds.map((_, k) => rounds.map((round) => round[k]));
const [bare, ...watched] = columns;
report.figure("without a watch", median(of(bare, "percent")), "%");
for (const [k, column] of watched.entries()) {
  const { name, share } = kinds[k + 1];
  const more = column.map(({ percent }, round) => percent - bare[round].percent);
  // The target is for the usual rate, and near the limit the watch looks more often.
  if (share === NEAR_SHARE) report.figure(`${name}: CPU more`, median(more), "%");
  else report.atMost(`${name}: CPU more`, median(more), "%", CPU_MOST_PERCENT);
  report.figure(`${name}: its thread`, median(of(column, "threadPercent")), "%");
  const bytes = column.map(({ residentBytes }, i) => residentBytes - bare[i].residentBytes);
  report.figure(`${name}: memory more`, median(bytes) / MiB, "MiB");
}
if (whyNot !== null) report.skipped("in a control group: CPU more", "%", null, whyNot);

report.heading("Memory that fills, from passing the threshold");
if (whyNot === null) {
  const filled = [];
  for (let round = 0; round < FILLING_ROUNDS; round++) filled.push(await filling());
  report.figure("reserve given back after", median(of(filled, "released")), "ms");
  report.figure("reserve given back after at most", Math.max(...of(filled, "released")), "ms");
  report.figure("onPressure called after", median(of(filled, "told")), "ms");
  report.figure("onPressure called after at most", Math.max(...of(filled, "told")), "ms");
} else report.skipped("onPressure called after", "ms", null, whyNot);
report.closing("pressure", quick);

function of(results, key) {
  return results.map((result) => result[key]);
}

async function whyNoGroup() {
  const group = makeMemoryGroup();
  if (typeof group === "string") return group;
  await group.remove();
  return null;
}

/** Lets one process idle, in a group of which it uses the share, or in none. */
async function idle({ isWatched, share }) {
  const args = [JSON.stringify({ isWatched, ms: IDLE_MS })];
  if (share === null) return resultOf(fork(IDLE, args));
  return inGroup(IDLE, args, (group) => group.setLimit(group.memory().usedBytes / share));
}

function filling() {
  const args = [JSON.stringify({ everyMs: FILL_EVERY_MS })];
  return inGroup(FILLING, args, null, FILLED_BYTES);
}

async function inGroup(path, args, onReady, limitBytes) {
  const group = makeMemoryGroup();
  try {
    if (limitBytes !== undefined) await group.setLimit(limitBytes);
    const stdio = ["ignore", "inherit", "inherit", "ipc"];
    const child = group.spawn(process.execPath, [path, ...args], { stdio });
    return await resultOf(child, () => onReady?.(group));
  } finally {
    await group.remove();
  }
}

async function resultOf(child, onReady) {
  let result;
  child.on("message", async (message) => {
    if (message === "ready") await onReady?.();
    else result = message;
  });
  const [code, signal] = await once(child, "exit");
  if (result === undefined) throw new Error(`a process ended with ${signal ?? code}`);
  return result;
}
