/**
 * Commits on a branch of its own and merges it into canonical, round by round;
 * without an agent it only commits to canonical.
 */
import { isAgstateError, openStore } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const workflow = await store.workflow(args.workflow);
const canonical = await workflow.canonical({ author: args.agent ?? "supervisor" });
const own =
  args.agent === undefined ? null : await workflow.branch({ agent: args.agent, branch: "work" });
const ids = { own: [], canonical: [] };
let conflicts = 0;

/** Adds one to this process's key of the agreed state, whatever the others have done meanwhile. */
async function land(options) {
  for (;;) {
    const state = await canonical.state();
    const key = canonical.author;
    try {
      const next = { ...state, [key]: (state[key] ?? 0) + 1 };
      ids.canonical.push((await canonical.commit({ state: next, ...options })).id);
      return;
    } catch (error) {
      if (!isAgstateError(error, "REF_CONFLICT")) throw error;
      conflicts++;
      await canonical.refresh();
    }
  }
}

await whenAllAreReady();
for (let n = 1; n <= args.rounds; n++) {
  if (own !== null) ids.own.push((await own.commit({ state: { n }, message: `round ${n}` })).id);
  await land({ message: `round ${n}`, mergeParents: own === null ? [] : [own.head.id] });
}
await store.close();
say(JSON.stringify({ ids, conflicts }));
