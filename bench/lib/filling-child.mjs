/** Takes memory steadily until its watch says that it is short, and tells its parent how long that took. */
import { setTimeout as sleep } from "node:timers/promises";
import { watchPressure } from "../../dist/index.js";
import { shareOf } from "../../dist/pressure/reasons.js";
import { Sampler } from "../../dist/pressure/sampler.js";
import { DEFAULT_THRESHOLDS } from "../../dist/pressure/thresholds.js";

const CHUNK_BYTES = 1024 * 1024;

const { everyMs } = JSON.parse(process.argv[2]);
const sampler = new Sampler();
const kept = [];
let passedAt;
let told;
const watch = watchPressure({
  thresholds: { stall10s: null, stall1s: null },
  onNotice: () => undefined,
  onPressure({ lateMs }) {
    told = { at: now(), lateMs };
  },
});
await sleep(2500);
while (told === undefined) {
  kept.push(Buffer.alloc(CHUNK_BYTES, 1));
  const [group] = sampler.sample({ slowEveryMs: 60_000 }).levels;
  if (shareOf(group) >= DEFAULT_THRESHOLDS.usage) passedAt ??= now();
  await sleep(everyMs);
}
process.send({ released: told.at - told.lateMs - passedAt, told: told.at - passedAt });
await watch.close();
process.disconnect();

/** Milliseconds since 1970, with fractions. */
function now() {
  return performance.timeOrigin + performance.now();
}
