/**
 * Goes on with runs whose steps the parent describes, all at once, and stands still where it is told to, to be killed there.
 *
 * A step's effect is a line in a file. Said of each step are `called`, `happened` and `back`, each with the branch and the
 * step's name; last of each run `result` or, where it stopped with an error, `stopped` and why.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isAgstateError, openStore, StepError } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

/** Longer than any test takes. */
const FOR_EVER_MS = 600_000;
/** How often a run that lost the branch is begun again, where it is to be. */
const TRIES_MAX = 500;
const PAUSE_MS = 20;

const { url, workflow: id, effects, runs, together = false, persistent = false } = args;
const told = (run, step, ...rest) => [run.branch, step.name, ...rest].join(" ");

/** Stands still if this is the moment, and the attempt, at which the step is to. */
async function at(moment, run, step, attempt) {
  const { moment: wanted, attempt: which = 1 } = step.hang ?? {};
  if (wanted !== moment || which !== attempt) return;
  say(`stands ${told(run, step)}`);
  await sleep(FOR_EVER_MS);
}

/** Asks the file whether a step's effect happened. */
function probe({ key }) {
  const line = readFileSync(effects, "utf8")
    .split("\n")
    .find((each) => each.split(" ")[1] === key);
  return line === undefined
    ? { happened: false }
    : { happened: true, output: { is: line.split(" ")[0], found: true } };
}

async function stepOf(ctx, run, step) {
  const { name, action, input, inDoubt, retry, memoize, fails = 0, slowMs = 0, lateMs = 0 } = step;
  await sleep(Math.random() * lateMs);
  const spec = { name, action, input, memoize, retry };
  const how = inDoubt === "probe" ? probe : inDoubt;
  const output = await ctx.step({ ...spec, inDoubt: how }, async ({ key, attempt }) => {
    say(`called ${told(run, step, key, attempt)}`);
    await at("called", run, step, attempt);
    await sleep(Math.random() * slowMs);
    if (attempt <= fails) throw new RangeError(`attempt ${attempt}`);
    appendFileSync(effects, `${name} ${key} ${attempt}\n`);
    say(`happened ${told(run, step, key, attempt)}`);
    await at("happened", run, step, attempt);
    return { is: name, drawn: Math.random() };
  });
  say(`back ${told(run, step, JSON.stringify(output))}`);
  return output;
}

const FORMS = {
  series: async (ctx, run) => {
    const outputs = [];
    for (const step of run.steps) outputs.push(await stepOf(ctx, run, step));
    return outputs;
  },
  promise: (ctx, run) => Promise.all(run.steps.map((step) => stepOf(ctx, run, step))),
  all: async (ctx, run) => {
    const parts = run.steps.map((step) => [step.name, (part) => stepOf(part, run, step)]);
    return Object.values(await ctx.all(Object.fromEntries(parts)));
  },
};

const hooks = {
  before: async ({ branch, name, attempt }) => {
    const run = runs.find((each) => each.branch === branch);
    const step = run?.steps.find((each) => each.name === name);
    if (step !== undefined) await at("asked", run, step, attempt);
  },
};
const store = await openStore(url, { create: false, stepHooks: [hooks] });
const workflow = await store.workflow(id);

/** Runs once; true when the run is over, and false when somebody else goes on with it. */
async function attempt(run, handle) {
  try {
    const branch = handle ?? (await workflow.branch(run.branch));
    const result = await workflow.run(branch, (ctx) => FORMS[run.form](ctx, run), run.options);
    say(`result ${run.branch} ${JSON.stringify(result)}`);
  } catch (error) {
    const ours = isAgstateError(error);
    if (!ours && !(error instanceof StepError)) throw error;
    const { code = null, name, message, details = {} } = error;
    say(`stopped ${run.branch} ${JSON.stringify({ code, name, message, details })}`);
    return !isAgstateError(error, "STEP_FENCED", "STEP_IN_DOUBT");
  }
  return true;
}

const handles = await Promise.all(runs.map(({ branch }) => workflow.branch(branch)));
if (together) await whenAllAreReady();
await Promise.all(
  runs.map(async (run, i) => {
    let over = await attempt(run, handles[i]);
    for (let tries = 1; persistent && !over && tries < TRIES_MAX; tries++) {
      await sleep(PAUSE_MS);
      over = await attempt(run);
    }
  }),
);
await store.close();
