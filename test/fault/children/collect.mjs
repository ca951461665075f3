/** Collects without a grace period, over and over, until it is killed. */
import { openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(args.url, { create: false });
const workflow = await store.workflow(args.workflow);
for (;;) {
  const { commits, trees, blobs, spared } = await workflow.gc({ graceMs: 0 });
  say(`collected ${commits} ${trees} ${blobs} ${spared}`);
}
