import { openStore } from "../../dist/index.js";
import { counting } from "../../dist/storage/decorators/counting.js";
import { discard, scratch } from "../lib/scratch.mjs";
import { median } from "../lib/stats.mjs";
import { textSource } from "../lib/text.mjs";

const ITEM_BYTES = 1000;
/** A state a hundred times as large has a few more levels, not a hundred times the objects. */
const GROWTH_AT_MOST = 2;

const SIZES = [
  { name: "100 KB", items: 100 },
  { name: "1 MB", items: 1000 },
  { name: "10 MB", items: 10_000 },
];
const WIDE_KEYS = 100_000;

/** What merging a one-key change reads and writes, by the size of the state. */
export async function mergeState(report, { repetitions }) {
  report.heading("Merging a one-key change: what is read and written, by the size of the state");
  const counts = [];
  for (const { name, items } of SIZES) {
    const state = { items: keyed(items, ITEM_BYTES), log: list(items / 10) };
    counts.push(await oneMerge(report, name, state, repetitions));
  }
  await oneMerge(report, "100,000 keys", { items: keyed(WIDE_KEYS, 20), log: [] }, repetitions);
  const [small, , large] = counts;
  const growth = (what) => large[what] / small[what];
  report.atMost("objects, 10 MB against 100 KB", growth("objects"), "x", GROWTH_AT_MOST);
  report.figure("bytes, 10 MB against 100 KB", growth("bytes"), "x");
}

async function oneMerge(report, name, state, repetitions) {
  const directory = scratch();
  const url = `sqlite:${directory}`;
  const setup = await openStore(url);
  const workflow = await setup.createWorkflow("bench", { state });
  const bytes = JSON.stringify(state).length;
  const canonical = await workflow.canonical();
  for (let i = 0; i < repetitions; i++) {
    const branch = await workflow.branch({ agent: "a", branch: `b${i}` });
    await branch.update([
      { op: "set", path: `/items/k${i}`, value: `changed by the branch, ${i}` },
      { op: "append", path: "/log", value: `branch ${i}` },
    ]);
  }
  // Canonical has moved as well, so that both sides changed.
  await canonical.update([
    { op: "set", path: "/items/k99", value: "changed on canonical" },
    { op: "append", path: "/log", value: "canonical" },
  ]);
  await setup.close();

  const rounds = [];
  for (let i = 0; i < repetitions; i++) {
    let counter;
    const wrap = (storage) => {
      counter = counting(storage);
      return counter.storage;
    };
    // Opened anew each time: nothing is at hand.
    const store = await openStore(url, { wrap });
    const cold = await store.workflow("bench");
    counter.reset();
    const since = performance.now();
    const { status } = await cold.merge([`a/b${i}`]);
    const ms = performance.now() - since;
    if (status !== "merged") throw new Error(`merging gave ${status}`);
    rounds.push({ ms, ...counter.counts() });
    await store.close();
  }
  discard(directory);
  const of = (field) => median(rounds.map((round) => round[field]));
  report.note(`${name}: a state of ${bytes.toLocaleString("en-US")} bytes of JSON`);
  report.figure(`${name}: objects read`, of("objectsRead"), "objects");
  report.figure(`${name}: bytes read`, of("bytesRead"), "bytes");
  report.figure(`${name}: objects written`, of("objectsWritten"), "objects");
  report.figure(`${name}: bytes written`, of("bytesWritten"), "bytes");
  report.figure(`${name}: round trips`, of("roundTrips"), "calls");
  report.figure(`${name}: cold merge`, of("ms"), "ms");
  return {
    objects: of("objectsRead") + of("objectsWritten"),
    bytes: of("bytesRead") + of("bytesWritten"),
  };
}

function keyed(count, bytes) {
  const text = textSource(1);
  const items = {};
  for (let i = 0; i < count; i++) items[`k${i}`] = text(bytes);
  return items;
}

function list(count) {
  const text = textSource(2);
  return Array.from({ length: count }, () => text(100));
}
