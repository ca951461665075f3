/** Applies retention over and over, until it is killed, as if all that is there were old. */
import { isAgstateError, openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const { now } = Date;
Date.now = () => now() + 60_000;

const store = await openStore(args.url, { create: false });
const workflow = await store.workflow(args.workflow);
const policy = { payload: "PT1S", history: "PT1S" };
for (;;) {
  try {
    const { payload, history } = await workflow.applyRetention({ policy, graceMs: 0 });
    say(`retained ${history.removed.commits} ${payload.bytes}`);
  } catch (error) {
    // Refs came to reach what was to be dropped, each time that it was looked at.
    if (!isAgstateError(error, "REF_CONFLICT")) throw error;
  }
}
