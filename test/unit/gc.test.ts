import { afterEach, describe, expect, it, vi } from "vitest";
import { openStore, type Storage, type Workflow } from "../../src/index.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { agstateError, BACKENDS, makeStore, snapshot } from "../support/stores.js";

/** A text that is a tree of its own, different for each seed. */
const long = (seed: string) => Array.from({ length: 400 }, (_, i) => `${seed} line ${i}`);

/** What naming a collected commit fails with: at once, or when the store looks for it. */
const notThere = expect.objectContaining({
  name: "AgstateError",
  code: expect.stringMatching(/^(REVISION_NOT_FOUND|MISSING_OBJECT)$/),
});

const NOW = { graceMs: 0 };

async function expectSound(workflow: Workflow, unreachable?: number): Promise<void> {
  const report = await workflow.fsck();
  expect(report.problems).toEqual([]);
  if (unreachable !== undefined) expect(report.unreachable).toBe(unreachable);
}

/** A workflow with a branch `agents/a/gone` of two commits that was deleted; gives the ids of these. */
async function withDeadBranch(workflow: Workflow) {
  const branch = await workflow.branch({ agent: "a", branch: "gone" });
  const one = await branch.commit({ state: { doc: long("dead"), n: 1 } });
  const two = await branch.commit({ state: { doc: long("dead"), n: 2 } });
  await workflow.deleteBranch("agents/a/gone");
  return { one: one.id, two: two.id };
}

/** Runs something once, at the named call of the storage: before it, or after it. */
function at(when: "before" | "after", call: "condemn" | "sweep", nth: number, run: () => unknown) {
  let calls = 0;
  return (storage: Storage): Storage => {
    const hooked =
      <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        const due = ++calls === nth;
        if (due && when === "before") await run();
        const answer = await method(...args);
        if (due && when === "after") await run();
        return answer;
      };
    const plain = forward(storage);
    return { ...plain, [call]: hooked(plain[call] as never) };
  };
}

