import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import {
  isWithheld,
  type JsonValue,
  type RunContext,
  type Storage,
  type Workflow,
} from "../../src/index.js";
import { sealPending } from "../../src/objects/pending.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { dayClock } from "../support/clock.js";
import { agstateError, all, BACKENDS, makeStore, snapshot } from "../support/stores.js";

/** A text that is a tree of its own, different for each seed. */
const long = (seed: string) => Array.from({ length: 300 }, (_, i) => `${seed} line ${i}`);

const NOW = { graceMs: 0 };

async function expectSound(workflow: Workflow): Promise<void> {
  expect((await workflow.fsck()).problems).toEqual([]);
  expect((await workflow.verifyAudit()).problems).toEqual([]);
  expect(await workflow.internals.storage.checkStructure()).toEqual([]);
}

const ids = async (workflow: Workflow, revision = "canonical") =>
  (await all(workflow.log({ revisions: [revision] }))).map(({ id }) => id);

describe.each(BACKENDS)("retention of payload on %s", (backend) => {
  it("makes tombstones of what only old commits reach, once, and leaves heads whole", async () => {
    const clock = dayClock();
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      retentionPolicy: "P30D",
      state: { doc: long("zero"), shared: long("shared") },
    });
    const canonical = await workflow.canonical();
    for (const day of [10, 20, 40]) {
      clock.set(day);
      const state = { doc: long(`day ${day}`), shared: long("shared") };
      await canonical.commit({
        state,
        step: { action: "execute", record: { name: "work", output: `secret of day ${day}` } },
      });
    }
    clock.set(55);
    const before = await snapshot(workflow);
    const plan = await workflow.planRetention();
    expect(await snapshot(workflow)).toEqual(before);
    expect(plan).toMatchObject({ dryRun: true, policy: "P30D", history: null, spared: 0 });
    // Days 0, 10 and 20; canonical's head is younger.
    expect(plan.payload).toMatchObject({ commits: 3, kept: {} });
    expect(plan.payload?.inline).toBe(2);
    expect(plan.payload?.blobs).toBeGreaterThan(9);
    expect(plan.payload?.trees).toBeGreaterThan(3);

    const done = await workflow.applyRetention();
    expect(done).toEqual({ ...plan, dryRun: false });
    await expectSound(workflow);
    const after = await snapshot(workflow);
    expect(before.usage.bytes - after.usage.bytes).toBeGreaterThan(10_000);
    const again = await workflow.applyRetention();
    expect(again.payload).toMatchObject({ blobs: 0, trees: 0, inline: 0, bytes: 0 });

    const cold = await (await another()).workflow("w");
    expect(await cold.stateAt("canonical")).toEqual({
      doc: long("day 40"),
      shared: long("shared"),
    });
    const old = (await cold.stateAt("canonical~1")) as unknown;
    expect(isWithheld(old) && old.reason).toBe("expired");
    const record = (await cold.stepRecord("canonical~1")) as unknown;
    expect(isWithheld(record) && record.reason).toBe("expired");
    expect(await cold.stepRecord("canonical")).toMatchObject({ output: "secret of day 40" });
    expect(await ids(cold)).toHaveLength(4);
    expect(await cold.diff("canonical~2", "canonical~1")).toHaveLength(1);
    const events = await all(cold.audit({ refs: "refs/audit/retention" }));
    expect(events.map(({ kind, facts }) => [kind, facts?.status])).toEqual([
      ["retention", "begun"],
      ["retention", "done"],
    ]);
  });

  it("is kept by tags, holds, reviews' and branches' heads, whatever their age", async () => {
    const clock = dayClock();
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { doc: long("zero") } });
    const canonical = await workflow.canonical();
    const commits: string[] = [];
    for (const day of [1, 2, 3, 4, 5, 6]) {
      clock.set(day);
      commits.push((await canonical.commit({ state: { doc: long(`day ${day}`) } })).id);
    }
    const [one, two, three, four, five, six] = commits as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    await workflow.tag("v2", two);
    const branch = await workflow.branch({ agent: "a", branch: "idle", from: four });
    expect(branch.head.id).toBe(four);
    clock.set(400);
    await workflow.hold(three, { name: "case", reason: "asked for" });
    const options = { policy: "P0D", ...NOW };
    clock.set(401);
    const { payload, holds } = await workflow.applyRetention(options);
    expect(holds).toEqual(["case"]);
    expect(payload?.kept).toMatchObject({
      branches: { trees: expect.any(Number) },
      holds: { trees: expect.any(Number) },
    });
    const withheld = async (revision: string) =>
      isWithheld((await workflow.stateAt(revision)) as unknown);
    // What a hold reaches stays with it: it was promised so.
    for (const id of [one, two, three, four, six]) expect(await withheld(id), id).toBe(false);
    expect(await withheld(five)).toBe(true);
    const refused = await all(workflow.audit({ refs: "refs/audit/events" }));
    expect(refused.map(({ kind, facts }) => [kind, facts?.name, facts?.holds])).toContainEqual([
      "refused",
      "retention",
      "case",
    ]);
    await workflow.releaseHold("case", { reason: "closed" });
    await workflow.applyRetention(options);
    for (const id of [two, four, six]) expect(await withheld(id), id).toBe(false);
    for (const id of [one, three, five]) expect(await withheld(id), id).toBe(true);
    await expectSound(workflow);
  });

  for (const call of ["condemn", "redact"] as const) {
    it(`spares what comes into use just before it calls ${call}`, async () => {
      const clock = dayClock();
      let act = async () => {};
      const wrap = (storage: Storage): Storage => {
        const plain = forward(storage);
        const hooked = async (...args: never[]) => {
          const once = act;
          act = async () => {};
          await once();
          return (plain[call] as (...given: never[]) => Promise<unknown>)(...args);
        };
        return { ...plain, [call]: hooked as never };
      };
      const { store, another } = await makeStore(backend, { wrap });
      const workflow = await store.createWorkflow("w", { state: { doc: long("first") } });
      clock.set(1);
      const canonical = await workflow.canonical();
      await canonical.commit({ state: { doc: long("second") } });
      clock.set(50);
      const writer = await (await another()).workflow("w");
      act = async () => {
        const branch = await writer.branch({ agent: "a", branch: "b" });
        await branch.update([{ op: "set", path: "/doc", value: long("first") }]);
      };
      await workflow.applyRetention({ policy: "P30D" });
      const cold = await (await another({ wrap: (storage) => storage })).workflow("w");
      expect(await cold.stateAt("a/b")).toEqual({ doc: long("first") });
      // All of it is in use again, so nothing went.
      expect(await cold.stateAt("canonical~1")).toEqual({ doc: long("first") });
      await cold.deleteBranch("a/b");
      await cold.gc({ graceMs: 0 });
      expect((await cold.applyRetention({ policy: "P30D" })).payload?.trees).toBeGreaterThan(0);
      expect(isWithheld((await cold.stateAt("canonical~1")) as unknown)).toBe(true);
      await expectSound(cold);
    });
  }

  it("needs a policy, and one that is whole", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    for (const run of [() => workflow.planRetention(), () => workflow.applyRetention()]) {
      await expect(run()).rejects.toThrow(agstateError("INVALID_ARGUMENT", { workflow: "w" }));
    }
    for (const policy of ["P-1D", "P1.5D", "", {}, { payload: "P1Y", history: "P1M" }]) {
      await expect(workflow.planRetention({ policy })).rejects.toThrow(
        agstateError("INVALID_ARGUMENT"),
      );
    }
    await expect(workflow.planRetention({ policy: "P1D", graceMs: -1 })).rejects.toThrow(
      agstateError("INVALID_ARGUMENT"),
    );
  });
});

