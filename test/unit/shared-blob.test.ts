import { describe, expect, it } from "vitest";
import { openStore } from "../../src/index.js";

describe("a step record that equals the state", () => {
  it.each([{ n: 1 }, { text: "x".repeat(5000) }])(
    "leaves the state stored on its own",
    async (same) => {
      // Next to no cache, so that reads go to the storage.
      const store = await openStore("memory:", { limits: { cacheMaxBytes: 1 } });
      const workflow = await store.createWorkflow("w");
      const branch = await workflow.canonical();
      await branch.commit({ state: same, step: { action: "read", record: same } });
      await branch.commit({ message: "carries the state over" });
      expect((await workflow.fsck()).problems).toEqual([]);
      expect(await workflow.stateAt("canonical")).toEqual(same);
      expect(await workflow.stepRecord("canonical~1")).toEqual(same);
    },
  );
});