describe.each(BACKENDS)("workflow.gc on %s", (backend) => {
  it("keeps what refs reach, and for the grace period what they reached", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { doc: long("first") } });
    await workflow.tag("v1", "canonical");
    const canonical = await workflow.canonical();
    await canonical.commit({ state: { doc: long("second") } });
    const dead = await withDeadBranch(workflow);
    await workflow.reset("canonical", "canonical~1");
    const before = await snapshot(workflow);

    expect(await workflow.gc()).toMatchObject({
      commits: 0,
      trees: 0,
      blobs: 0,
      graceMs: 1209600000,
    });
    expect(await workflow.gc({ graceMs: 3_600_000 })).toMatchObject({ commits: 0, bytes: 0 });
    expect(await snapshot(workflow)).toEqual(before);

    const wouldBe = await workflow.gc({ ...NOW, dryRun: true });
    expect(wouldBe).toMatchObject({ commits: 3, dryRun: true, commitsKept: 2 });
    expect(await snapshot(workflow)).toEqual(before);
    const done = await workflow.gc(NOW);
    expect(done).toEqual({ ...wouldBe, dryRun: false });
    expect(done.trees).toBeGreaterThan(3);
    expect(done.blobs).toBeGreaterThan(10);
    const { usage } = await snapshot(workflow);
    // Three are gone, and one that says so has come.
    expect(before.usage.commits - usage.commits).toBe(3 - 1);

    const fresh = await (await another()).workflow("w");
    await expectSound(fresh, 0);
    expect(await fresh.stateAt("v1")).toEqual({ doc: long("first") });
    await expect(fresh.stateAt(dead.two)).rejects.toEqual(notThere);
    // Logs are whole: what was collected is named in them still.
    const log = await fresh.reflog("agents/a/gone");
    expect(log.map(({ reason }) => reason)).toContain("branch: deleted");
    expect(log).toHaveLength(4);
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 0, trees: 0, blobs: 0, bytes: 0 });
  });

  describe("when time has passed", () => {
    afterEach(() => void vi.useRealTimers());
    const day = 24 * 60 * 60 * 1000;

    it("keeps an old branch for the grace period after it was deleted", async () => {
      vi.useFakeTimers({ toFake: ["Date"] });
      const { store } = await makeStore(backend);
      const workflow = await store.createWorkflow("w");
      const branch = await workflow.branch({ agent: "a", branch: "old" });
      const { id } = await branch.commit({ state: { doc: long("old") } });
      vi.setSystemTime(Date.now() + 30 * day);
      await workflow.deleteBranch("agents/a/old");
      vi.setSystemTime(Date.now() + 13 * day);
      expect(await workflow.gc()).toMatchObject({ commits: 0, trees: 0, blobs: 0 });
      expect(await workflow.stateAt("agents/a/old@{1}")).toEqual({ doc: long("old") });
      vi.setSystemTime(Date.now() + 2 * day);
      expect(await workflow.gc()).toMatchObject({ commits: 1 });
      await expect(workflow.branch({ agent: "a", branch: "late", from: id })).rejects.toEqual(
        notThere,
      );
      await expectSound(workflow, 0);
    });

    it("keeps whole what was built on lately, though nothing reaches it", async () => {
      vi.useFakeTimers({ toFake: ["Date"] });
      const { store } = await makeStore(backend);
      const workflow = await store.createWorkflow("w", { state: {} });
      const branch = await workflow.branch({ agent: "a", branch: "gone" });
      await branch.commit({ state: { doc: long("dead") } });
      const { id } = await branch.commit({ state: { doc: long("dead"), note: "short" } });
      await branch.commit({ state: {} });
      await workflow.deleteBranch("agents/a/gone");
      vi.setSystemTime(Date.now() + 30 * day);
      expect((await workflow.cherryPick(id)).status).toBe("applied");
      expect(await workflow.stateAt("canonical")).toEqual({ note: "short" });
      expect(await workflow.gc()).toMatchObject({ commits: 1 });
      await expectSound(workflow, 0);
      expect(await workflow.stateAt(id)).toEqual({ doc: long("dead"), note: "short" });
      await workflow.reset("canonical", "canonical~1");
      vi.setSystemTime(Date.now() + 15 * day);
      expect(await workflow.gc()).toMatchObject({ commits: 3 });
      await expectSound(workflow, 0);
    });
  });

  it("leaves what another branch shares with a deleted one", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const living = await workflow.branch({ agent: "b", branch: "living" });
    await living.commit({ state: { doc: long("dead"), other: long("mine") } });
    await withDeadBranch(workflow);
    const { trees, blobs, commits } = await workflow.gc(NOW);
    expect(commits).toBe(2);
    expect([trees, blobs].every((n) => n > 0)).toBe(true);
    const fresh = await (await another()).workflow("w");
    expect(await fresh.stateAt("agents/b/living")).toEqual({
      doc: long("dead"),
      other: long("mine"),
    });
    await expectSound(fresh, 0);
  });

  it("is followed by writes of the same values that store them anew, whatever a handle remembers", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const dead = await withDeadBranch(workflow);
    const canonical = await workflow.canonical();
    await workflow.gc(NOW);
    await canonical.commit({ state: { doc: long("dead"), n: 2 } });
    await expect(workflow.branch({ agent: "a", branch: "late", from: dead.two })).rejects.toEqual(
      notThere,
    );
    const fresh = await (await another()).workflow("w");
    expect(await fresh.stateAt("canonical")).toEqual({ doc: long("dead"), n: 2 });
    await expectSound(fresh, 0);
  });

  it("keeps stored merges and what they were made of", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.commit({ state: { n: 1, doc: long("theirs") } });
    const canonical = await workflow.canonical();
    await canonical.commit({ state: { n: 2 } });
    const { stored } = await workflow.merge(["agents/a/x"], { onConflict: "store" });
    await workflow.deleteBranch("agents/a/x");
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 0, trees: 0, blobs: 0 });
    const merge = await workflow.storedMerge(stored as string);
    await merge.resolve("/n", { take: "theirs" });
    await merge.continue();
    expect(await workflow.stateAt("canonical")).toEqual({ n: 1, doc: long("theirs") });
    await expectSound(workflow);
  });

  it("spares what comes into use while it works", async () => {
    const points = [
      ["after", "condemn", 1],
      ["before", "sweep", 1],
    ] as const;
    for (const [when, call, nth] of points) {
      const { store, url } = await makeStore(backend);
      const workflow = await store.createWorkflow("w");
      const dead = await withDeadBranch(workflow);
      const collecting = collector(
        backend,
        url,
        workflow,
        at(when, call, nth, async () => {
          await workflow.branch({ agent: "b", branch: "revived", from: dead.one });
        }),
      );
      const gc = await collecting();
      expect(gc.commits).toBe(1);
      await expectSound(workflow);
      expect(await workflow.stateAt(dead.one)).toEqual({ doc: long("dead"), n: 1 });
      expect(await workflow.stateAt("agents/b/revived")).toEqual({ doc: long("dead"), n: 1 });
      await expect(workflow.branch({ agent: "b", branch: "late", from: dead.two })).rejects.toEqual(
        notThere,
      );
    }
  });

  it("spares objects that a commit brings again while it works", async () => {
    // The second condemnation is that of trees, the third that of blobs.
    const points = [
      ["before", "condemn", 2],
      ["after", "condemn", 2],
      ["before", "sweep", 2],
      ["after", "condemn", 3],
      ["before", "sweep", 3],
    ] as const;
    for (const [when, call, nth] of points) {
      const { store, url } = await makeStore(backend);
      const workflow = await store.createWorkflow("w");
      await withDeadBranch(workflow);
      const canonical = await workflow.canonical();
      let came = false;
      const collecting = collector(
        backend,
        url,
        workflow,
        at(when, call, nth, async () => {
          came = true;
          await canonical.commit({ state: { doc: long("dead"), n: 3 } });
        }),
      );
      await collecting();
      expect(came).toBe(true);
      await expectSound(workflow);
      expect(await workflow.stateAt("canonical")).toEqual({ doc: long("dead"), n: 3 });
      await workflow.gc(NOW);
      await expectSound(workflow, 0);
    }
  });

  it("does not take from under a cherry-pick what it picks", async () => {
    const { store, url } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: {} });
    const dead = await withDeadBranch(workflow);
    const picking = await handle(backend, url, workflow, (storage) => ({
      ...forward(storage),
      async write(batch) {
        // All is read and merged: now the picked commit goes.
        await workflow.gc(NOW);
        return storage.write(batch);
      },
    }));
    const head = await workflow.resolve("canonical");
    await expect(picking.cherryPick(dead.one)).rejects.toEqual(notThere);
    expect(await workflow.resolve("canonical")).toBe(head);
    await expectSound(workflow, 0);
  });

  it("can be cut off anywhere, and goes on", async () => {
    const { store, url } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    for (let i = 0; i < 3; i++) await withDeadBranch(workflow);
    // More than one transaction removes.
    const many = await workflow.branch({ agent: "a", branch: "many" });
    for (let n = 0; n < 1050; n++) await many.commit({ state: { n } });
    await workflow.deleteBranch("agents/a/many");
    for (let nth = 1; nth <= 3; nth++) {
      const stop = new AbortController();
      const collecting = collector(
        backend,
        url,
        workflow,
        at("after", "sweep", nth, () => stop.abort()),
      );
      await collecting({ signal: stop.signal }).catch(() => undefined);
      await expectSound(workflow);
    }
    await workflow.gc(NOW);
    await expectSound(workflow, 0);
    // Each of them has it on record what it removed, those that were cut off as well.
    const records = await workflow.reflog("refs/audit/events");
    expect(records.length).toBeGreaterThan(1);
    expect((await workflow.usage()).commits).toBe(2 + records.length);
  });

  it("refuses a grace period that is none", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    for (const graceMs of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(workflow.gc({ graceMs })).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    }
  });
});

/** The workflow through a handle whose storage is wrapped. */
async function handle(
  backend: (typeof BACKENDS)[number],
  url: string,
  workflow: Workflow,
  wrap: (storage: Storage) => Storage,
): Promise<Workflow> {
  // In memory there is one storage only, which the wrapped handle shares.
  const shared = () => forward(workflow.internals.storage);
  const store = await openStore(url, {
    wrap: (storage) => wrap(backend === "memory" ? shared() : storage),
  });
  const { id } = workflow;
  return store.workflow(id);
}

function collector(
  backend: (typeof BACKENDS)[number],
  url: string,
  workflow: Workflow,
  wrap: (storage: Storage) => Storage,
) {
  return async (options: { signal?: AbortSignal } = {}) =>
    (await handle(backend, url, workflow, wrap)).gc({ ...NOW, ...options });
}