describe.each(BACKENDS)("retention of history on %s", (backend) => {
  /** A canonical of a commit a day, and its ids from the first on. */
  async function line(days: number, policy: JsonValue = null) {
    const clock = dayClock();
    const made = await makeStore(backend);
    const workflow = await made.store.createWorkflow("w", {
      state: { n: 0, doc: long("static") },
      ...(policy === null ? {} : { retentionPolicy: policy as string }),
    });
    const canonical = await workflow.canonical();
    for (let day = 1; day < days; day++) {
      clock.set(day);
      await canonical.update([{ op: "set", path: "/n", value: day }]);
    }
    return { ...made, clock, workflow, canonical, commits: (await ids(workflow)).reverse() };
  }

  it("goes as a prefix, behind a boundary that is on record, and everything goes on", async () => {
    const { workflow, commits, clock, another, canonical } = await line(30, "history=P10D");
    clock.set(30);
    // Somebody else, who has the history in memory.
    const warm = await (await another()).workflow("w");
    await workflow.tag("first", commits[0] as string);
    expect(await ids(warm)).toHaveLength(30);
    expect(await warm.aheadBehind("canonical", "first")).toEqual({ ahead: 29, behind: 0 });
    expect(await all((await warm.canonical()).steps())).toEqual([]);
    await workflow.deleteTag("first");
    const plan = await workflow.planRetention(NOW);
    expect(plan.payload).toBeNull();
    expect(plan.history).toMatchObject({ commits: 20, boundaries: 1, kept: {}, removed: null });
    const before = await snapshot(workflow);
    const { history } = await workflow.applyRetention(NOW);
    expect(history).toMatchObject({ commits: 20, boundaries: 1, removed: { commits: 20 } });
    const { usage } = await snapshot(workflow);
    // Their record, and that of the collection, have come.
    expect(before.usage.commits - usage.commits).toBe(20 - 2);
    await expectSound(workflow);

    const cold = await (await another()).workflow("w");
    // As it is when others have pushed the commits themselves out of its memory.
    warm.internals.context.commitCache.clear();
    for (const each of [workflow, cold, warm]) {
      expect(await all((await each.canonical()).log({ firstParent: true }))).toHaveLength(10);
      expect(await all((await each.canonical()).steps())).toEqual([]);
      expect(await each.aheadBehind("canonical", commits[20] as string)).toMatchObject({
        ahead: 9,
      });
      expect(await ids(each)).toEqual(commits.slice(20).reverse());
      expect((await each.commitAt(commits[20] as string)).boundary).toBe(true);
      const gone = { code: "REVISION_NOT_FOUND" };
      await expect(each.resolve("canonical~10")).rejects.toMatchObject(gone);
      await expect(each.resolve("canonical~10")).rejects.toThrow(
        /dropped on 2024-01-31 by agstate, under the retention policy history=P10D/,
      );
      await expect(each.diff("canonical~10", "canonical")).rejects.toMatchObject(gone);
      const lines = await each.blame("canonical", "/doc");
      expect(lines.map(({ commit, boundary }) => [commit.id, boundary])).toEqual([
        [commits[20], true],
      ]);
      await expect(each.cherryPick(commits[20] as string)).rejects.toThrow(/retention policy/);
      expect(await each.reflog("canonical")).toHaveLength(30);
    }
    const events = await all(cold.audit({ refs: "canonical" }));
    expect(events).toHaveLength(30);
    expect(events.slice(-10).every(({ kind }) => kind === "commit")).toBe(true);

    await canonical.update([{ op: "set", path: "/n", value: -1 }]);
    const idle = await workflow.applyRetention(NOW);
    expect(idle.history).toMatchObject({ commits: 0, boundaries: 0, removed: { commits: 0 } });
    clock.set(35);
    const next = await workflow.applyRetention(NOW);
    expect(next.history).toMatchObject({ commits: 5, boundaries: 1 });
    await expectSound(workflow);
  });

  it("keeps where living branches part, and merges as before", async () => {
    const { workflow, commits, clock, another } = await line(30);
    const branch = await workflow.branch({ agent: "a", branch: "b", from: commits[5] as string });
    clock.set(31);
    await branch.update([{ op: "set", path: "/mine", value: 1 }]);
    const options = { policy: { history: "P3D" }, ...NOW };
    const { history } = await workflow.applyRetention(options);
    expect(history).toMatchObject({ commits: 5, kept: { bases: 23 } });
    const cold = await (await another()).workflow("w");
    expect(await cold.mergeBases("canonical", "a/b")).toEqual([commits[5]]);
    expect(await cold.aheadBehind("a/b", "canonical")).toEqual({ ahead: 1, behind: 24 });
    await cold.merge(["a/b"]);
    expect(await cold.stateAt("canonical", "/mine")).toBe(1);
    await cold.deleteBranch("a/b");
    clock.set(40);
    const later = await cold.applyRetention(options);
    // Canonical's last commit merges what was written on day 29 and 31.
    expect(later.history?.commits).toBeGreaterThan(20);
    await expectSound(cold);
  });

  it("cuts all parents of a commit or none, so that first parents stay what they are", async () => {
    const { workflow, commits, clock, another } = await line(5);
    clock.set(40);
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.update([{ op: "set", path: "/mine", value: 1 }]);
    await branch.update([{ op: "set", path: "/mine", value: 2 }]);
    clock.set(41);
    await workflow.merge(["a/b"], { fastForward: "never" });
    await workflow.deleteBranch("a/b");
    clock.set(45);
    const options = { policy: { history: "P10D" }, ...NOW };
    expect((await workflow.applyRetention(options)).history).toMatchObject({
      commits: 4,
      boundaries: 1,
      kept: { bases: 1 },
    });
    const cold = await (await another()).workflow("w");
    expect(await cold.resolve("canonical~1")).toBe(commits[4]);
    expect((await cold.commitAt("canonical")).parents).toHaveLength(2);
    expect(await ids(cold)).toHaveLength(4);
    await expect(cold.resolve("canonical~2")).rejects.toThrow(/dropped on/);
    await expectSound(cold);
  });

  it("tells of a row whose parents are gone without a record", async () => {
    const { workflow, commits } = await line(4);
    const id = commits[2] as ObjectId;
    await workflow.internals.storage.redact("w", {
      tombstones: [],
      inline: [],
      grafts: [{ id, parents: [] }],
    });
    expect((await workflow.fsck()).problems).toMatchObject([
      { kind: "bad-graph", subject: id },
      { kind: "bad-graph", subject: id },
    ]);
    expect((await workflow.verifyAudit()).problems).toMatchObject([
      { kind: "bad-commit", subject: id },
    ]);
  });

  it("keeps tagged commits without their history", async () => {
    const { workflow, commits, clock } = await line(20);
    await workflow.tag("v", commits[3] as string);
    clock.set(100);
    const options = { policy: { history: "P1D" }, ...NOW };
    expect((await workflow.applyRetention(options)).history).toMatchObject({
      commits: 18,
      boundaries: 2,
      kept: { branches: 1, tags: 1 },
    });
    expect(await ids(workflow, "v")).toEqual([commits[3]]);
    expect(await ids(workflow)).toEqual([commits[19]]);
    await expectSound(workflow);
  });

  it("keeps all that a hold reaches until it is released", async () => {
    const { workflow, commits, clock } = await line(20);
    await workflow.hold(commits[9] as string, { name: "case", reason: "asked for" });
    clock.set(100);
    const options = { policy: { history: "P1D" }, ...NOW };
    expect((await workflow.applyRetention(options)).history).toMatchObject({
      commits: 9,
      kept: { holds: 10 },
    });
    expect(await ids(workflow, commits[9])).toEqual(commits.slice(0, 10).reverse());
    await workflow.releaseHold("case", { reason: "closed" });
    expect((await workflow.applyRetention(options)).history?.removed).toMatchObject({
      commits: 11,
    });
    await expect(workflow.commitAt(commits[9] as string)).rejects.toThrow();
    await expectSound(workflow);
  });
});

