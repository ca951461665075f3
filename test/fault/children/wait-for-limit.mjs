// Makes a step whose tool never ends and leaves nothing to do: only the step's time limit does.
import { openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const workflow = await store.createWorkflow("w");
const branch = await workflow.branch({ agent: "a", branch: "x" });
try {
  await branch.step({ name: "wait", timeoutMs: 200 }, () => new Promise(() => undefined));
} catch (error) {
  say(JSON.stringify([error.code, error.cause.name, (await branch.resumePoint()).inFlight]));
}
await store.close();
