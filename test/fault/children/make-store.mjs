/** Makes a store with a workflow in it, from nothing, or finds both there. */
import { isAgstateError, openStore } from "../../../dist/index.js";
// Loaded beforehand, so that the time after `begins` goes into the files.
import "../../../dist/storage/sqlite/migrate.js";
import { args, say } from "./lines.mjs";

say("begins");
const store = await openStore(`sqlite:${args.path}`);
const { storeId } = await store.describe();
say(`store ${storeId}`);
try {
  await store.createWorkflow(args.workflow, { state: { n: 0 } });
} catch (error) {
  if (!isAgstateError(error, "WORKFLOW_EXISTS")) throw error;
}
say("workflow");
await store.close();
