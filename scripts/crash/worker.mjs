/**
 * A process that runs a program on a branch, or what is left of it, and dies at a named point when told to.
 *
 * It says each call of a tool and each step that came back; last `result` and the run's result, or `stopped` and why.
 */
import { isAgstateError, openStore } from "../../dist/index.js";
import { args, say, whenAllAreReady } from "../../test/fault/children/lines.mjs";
import { RULES } from "./person.mjs";
import { Points } from "./points.mjs";
import { line, trip, wide } from "./program.mjs";

const { url, workflow: id, branch: name, service, variant, program, size, together } = args;
const points = new Points(args);
const store = await openStore(url, {
  create: false,
  wrap: points.wrap,
  stepHooks: [points.hooks],
  ...(variant === "governed" ? { governance: RULES } : {}),
});
const workflow = await store.workflow(id);
const branch = await workflow.branch(name);
const work = { trip, wide, line }[program]({ service, variant, points }, size);
if (together) await whenAllAreReady();
else say("open");
try {
  const result = await workflow.run(branch, work);
  points.at("run:over", "run");
  say(`result ${JSON.stringify(result)}`);
} catch (error) {
  if (!isAgstateError(error, "STEP_IN_DOUBT", "STEP_FENCED", "APPROVAL_NEEDED")) throw error;
  say(`stopped ${JSON.stringify({ code: error.code, ...error.details })}`);
}
await store.close();
