// Makes steps on a branch of the given granularity until it is killed, telling of each; each takes some time to do.
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../dist/index.js";
import { lookUp } from "./lookups.mjs";

const { url, branch: name, granularity, workMs } = JSON.parse(process.argv[2]);
const store = await openStore(url, { create: false });
const workflow = await store.workflow("w");
const branch = await workflow.branch(name, { granularity });
writeSync(1, "ready\n");
for (let i = 0; ; i++) {
  await branch.step(lookUp(i), async () => {
    await sleep(workMs);
    return { page: i };
  });
  writeSync(1, ".");
}
