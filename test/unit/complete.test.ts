import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { isAgstateError } from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

describe.each(BACKENDS)("a completed workflow on %s", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.step({ name: "book" }, () => "booked");
    const other = async () => (await another()).workflow("w");
    return { store, workflow, branch, other };
  }

  it("takes no more commits and branches, and keeps all that is there", async () => {
    const { workflow, branch, other } = await begin();
    const cold = await other();
    const stale = await cold.branch("a/x");
    expect(workflow.info.completedAt).toBeNull();
    const head = branch.head.id;
    const info = await workflow.complete({ author: "ops", reason: "the trip is over" });
    expect(info.completedAt).toBeInstanceOf(Date);
    expect((await other()).info.completedAt).toEqual(info.completedAt);
    const complete = agstateError("WORKFLOW_COMPLETE");
    let calls = 0;
    const tool = () => calls++;
    for (const handle of [branch, stale, await cold.branch("a/x")]) {
      await expect(handle.step({ name: "again" }, tool)).rejects.toEqual(complete);
      await expect(handle.commit({ state: 1 })).rejects.toEqual(complete);
    }
    expect(calls).toBe(0);
    await expect(workflow.branch({ agent: "a", branch: "y" })).rejects.toEqual(complete);
    await expect(workflow.merge(["a/x"])).rejects.toEqual(complete);
    await expect(workflow.reset("a/x", "a/x~1")).rejects.toEqual(complete);
    const run = workflow.run(branch, async (ctx) => ctx.step({ name: "late" }, tool));
    await expect(run).rejects.toEqual(complete);
    expect(calls).toBe(0);
    expect(await workflow.resolve("a/x")).toBe(head);
    expect((await all((await cold.branch("a/x")).steps())).map(({ name }) => name)).toEqual([
      "book",
    ]);
    const [last] = await workflow.reflog("a/x");
    expect(last).toMatchObject({
      actor: "ops",
      reason: "workflow: completed",
      old: head,
      new: head,
    });
    expect(await workflow.stateAt("refs/audit/workflow", "/completed")).toEqual({
      at: info.completedAt?.getTime(),
      by: "ops",
      reason: "the trip is over",
    });
    await workflow.tag("v1", "a/x");
    expect(await workflow.complete()).toEqual(info);
    expect((await workflow.fsck()).problems).toEqual([]);
    await workflow.deleteBranch("a/x");
  });

  it("is not completed while a step may have happened", async () => {
    const { workflow, branch } = await begin();
    const lost = branch.step({ name: "pay", timeoutMs: 10 }, () => new Promise<never>(() => {}));
    await expect(lost).rejects.toEqual(agstateError("STEP_IN_DOUBT"));
    await expect(workflow.complete()).rejects.toEqual(
      agstateError("OPEN_INTENTS", { open: [{ branch: "agents/a/x", steps: [2] }] }),
    );
    await branch.sealStep(2, { output: "paid" });
    expect((await workflow.complete()).completedAt).toBeInstanceOf(Date);
  });

  it("lets every write under way land or be refused, and none after it", async () => {
    const { workflow, other } = await begin();
    const writers = await Promise.all(
      Array.from({ length: 4 }, async (_, i) => {
        const branch = await (i % 2 === 0 ? workflow : await other()).branch({
          agent: "w",
          branch: `b${i}`,
        });
        return { branch, landed: 0 };
      }),
    );
    let refused = 0;
    const working = writers.map(async (writer) => {
      for (;;) {
        try {
          await writer.branch.update([{ op: "set", path: "/n", value: writer.landed }]);
          writer.landed++;
          // As steps do, they leave some time in which nothing moves.
          await sleep(Math.random() * 60);
        } catch (error) {
          if (!isAgstateError(error, "WORKFLOW_COMPLETE")) throw error;
          refused++;
          return;
        }
      }
    });
    while (writers.some(({ landed }) => landed < 3)) await sleep(5);
    let completed = false;
    while (!completed) {
      try {
        await workflow.complete();
        completed = true;
      } catch (error) {
        if (!isAgstateError(error, "REF_CONFLICT")) throw error;
      }
    }
    const heads = await Promise.all(writers.map(({ branch }) => workflow.resolve(branch.name)));
    await Promise.all(working);
    expect(refused).toBe(4);
    expect(await Promise.all(writers.map(({ branch }) => workflow.resolve(branch.name)))).toEqual(
      heads,
    );
    for (const { branch, landed } of writers) {
      expect(await workflow.stateAt(branch.name, "/n")).toBe(landed - 1);
    }
  });
});
