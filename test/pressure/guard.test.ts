import { describe, expect, it } from "vitest";
import type { Branch } from "../../src/index.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { givenPressure } from "../support/pressure.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const given = givenPressure();
const LONG = { every: { ms: 600_000 } };

describe.each(BACKENDS)("guarded branches on %s", (backend) => {
  async function begin(
    granularity: typeof LONG | "every-step" = "every-step",
    state: unknown = { n: 0, notes: [] },
  ) {
    const made = await makeStore(backend);
    const workflow = await made.store.createWorkflow("w", { state });
    const branch = await workflow.branch({ agent: "a", branch: "x", granularity });
    const other = async () => (await made.another()).workflow("w");
    return { ...made, workflow, branch, other };
  }

  it("commits what was not in the store, says why, and reads it back", async () => {
    const { workflow, branch, other } = await begin();
    let working = { n: 0, notes: ["first"] as string[] };
    const guard = branch.guard({ state: () => working });
    working = { n: 7, notes: [...working.notes, "half done"] };
    const report = await given.watch.checkpoint("memory is short: 87% of 512 MiB in use");
    const { id } = branch.head;
    expect(report).toMatchObject({ reason: "memory-pressure", safe: true, errors: [] });
    expect(report.branches).toMatchObject([
      { workflow: "w", branch: "agents/a/x", outcome: "committed", commit: id },
    ]);
    const there = await other();
    expect(await there.stateAt("a/x")).toEqual(working);
    expect(await there.commitAt("a/x")).toMatchObject({
      id,
      author: "a",
      checkpointReason: "memory-pressure",
      message: "memory is short: 87% of 512 MiB in use",
    });
    const [move] = await (await there.branch("a/x")).reflog({ limit: 1 });
    expect(move?.reason).toBe("memory-pressure: memory is short: 87% of 512 MiB in use");
    expect((await workflow.fsck()).problems).toEqual([]);
    // What comes on top of it says nothing of that.
    expect(await branch.commit({ state: { n: 8 } })).toMatchObject({
      checkpointReason: null,
      parents: [id],
    });
    guard.release();
  });

  it("writes nothing where all of it is in the store", async () => {
    const { branch } = await begin();
    await branch.commit({ state: { n: 1 } });
    const before = branch.head.id;
    branch.guard({ state: () => ({ n: 1 }) });
    const report = await given.watch.checkpoint();
    expect(report.branches).toMatchObject([{ outcome: "unchanged", commit: before }]);
    expect(report.safe).toBe(true);
    expect((await branch.refresh()).id).toBe(before);
  });

  it("lands what the handle has gathered, with what is not committed on top", async () => {
    const { branch, other } = await begin(LONG);
    for (let n = 1; n <= 3; n++) await branch.commit({ state: { n }, message: `n ${n}` });
    expect(branch.gathered).toBe(3);
    branch.guard({ state: () => ({ n: 4 }) });
    const report = await given.watch.checkpoint("short");
    expect(report.branches).toMatchObject([{ outcome: "committed", commit: branch.head.id }]);
    expect(branch.gathered).toBe(0);
    const there = await other();
    const log = await all(there.log({ revisions: ["a/x"], limit: 4 }));
    expect(log.map(({ message }) => message)).toEqual(["short", "n 3", "n 2", "n 1"]);
    expect(await there.stateAt("a/x")).toEqual({ n: 4 });
  });

  it("lands what was gathered of handles that give no state, and of those that nobody guards", async () => {
    const { workflow, branch, other } = await begin(LONG);
    const lone = await workflow.branch({ agent: "b", branch: "y", granularity: LONG });
    await branch.commit({ state: { n: 1 } });
    await lone.commit({ state: { n: 2 } });
    branch.guard();
    const report = await given.watch.checkpoint();
    expect(report.branches).toMatchObject([{ branch: "agents/a/x", outcome: "committed" }]);
    expect(report).toMatchObject({ safe: true, errors: [] });
    const there = await other();
    expect(await there.stateAt("a/x")).toEqual({ n: 1 });
    expect(await there.stateAt("b/y")).toEqual({ n: 2 });
    expect((await there.commitAt("a/x")).checkpointReason).toBeNull();
  });

  it("lets nothing wait in memory while that is short", async () => {
    const { branch, other } = await begin(LONG);
    await branch.commit({ state: { n: 1 } });
    given.watch.set("pressure");
    await branch.commit({ state: { n: 2 } });
    expect(branch.gathered).toBe(0);
    expect(await (await other()).stateAt("a/x")).toEqual({ n: 2 });
    given.watch.set("none");
    await branch.commit({ state: { n: 3 } });
    expect(branch.gathered).toBe(1);
  });

  it("saves the state on a branch of its own where somebody else has moved this one", async () => {
    const { workflow, branch, other } = await begin();
    await branch.commit({ state: { n: 1 } });
    const base = branch.head.id;
    const rival = await (await other()).branch("a/x");
    await rival.commit({ state: { n: "theirs" } });
    let n: string | number = "mine";
    branch.guard({ state: () => ({ n }) });
    const report = await given.watch.checkpoint();
    expect(report.safe).toBe(true);
    const [saved] = report.branches;
    expect(saved).toMatchObject({ outcome: "rescued", branch: "agents/a/x" });
    expect(saved?.rescue).toMatch(/^agents\/a\/x-rescued-[0-9a-f]{8}$/);
    const there = await other();
    expect(await there.stateAt(saved?.rescue ?? "")).toEqual({ n: "mine" });
    expect(await there.commitAt(saved?.rescue ?? "")).toMatchObject({
      id: saved?.commit,
      parents: [base],
      checkpointReason: "memory-pressure",
    });
    expect(await there.stateAt("a/x")).toEqual({ n: "theirs" });
    // Another pass has nothing to add, and one after that goes on where the first was.
    expect((await given.watch.checkpoint()).branches).toEqual([
      { ...saved, ms: expect.any(Number) },
    ]);
    n = 2;
    const [next] = (await given.watch.checkpoint()).branches;
    expect(next).toMatchObject({ outcome: "rescued", rescue: saved?.rescue });
    expect(await there.commitAt(next?.commit ?? "")).toMatchObject({ parents: [saved?.commit] });
    expect((await workflow.refs("refs/heads/agents/")).length).toBe(2);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("tells of what was gathered and is lost by another's move, as nothing can stand for it", async () => {
    const { branch, other } = await begin(LONG);
    await branch.commit({ state: { n: 1 } });
    await (await (await other()).branch("a/x")).commit({ state: { n: "theirs" } });
    branch.guard();
    const report = await given.watch.checkpoint();
    expect(report.safe).toBe(false);
    expect(report.branches).toMatchObject([
      {
        outcome: "failed",
        commit: null,
        error: { code: "REF_CONFLICT", details: { gathered: 1 } },
      },
    ]);
  });

  it("tells of each that failed, and saves the others", async () => {
    const { workflow, branch, other } = await begin();
    const thrown = new Error("not to be had");
    branch.guard({
      state: () => {
        throw thrown;
      },
    });
    const bad = await workflow.branch({ agent: "b", branch: "bad" });
    bad.guard({ state: async () => ({ n: Number.NaN }) });
    const good = await workflow.branch({ agent: "c", branch: "good" });
    const guard = good.guard({ state: async () => ({ n: 3 }) });
    const report = await given.watch.checkpoint();
    expect(report.safe).toBe(false);
    expect(report.branches).toMatchObject([
      { branch: "agents/a/x", outcome: "failed", error: thrown },
      { branch: "agents/b/bad", outcome: "failed", error: { code: "INVALID_VALUE" } },
      { branch: "agents/c/good", outcome: "committed" },
    ]);
    expect(await (await other()).stateAt("c/good")).toEqual({ n: 3 });
    await workflow.complete();
    guard.release();
    good.guard({ state: () => ({ n: 4 }) });
    const late = await given.watch.checkpoint();
    expect(late.branches.at(-1)).toMatchObject({ error: { code: "WORKFLOW_COMPLETE" } });
  });

  it("leaves branches alone that are not guarded any more", async () => {
    const { branch } = await begin();
    const guard = branch.guard({ state: () => ({ n: 5 }) });
    guard.release();
    guard.release();
    expect((await given.watch.checkpoint()).branches).toEqual([]);
    expect(await branch.state("/n")).toBe(0);
  });

  it("takes nothing for safe that the store does not give back", async () => {
    let lies = false;
    const forgetful = (storage: Storage): Storage => ({
      ...forward(storage),
      readCommits: (of, ids) =>
        lies ? Promise.resolve(ids.map(() => undefined)) : storage.readCommits(of, ids),
    });
    const { store } = await makeStore(backend, { wrap: forgetful });
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    branch.guard({ state: () => ({ n: 1 }) });
    lies = true;
    const report = await given.watch.checkpoint();
    expect(report.safe).toBe(false);
    expect(report.branches).toMatchObject([
      { outcome: "failed", error: { code: "STORE_DAMAGED" } },
    ]);
  });

  it("says what did not reach the store in time, and saves what is in stores that answer", async () => {
    let hang = false;
    const never = (storage: Storage): Storage => ({
      ...forward(storage),
      write: (batch) => (hang ? new Promise(() => undefined) : storage.write(batch)),
    });
    const { store } = await makeStore(backend, { wrap: never });
    const stuck: Branch[] = [];
    const workflow = await store.createWorkflow("stuck", {});
    for (const name of ["one", "two"]) {
      stuck.push(await workflow.branch({ agent: "a", branch: name }));
      stuck.at(-1)?.guard({ state: () => ({ name }) });
    }
    const { branch } = await begin();
    branch.guard({ state: () => ({ n: 1 }) });
    hang = true;
    const report = await given.watch.checkpoint("short", "memory-pressure", 1500);
    const outcomes = report.branches.map(({ workflow: of, outcome, error }) => [
      of,
      outcome,
      error?.message,
    ]);
    expect(outcomes).toEqual([
      ["stuck", "failed", "agents/a/one of stuck did not reach the store within 1500 ms"],
      ["stuck", "failed", "agents/a/two of stuck did not reach the store within 1500 ms"],
      ["w", "committed", undefined],
    ]);
    expect(report.safe).toBe(false);
  });

  it("makes one pass at a time, and one more for all who ask meanwhile", async () => {
    const { branch } = await begin();
    let passes = 0;
    let under = 0;
    let most = 0;
    branch.guard({
      state: async () => {
        most = Math.max(most, ++under);
        await new Promise((resolve) => setTimeout(resolve, 20));
        under--;
        return { n: ++passes };
      },
    });
    const reports = await Promise.all(Array.from({ length: 10 }, () => given.watch.checkpoint()));
    expect([passes, most]).toEqual([2, 1]);
    expect(new Set(reports.slice(1)).size).toBe(1);
    expect(await branch.state()).toEqual({ n: 2 });
    await given.watch.checkpoint();
    expect(passes).toBe(3);
  });

  it("refuses new steps while memory is short, lets those under way end, and goes on from there", async () => {
    const { workflow, branch } = await begin();
    const calls: string[] = [];
    const agent = async (pressAt: number) => {
      const handle = await workflow.branch("a/x");
      const guard = handle.guard({ state: () => ({ n: 0, calls: calls.length }) });
      try {
        return await workflow.run(handle, async (ctx) => {
          for (let i = 1; i <= 4; i++) {
            await ctx.step({ name: `call ${i}`, action: "write", input: i }, async () => {
              if (i === pressAt) {
                given.watch.set("pressure");
                expect((await given.watch.checkpoint()).safe).toBe(true);
              }
              calls.push(`call ${i}`);
              return i;
            });
          }
          return "done";
        });
      } finally {
        guard.release();
      }
    };
    await expect(agent(2)).rejects.toEqual(
      agstateError("STEPS_STOPPED", { branch: "agents/a/x", reason: "memory-pressure" }),
    );
    expect(calls).toEqual(["call 1", "call 2"]);
    await branch.refresh();
    expect(await branch.resumePoint()).toMatchObject({ inFlight: [] });
    // The checkpoint stands between the intent and the seal of the step that was under way.
    const log = await all(branch.log({ limit: 3 }));
    expect(log.map(({ checkpointReason, step }) => checkpointReason ?? step?.status)).toEqual([
      "completed",
      "memory-pressure",
      "started",
    ]);
    await expect(agent(0)).rejects.toEqual(agstateError("STEPS_STOPPED"));
    given.watch.set("none");
    expect(await agent(0)).toBe("done");
    expect(calls).toEqual(["call 1", "call 2", "call 3", "call 4"]);
  });

  it("lets steps wait, go on, or end for good, as it was told to", async () => {
    const { branch } = await begin();
    const step = (name: string) =>
      branch.step({ name, action: "write", input: 1 }, async () => name);
    given.watch.set("critical", "go-on");
    expect(await step("one")).toBe("one");
    given.watch.set("pressure", "wait");
    let done = false;
    const waiting = step("two").finally(() => {
      done = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(done).toBe(false);
    given.watch.set("none");
    expect(await waiting).toBe("two");
    given.watch.set("pressure", "wait");
    const refused = step("three");
    given.watch.tellToEnd();
    await expect(refused).rejects.toEqual(agstateError("STEPS_STOPPED", { reason: "sigterm" }));
    expect(await branch.resumePoint()).toEqual({ nextSeq: 3, inFlight: [] });
  });

  it("refuses a guard that could save nothing", async () => {
    const { branch } = await begin();
    const refused = () => branch.guard({ state: { n: 1 } as never });
    expect(refused).toThrow(agstateError("INVALID_ARGUMENT") as Error);
    const guard = branch.guard();
    expect(() => branch.guard()).toThrow("agents/a/x is guarded already by this handle");
    guard.release();
    branch.guard().release();
  });
});
