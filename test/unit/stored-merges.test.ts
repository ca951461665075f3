import { describe, expect, it } from "vitest";
import type { JsonValue, Workflow } from "../../src/index.js";
import { agstateError, BACKENDS, makeStore, parsed, snapshot } from "../support/stores.js";

const set = (path: string, value: JsonValue) => [{ op: "set", path, value } as const];

/** A workflow in which `a/work` and `b/work` disagree at `/x` and `/y`, and agree to differ elsewhere. */
async function disagreement(backend: (typeof BACKENDS)[number]): Promise<Workflow> {
  const { store } = await makeStore(backend);
  const workflow = await store.createWorkflow("w", { state: { x: 0, y: 0, z: 0, log: [] } });
  for (const [agent, n] of [
    ["a", 1],
    ["b", 2],
  ] as const) {
    const branch = await workflow.branch({ agent, branch: "work" });
    await branch.update([
      ...set("/x", n),
      ...set("/y", n * 10),
      { op: "append", path: "/log", value: agent },
    ]);
  }
  return workflow;
}

describe.each(BACKENDS)("a stored merge on %s", (backend) => {
  it("waits, is resolved path by path, by anybody, and is finished", async () => {
    const workflow = await disagreement(backend);
    const before = await workflow.resolve("canonical");
    const result = await workflow.merge(["a/work", "b/work"], {
      onConflict: "store",
      author: "boss",
      message: "Take both",
    });
    expect(result.status).toBe("conflict");
    const name = result.stored as string;
    expect(await workflow.resolve("canonical")).toBe(before);
    // What is merged so far can be looked at.
    expect(await workflow.stateAt(`merges/${name}`)).toEqual({
      x: 1,
      y: 10,
      z: 0,
      log: ["a", "b"],
    });

    const one = await workflow.storedMerge();
    expect(one.info).toMatchObject({
      name,
      operation: "merge",
      into: "canonical",
      author: "boss",
      sources: [{ branch: "agents/a/work" }, { branch: "agents/b/work" }],
      resolved: [],
    });
    expect((await one.conflicts()).map(({ path }) => path)).toEqual(["/x", "/y"]);
    await one.resolve("/x", { take: "theirs" }, { by: "person" });
    expect((await one.conflicts()).map(({ path }) => path)).toEqual(["/y"]);
    expect((await one.continue()).status).toBe("conflict");

    const other = await workflow.storedMerge(`merges/${name}`);
    await other.resolve("/y", { value: parsed('{"__proto__":[1]}') }, { by: "second" });
    const finished = await other.continue();
    expect(finished).toMatchObject({ status: "merged", attempts: 1, stored: null });
    expect(finished.commit).toMatchObject({ author: "boss", message: "Take both" });
    expect(finished.commit?.parents).toHaveLength(3);
    expect(JSON.stringify(await workflow.stateAt("canonical"))).toBe(
      '{"log":["a","b"],"x":2,"y":{"__proto__":[1]},"z":0}',
    );
    expect((await workflow.mergeRecord("canonical"))?.resolved).toMatchObject([
      { path: "/x", how: "theirs", branch: "agents/b/work", by: "person" },
      { path: "/y", how: "value", by: "second" },
    ]);
    expect(await workflow.storedMerges()).toEqual([]);
    await expect(workflow.storedMerge()).rejects.toEqual(agstateError("MERGE_NOT_FOUND"));
    await expect(workflow.storedMerge(name)).rejects.toEqual(agstateError("MERGE_NOT_FOUND"));
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("is checked again when canonical has moved: what it touched is open, the rest stays resolved", async () => {
    const workflow = await disagreement(backend);
    await workflow.merge(["a/work", "b/work"], { onConflict: "store" });
    const stored = await workflow.storedMerge();
    await stored.resolve("/x", { take: "ours" });
    await stored.resolve("/y", { delete: true });
    const canonical = await workflow.canonical();
    await canonical.update([...set("/x", 77), ...set("/z", 5)]);
    const again = await stored.continue();
    expect(again.status).toBe("conflict");
    expect(again.conflicts.map(({ path, ours }) => [path, ours])).toMatchObject([
      ["/x", { exists: true, value: 77, branch: "canonical" }],
      ["/x", { exists: true, value: 77 }],
    ]);
    expect(await workflow.resolve("canonical")).toBe(canonical.head.id);
    // Two branches want /x now; it must be said whose value is taken.
    await expect(stored.resolve("/x", { take: "theirs" })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    await expect(
      stored.resolve("/x", { take: "theirs" }, { branch: "agents/c/work" }),
    ).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    await stored.resolve("/x", { take: "theirs" }, { branch: "agents/b/work" });
    expect((await stored.continue()).status).toBe("merged");
    expect(await workflow.stateAt("canonical")).toEqual({ x: 2, z: 5, log: ["a", "b"] });
  });

  it("refuses what does not conflict, and what somebody else changed meanwhile", async () => {
    const workflow = await disagreement(backend);
    await workflow.merge(["a/work", "b/work"], { onConflict: "store" });
    const mine = await workflow.storedMerge();
    const theirs = await workflow.storedMerge();
    for (const path of ["/z", "/x/deep", "x", ""]) {
      await expect(mine.resolve(path, { take: "ours" })).rejects.toEqual(
        agstateError("PATH_NOT_FOUND"),
      );
    }
    await expect(mine.resolve("/x", { value: undefined })).rejects.toEqual(
      agstateError("INVALID_VALUE"),
    );
    await mine.resolve("/x", { take: "ours" });
    await expect(theirs.resolve("/x", { take: "theirs" })).rejects.toEqual(
      agstateError("REF_CONFLICT"),
    );
    await expect(theirs.abort()).rejects.toEqual(agstateError("REF_CONFLICT"));
    await mine.resolve("/y", { take: "ours" });
    await expect(theirs.continue({ resolve: () => ({ take: "ours" }) })).rejects.toEqual(
      agstateError("REF_CONFLICT"),
    );
    expect((await mine.continue()).status).toBe("merged");
    await expect(mine.continue()).rejects.toEqual(agstateError("REF_CONFLICT"));
  });

  it("is given up without a trace but its log", async () => {
    const workflow = await disagreement(backend);
    const before = await workflow.refs();
    const { stored } = await workflow.merge(["a/work", "b/work"], { onConflict: "store" });
    await workflow.merge(["a/work", "b/work"], { onConflict: "store" });
    await expect(workflow.storedMerge()).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    expect(await workflow.storedMerges()).toHaveLength(2);
    for (const merge of await workflow.storedMerges()) await merge.abort({ actor: "person" });
    expect(await workflow.refs()).toEqual(before);
    const [last] = await workflow.reflog(`refs/merges/${stored}`);
    expect(last).toMatchObject({ actor: "person", new: null, reason: "merge: aborted" });
  });

  it("asks again where a resolution makes a later branch conflict", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: {
        l: [
          { id: 1, v: 0 },
          { id: 2, v: 0 },
        ],
      },
      policies: { "/l": "by-id:id" },
    });
    const a = await workflow.branch({ agent: "a", branch: "work" });
    const b = await workflow.branch({ agent: "b", branch: "work" });
    await (await workflow.canonical()).update([{ op: "delete", path: "/l/0" }]);
    await a.update(set("/l/0/v", 1));
    await b.update(set("/l/1/v", 9));
    const names = ["a/work", "b/work"];
    // An id that another element has: the list can no longer be merged by id.
    const twice = { value: { id: 2, v: "again" } };
    const asked: string[] = [];
    const result = await workflow.merge(names, {
      into: "canonical",
      onConflict: "store",
      resolve: ({ path, theirs }) => {
        asked.push(`${path} ${theirs.branch}`);
        return path === "/l/id=1" ? twice : undefined;
      },
    });
    expect(asked).toEqual(["/l/id=1 agents/a/work", "/l agents/a/work"]);
    expect(result.conflicts.map(({ path, theirs }) => [path, theirs.branch])).toEqual([
      ["/l", "agents/a/work"],
      ["/l", "agents/b/work"],
    ]);
    // What the function resolved stays resolved.
    const kept = await workflow.storedMerge();
    expect(kept.info.resolved).toMatchObject([{ path: "/l/id=1", how: "value" }]);
    expect((await kept.conflicts()).map(({ path }) => path)).toEqual(["/l", "/l"]);
    await kept.abort();
    await workflow.merge(names, { onConflict: "store" });
    const stored = await workflow.storedMerge();
    expect((await stored.conflicts()).map(({ path }) => path)).toEqual(["/l/id=1"]);
    await stored.resolve("/l/id=1", twice);
    expect((await stored.conflicts()).map(({ path }) => path)).toEqual(["/l", "/l"]);
    await stored.resolve("/l", { value: ["settled"] });
    expect((await stored.continue()).status).toBe("merged");
    expect(await workflow.stateAt("canonical")).toEqual({ l: ["settled"] });
    expect((await workflow.mergeRecord("canonical"))?.resolved).toMatchObject([
      { path: "/l", how: "value" },
    ]);
  });

  it("also holds a cherry-pick and a revert", async () => {
    const workflow = await disagreement(backend);
    await workflow.merge(["a/work"]);
    const picked = await workflow.cherryPick("b/work", { onConflict: "store" });
    expect(picked.status).toBe("conflict");
    const stored = await workflow.storedMerge();
    expect(stored.info.operation).toBe("cherry-pick");
    await stored.resolve("/x", { take: "theirs" });
    await stored.resolve("/y", { take: "ours" });
    const done = await stored.continue();
    expect(done.status).toBe("merged");
    // A cherry-pick has one parent, whatever became of its conflicts.
    expect(done.commit?.parents).toHaveLength(1);
    expect(await workflow.stateAt("canonical")).toEqual({ x: 2, y: 10, z: 0, log: ["a", "b"] });
  });
});

