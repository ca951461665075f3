// Acquires the lease on a branch and makes steps until one is refused; tells of each. The fourth takes
// its time, so that the process can be stopped when it holds no lock of the store.
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(`sqlite:${args.path}`, { create: false });
const workflow = await store.workflow(args.workflow);
const branch = await workflow.branch(args.branch);
const lease = await branch.acquire({ ttlMs: args.ttlMs, waitMs: 60_000 });
say(`holds ${lease.token}`);
lease.signal.addEventListener("abort", () => say(`lost ${lease.signal.reason.code}`));
for (let i = 0; ; i++) {
  try {
    await branch.step({ name: "tick" }, async () => {
      say(`tool ${i}`);
      if (i === 3) await sleep(200);
    });
  } catch (error) {
    say(`refused ${error.code}`);
    break;
  }
  await sleep(20);
}
if (!lease.signal.aborted) {
  process.stdin.ref();
  await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
}
await store.close();
process.exit(0);
