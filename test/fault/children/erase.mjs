/** Erases, and kills itself before or after one of its calls that change the store. */
import { openStore } from "../../../dist/index.js";
import { args, say } from "./lines.mjs";

const store = await openStore(args.url, { create: false });
const workflow = await store.workflow("w");
const { storage } = workflow.internals;
let calls = 0;
for (const name of ["write", "redact"]) {
  const call = storage[name].bind(storage);
  storage[name] = async (...given) => {
    calls++;
    const dies = calls === args.dieAt;
    if (dies && !args.after) process.kill(process.pid, "SIGKILL");
    const answer = await call(...given);
    if (dies) process.kill(process.pid, "SIGKILL");
    return answer;
  };
}
const { status } = await workflow.erase(args.request);
say(`erased ${status} ${calls}`);
await store.close();
