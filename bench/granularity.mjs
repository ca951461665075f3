/**
 * Granularity: what gathering the commits of memoized reads saves, and what it risks.
 *
 * For each granularity the time that an agent spends on recording a step, in turns, and how many steps
 * that had been done a SIGKILL at a random moment took with it. Prints a table and writes
 * `bench/results/granularity.json`. With `--quick` it does a fraction of the work and writes nothing.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openStore } from "../dist/index.js";
import { found, lookUp } from "./lib/lookups.mjs";
import { schemaUrl, startServer } from "./lib/postgres-server.mjs";
import { Report } from "./lib/report.mjs";
import { interleave } from "./lib/rounds.mjs";
import { discard, scratch } from "./lib/scratch.mjs";

const quick = process.argv.includes("--quick");
const STEPS = quick ? 200 : 1000;
const ROUNDS = quick ? 2 : 7;
const KILLS = quick ? 3 : 20;
/** How long a step takes that is killed some day. */
const WORK_MS = 2;
const KILL_AFTER_MS = { min: 300, span: 700 };
/** Bounds by count, and the default of time with them. */
const BOUNDS = ["every step", 10, 100, 1000];
const CHILD = fileURLToPath(new URL("lib/granular-child.mjs", import.meta.url));

const report = new Report();
report.opening();
report.note(
  "One agent makes memoized reads with inputs and outputs of about 100 and 300 bytes, one after another.",
);
const server = await startServer();
const folder = scratch();
try {
  await measure("embedded store", `sqlite:${folder}`);
  await measure("PostgreSQL", schemaUrl(server, "granularity"));
} finally {
  await server.stop();
  discard(folder);
}
report.closing("granularity", quick);

async function measure(where, url) {
  report.heading(where);
  const store = await openStore(url);
  const workflow = await store.createWorkflow("w");
  let branches = 0;
  const contestants = BOUNDS.map((bound) => ({
    name: nameOf(bound),
    steps: STEPS,
    async round() {
      const branch = await workflow.branch({
        agent: "a",
        branch: `b${branches++}`,
        granularity: granularityOf(bound),
      });
      const times = [];
      let at = performance.now();
      for (let i = 0; i < STEPS; i++) {
        await branch.step(lookUp(i), () => found(i));
        if (i === STEPS - 1) await branch.flush();
        const now = performance.now();
        times.push(now - at);
        at = now;
      }
      return { times };
    },
  }));
  const results = await interleave(contestants, ROUNDS, STEPS);
  const [each] = results;
  for (const [i, result] of results.entries()) {
    report.figure(`${result.name}: recording a step`, 1000 / result.rate, "ms");
    if (i > 0) report.figure(`${result.name}: of every step's time`, each.rate / result.rate, "x");
  }
  for (const [i, bound] of BOUNDS.entries()) {
    const lost = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const name = `k${i}-${kill}`;
      const branch = await workflow.branch({ agent: "a", branch: name });
      lost.push(await lostByKill(url, branch, granularityOf(bound)));
    }
    const mean = lost.reduce((sum, one) => sum + one, 0) / lost.length;
    report.figure(`${nameOf(bound)}: steps lost by a kill, mean`, mean, "steps");
    report.figure(`${nameOf(bound)}: steps lost by a kill, most`, Math.max(...lost), "steps");
  }
  await store.close();
}

function nameOf(bound) {
  return typeof bound === "number" ? `every ${bound}` : bound;
}

function granularityOf(bound) {
  return typeof bound === "number" ? { every: { steps: bound, ms: 1000 } } : "every-step";
}

/** How many steps that a process had told to be done are not on record after it was killed. */
async function lostByKill(url, branch, granularity) {
  const args = { url, branch: branch.name, granularity, workMs: WORK_MS };
  const child = spawn(process.execPath, [CHILD, JSON.stringify(args)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  const ready = new Promise((resolve) => {
    child.stdout.on("data", (text) => {
      said += text;
      if (said.includes("ready\n")) resolve();
    });
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  await ready;
  const wait = KILL_AFTER_MS.min + Math.random() * KILL_AFTER_MS.span;
  await new Promise((resolve) => setTimeout(resolve, wait));
  child.kill("SIGKILL");
  await ended;
  const done = said.split("ready\n")[1].length;
  await branch.refresh();
  let kept = 0;
  for await (const step of branch.steps()) if (step.name === "search") kept++;
  return Math.max(0, done - kept);
}
