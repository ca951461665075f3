/**
 * Commits until it is killed: on a branch of its own, and every other time on
 * canonical, which it shares. Says where it found its branch, then every commit
 * id once the commit is acknowledged.
 */
import { randomBytes } from "node:crypto";
import { isAgstateError, openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const workflow = await store.workflow(args.workflow);
const own = await workflow.branch({ agent: args.agent, branch: "work" });
const canonical = await workflow.canonical({ author: args.agent });
say(`found ${own.head.id} ${(await own.state()).n}`);

/** Counts on a branch, as a step; now and then with a payload of many objects and pages. */
async function count(branch) {
  for (;;) {
    const { n } = await branch.state();
    const step = { action: "write", record: { name: "count", input: { n: n + 1 } } };
    const payload = n % 4 === 0 ? randomBytes(args.payloadBytes).toString("hex") : "";
    const state = { n: n + 1, by: args.agent, payload: payload.replace(/.{64}/g, "$&\n") };
    try {
      const commit = await branch.commit({ state, step });
      return say(`acknowledged ${branch.name} ${commit.id} ${n + 1} ${commit.step.number}`);
    } catch (error) {
      if (!isAgstateError(error, "REF_CONFLICT")) throw error;
      await branch.refresh();
    }
  }
}

for (;;) {
  await count(own);
  await count(canonical);
}
