import { describe, expect, it } from "vitest";
import type { Workflow } from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore, snapshot } from "../support/stores.js";

/** A text that is a tree of its own. */
const LONG = Array.from({ length: 300 }, (_, i) => `evidence line ${i}`);

const NOW = { graceMs: 0 };

describe.each(BACKENDS)("holds on %s", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.commit({ state: { n: 1, doc: LONG }, message: "first" });
    const { id: held } = await branch.commit({ state: { n: 2, doc: LONG }, message: "second" });
    await branch.commit({ state: { n: 3, doc: [] }, message: "third" });
    const cold = async () => (await another()).workflow("w");
    return { store, workflow, branch, held, cold };
  }

  it("says who holds what, since when and why", async () => {
    const { workflow, held, cold } = await begin();
    expect(await workflow.holds()).toEqual([]);
    const placed = await workflow.hold("a/x~1", {
      name: "smith-v-jones",
      reason: "litigation, file 7",
      actor: "eve",
    });
    expect(placed).toEqual({
      name: "smith-v-jones",
      commit: held,
      reason: "litigation, file 7",
      by: "eve",
      at: expect.any(Date),
    });
    const other = await workflow.hold(held, { reason: "audit" });
    expect(other).toMatchObject({
      name: expect.stringMatching(/^hold-[0-9a-f]{8}$/),
      by: "agstate",
    });
    expect(await (await cold()).holds()).toEqual([other, placed]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("gives the held state to whoever reads, compares, merges or goes on from a hold", async () => {
    const { workflow, held } = await begin();
    await workflow.hold(held, { name: "h", reason: "audit" });
    expect(await workflow.stateAt("holds/h")).toEqual({ n: 2, doc: LONG });
    expect(await workflow.resolve("holds/h~1")).toBe(held);
    expect(await workflow.diff(held, "holds/h")).toEqual([]);
    const again = await workflow.branch({ agent: "a", branch: "again", from: "holds/h" });
    expect(await again.state("/n")).toBe(2);
    expect((await workflow.merge(["holds/h"])).status).toBe("fast-forward");
    expect(await workflow.stateAt("canonical", "/n")).toBe(2);
  });

  it("keeps what gc would remove, until the last of several is released", async () => {
    const { workflow, held, cold } = await begin();
    await workflow.hold(held, { name: "one", reason: "audit" });
    await workflow.hold(held, { name: "two", reason: "litigation" });
    await workflow.deleteBranch("a/x");

    const dry = await workflow.gc({ ...NOW, dryRun: true });
    expect(dry).toMatchObject({ commits: 1, commitsHeld: 2 });
    expect(await workflow.gc(NOW)).toEqual({ ...dry, dryRun: false });
    expect(await (await cold()).stateAt(held)).toEqual({ n: 2, doc: LONG });

    const released = await workflow.releaseHold("one", { reason: "audited", actor: "eve" });
    expect(released).toMatchObject({ name: "one", commit: held, reason: "audit", by: "agstate" });
    // Its own commit goes, and nothing else.
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 1, trees: 0, commitsHeld: 2 });
    const reader = await cold();
    expect(await reader.stateAt(`${held}~1`)).toEqual({ n: 1, doc: LONG });
    expect((await reader.holds()).map(({ name }) => name)).toEqual(["two"]);
    expect((await workflow.fsck()).problems).toEqual([]);

    await workflow.releaseHold("two", { reason: "settled" });
    // Within the grace period it is only as gone as a branch that was deleted.
    expect(await workflow.gc()).toMatchObject({ commits: 0, commitsHeld: 0 });
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 3, commitsHeld: 0 });
    await expect((await cold()).resolve(held)).rejects.toEqual(agstateError("REVISION_NOT_FOUND"));
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("counts as held only what nothing else keeps", async () => {
    const { workflow, branch, held } = await begin();
    await workflow.hold(held, { name: "h", reason: "audit" });
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 0, commitsHeld: 0 });
    await workflow.reset("a/x", `${held}~1`);
    await branch.refresh();
    // What was left within the grace period stays for that.
    expect(await workflow.gc()).toMatchObject({ commits: 0, commitsHeld: 0 });
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 1, commitsHeld: 1 });
    await workflow.tag("t", held);
    expect(await workflow.gc(NOW)).toMatchObject({ commits: 0, commitsHeld: 0 });
  });

  it("keeps placing and releasing in a log that stays, chained, with who and why", async () => {
    const { workflow, held, cold } = await begin();
    await workflow.hold(held, { name: "h", reason: "litigation", actor: "eve" });
    await workflow.releaseHold("refs/holds/h", { reason: "settled", actor: "adam" });
    await workflow.deleteBranch("a/x");
    await workflow.gc(NOW);
    const after = await cold();
    const told = [
      expect.objectContaining({ actor: "adam", reason: "release: settled", new: null }),
      expect.objectContaining({ actor: "eve", reason: "hold: litigation", old: null }),
    ];
    const log = await after.reflog("refs/holds/h");
    expect(log).toEqual(told);
    expect(log[0]?.previous).toBe(log[1]?.hash);
    expect(await after.reflog("holds/h")).toEqual(log);
    expect((await after.fsck()).problems).toEqual([]);
    // The name may be taken again: its log goes on.
    await after.hold("canonical", { name: "h", reason: "reopened" });
    expect((await after.reflog("holds/h")).slice(1).map(({ reason }) => reason)).toEqual(
      log.map(({ reason }) => reason),
    );
  });

  it("refuses what has no reason, a name that is taken, and what is not there", async () => {
    const { workflow, held } = await begin();
    await workflow.hold(held, { name: "h", reason: "audit" });
    const before = await snapshot(workflow);
    const invalid = agstateError("INVALID_VALUE", { field: "reason" });
    for (const reason of [
      "",
      "  ",
      "two\nlines",
      "x".repeat(901),
      undefined as unknown as string,
    ]) {
      await expect(workflow.hold(held, { reason })).rejects.toEqual(invalid);
      await expect(workflow.releaseHold("h", { reason })).rejects.toEqual(invalid);
    }
    const why = { reason: "audit" };
    await expect(workflow.hold("canonical", { name: "h", ...why })).rejects.toEqual(
      agstateError("REF_EXISTS", { ref: "refs/holds/h" }),
    );
    for (const name of ["a/b", "../heads/canonical", "", "-x", "abcd"]) {
      const bad = agstateError("INVALID_NAME", { field: "hold" });
      await expect(workflow.hold(held, { name, ...why })).rejects.toEqual(bad);
      await expect(workflow.releaseHold(name, why)).rejects.toEqual(bad);
    }
    await expect(workflow.releaseHold("other", why)).rejects.toEqual(agstateError("REF_NOT_FOUND"));
    await expect(workflow.hold("nowhere", why)).rejects.toEqual(agstateError("REVISION_NOT_FOUND"));
    await expect(workflow.hold(held, { actor: "a<b", ...why })).rejects.toEqual(
      agstateError("INVALID_NAME", { field: "actor" }),
    );
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("is placed once and released once, of many who try", async () => {
    const { workflow, held, cold } = await begin();
    const others = [workflow, await cold(), await cold(), await cold()];
    const count = (results: PromiseSettledResult<unknown>[]) =>
      results.filter(({ status }) => status === "fulfilled").length;
    const placing = (wf: Workflow) => wf.hold(held, { name: "h", reason: "audit" });
    expect(count(await Promise.allSettled(others.map(placing)))).toBe(1);
    const releasing = (wf: Workflow) => wf.releaseHold("h", { reason: "audited" });
    expect(count(await Promise.allSettled(others.map(releasing)))).toBe(1);
    expect(await workflow.reflog("holds/h")).toHaveLength(2);
  });

  it("is moved and deleted by nothing else, by whatever name", async () => {
    const { workflow, held } = await begin();
    await workflow.hold(held, { name: "h", reason: "audit" });
    const before = await snapshot(workflow);
    const invalid = agstateError("INVALID_NAME");
    const name = "refs/holds/h";
    const calls: Record<string, () => Promise<unknown>> = {
      branch: () => workflow.branch(name),
      reset: () => workflow.reset(name, "canonical"),
      deleteBranch: () => workflow.deleteBranch(name),
      merge: () => workflow.merge(["a/x"], { into: name }),
      promote: () => workflow.promote("a/x", { into: name }),
      cherryPick: () => workflow.cherryPick(held, { onto: name }),
      revert: () => workflow.revert(held, { onto: name }),
    };
    for (const [call, run] of Object.entries(calls)) {
      await expect(run(), call).rejects.toEqual(invalid);
      await expect(run(), call).rejects.toThrow(/agstate hold release/);
    }
    for (const tag of [name, "holds/h", "../holds/h"]) {
      await expect(workflow.tag(tag, "canonical")).rejects.toEqual(invalid);
      await expect(workflow.deleteTag(tag)).rejects.toEqual(invalid);
    }
    for (const agent of ["../holds", "refs/holds"]) {
      await expect(workflow.branch({ agent, branch: "h" })).rejects.toEqual(invalid);
    }
    // The short name of a branch is that of an agent who happens to be called so.
    await expect(workflow.deleteBranch("holds/h")).rejects.toEqual(agstateError("REF_NOT_FOUND"));
    await expect(workflow.review(name)).rejects.toEqual(invalid);
    await expect(workflow.storedMerge(name)).rejects.toEqual(invalid);
    await workflow.gc(NOW);
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("changes nothing about branches", async () => {
    const { workflow, branch, held } = await begin();
    const other = await workflow.branch({ agent: "b", branch: "y", from: held });
    await other.commit({ state: { n: 4 } });
    const seen = async () => ({
      log: (await all(branch.log())).map(({ id }) => id),
      both: (await all(workflow.log({ revisions: ["a/x", "b/y"] }))).map(({ id }) => id),
      bases: await workflow.mergeBases("a/x", "b/y"),
      ahead: await workflow.aheadBehind("a/x", "b/y"),
      merged: (await workflow.merged("a/x")).map((ref) => ref.name),
      branches: await workflow.refs("refs/heads/"),
      open: await branch.resumePoint(),
    });
    const before = await seen();
    await workflow.hold("a/x", { reason: "audit" });
    await workflow.hold(held, { reason: "audit" });
    expect(await seen()).toEqual(before);
    // The log of all refs tells of holds, as it does of reviews and stored merges.
    expect(await all(workflow.log())).toHaveLength(before.both.length + 3);
  });

  it("can be placed and released after the workflow was completed", async () => {
    const { workflow, held, cold } = await begin();
    await workflow.complete();
    const late = await cold();
    await late.hold(held, { name: "late", reason: "litigation" });
    await late.deleteBranch("a/x");
    await late.gc(NOW);
    expect(await late.stateAt(held, "/n")).toBe(2);
    await late.releaseHold("late", { reason: "settled" });
    expect(await late.holds()).toEqual([]);
  });
});
