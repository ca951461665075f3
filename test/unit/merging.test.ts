import { describe, expect, it } from "vitest";
import type { Branch, Conflict, JsonValue, MergeOptions, Workflow } from "../../src/index.js";
import { ObjectSink } from "../../src/objects/sink.js";
import { prepareCommit } from "../../src/store/write-commit.js";
import { agstateError, BACKENDS, makeStore, parsed, snapshot } from "../support/stores.js";

async function start(
  backend: (typeof BACKENDS)[number],
  state: JsonValue = { n: 0, log: ["start"], cfg: { mode: "slow", size: 1 } },
): Promise<{ workflow: Workflow; a: Branch; b: Branch }> {
  const { store } = await makeStore(backend);
  const workflow = await store.createWorkflow("w", { state });
  const a = await workflow.branch({ agent: "a", branch: "work" });
  const b = await workflow.branch({ agent: "b", branch: "work" });
  return { workflow, a, b };
}

const set = (path: string, value: JsonValue) => [{ op: "set", path, value } as const];

describe.each(BACKENDS)("workflow.merge on %s", (backend) => {
  it("fast-forwards, merges, and says when there is nothing to do", async () => {
    const { workflow, a, b } = await start(backend);
    await a.update(set("/cfg/mode", "fast"), { message: "a" });
    const forward = await workflow.merge(["a/work"]);
    expect(forward).toMatchObject({ status: "fast-forward", attempts: 1, conflicts: [] });
    expect(forward.commit?.id).toBe(a.head.id);
    expect(forward.contributions).toEqual([
      {
        branch: "agents/a/work",
        head: a.head.id,
        status: "fast-forward",
        commits: 1,
        conflicts: 0,
      },
    ]);

    await b.update(set("/cfg/size", 2), { message: "b" });
    const merged = await workflow.merge(["b/work", "a/work"], { author: "boss" });
    expect(merged.status).toBe("merged");
    expect(merged.commit).toMatchObject({
      author: "boss",
      parents: [a.head.id, b.head.id],
      message: "Merge 2 branches into canonical\n\n- agents/b/work\n- agents/a/work",
    });
    expect(merged.contributions.map(({ status }) => status)).toEqual(["merged", "contained"]);
    expect(await workflow.stateAt("canonical", "/cfg")).toEqual({ mode: "fast", size: 2 });

    const before = await snapshot(workflow);
    expect(await workflow.merge(["a/work", "b/work"])).toMatchObject({
      status: "up-to-date",
      commit: { id: merged.commit?.id },
    });
    expect(await snapshot(workflow)).toEqual(before);
    const [line] = await workflow.reflog("canonical", { limit: 1 });
    expect(line).toMatchObject({ actor: "boss", reason: "merge agents/b/work agents/a/work" });
  });

  it("obeys fastForward", async () => {
    const { workflow, a, b } = await start(backend);
    await a.update(set("/n", 1));
    const made = await workflow.merge(["a/work"], { fastForward: "never", message: "kept apart" });
    expect(made.commit).toMatchObject({ message: "kept apart" });
    expect(made.commit?.parents).toHaveLength(2);
    await b.update(set("/cfg/size", 5));
    await expect(workflow.merge(["b/work"], { fastForward: "only" })).rejects.toEqual(
      agstateError("REF_CONFLICT"),
    );
    await expect(
      workflow.merge(["b/work"], { fastForward: "sometimes" } as unknown as MergeOptions),
    ).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
  });

  it("tells of conflicts as data and leaves the target alone", async () => {
    const { workflow, a, b } = await start(backend);
    await a.update(set("/cfg/mode", "fast"));
    const byA = a.head;
    await a.update(set("/log/0", "begin"), { message: "another thing" });
    await b.update([{ op: "delete", path: "/cfg/mode" }]);
    await workflow.merge(["a/work"]);
    const before = await snapshot(workflow);
    const result = await workflow.merge(["b/work"]);
    expect(result).toMatchObject({ status: "conflict", commit: null, stored: null });
    expect(result.conflicts).toEqual<Conflict[]>([
      {
        part: "state",
        path: "/cfg/mode",
        kind: "edit/delete",
        base: { exists: true, value: "slow" },
        ours: { exists: true, value: "fast", branch: "canonical", writer: byA },
        theirs: { exists: false, branch: "agents/b/work", writer: b.head },
      },
    ]);
    expect(result.contributions[0]).toMatchObject({ status: "conflict", conflicts: 1 });
    expect(await snapshot(workflow)).toEqual(before);
    await expect(workflow.promote("b/work")).rejects.toEqual(
      agstateError("MERGE_CONFLICT", { paths: ["/cfg/mode"] }),
    );
  });

  it("previews what it would do, and writes nothing", async () => {
    const { workflow, a, b } = await start(backend);
    await a.update(set("/n", 7));
    await b.update([{ op: "append", path: "/log", value: "b" }]);
    const before = await snapshot(workflow);
    const both = await workflow.preview(["a/work", "b/work"]);
    expect(both).toMatchObject({ status: "merged", commit: null, conflicts: [] });
    expect(both.changes).toEqual([
      { kind: "added", path: "/log/1", after: "b" },
      { kind: "changed", path: "/n", before: 0, after: 7 },
    ]);
    expect(await both.state()).toEqual({
      n: 7,
      log: ["start", "b"],
      cfg: { mode: "slow", size: 1 },
    });
    const one = await workflow.preview(["a/work"]);
    expect(one).toMatchObject({ status: "fast-forward", commit: { id: a.head.id } });
    expect(one.changes).toHaveLength(1);
    expect((await workflow.preview(["canonical"])).status).toBe("up-to-date");
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("resolves by function, claim after claim, and records how", async () => {
    const { workflow, a, b } = await start(backend);
    const c = await workflow.branch({ agent: "c", branch: "work" });
    for (const [branch, mode] of [
      [a, "fast"],
      [b, "fair"],
      [c, "best"],
    ] as const) {
      await branch.update(set("/cfg/mode", mode));
    }
    const seen: unknown[] = [];
    const result = await workflow.merge(["a/work", "b/work", "c/work"], {
      author: "boss",
      resolve: ({ ours, theirs }) => {
        const values = [ours, theirs].map((side) => (side.exists ? side.value : null));
        seen.push(values);
        return { value: values.join("+") };
      },
    });
    expect(seen).toEqual([
      ["fast", "fair"],
      ["fast+fair", "best"],
    ]);
    expect(result.status).toBe("merged");
    expect(await workflow.stateAt("canonical", "/cfg/mode")).toBe("fast+fair+best");
    expect((await workflow.mergeRecord("canonical"))?.resolved).toEqual([
      { part: "state", path: "/cfg/mode", kinds: ["edit/edit"], how: "value", by: "boss" },
    ]);
    expect(await workflow.mergeRecord("a/work")).toBeNull();
  });

  it("leaves open what the function leaves open, and says whose fault a bad answer is", async () => {
    const { workflow, a, b } = await start(backend);
    await a.update([...set("/cfg/mode", "x"), ...set("/n", 1)]);
    await b.update([...set("/cfg/mode", "y"), ...set("/n", 2)]);
    await workflow.merge(["a/work"]);
    const half = await workflow.merge(["b/work"], {
      resolve: ({ path }) => (path === "/n" ? { take: "theirs" } : undefined),
    });
    expect(half.conflicts.map(({ path }) => path)).toEqual(["/cfg/mode"]);
    const failing = (resolve: MergeOptions["resolve"]) => {
      return workflow.merge(["b/work"], resolve === undefined ? {} : { resolve });
    };
    await expect(
      failing(() => {
        throw new Error("no idea");
      }),
    ).rejects.toMatchObject({
      message: expect.stringMatching(/failed at "\/cfg\/mode" with Error/),
      cause: expect.objectContaining({ message: "no idea" }),
    });
    await expect(failing(() => ({ take: "mine" }) as never)).rejects.toEqual(
      agstateError("RESOLVER_FAILED"),
    );
    await expect(failing(() => ({ value: Number.NaN }))).rejects.toEqual(
      agstateError("INVALID_VALUE"),
    );
    const gone = await failing(({ path }) =>
      path === "/n" ? { delete: true } : { value: { deep: parsed('{"__proto__":1}') } },
    );
    expect(gone.status).toBe("merged");
    const state = await workflow.stateAt("canonical");
    expect(JSON.stringify(state)).toBe(
      '{"cfg":{"mode":{"deep":{"__proto__":1}},"size":1},"log":["start"]}',
    );
  });

  it("merges by the target's policies, never by those of a source", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: { n: 0, log: [] },
      policies: { "/n": "sum" },
    });
    const a = await workflow.branch({ agent: "a", branch: "work" });
    const b = await workflow.branch({ agent: "b", branch: "work" });
    await a.update(set("/n", 5));
    await b.update(set("/n", 3));
    await b.setPolicies({ "/n": "theirs", "/log": "union" });
    await workflow.merge(["a/work", "b/work"]);
    expect(await workflow.stateAt("canonical", "/n")).toBe(8);
    expect((await workflow.mergeRecord("canonical"))?.policies).toEqual({ "/n": "sum" });
    // What the source changed acts from the next merge on.
    const changed = await (await workflow.canonical()).policies();
    expect(changed).toEqual({ "/log": "union", "/n": "theirs" });
  });

  it("merges the policies themselves by default rules", async () => {
    const { workflow, a, b } = await start(backend);
    await a.setPolicies({ "/n": "sum", "/log": "append" });
    await b.setPolicies({ "/n": "max" });
    const { status, conflicts } = await workflow.merge(["a/work", "b/work"]);
    expect(status).toBe("conflict");
    expect(conflicts).toMatchObject([
      { part: "policy", path: "/~1n", kind: "add/add", ours: { value: "sum" } },
    ]);
    await workflow.merge(["a/work", "b/work"], { resolve: () => ({ take: "theirs" }) });
    const canonical = await workflow.canonical();
    expect(await canonical.policies()).toEqual({ "/log": "append", "/n": "max" });
    await canonical.setPolicies({ "/n": null, "/log": null });
    expect(await canonical.policies()).toEqual({});
  });

  it("lets a call put policies before those of the target, and records them", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: { best: 1 },
      policies: { "/best": "max" },
    });
    for (const [agent, best] of [
      ["a", 5],
      ["b", 3],
    ] as const) {
      await (await workflow.branch({ agent, branch: "work" })).update(set("/best", best));
    }
    expect(await (await workflow.preview(["a/work", "b/work"])).state()).toEqual({ best: 5 });
    await workflow.merge(["a/work", "b/work"], { policies: { "/best": "min" } });
    expect(await workflow.stateAt("canonical")).toEqual({ best: 3 });
    expect(await workflow.mergeRecord("canonical")).toMatchObject({
      policies: { "/best": "min" },
      callPolicies: { "/best": "min" },
    });
    expect(await (await workflow.canonical()).policies()).toEqual({ "/best": "max" });
  });

  it("asks named resolvers, records their versions, and refuses names that it does not know", async () => {
    const { store } = await makeStore(backend, {
      resolvers: {
        longest: {
          version: "1.2",
          resolve: ({ ours, theirs }) =>
            String(theirs).length > String(ours).length ? { take: "theirs" } : { take: "ours" },
        },
      },
    });
    const workflow = await store.createWorkflow("w", {
      state: { text: "" },
      policies: { "/text": "custom:longest" },
    });
    for (const [agent, text] of [
      ["a", "short"],
      ["b", "rather long"],
      ["c", "mid long"],
    ] as const) {
      await (await workflow.branch({ agent, branch: "work" })).update(set("/text", text));
    }
    await workflow.merge(["a/work", "b/work", "c/work"]);
    expect(await workflow.stateAt("canonical")).toEqual({ text: "rather long" });
    expect(await workflow.mergeRecord("canonical")).toMatchObject({
      resolvers: { longest: "1.2" },
    });
    const d = await workflow.branch({ agent: "d", branch: "work", from: "canonical~1" });
    await d.update(set("/text", "d"));
    for (const name of ["constructor", "unknown"]) {
      await expect(
        workflow.merge(["d/work"], { policies: { "/text": `custom:${name}` } }),
      ).rejects.toEqual(agstateError("RESOLVER_NOT_FOUND", { resolver: name }));
    }
  });

  it("merges what criss-crossed alike, whatever the ids of its commits are", async () => {
    const { store } = await makeStore(backend);
    const found = new Set<string>();
    const orders = new Set<boolean>();
    // Both orders of the two bases' ids come by chance, soon.
    for (let i = 0; i < 100 && orders.size < 2; i++) {
      const workflow = await store.createWorkflow(`w${i}`, {
        state: { list: ["z"], side: "z" },
        policies: { "/side": "theirs" },
      });
      const branch = await workflow.branch({ agent: "a", branch: "work" });
      const canonical = await workflow.canonical();
      const ours = await canonical.commit({ state: { list: ["z", "x"], side: "x" } });
      const theirs = await branch.commit({ state: { list: ["z", "y"], side: "y" } });
      await workflow.merge(["a/work"]);
      await workflow.merge([ours.id], { into: "a/work" });
      const bases = await workflow.mergeBases("canonical", "a/work");
      expect([...bases].sort()).toEqual([ours.id, theirs.id].sort());
      const both = [
        await (await workflow.preview(["a/work"])).state(),
        await (await workflow.preview(["canonical"], { into: "a/work" })).state(),
      ];
      found.add(JSON.stringify(both));
      orders.add(ours.id < theirs.id);
    }
    expect(orders.size).toBe(2);
    expect(found.size).toBe(1);
  });

  it("refuses unrelated histories unless asked", async () => {
    const { workflow } = await start(backend);
    const other = await workflow.branch({
      agent: "o",
      branch: "work",
      from: "refs/audit/workflow",
    });
    await other.commit({ state: { n: 0, found: true } });
    await expect(workflow.merge(["o/work"])).rejects.toEqual(
      agstateError("UNRELATED_HISTORIES", { branch: "agents/o/work" }),
    );
    const merged = await workflow.merge(["o/work"], { allowUnrelated: true });
    expect(merged.status).toBe("merged");
    expect(await workflow.stateAt("canonical", "/found")).toBe(true);
    expect(await workflow.mergeBases("canonical", "o/work")).toEqual([other.head.id]);
  });

  it("refuses a branch with open intents unless asked", async () => {
    const { workflow, a } = await start(backend);
    await a.update(set("/n", 4));
    const repository = workflow.internals;
    // A commit as a step that was started leaves it.
    const { sink, loaded } = {
      sink: new ObjectSink(),
      loaded: await repository.commitAt("a/work"),
    };
    const started = prepareCommit(repository, {
      sink,
      parents: [{ ...loaded, inFlight: [3] }],
      root: loaded.root,
      author: "a",
      minStep: 4,
      options: { message: "started" },
    });
    await repository.refs.apply({
      updates: [
        {
          ref: a.ref,
          expect: { kind: "any" },
          target: started.record.id,
          commits: [started.record],
          note: { actor: "a", reason: "started" },
        },
      ],
    });
    expect((await workflow.commitAt("a/work")).inFlight).toEqual([3]);
    await expect(workflow.merge(["a/work"])).rejects.toEqual(
      agstateError("OPEN_INTENTS", { branch: "agents/a/work", steps: [3] }),
    );
    expect((await workflow.merge(["a/work"], { allowOpenIntents: true })).status).toBe(
      "fast-forward",
    );
  });

  it("stops when it is told to, and after the attempts that it may make", async () => {
    const { workflow, a, b } = await start(backend);
    await a.update(set("/n", 1));
    const gone = AbortSignal.abort(new Error("enough"));
    await expect(workflow.merge(["a/work"], { signal: gone })).rejects.toThrow("enough");
    await b.update(set("/cfg/size", 9));
    const canonical = await workflow.canonical();
    await canonical.commit({ allowEmpty: true });
    await a.update(set("/cfg/mode", "x"));
    await b.update(set("/cfg/mode", "y"));
    // Somebody moves the target each time while the merge is being made.
    const moving: MergeOptions = {
      resolve: async () => {
        await canonical.refresh();
        await canonical.commit({ allowEmpty: true });
        return { take: "ours" };
      },
      maxAttempts: 3,
    };
    await expect(workflow.merge(["a/work", "b/work"], moving)).rejects.toEqual(
      agstateError("REF_CONFLICT", { attempts: 3 }),
    );
    let left = 2;
    const twice = await workflow.merge(["a/work", "b/work"], {
      resolve: async () => {
        if (left-- > 0) await (await workflow.canonical()).commit({ allowEmpty: true });
        return { take: "ours" };
      },
    });
    expect(twice).toMatchObject({ status: "merged", attempts: 3 });
  });

  it("refuses bad arguments before it does anything", async () => {
    const { workflow } = await start(backend);
    await expect(workflow.merge([])).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    await expect(workflow.merge(["a/work:/n"])).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    await expect(workflow.merge(["nobody/here"])).rejects.toEqual(
      agstateError("REVISION_NOT_FOUND"),
    );
    await expect(workflow.merge(["a/work"], { into: "x/y" })).rejects.toEqual(
      agstateError("REF_NOT_FOUND"),
    );
    await expect(
      workflow.merge(["a/work"], { policies: { "/n": "best" } as never }),
    ).rejects.toEqual(agstateError("INVALID_POLICY"));
    await expect(workflow.merge(["a/work"], { policies: { n: "sum" } as never })).rejects.toEqual(
      agstateError("INVALID_PATH"),
    );
    await expect(workflow.merge(["a/work"], { maxAttempts: 0 })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
  });
});
