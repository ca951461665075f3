// Runs ten reads, a side effect and five reads on a branch that gathers; then waits to be killed, or ends.
import { openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`, { create: false });
const workflow = await store.workflow(args.workflow);
const granularity = { every: { steps: 1_000, ms: 3_600_000 } };
const branch = await workflow.branch(args.branch, { granularity });
const result = await workflow.run(branch, async (ctx) => {
  const told = (spec) =>
    ctx.step(spec, () => {
      say(`tool ${spec.name}`);
      return Math.random();
    });
  const read = (name) => told({ name, action: "read", memoize: true });
  const seen = [];
  for (let i = 0; i < 10; i++) seen.push(await read(`before-${i}`));
  seen.push(await told({ name: "effect", inDoubt: "retry" }));
  for (let i = 0; i < 5; i++) seen.push(await read(`after-${i}`));
  say("waits");
  if (args.waits) await new Promise((resolve) => setTimeout(resolve, 3_600_000));
  return seen;
});
say(JSON.stringify(result));
await store.close();
process.exit(0);
