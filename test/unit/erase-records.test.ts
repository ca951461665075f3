import { describe, expect, it } from "vitest";
import { testKeys } from "../support/keys.js";
import { stored } from "../support/stored-text.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const MARKER = "a marker that is nobody's";
const BY = { by: "dpo", reason: "request 17" };

describe.each(BACKENDS)("erasing from what is beside states on %s", (backend) => {
  it("leaves steps listed whose records are gone, and a run that would replay one says so", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    let calls = 0;
    const work = async (cut: boolean) =>
      workflow.run(await workflow.branch("a/x"), async (ctx) => {
        const found = await ctx.step({ name: "look", action: "execute" }, () => {
          calls++;
          return `${MARKER} 1`;
        });
        if (cut) throw new Error("cut off");
        return found;
      });
    await expect(work(true)).rejects.toThrow("cut off");
    await workflow.erase({ paths: ["/step/output"], ...BY });
    expect(await stored(workflow, MARKER)).toEqual([]);
    const cold = await (await another()).workflow("w");
    const steps = await all((await cold.branch("a/x")).steps());
    expect(steps.map(({ number }) => number)).toEqual([2, 1]);
    expect(steps[0]).toMatchObject({
      name: "[erased]",
      status: "completed",
      action: "execute",
      output: undefined,
    });
    await expect(work(false)).rejects.toEqual(agstateError("ERASED"));
    expect(calls).toBe(1);
    await branch.refresh();
    expect((await cold.fsck()).problems).toEqual([]);
  });

  it("takes it out of stored merges, which can be finished", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { user: { email: MARKER }, n: 0 } });
    const one = await workflow.branch({ agent: "a", branch: "one" });
    const two = await workflow.branch({ agent: "a", branch: "two" });
    await one.update([{ op: "set", path: "/n", value: 1 }]);
    await two.update([{ op: "set", path: "/n", value: 2 }]);
    await workflow.merge(["a/one"]);
    const stopped = await workflow.merge(["a/two"], { onConflict: "store" });
    expect(stopped.status).toBe("conflict");
    const report = await workflow.erase({ paths: ["/state/user/email"], ...BY });
    expect(report.status).toBe("done");
    expect(report.heads.some(({ ref }) => ref.startsWith("merges/"))).toBe(true);
    expect(await stored(workflow, MARKER)).toEqual([]);
    const merge = await workflow.storedMerge();
    const [conflict] = await merge.conflicts();
    expect(conflict?.path).toBe("/n");
    await workflow.fsck();
  });

  it("finds it in an encrypted workflow, whose audit stays readable without its keys", async () => {
    const keys = testKeys();
    const { store, another } = await makeStore(backend, { region: "eu", keys });
    const workflow = await store.createWorkflow("w", {
      classification: "sensitive",
      storageRegion: "eu",
      subjects: ["/state/users/{subject}"],
      state: {
        users: { "customer-42": { email: MARKER }, "customer-43": { n: 1 } },
        log: [MARKER],
      },
    });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.commit({
      state: { ...((await branch.state()) as object), n: 1 },
      step: { action: "read", record: { v: 1, name: "t", attempt: 1, startedAt: 1 } },
      subjects: ["customer-42"],
    });
    const report = await workflow.erase({ subject: "customer-42", ...BY });
    expect(report).toMatchObject({ status: "done", unread: 0 });
    expect(report.heads).toHaveLength(2);
    const cold = await (await another()).workflow("w");
    expect(await cold.stateAt("a/x")).toEqual({
      users: { "customer-43": { n: 1 } },
      log: ["[erased]"],
      n: 1,
    });
    expect(JSON.stringify(await cold.stateAt("a/x~1"))).not.toContain(MARKER);
    expect((await cold.fsck()).problems).toEqual([]);
    const again = await cold.erase({ subject: "customer-42", ...BY });
    expect(again).toMatchObject({ status: "done", objects: 0, inline: 0 });
  });
});
