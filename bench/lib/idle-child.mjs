/** Does nothing for a while, with or without a watch on its memory, and tells its parent what of a processor that took. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { watchPressure } from "../../dist/index.js";

const SETTLE_MS = 3000;

const { isWatched, ms } = JSON.parse(process.argv[2]);
const before = new Set(threads());
const options = { reserveBytes: 0, thresholds: { stall10s: null, stall1s: null } };
const watch = isWatched ? watchPressure({ ...options, onNotice: () => undefined }) : null;
await sleep(SETTLE_MS);
const own = threads().filter((thread) => !before.has(thread));
process.send("ready");
// The parent may set a limit meanwhile, which is seen within two seconds.
await sleep(SETTLE_MS);
const since = performance.now();
const usage = process.cpuUsage();
const worked = workedNs(own);
await sleep(ms);
const { user, system } = process.cpuUsage(usage);
const passedMs = performance.now() - since;
process.send({
  percent: ((user + system) / 1000 / passedMs) * 100,
  threadPercent: ((workedNs(own) - worked) / 1e6 / passedMs) * 100,
  residentBytes: process.memoryUsage.rss(),
});
await watch?.close();
process.disconnect();

function threads() {
  try {
    return readdirSync("/proc/self/task");
  } catch {
    return [];
  }
}

function workedNs(ids) {
  return ids.reduce((sum, id) => {
    const text = readFileSync(`/proc/self/task/${id}/schedstat`, "utf8");
    return sum + Number(text.split(" ")[0]);
  }, 0);
}
