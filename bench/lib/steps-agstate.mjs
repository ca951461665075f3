import { openStore } from "../../dist/index.js";

/**
 * Runs workflows of agstate: each a workflow of its own with one agent, as `store.createWorkflow`
 * makes it, whose run does its steps one after another.
 *
 * @param action `write`: an intent lands before the tool is called and a seal after; `read`: one
 * commit lands after it
 */
export async function openRuns({ url, action }) {
  const store = await openStore(url);
  const open = async (workflow) => workflow.branch({ agent: "booker", branch: "main" });
  return {
    async run(id, calls, timed) {
      const workflow = await store.createWorkflow(id);
      await workflow.run(await open(workflow), async (ctx) => {
        for (const { name, input, output } of calls) {
          const spec = action === "write" ? { action } : { action, memoize: true };
          await timed(() => ctx.step({ name, input, ...spec }, async () => output));
        }
      });
    },

    /** What is on record of the outputs, in order. */
    async recorded(id) {
      const branch = await open(await store.workflow(id));
      const outputs = [];
      for await (const { output } of branch.steps({ name: "book", status: "completed" })) {
        outputs.unshift(output);
      }
      return outputs;
    },

    close: () => store.close(),
  };
}
