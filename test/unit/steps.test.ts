import { describe, expect, it } from "vitest";
import { agstateError, all, BACKENDS, makeStore, snapshot } from "../support/stores.js";

describe.each(BACKENDS)("steps that are recorded with commits, on %s", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const open = (agent: string, branch: string, from = "canonical") =>
      workflow.branch({ agent, branch, from });
    return { store, another, workflow, open };
  }
  const step = (record: unknown = {}) => ({ step: { action: "read", record } }) as const;

  it("keep what was done, apart from the state", async () => {
    const { another, open } = await begin();
    const branch = await open("a", "x");
    const record = {
      name: "search",
      input: { query: "hotels", page: 1 },
      output: ["x".repeat(4000), { price: 10 }],
      times: [1, 2],
    };
    const { id } = await branch.commit({
      state: { n: 1 },
      message: "search",
      step: { action: "inference", status: "failed", record },
    });
    const reader = await (await another()).workflow("w");
    const commit = await reader.commitAt(id);
    expect(commit).toMatchObject({
      step: { number: 1, status: "failed", action: "inference" },
      nextStep: 2,
    });
    expect(commit.step?.input).toMatch(/^[0-9a-f]{64}$/);
    expect(await reader.stepRecord(id)).toEqual(record);
    expect(await reader.stateAt(id)).toEqual({ n: 1 });
    expect(await reader.stepRecord("canonical")).toBe(null);
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("hash the same input alike, whatever its order and size, and tell inputs apart", async () => {
    const { open } = await begin();
    const branch = await open("a", "x");
    const hash = async (record: unknown) => (await branch.commit(step(record))).step?.input;
    const one = await hash({ input: { a: 1, b: [2] } });
    expect(await hash({ name: "other", input: { b: [2], a: 1 } })).toBe(one);
    expect(await hash({ input: { a: 1, b: [3] } })).not.toBe(one);
    const long = { text: "x".repeat(10_000) };
    expect(await hash({ input: long })).toBe(await hash({ input: { ...long }, output: long }));
    for (const record of [{ output: 1 }, [1], "text", null, { input: undefined }]) {
      expect(await hash(record)).toBeUndefined();
    }
    expect(await hash({ input: null })).toMatch(/^[0-9a-f]{64}$/);
  });

  it("belong to their commit: the next one has none, and keeps the state", async () => {
    const { workflow, open } = await begin();
    const branch = await open("a", "x");
    await branch.update([{ op: "set", path: "/n", value: 1 }], step({ name: "one" }));
    const next = await branch.commit({ message: "no step" });
    expect(next.step).toBe(null);
    expect(await workflow.stepRecord(next.id)).toBe(null);
    expect(await branch.state()).toEqual({ n: 1 });
  });

  it("are numbered from 1, one after another, also when commits without a step lie between", async () => {
    const { workflow, open } = await begin();
    const branch = await open("a", "x");
    const numbers = [];
    for (let i = 0; i < 4; i++) {
      numbers.push((await branch.commit(step())).step?.number);
      await branch.commit({ message: "between" });
    }
    expect(numbers).toEqual([1, 2, 3, 4]);
    const [ref] = await workflow.refs("refs/heads/agents/");
    expect(ref?.maxStep).toBe(4);
    expect((await workflow.refs("refs/heads/canonical"))[0]?.maxStep).toBe(0);
  });

  it("never use a number twice on a branch, not even after it was deleted and made anew", async () => {
    const { workflow, open, another } = await begin();
    const branch = await open("a", "x");
    const seen: number[] = [];
    const incarnations = new Set<string>();
    for (let life = 0; life < 3; life++) {
      const again = life === 0 ? branch : await open("a", "x");
      for (let i = 0; i < 2; i++) seen.push((await again.commit(step())).step!.number);
      incarnations.add((await workflow.refs("refs/heads/agents/"))[0]!.incarnation);
      await workflow.deleteBranch("a/x");
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
    expect(incarnations.size).toBe(3);
    // Also from another process, and from an older commit.
    const elsewhere = await (await another()).workflow("w");
    const fresh = await elsewhere.branch({ agent: "a", branch: "x", from: "canonical" });
    expect(fresh.head.nextStep).toBe(1);
    expect((await fresh.commit(step())).step?.number).toBe(7);
  });

  it("never use a number twice through a handle from before the branch was made anew", async () => {
    const { workflow, open } = await begin();
    const [used, old] = [await open("a", "x"), await open("a", "x")];
    expect((await used.commit(step())).step?.number).toBe(1);
    await workflow.deleteBranch("a/x");
    const { head } = await open("a", "x");
    // The branch is where the old handle left it, but it is another branch.
    expect(head.id).toBe(old.head.id);
    const outcome = await old.commit(step()).then(
      (commit) => commit.step?.number,
      (error: unknown) => (error as { code: string }).code,
    );
    expect([2, "REF_CONFLICT"]).toContain(outcome);
  });

  it("go on where their line of history is, on a branch off it", async () => {
    const { open } = await begin();
    const branch = await open("a", "x");
    for (let i = 0; i < 3; i++) await branch.commit(step());
    const off = await open("b", "y", "a/x");
    expect((await off.commit(step())).step?.number).toBe(4);
    const earlier = await open("b", "z", "a/x~2");
    expect((await earlier.commit(step())).step?.number).toBe(2);
    expect((await branch.commit(step())).step?.number).toBe(4);
  });

  it("take a number above those of all merged parents", async () => {
    const { open } = await begin();
    const [one, two] = [await open("a", "one"), await open("a", "two")];
    for (let i = 0; i < 5; i++) await two.commit(step());
    await one.commit(step());
    const merge = await one.commit({ mergeParents: ["a/two"] });
    expect(merge).toMatchObject({ step: null, nextStep: 6 });
    expect((await one.commit(step())).step?.number).toBe(6);
  });

  it("are not used up by a commit that lost its race", async () => {
    const { workflow, open } = await begin();
    const [one, two] = [await open("a", "x"), await open("a", "x")];
    await one.commit(step());
    await expect(two.commit(step())).rejects.toThrow(agstateError("REF_CONFLICT"));
    await two.refresh();
    expect((await two.commit(step())).step?.number).toBe(2);
    const steps = (await all(workflow.log({ revisions: ["a/x"] }))).map((c) => c.step?.number);
    expect(steps).toEqual([2, 1, undefined]);
  });

  it.each([
    { action: "reads" },
    { action: "read\nparent 0" },
    { action: undefined },
    { action: "read", status: "done" },
    { action: "read", status: "started\n\nx" },
  ])("refuse what is no action or status: %j", async (bad) => {
    const { workflow, open } = await begin();
    const branch = await open("a", "x");
    const before = await snapshot(workflow);
    await expect(branch.commit({ step: { record: {}, ...bad } as never })).rejects.toThrow(
      agstateError("INVALID_ARGUMENT"),
    );
    expect(await snapshot(workflow)).toEqual(before);
  });
});
