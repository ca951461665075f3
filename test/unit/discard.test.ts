import { describe, expect, it } from "vitest";
import type { Branch, Storage, Workflow } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { agstateError, BACKENDS, makeStore, snapshot } from "../support/stores.js";

const never = () => new Promise<never>(() => undefined);

/** Leaves a step of a branch in doubt. */
const doubt = (branch: Branch, name: string) =>
  branch.step({ name, timeoutMs: 10 }, never).catch(() => undefined);

const refuse = { sideEffects: "refuse" } as const;
const left = (details: Record<string, unknown>) => agstateError("SIDE_EFFECTS_LEFT", details);

describe.each(BACKENDS)("what is left behind when a branch is discarded, on %s", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: {} });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    return { store, another, workflow, branch };
  }

  it("is each step that did something once, with how it stands last, its name and key", async () => {
    const { workflow, branch } = await begin();
    await branch.step({ name: "look", action: "read", memoize: true }, () => 1);
    await branch.step({ name: "book" }, ({ key }) => key);
    await branch
      .step({ name: "mail" }, () => {
        throw new Error("no address");
      })
      .catch(() => undefined);
    await doubt(branch, "pay");
    await branch.commit({
      state: { by: "hand" },
      step: { action: "write", record: { any: "form" } },
    });
    const { id } = branch.head;
    const steps = new Map<number, { key: string | null; commit: string }>();
    for await (const { number, key, commit } of branch.steps()) steps.set(number, { key, commit });
    const expected = [
      { number: 2, name: "book", action: "execute", status: "completed", ...steps.get(2) },
      { number: 3, name: "mail", action: "execute", status: "failed", ...steps.get(3) },
      { number: 4, name: "pay", action: "execute", status: "in doubt", ...steps.get(4) },
      {
        number: 5,
        name: "(without a name)",
        action: "write",
        status: "completed",
        key: null,
        commit: id,
      },
    ];
    expect(expected[0]).toMatchObject({ key: expect.any(String), commit: expect.any(String) });
    expect(await workflow.sideEffects("a/x", "canonical")).toEqual(expected);
    const before = await snapshot(workflow);
    const error = left({ ref: branch.ref, head: id, sideEffects: expected });
    await expect(workflow.deleteBranch("a/x", refuse)).rejects.toEqual(error);
    await expect(workflow.reset("a/x", "canonical", refuse)).rejects.toEqual(error);
    await expect(workflow.reset("a/x", "canonical", refuse)).rejects.toThrow(
      /resetting agents\/a\/x leaves 4 steps .* 2 \(book\), 3 \(mail\), 4 \(pay\)/,
    );
    const wrong = { sideEffects: "ask" } as never;
    await expect(workflow.deleteBranch("a/x", wrong)).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    expect(await snapshot(workflow)).toEqual(before);
    expect(await workflow.deleteBranch("a/x")).toEqual({ id, sideEffects: expected });
  });

  it("is nothing where another branch has the steps, until the last of them goes", async () => {
    const { workflow, branch } = await begin();
    await branch.step({ name: "book" }, () => 1);
    await workflow.branch({ agent: "b", branch: "y", from: "a/x" });
    await branch.step({ name: "pay" }, () => 1);
    // A tag keeps history readable, but nobody goes on from it.
    await workflow.tag("t", "a/x");
    await expect(workflow.deleteBranch("a/x", refuse)).rejects.toEqual(
      left({ sideEffects: [expect.objectContaining({ name: "pay" })] }),
    );
    const since = { since: "canonical" };
    await expect(workflow.deleteBranch("a/x", { ...refuse, ...since })).rejects.toThrow(
      /which "canonical" has not: 1 \(book\), 2 \(pay\)/,
    );
    expect(await workflow.deleteBranch("a/x", { sideEffects: "ignore" })).toEqual({
      id: branch.head.id,
      sideEffects: null,
    });
    await expect(workflow.deleteBranch("b/y", refuse)).rejects.toEqual(
      left({ sideEffects: [expect.objectContaining({ name: "book" })] }),
    );
    await workflow.promote("b/y");
    expect((await workflow.deleteBranch("b/y", refuse)).sideEffects).toEqual([]);
  });

  it("is of a reset what the target has not, whoever else has it", async () => {
    const { workflow, branch } = await begin();
    await branch.step({ name: "book" }, () => 1);
    const booked = branch.head.id;
    await branch.step({ name: "pay" }, () => 1);
    await workflow.promote("a/x");
    const pay = [expect.objectContaining({ name: "pay", status: "completed" })];
    await expect(workflow.reset("a/x", booked, refuse)).rejects.toEqual(left({ sideEffects: pay }));
    // Between intent and seal, the step is left all the same: it was sealed on what is left.
    await expect(workflow.reset("a/x", "a/x~1", refuse)).rejects.toEqual(
      left({ sideEffects: pay }),
    );
    const reset = await workflow.reset("a/x", booked);
    expect(reset).toMatchObject({ id: booked, sideEffects: pay });
    expect((await workflow.reset("a/x", "canonical", refuse)).sideEffects).toEqual([]);
  });

  it("tells of two merged branches both steps of one number", async () => {
    const { workflow, branch } = await begin();
    const other = await workflow.branch({ agent: "b", branch: "y" });
    await branch.step({ name: "book" }, () => 1);
    await other.step({ name: "mail" }, () => 1);
    await workflow.merge(["b/y"], { into: "a/x" });
    const effects = await workflow.sideEffects("a/x", "canonical");
    expect(effects.map(({ number, name }) => [number, name]).sort()).toEqual([
      [1, "book"],
      [1, "mail"],
    ]);
  });
});

