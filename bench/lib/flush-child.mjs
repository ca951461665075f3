/**
 * Brings a state of a guarded branch into a store once, and tells its parent what that took.
 *
 * It says that it is ready, and waits for `go`. Idle it asks for the checkpoint itself; under pressure it
 * is the watch that finds its memory short, as the parent then limits it.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore, watchPressure } from "../../dist/index.js";
import { agentState, withLastChanged } from "./agent-state.mjs";
import { bytesWritten, watchPeak } from "./process-memory.mjs";

const { url, bytes, changedShare, isPressed, reserveBytes } = JSON.parse(process.argv[2]);
const SETTLE_MS = 2000;
let peak;
let writtenBefore;
let handedOver = 0;

const wrap = (storage) => ({
  ...storage,
  write(batch) {
    for (const { body } of batch.objects) handedOver += body.length;
    for (const { commits } of batch.moves) {
      for (const { body, inline } of commits ?? []) {
        handedOver += [{ body }, ...inline].reduce((sum, each) => sum + each.body.length, 0);
      }
    }
    return storage.write(batch);
  },
});
const store = await openStore(url, { wrap });
const workflow = await store.createWorkflow("bench");
const branch = await workflow.branch({ agent: "agent", branch: "main" });
let state = agentState(bytes, 7);
if (changedShare < 1) {
  await branch.commit({ state, message: "so far" });
  state = withLastChanged(state, changedShare, 8);
}
let pressed;
const isShort = new Promise((resolve) => {
  pressed = resolve;
});
// Garbage is not to be counted.
globalThis.gc();
const watch = watchPressure({
  reserveBytes,
  deadlineMs: 600_000,
  // Of the stalls of a whole machine nothing is to be known here.
  thresholds: { stall10s: null, stall1s: null },
  onNotice: () => undefined,
  onPressure(event) {
    begin();
    pressed(event);
  },
});
branch.guard({ state: () => state });
// The watching thread has to have begun, and to have taken its reserve: what is resident does not grow any more.
await sleep(SETTLE_MS);
for (let before = 0, resident = 1; resident > before; ) {
  before = process.memoryUsage.rss();
  await sleep(500);
  resident = process.memoryUsage.rss();
}
process.send("ready");
await once(process, "message");
// The watch keeps no process alive, and nothing else is at work.
const alive = setInterval(() => undefined, 1000);
const report = await (isPressed ? (await isShort).checkpoint : checkpointNow());
const peakBytes = peak();
const written = bytesWritten();
if (!report.safe) throw report.branches[0]?.error ?? report.errors[0];
if (report.branches[0].outcome !== "committed") throw new Error("nothing was committed");
process.send({
  ms: report.ms,
  peakBytes,
  handedOver,
  written: written === null ? null : written - writtenBefore,
});
await watch.close();
await store.close();
clearInterval(alive);
process.disconnect();

function begin() {
  handedOver = 0;
  writtenBefore = bytesWritten();
  peak = watchPeak();
}

function checkpointNow() {
  begin();
  return watch.checkpoint();
}
