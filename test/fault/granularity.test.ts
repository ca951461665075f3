import { describe, expect, it } from "vitest";
import { resultOf, startChild } from "../support/child-processes.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";
import { all } from "../support/stores.js";

const GATHER = new URL("./children/gather.mjs", import.meta.url);
const PLACE = { workflow: "gathered", branch: "agents/a/x" };

describe("a process that gathers its commits", () => {
  it("loses by a kill only the reads since the last effect, and does these again", async () => {
    const path = storePlace();
    await withStore(path, async (store) => {
      const workflow = await store.createWorkflow(PLACE.workflow);
      await workflow.branch({ agent: "a", branch: "x" });
    });
    const killed = startChild(GATHER, { path, ...PLACE, waits: true });
    await killed.said("waits");
    killed.kill();
    await killed.ended;
    const onRecord = await withWorkflow(path, PLACE.workflow, async (workflow) => {
      const branch = await workflow.branch(PLACE.branch);
      expect((await branch.resumePoint()).inFlight).toEqual([]);
      return (await all(branch.steps())).filter(({ name }) => !name.startsWith("agstate:"));
    });
    const before = Array.from({ length: 10 }, (_, i) => `before-${i}`);
    const names = [...before, "effect"];
    expect(onRecord.map(({ name }) => name).reverse()).toEqual(names);

    const again = startChild(GATHER, { path, ...PLACE, waits: false });
    const seen = await resultOf<number[]>(again);
    const after = Array.from({ length: 5 }, (_, i) => `after-${i}`);
    const tools = again.lines.filter((line) => line.startsWith("tool "));
    expect(tools).toEqual(after.map((name) => `tool ${name}`));
    expect(seen.slice(0, 11)).toEqual(onRecord.map(({ output }) => output).reverse());
    await withWorkflow(path, PLACE.workflow, async (workflow, store) => {
      const branch = await workflow.branch(PLACE.branch);
      const ended = (await all(branch.steps())).filter(({ name }) => !name.startsWith("agstate:"));
      expect(ended.map(({ name }) => name).reverse()).toEqual([...names, ...after]);
      await expectSound(workflow, store);
    });
  });
});