describe.each(BACKENDS)("what is under way, and retention on %s", (backend) => {
  const OVER = { policy: { payload: "P1D", history: "P1D" }, ...NOW };

  it("keeps a run that is open, whole; one that has ended is not done again", async () => {
    const clock = dayClock();
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const calls: string[] = [];
    const work = (fails: boolean) => (ctx: RunContext) =>
      ctx
        .step({ name: "charge" }, () => calls.push("charge"))
        .then(async () => {
          if (fails) throw new Error("down");
          await ctx.step({ name: "ship" }, () => calls.push("ship"));
          return "done";
        });
    const done = await workflow.branch({ agent: "a", branch: "done" });
    await workflow.run(done, work(false));
    const open = await workflow.branch({ agent: "a", branch: "open" });
    await expect(workflow.run(open, work(true))).rejects.toThrow("down");
    expect(calls).toEqual(["charge", "ship", "charge"]);
    clock.set(1);
    // What is done is no longer the head's own.
    for (const branch of [done, open]) await branch.update([{ op: "set", path: "/x", value: 1 }]);
    clock.set(50);
    await workflow.applyRetention(OVER);

    const cold = await (await another()).workflow("w");
    const again = async (name: string, fails = false) =>
      cold.run(await cold.branch(name), work(fails));
    expect(await again("a/open")).toBe("done");
    expect(calls).toEqual(["charge", "ship", "charge", "ship"]);
    await expect(again("a/done")).rejects.toThrow(agstateError("ERASED", { run: "main" }));
    expect(calls).toHaveLength(4);
    await cold.deleteBranch("a/open");
    // Until here canonical parted from it at the beginning.
    await cold.merge(["a/done"]);
    clock.set(100);
    await cold.applyRetention(OVER);
    // Now its beginning is dropped with all there was.
    expect(await all(cold.log({ revisions: ["a/done"] }))).toHaveLength(1);
    await expect(again("a/done")).rejects.toThrow(agstateError("ERASED", { run: "main" }));
    const other = cold.run(await cold.branch("a/done"), work(false), { id: "other" });
    expect(await other).toBe("done");
    expect(calls).toHaveLength(6);
    await expectSound(cold);
  });

  it("keeps a step in flight, and settles a stored merge", async () => {
    const clock = dayClock();
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { a: 1, doc: long("doc") } });
    const flying = await workflow.branch({ agent: "a", branch: "flying" });
    const aborted = flying.step({ name: "send", timeoutMs: 1 }, () => {
      return new Promise(() => {});
    });
    await expect(aborted).rejects.toThrow();
    const [left, right] = [
      await workflow.branch({ agent: "l", branch: "x" }),
      await workflow.branch({ agent: "r", branch: "x" }),
    ];
    await left.update([{ op: "set", path: "/a", value: 2 }]);
    await right.update([{ op: "set", path: "/a", value: 3 }]);
    await workflow.merge(["l/x"]);
    const stored = await workflow.merge(["r/x"], { onConflict: "store" });
    expect(stored.status).toBe("conflict");
    clock.set(2);
    const canonical = await workflow.canonical();
    for (const branch of [flying, canonical]) {
      for (const value of [1, 2]) await branch.update([{ op: "set", path: "/b", value }]);
    }
    for (const name of ["l/x", "r/x"]) await workflow.deleteBranch(name);
    clock.set(50);
    await workflow.applyRetention(OVER);
    const cold = await (await another()).workflow("w");
    expect(await cold.fsck()).toMatchObject({ problems: [] });
    const [open] = await all((await cold.branch("a/flying")).steps());
    expect(open).toMatchObject({ name: "send", status: "started" });
    const [merge] = await cold.storedMerges();
    const name = merge?.name as string;
    const conflicts = await (await cold.storedMerge(name)).conflicts();
    expect(conflicts).toMatchObject([{ path: "/a" }]);
  });

  it("drops what was written beside commits that are dropped, and no more", async () => {
    const clock = dayClock();
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const canonical = await workflow.canonical();
    const { storage } = workflow.internals;
    const keys = [
      "agent/one/task",
      "agent/two/task",
      "agent/none/task",
      "keys/one/x",
      "one",
      "agent/one",
    ];
    for (const [i, externalId] of ["one", "two"].entries()) {
      clock.set(10 * (i + 1));
      await canonical.commit({ state: { n: i + 1 }, externalId });
    }
    const pending = keys.map((key) => sealPending(key, 0, key));
    await workflow.internals.refs.apply({ updates: [], pending });
    clock.set(25);
    const options = { policy: { history: "P10D" }, ...NOW };
    expect((await workflow.planRetention(options)).history).toMatchObject({ pending: 1 });
    await workflow.applyRetention(options);
    const left = await storage.readPending("w", [""]);
    expect(left.map(({ key }) => key)).toEqual(keys.filter((key) => key !== keys[0]).sort());
    await expectSound(workflow);
  });
});
