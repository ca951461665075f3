import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { openStore } from "../../dist/index.js";
import { makeLongHistory } from "../lib/long-history.mjs";
import { discard, scratch } from "../lib/scratch.mjs";
import { median } from "../lib/stats.mjs";

const WARM_AT_MOST = 1;
const COLD_AT_MOST = 3;
const WARM_UPS = 3;

/**
 * Finds the merge base of canonical and of forks that left it long ago, against `git merge-base`
 * on the exported repository with its commit-graph.
 *
 * Git's time is that of the whole command. Ours, cold, is the first question to a store that was
 * just opened in a process that has been at it before; warm, the next one to the same store. The
 * three take turns, so that a machine that changes its speed changes it for all of them.
 *
 * @param size `commits` and `merges` of the history, `forks` as first parents back by name, and `rounds`
 */
export async function mergeBase(report, { commits, merges, forks, rounds }) {
  const names = Object.keys(forks);
  report.heading(
    `Merge base, ${count(commits)} commits with ${count(merges)} merges, ${names.length} forks`,
  );
  const directory = scratch();
  const url = `sqlite:${join(directory, "store")}`;
  const repository = join(directory, "repository.git");
  const shape = { commits, merges, forks: Object.values(forks) };
  const history = makeLongHistory({ url, repository, ...shape });
  git(repository, "commit-graph", "write", "--reachable");

  for (const [k, name] of names.entries()) {
    const heads = [history.canonical, history.forks[k]];
    const times = { git: [], cold: [], warm: [] };
    for (let round = -WARM_UPS; round < rounds; round++) {
      const asked = await ask(url, repository, history, heads);
      if (round < 0) continue;
      for (const key of Object.keys(times)) times[key].push(asked[key]);
    }
    const [theirs, cold, warm] = [times.git, times.cold, times.warm].map(median);
    report.figure(`fork ${name}: git merge-base`, theirs, "ms");
    report.figure(`fork ${name}: agstate, warm`, warm, "ms");
    report.figure(`fork ${name}: agstate, cold`, cold, "ms");
    report.atMost(`fork ${name}: warm, of git`, warm / theirs, "x", WARM_AT_MOST);
    report.atMost(`fork ${name}: cold, of git`, cold / theirs, "x", COLD_AT_MOST);
  }
  discard(directory);
}

/** Asks all three once, and sees that they agree. */
async function ask(url, repository, history, [a, b]) {
  const [answer, gitTime] = await timed(() => git(repository, "merge-base", "--all", a, b));
  return withWorkflow(url, history, async (workflow) => {
    const question = () => workflow.internals.history.mergeBases(a, [b]);
    const [first, cold] = await timed(question);
    const [second, warm] = await timed(question);
    for (const bases of [first, second]) {
      if (bases.join("\n") !== answer.trim()) {
        throw new Error(`git answers ${answer.trim()}, agstate ${bases.join(" ")}`);
      }
    }
    return { git: gitTime, cold, warm };
  });
}

async function timed(work) {
  const since = performance.now();
  const result = await work();
  return [result, performance.now() - since];
}

async function withWorkflow(url, history, work) {
  const store = await openStore(url, { create: false });
  try {
    return await work(await store.workflow(history.workflow));
  } finally {
    await store.close();
  }
}

function git(repository, ...args) {
  const run = spawnSync("git", args, {
    cwd: repository,
    encoding: "utf8",
    env: { ...process.env, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" },
  });
  if (run.error !== undefined) throw run.error;
  if (run.status !== 0) throw new Error(`git ${args[0]} ended with ${run.status}: ${run.stderr}`);
  return run.stdout;
}

function count(n) {
  return n.toLocaleString("en-US");
}
