import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openStore } from "../../dist/index.js";
import { discard, scratch } from "../lib/scratch.mjs";
import { stateSource } from "../lib/states.mjs";
import { median } from "../lib/stats.mjs";

const ROOT = new URL("../../", import.meta.url);
/** What the command `agstate` runs where the package is installed. */
const { bin } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
const MAIN = fileURLToPath(new URL(bin.agstate, ROOT));
const COMMITS = 200;
const SHOWN = 20;
const TIME_AT_MOST = 2.5;

/** How long a first `agstate log -n 20` takes, beside a Node.js that does nothing. */
export async function coldStart(report, { pairs }) {
  report.heading(`agstate log -n ${SHOWN}, each in a process of its own, beside node -e 0`);
  const line = `agstate log -n ${SHOWN} over node -e 0`;
  if (!existsSync(MAIN)) {
    report.skipped(line, "x", `<= ${TIME_AT_MOST}`, `${bin.agstate} is not there`);
    return;
  }
  const directory = scratch();
  await fill(directory);
  const log = [MAIN, "log", "-n", String(SHOWN)];
  const env = { ...process.env, AGSTATE_STORE: directory, AGSTATE_WORKFLOW: "bench" };
  const problem = check(spawnSync(process.execPath, log, { env, encoding: "utf8" }));
  if (problem !== null) {
    report.skipped(line, "x", `<= ${TIME_AT_MOST}`, problem);
    discard(directory);
    return;
  }
  const [ours, idle] = [[], []];
  for (let pair = 0; pair < pairs; pair++) {
    const turns = [
      () => ours.push(wallTime(log, env)),
      () => idle.push(wallTime(["-e", "0"], env)),
    ];
    if (pair % 2 === 1) turns.reverse();
    for (const turn of turns) turn();
  }
  discard(directory);
  report.note(
    `${pairs} pairs, medians: ${median(ours).toFixed(1)} ms and ${median(idle).toFixed(1)} ms; ` +
      `canonical has ${COMMITS} commits.`,
  );
  report.atMost(line, median(ours) / median(idle), "x", TIME_AT_MOST);
}

async function fill(directory) {
  const store = await openStore(`sqlite:${directory}`);
  const branch = await (await store.createWorkflow("bench")).canonical();
  const states = stateSource("large", 1);
  for (let i = 0; i < COMMITS; i++) await branch.commit({ state: states(), message: `step ${i}` });
  await store.close();
}

/** What is wrong with the log that was printed; null when it tells of the newest commits, and of no more. */
function check({ status, stdout, stderr }) {
  if (status !== 0) return `agstate log failed with status ${status}: ${stderr.slice(0, 300)}`;
  const told = new Set(stdout.match(/\bstep \d+\b/g));
  const right = told.size === SHOWN && told.has(`step ${COMMITS - 1}`);
  return right ? null : `agstate log told of ${told.size} commits, not of the last ${SHOWN}`;
}

function wallTime(args, env) {
  const since = performance.now();
  const { status } = spawnSync(process.execPath, args, { env, stdio: "ignore" });
  if (status !== 0) throw new Error(`node ${args.at(-1)} failed with status ${status}`);
  return performance.now() - since;
}
