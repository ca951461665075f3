/** Adds one to a shared counter, again and again, by compare-and-swap. */
import { isAgstateError, openStore } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const branch = await (await store.workflow(args.workflow)).branch("canonical");
const ids = [];
let conflicts = 0;
await whenAllAreReady();

const end = performance.now() + args.ms;
while (performance.now() < end) {
  const { n } = await branch.state();
  try {
    // The same author, message and date everywhere: only the nonce tells two writers apart.
    const commit = await branch.commit({
      state: { n: n + 1 },
      message: "add one",
      date: new Date(0),
    });
    ids.push(commit.id);
  } catch (error) {
    if (!isAgstateError(error, "REF_CONFLICT")) throw error;
    conflicts++;
    await branch.refresh();
  }
}
await store.close();
say(JSON.stringify({ ids, conflicts }));