describe("discarding beside somebody who works", () => {
  it("changes nothing when the branch moved after it was looked at", async () => {
    const { store, another } = await makeStore("sqlite");
    await (await store.createWorkflow("w")).branch({ agent: "a", branch: "x" });
    const branch = await (await store.workflow("w")).branch("a/x");
    await branch.commit({ state: { n: 1 } });
    const old = branch.head.id;
    await branch.step({ name: "look", action: "read", memoize: true }, () => 1);
    // The step lands between the look and the move.
    let work: (() => Promise<unknown>) | undefined;
    const beforeWrite = (storage: Storage): Storage => ({
      ...forward(storage),
      write: async (batch) => {
        const late = work;
        work = undefined;
        await late?.();
        return storage.write(batch);
      },
    });
    const other: Workflow = await (await another({ wrap: beforeWrite })).workflow("w");
    for (const discard of [
      () => other.deleteBranch("a/x", refuse),
      () => other.reset("a/x", old, refuse),
    ]) {
      work = () => branch.step({ name: "book" }, () => 1);
      await expect(discard()).rejects.toEqual(agstateError("REF_CONFLICT"));
      expect(await other.resolve("a/x")).toBe(branch.head.id);
      await expect(discard()).rejects.toEqual(agstateError("SIDE_EFFECTS_LEFT"));
      await branch.refresh();
      await (await store.workflow("w")).reset("a/x", old);
      await branch.refresh();
    }
  });

  it("costs a branch without steps one read more, and one that was merged no reading of all branches", async () => {
    const { store, another } = await makeStore("sqlite");
    const workflow = await store.createWorkflow("w");
    for (const agent of ["idle", "merged"]) {
      const branch = await workflow.branch({ agent, branch: "x" });
      for (let i = 0; i < 20; i++) await branch.update([{ op: "set", path: "/n", value: i }]);
      if (agent === "merged") await branch.step({ name: "book" }, () => 1);
    }
    await workflow.promote("merged/x");
    const prefixes: string[] = [];
    let counted: CountingStorage | undefined;
    const cold = await another({
      wrap: (storage) => {
        counted = counting({
          ...forward(storage),
          readRefs: (id, pattern) => {
            if ("prefix" in pattern) prefixes.push(pattern.prefix);
            return storage.readRefs(id, pattern);
          },
        });
        return counted.storage;
      },
    });
    const reader = await cold.workflow("w");
    const trips = async (name: string, how: "tell" | "ignore") => {
      counted?.reset();
      await reader.deleteBranch(name, { sideEffects: how });
      return counted?.counts().roundTrips;
    };
    expect(await trips("idle/x", "tell")).toBe(3);
    const { head } = await workflow.branch({ agent: "idle", branch: "y", from: "idle/x@{1}" });
    expect(head.nextStep).toBe(1);
    expect(await trips("idle/y", "ignore")).toBe(2);
    await reader.deleteBranch("merged/x", refuse);
    expect(prefixes).toEqual([]);
  });

  it("does not keep a branch from being moved away from damage", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.step({ name: "book" }, () => 1);
    const { id } = branch.head;
    const intent = branch.head.parents[0] as string;
    const { storage } = workflow.internals;
    await storage.condemn("w", [intent as never], Number.MAX_SAFE_INTEGER, 7);
    expect(await storage.sweep("w", [intent as never], 7)).toMatchObject({ removed: 1 });
    await expect(workflow.deleteBranch("a/x", refuse)).rejects.toEqual(
      agstateError("MISSING_OBJECT"),
    );
    expect(await workflow.deleteBranch("a/x")).toEqual({ id, sideEffects: null });
  });
});
