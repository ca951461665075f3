/**
 * Commits with many agents at the same time, and tells its own memory on the way.
 *
 * Forked by `lines/postgres-memory.mjs`, with `--expose-gc`: it gets the store's URL, the number of
 * agents, the bytes of its cache of objects, and the numbers of commits after which to tell.
 */
import { openAgents } from "./agstate.mjs";
import { smallStates } from "./crowd.mjs";
import { median } from "./stats.mjs";

/** A sample is taken each so many commits; what is told is the median of the last so many samples. */
const SAMPLE_EVERY = 250;
const SAMPLES = 9;

const [url, agents, cacheMaxBytes, ...marks] = process.argv.slice(2);
const limits = { cacheMaxBytes: Number(cacheMaxBytes) };
const { store, branches } = await openAgents(url, Number(agents), { limits });
const samples = [];
const told = [];
let commits = 0;
let mark = 0;

function count() {
  commits++;
  if (commits % SAMPLE_EVERY === 0) samples.push(process.memoryUsage.rss());
  if (commits !== Number(marks[mark])) return;
  mark++;
  const resident = median(samples.slice(-SAMPLES));
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  told.push({ commits, resident, kept: heapUsed + external });
}

await Promise.all(
  branches.map(async (branch, k) => {
    const states = smallStates(k + 1);
    while (commits < Number(marks.at(-1))) {
      await branch.commit({ state: states(), message: `step ${commits}` });
      count();
    }
  }),
);
await store.close();
process.send({ told, most: Math.max(...samples) });
process.disconnect();
