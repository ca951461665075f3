/** Merges branches into canonical, one after another or all at once; dies by its own hand when told to. */
import { openStore } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`);
const workflow = await store.workflow(args.workflow);
const merges = [];
await whenAllAreReady();
for (const branches of args.merges) {
  const { status, commit, attempts, contributions, conflicts } = await workflow.merge(branches, {
    author: args.supervisor,
  });
  merges.push({ status, id: commit?.id ?? null, attempts, contributions, conflicts });
}
await store.close();
say(JSON.stringify(merges));
