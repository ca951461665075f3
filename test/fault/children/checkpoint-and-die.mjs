// Makes commits that wait in memory, has them brought into the store, says which is the last, and is killed at that moment.
//
// flush: by the handle. checkpoint: by the watch. pressure: by no call at all, as V8's heap is nearly full.
import { writeSync } from "node:fs";
import { openStore, watchPressure } from "../../../dist/index.js";

const [url, by] = process.argv.slice(2);
const store = await openStore(url);
const workflow = await store.workflow("w");
const granularity = { every: { steps: 10_000, ms: 600_000 } };
const branch = await workflow.branch({ agent: "a", branch: by, granularity });
globalThis.held = by === "pressure" ? new Array(13e6).fill(0.5) : [];
let watch;
const isShort = new Promise((resolve) => {
  watch = watchPressure({
    thresholds: { usage: 0.3, critical: 0.99 },
    onNotice: () => undefined,
    onPressure: resolve,
  });
});
// A watch does not keep the process alive.
const waits = setInterval(() => undefined, 1000);
if (by === "pressure") await isShort;
clearInterval(waits);
for (let n = 1; n <= 20; n++) await branch.commit({ state: { n } });
if (by === "flush") await branch.flush();
if (by === "checkpoint") await watch.checkpoint();
writeSync(1, `${branch.head.id}\n`);
process.kill(process.pid, "SIGKILL");
