import { isAgstateError } from "../../dist/index.js";
import { RunAudit } from "./audit.mjs";
import { startLife } from "./life.mjs";
import { Person } from "./person.mjs";
import { startService } from "./service.mjs";

/** What the program's side effects are called. */
const EFFECTS = ["reserve", "charge", "book-a", "book-b", "book-c", "confirm"];
/** The edit of the state that comes with each of these. */
const EDITS = { reserve: "/reserve", "book-c": "/c", confirm: "/confirm" };
/** Lives of one round at most: a run that does not get further must not go on for ever. */
const LIVES_MAX = 60;

/**
 * Runs the trip on a fresh branch, kills its process as often as is asked, and holds what is there
 * at the end against the service, the store and an undisturbed run.
 *
 * @param kills points to die at, one a life, in the order of the program
 * @param usual what an undisturbed run of the variant gave; undefined when this is that run
 * @returns the kills that did not come about, since the run was over; and, of an undisturbed run, what it gave
 */
export async function playRound({ place, name, variant, kills, usual, random, tally }) {
  const honoursKeys = variant === "honoured" || variant === "governed";
  const service = await startService({ honoursKeys, random });
  const { branch, workflow } = await place.branch(name);
  const audit = new RunAudit(
    tally,
    `${place.kind} ${variant} ${branch.name} (${kills.map(text).join(", ")})`,
  );
  const person = variant === "governed" ? new Person(audit, branch, workflow) : null;
  const points = new Map();
  const args = {
    url: place.url,
    workflow: workflow.id,
    branch: branch.name,
    service: service.url,
    variant,
    program: "trip",
    list: usual === undefined,
  };
  const left = [...kills];
  try {
    for (let life = 1; ; life++) {
      if (life > LIVES_MAX) throw new Error(`${name} was not over after ${LIVES_MAX} lives`);
      const target = left[0];
      const began = performance.now();
      let opened = began;
      const hear = ([word], kill) => {
        if (word !== "open") return;
        opened = performance.now();
        if (target?.moment === "chance") setTimeout(kill, random() * usual.ms * target.left);
      };
      const ending = await startLife({ ...args, target }, hear).ended;
      const ms = performance.now() - opened;
      await service.settle();
      audit.lived(ending.said);
      await audit.read(branch);
      person?.lived(ending.said);
      for (const point of pointsOf(ending.said))
        points.set(text(point), points.get(text(point)) ?? point);
      if (ending.how === "killed") {
        tally.kills++;
        tally.points.set(target.moment, (tally.points.get(target.moment) ?? 0) + 1);
        left.shift();
        continue;
      }
      if (ending.how === "stopped") {
        if (ending.why.code === "STEP_IN_DOUBT")
          await findOut(ending.why, branch, service, variant);
        if (ending.why.code === "APPROVAL_NEEDED") await person.decide();
        continue;
      }
      const { result } = ending;
      audit.effects(service, EFFECTS, { honoursKeys });
      const record = await conclude({ audit, branch, workflow, service, result });
      await person?.conclude();
      const outcome = { ...record, ms, points: [...points.values()] };
      if (usual !== undefined) {
        audit.expect("result", outcome.result, usual.result);
        audit.expect("state", outcome.state, usual.state);
        audit.expect("steps", outcome.steps, usual.steps);
      }
      return { left, outcome };
    }
  } finally {
    await service.close();
  }
}

/** The person: asks the service whether a step's effect happened, and seals the step by what it says. */
async function findOut({ step, name, key }, branch, service, variant) {
  if (variant !== "asked")
    throw new Error(`step ${step} is in doubt, where nobody was to be asked`);
  const output = service.happened(key);
  const update = EDITS[name] && [{ op: "set", path: EDITS[name], value: output }];
  try {
    if (output !== null) await branch.sealStep(step, { output }, update && { update });
    else await branch.sealStep(step, { error: { name: "Error", message: "it did not happen" } });
  } catch (error) {
    // The seal of the dead process may land as late as this.
    if (!isAgstateError(error, "INVALID_ARGUMENT") && !isAgstateError(error, "STEP_FENCED"))
      throw error;
  }
}

/** Holds a run's result against its steps, its effects and the state; answers what is alike in all runs. */
async function conclude({ audit, branch, workflow, service, result }) {
  const { parts, refusal, erased, ...others } = result;
  const given = new Map(Object.entries(others));
  for (const [part, { booked, thought }] of Object.entries(parts)) {
    given.set(`book-${part}`, booked).set(`think-${part}`, thought);
  }
  for (const value of ["now", "uuid", "random"]) {
    given.set(`agstate:${value}`, given.get(value));
    given.delete(value);
  }
  const recorded = new Map();
  for await (const { name, output } of branch.steps()) recorded.set(name, output);
  for (const [name, output] of given) audit.expect(`output of ${name}`, recorded.get(name), output);
  for (const name of EFFECTS) {
    const { receipt } = given.get(name);
    const effect = service.effects.find(({ answer }) => answer.receipt === receipt);
    audit.expect(`effect of ${receipt}`, effect?.name, name);
  }
  for (const [name, calls] of service.paid) {
    audit.expect(
      `the call of ${name} is one of those paid for`,
      given.get(name).call <= calls,
      true,
    );
  }
  const state = await branch.state();
  audit.expect("state", state, {
    c: parts.c.booked,
    confirm: result.confirm,
    reserve: result.reserve,
    stage: "reserved",
  });
  const again = await workflow.run(branch, () => {
    throw new Error("the run is over");
  });
  audit.expect("the run's result when asked again", again, result);
  audit.expect("open steps", (await branch.resumePoint()).inFlight, []);
  const names = [...audit.steps.values()].map(({ name, status }) => `${name} ${status}`);
  return { result: alike(result), state: alike(state), steps: names.sort() };
}

const VARIES = new Set(["receipt", "call", "now", "uuid", "random"]);

/** A value without what comes out otherwise in each run. */
function alike(value) {
  return JSON.parse(JSON.stringify(value, (key, each) => (VARIES.has(key) ? typeof each : each)));
}

function pointsOf(said) {
  return said
    .filter(([word]) => word === "point")
    .map(([, moment, place, nth]) => ({ moment, place, nth: Number(nth) }));
}

export function text({ moment, place, nth }) {
  return moment === "chance" ? moment : `${moment} ${place}${nth > 1 ? ` ${nth}` : ""}`;
}
