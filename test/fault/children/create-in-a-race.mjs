/** Creates refs and workflows that others create at the same moment, and says which of them it made. */
import { isAgstateError, openStore } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const workflow = await store.workflow(args.workflow);
const made = [];

async function tryTo(what, code, create) {
  try {
    await create();
    made.push(what);
  } catch (error) {
    if (!isAgstateError(error, code)) throw error;
  }
}

await whenAllAreReady();
for (let n = 0; n < args.rounds; n++) {
  await tryTo(`branch ${n}`, "REF_EXISTS", () =>
    workflow.branch({ agent: "racer", branch: `b${n}`, create: "always" }),
  );
  await tryTo(`tag ${n}`, "REF_EXISTS", () => workflow.tag(`t${n}`, "canonical"));
  await tryTo(`workflow ${n}`, "WORKFLOW_EXISTS", () => store.createWorkflow(`w${n}`));
}
await store.close();
say(JSON.stringify(made));
