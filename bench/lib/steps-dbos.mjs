import { DBOS } from "@dbos-inc/dbos-sdk";

/**
 * Runs workflows of DBOS Transact as its documentation writes them: a registered function that does
 * its steps one after another by `DBOS.runStep`. After each a row lands with the step's output;
 * nothing before it, and its input is not kept.
 *
 * Of its options those are set that cost time and give nothing here: logs, and traces by default, are off,
 * and its background loops are seldom. `applicationVersion` spares it the hashing of its functions.
 */
export async function openRuns({ url, schema, pool }) {
  DBOS.setConfig({
    name: "agstate-bench",
    applicationVersion: "bench",
    systemDatabaseUrl: url,
    systemDatabaseSchemaName: schema,
    systemDatabasePoolSize: pool,
    schedulerPollingIntervalMs: 600_000,
    logger: SILENT,
    enableOTLP: false,
    tracingEnabled: false,
  });
  // What a workflow does is known by its id alone: its argument would be stored, too.
  const given = new Map();
  const work = DBOS.registerWorkflow(
    async () => {
      const { calls, timed } = given.get(DBOS.workflowID);
      for (const { name, output } of calls) {
        await timed(() => DBOS.runStep(async () => output, { name }));
      }
    },
    { name: "work" },
  );
  await DBOS.launch();
  return {
    async run(id, calls, timed) {
      given.set(id, { calls, timed });
      const handle = await DBOS.startWorkflow(work, { workflowID: id })();
      await handle.getResult();
      given.delete(id);
    },

    /** What is on record of the outputs, in order. */
    async recorded(id) {
      const { status } = await DBOS.getWorkflowStatus(id);
      if (status !== "SUCCESS") throw new Error(`the status of a workflow is ${status}`);
      const steps = await DBOS.listWorkflowSteps(id);
      return steps.map(({ output }) => output);
    },

    close: () => DBOS.shutdown(),
  };
}

const nothing = () => undefined;
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: console.error };
