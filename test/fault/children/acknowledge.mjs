/** Commits a number of times, and says so after each. */
import { openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const workflow = await store.createWorkflow("traced");
const branch = await workflow.branch({ agent: "tracer", branch: "main" });
say("ACK 0");
for (let n = 1; n <= args.commits; n++) {
  await branch.commit({ state: { n } });
  say(`ACK ${n}`);
}
await store.close();