describe.each(BACKENDS)("changes that are carried elsewhere, on %s", (backend) => {
  it("cherry-picks one commit's change", async () => {
    const workflow = await disagreement(backend);
    const a = await workflow.branch("a/work");
    await a.update(set("/z", 9), { message: "Set z\n\nIt was time." });
    const picked = await workflow.cherryPick("a/work", { author: "boss" });
    expect(picked.status).toBe("applied");
    expect(picked.commit).toMatchObject({
      author: "boss",
      message: `Set z\n\nIt was time.\n\n(cherry picked from commit ${a.head.id})`,
    });
    expect(await workflow.stateAt("canonical")).toEqual({ x: 0, y: 0, z: 9, log: [] });
    const before = await snapshot(workflow);
    expect((await workflow.cherryPick("a/work")).status).toBe("up-to-date");
    expect(await snapshot(workflow)).toEqual(before);
    await workflow.cherryPick("a/work", { onto: "b/work" });
    expect(await workflow.stateAt("b/work", "/z")).toBe(9);
  });

  it("reverts one commit's change, also under a policy, and a merge by its mainline", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: { n: 1, log: ["one"] },
      policies: { "/n": "sum", "/log": "append" },
    });
    const canonical = await workflow.canonical();
    await canonical.update([...set("/n", 3), { op: "append", path: "/log", value: "two" }], {
      message: "Two more",
    });
    const bad = canonical.head.id;
    await canonical.update([...set("/n", 7), { op: "append", path: "/log", value: "three" }]);
    const reverted = await workflow.revert(bad);
    expect(reverted.commit?.message).toBe(`Revert "Two more"\n\nThis reverts commit ${bad}.`);
    expect(await workflow.stateAt("canonical")).toEqual({ n: 5, log: ["one", "three"] });

    const branch = await workflow.branch({ agent: "a", branch: "work", from: bad });
    await branch.update(set("/extra", true));
    const merge = await workflow.merge(["a/work"]);
    await expect(workflow.revert("canonical")).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    await expect(workflow.revert("canonical", { mainline: 3 })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    await workflow.revert(merge.commit?.id as string, { mainline: 1 });
    expect(await workflow.stateAt("canonical")).toEqual({ n: 5, log: ["one", "three"] });
    const root = await workflow.resolve(`${bad}~1`);
    await expect(workflow.revert(root, { mainline: 1 })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
  });

  it("resets a branch, if it is where it is expected; what it leaves is in the log", async () => {
    const workflow = await disagreement(backend);
    const was = await workflow.resolve("a/work");
    await expect(workflow.reset("a/work", "canonical", { expected: "b/work" })).rejects.toEqual(
      agstateError("REF_CONFLICT"),
    );
    await workflow.reset("a/work", "canonical", { expected: was, actor: "boss" });
    expect(await workflow.resolve("a/work")).toBe(await workflow.resolve("canonical"));
    expect(await workflow.resolve("a/work@{1}")).toBe(was);
    const [line] = await workflow.reflog("a/work");
    expect(line).toMatchObject({ actor: "boss", reason: 'reset: moving to "canonical"' });
    await expect(workflow.reset("nobody/x", "canonical")).rejects.toEqual(
      agstateError("REF_NOT_FOUND"),
    );
  });
});
