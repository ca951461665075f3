import { openStore } from "../../dist/index.js";
import { counting } from "../../dist/storage/decorators/counting.js";
import { discard, scratch } from "../lib/scratch.mjs";
import { median } from "../lib/stats.mjs";
import { textSource } from "../lib/text.mjs";

const BRANCHES = 64;
const STEPS = 5;
const ITEMS = 1000;

/** Many branches merged by one commit, against merging them one after another. */
export async function octopus(report, { repetitions }) {
  report.heading(`${BRANCHES} branches of ${STEPS} commits into canonical (a state of 1 MB)`);
  const together = await rounds(repetitions, (workflow, names) => workflow.merge(names));
  const apart = await rounds(repetitions, async (workflow, names) => {
    for (const name of names) await workflow.merge([name]);
  });
  const of = (list, field) => median(list.map((round) => round[field]));
  report.figure("one commit with 65 parents, cold", of(together, "ms"), "ms");
  report.figure("objects read", of(together, "objectsRead"), "objects");
  report.figure("objects written", of(together, "objectsWritten"), "objects");
  report.figure("bytes written", of(together, "bytesWritten"), "bytes");
  report.figure("round trips", of(together, "roundTrips"), "calls");
  report.figure("one after another, cold", of(apart, "ms"), "ms");
  report.figure("objects written, one after another", of(apart, "objectsWritten"), "objects");
  report.figure("one commit against one after another", of(together, "ms") / of(apart, "ms"), "x");
}

async function rounds(repetitions, merge) {
  const measured = [];
  for (let i = 0; i < repetitions; i++) {
    const directory = scratch();
    const url = `sqlite:${directory}`;
    const names = await makeBranches(url);
    let counter;
    const wrap = (storage) => {
      counter = counting(storage);
      return counter.storage;
    };
    const store = await openStore(url, { wrap });
    const workflow = await store.workflow("bench");
    counter.reset();
    const since = performance.now();
    await merge(workflow, names);
    measured.push({ ms: performance.now() - since, ...counter.counts() });
    const { n } = await workflow.stateAt("canonical");
    if (n !== BRANCHES * STEPS) throw new Error(`the counter is ${n}`);
    await store.close();
    discard(directory);
  }
  return measured;
}

async function makeBranches(url) {
  const store = await openStore(url);
  const text = textSource(1);
  const items = {};
  for (let i = 0; i < ITEMS; i++) items[`k${i}`] = text(1000);
  const workflow = await store.createWorkflow("bench", {
    state: { items, log: [], n: 0 },
    policies: { "/log": "append", "/n": "sum" },
  });
  const names = [];
  for (let k = 0; k < BRANCHES; k++) {
    const branch = await workflow.branch({ agent: `a${k}`, branch: "work" });
    for (let step = 1; step <= STEPS; step++) {
      await branch.update([
        { op: "set", path: `/items/k${k * 10 + step}`, value: `agent ${k}, step ${step}` },
        { op: "append", path: "/log", value: `agent ${k} did step ${step}` },
        { op: "set", path: "/n", value: step },
      ]);
    }
    names.push(branch.name);
  }
  await store.close();
  return names;
}
