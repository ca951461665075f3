import { describe, expect, it } from "vitest";
import { agstateError, all, BACKENDS, makeStore, snapshot } from "../support/stores.js";

const NO_ID = "f".repeat(64);

describe.each(BACKENDS)("updates that expect something else, on %s (REF-01, REF-02)", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    return { store, another, workflow, branch };
  }

  it("refuses a commit on a head that moved, and tells both heads", async () => {
    const { workflow, branch, another } = await begin();
    const stale = await (await (await another()).workflow("w")).branch("a/x");
    const expected = stale.head.id;
    const { id: actual } = await branch.commit({ state: { n: 1 } });
    const before = await snapshot(workflow);

    const conflict = agstateError("REF_CONFLICT", { ref: branch.ref, expected, actual });
    await expect(stale.commit({ state: { n: 2 } })).rejects.toThrow(conflict);
    await expect(stale.update([{ op: "set", path: "/n", value: 3 }])).rejects.toThrow(conflict);
    // The very same state is another commit all the same.
    await expect(stale.commit({ state: { n: 1 } })).rejects.toThrow(conflict);
    expect(await snapshot(workflow)).toEqual(before);
    expect(stale.head.id).toBe(expected);
    expect(await stale.state()).toEqual({ n: 0 });

    expect((await stale.refresh()).id).toBe(actual);
    expect(await stale.state()).toEqual({ n: 1 });
    const { parents } = await stale.commit({ state: { n: 2 } });
    expect(parents).toEqual([actual]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("lets one of many writers win, and every acknowledged commit is reachable", async () => {
    const { another, workflow } = await begin();
    const handles = [];
    for (let i = 0; i < 5; i++) {
      handles.push(await (await (await another()).workflow("w")).branch("a/x"));
    }
    const landed: string[] = [];
    for (let round = 0; round < 5; round++) {
      const results = await Promise.allSettled(
        handles.map((handle, i) => handle.commit({ state: { n: `${round}.${i}` } })),
      );
      const won = results.filter((result) => result.status === "fulfilled");
      expect(won.length).toBe(1);
      landed.push(won[0]!.value.id);
      for (const result of results) {
        if (result.status === "fulfilled") continue;
        expect(result.reason).toEqual(agstateError("REF_CONFLICT", { actual: won[0]!.value.id }));
      }
      for (const handle of handles) await handle.refresh();
    }
    const log = (await all(workflow.log({ revisions: ["a/x"] }))).map((commit) => commit.id);
    expect(log.slice(0, 5)).toEqual(landed.reverse());
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("refuses what expects a branch that is gone, and does not bring it back", async () => {
    const { workflow, branch } = await begin();
    const { id } = await branch.commit({ state: { n: 1 } });
    await workflow.deleteBranch("a/x");
    const before = await snapshot(workflow);
    await expect(branch.commit({ state: { n: 2 } })).rejects.toThrow(
      agstateError("REF_CONFLICT", { expected: id, actual: null }),
    );
    await expect(branch.refresh()).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    await expect(workflow.branch("a/x")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    await expect(workflow.deleteBranch("a/x")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    await expect(workflow.deleteBranch("a/x", { expected: id })).rejects.toThrow(
      agstateError("REF_NOT_FOUND"),
    );
    await expect(workflow.branch({ agent: "a", branch: "x", create: "never" })).rejects.toThrow(
      agstateError("REF_NOT_FOUND"),
    );
    expect(await snapshot(workflow)).toEqual(before);
    expect((await workflow.refs()).map((ref) => ref.shortName)).toEqual([
      "audit/workflow",
      "canonical",
    ]);
  });

  it("refuses a wrong expectation of a ref that never was, and lists and logs as before", async () => {
    const { workflow } = await begin();
    const { refs } = workflow.internals;
    const before = await snapshot(workflow);
    const head = await workflow.resolve("canonical");
    const note = { actor: "a", reason: "test" };
    const update = (
      ref: string,
      expect: Parameters<typeof refs.apply>[0]["updates"][0]["expect"],
    ) => refs.apply({ updates: [{ ref, expect, target: head as never, note }] });

    const never = "refs/heads/agents/never/was";
    const wrong = { kind: "id", id: NO_ID as never } as const;
    expect(await update(never, wrong)).toEqual([{ outcome: "conflict", actual: null }]);
    expect(await update(never, { kind: "id", id: head as never })).toEqual([
      { outcome: "conflict", actual: null },
    ]);
    const [onBranch] = await update("refs/heads/agents/a/x", { kind: "absent" });
    expect(onBranch).toMatchObject({ outcome: "conflict", actual: { id: head } });
    expect(await update("refs/heads/agents/a/x", wrong)).toMatchObject([
      { outcome: "conflict", actual: { id: head } },
    ]);
    expect(
      await refs.apply({ updates: [{ ref: never, expect: { kind: "any" }, target: null, note }] }),
    ).toEqual([{ outcome: "conflict", actual: null }]);
    expect(
      await refs.apply({
        updates: [{ ref: never, expect: { kind: "any" }, target: NO_ID as never, note }],
      }),
    ).toEqual([{ outcome: "missing", ids: [NO_ID] }]);

    expect(await snapshot(workflow)).toEqual(before);
    expect((await workflow.refs()).map((ref) => ref.name)).not.toContain(never);
    expect((await all(workflow.log())).length).toBe(2);
    await expect(workflow.reflog("never/was")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
  });

  it("refuses to create what exists", async () => {
    const { workflow, branch } = await begin();
    const { id } = await branch.commit({ state: { n: 1 } });
    await workflow.tag("t", "canonical");
    const before = await snapshot(workflow);
    await expect(workflow.branch({ agent: "a", branch: "x", create: "always" })).rejects.toThrow(
      agstateError("REF_EXISTS", { ref: "refs/heads/agents/a/x", id }),
    );
    await expect(workflow.tag("t", "a/x")).rejects.toThrow(
      agstateError("REF_EXISTS", { ref: "refs/tags/t" }),
    );
    expect(await snapshot(workflow)).toEqual(before);
    // Opening is not creating.
    expect((await workflow.branch({ agent: "a", branch: "x", from: "t" })).head.id).toBe(id);
  });

  it("deletes only what is where it was expected", async () => {
    const { workflow, branch } = await begin();
    const old = branch.head.id;
    const { id } = await branch.commit({ state: { n: 1 } });
    await workflow.tag("t", "a/x");
    const before = await snapshot(workflow);
    await expect(workflow.deleteBranch("a/x", { expected: old })).rejects.toThrow(
      agstateError("REF_CONFLICT", { expected: old, actual: id }),
    );
    await expect(workflow.deleteTag("t", { expected: "canonical" })).rejects.toThrow(
      agstateError("REF_CONFLICT", { expected: old, actual: id }),
    );
    await expect(workflow.deleteTag("t", { expected: NO_ID })).rejects.toThrow(
      agstateError("REVISION_NOT_FOUND"),
    );
    await expect(workflow.deleteBranch("canonical")).rejects.toThrow(
      agstateError("INVALID_ARGUMENT"),
    );
    expect(await snapshot(workflow)).toEqual(before);
    expect(await workflow.deleteBranch("a/x", { expected: "a/x" })).toEqual({
      id,
      sideEffects: [],
    });
    expect(await workflow.deleteTag("t", { expected: id })).toEqual({ id });
  });

  it("lets one of two create a branch with create: always, and both open it otherwise", async () => {
    const { workflow, another } = await begin();
    const other = await (await another()).workflow("w");
    const both = (create: "always" | "if-absent", branch: string) =>
      Promise.allSettled([workflow, other].map((wf) => wf.branch({ agent: "b", branch, create })));
    const [one, two] = await both("always", "one");
    expect([one!.status, two!.status].sort()).toEqual(["fulfilled", "rejected"]);
    const lost = [one!, two!].find((result) => result.status === "rejected");
    expect(lost?.reason).toEqual(agstateError("REF_EXISTS"));
    for (const result of await both("if-absent", "two")) expect(result.status).toBe("fulfilled");
    expect((await workflow.reflog("b/two")).length).toBe(1);
  });
});

/** Names of the case, and their like; what is refused, with a word of the reason. */
const REFUSED_NAMES: Record<string, RegExp> = {
  "feature/x-": /single component/,
  ".hidden": /begins with/,
  "a/.b": /single component/,
  "../../main": /single component/,
  "a..b": /"\.\."/,
  "..": /"\.\."/,
  ".": /begins with/,
  "a.": /ends in/,
  "x.lock": /\.lock/,
  "-d": /option/,
  HEAD: /meaning/,
  "@": /meaning/,
  "a@{0}": /"@\{"/,
  "": /empty/,
  ["x".repeat(201)]: /201 bytes/,
  ["é".repeat(101)]: /202 bytes/,
  ["x".repeat(300)]: /300 bytes/,
  "a b": /space/,
  " ": /space/,
  "a\0b": /control/,
  "a\tb": /control/,
  "a\x7fb": /control/,
  "a~1": /~/,
  "a^": /\^/,
  "a:b": /:/,
  "a?": /\?/,
  "a*": /\*/,
  "a[b": /\[/,
  "a\\b": /\\/,
  abcd: /commit id/,
  DEADBEEF: /commit id/,
  ["0".repeat(64)]: /commit id/,
  "a\ud83d": /surrogate/,
};

const GOOD_NAMES = [
  ...["x-", "a.b", "lock", "x.locks", "head", "@@", "a@b", "{", "main", "Main", "MAIN", "abc"],
  ...["0".repeat(65), "try-1", "dead-beef", "😀", "e\u0301", "é", "x".repeat(200), "canonical"],
  ...["foo", "refs", "heads", "tags", "agents", "%2e", "a,b", "#", "'", '"', "`", "$x", "!", "&"],
];

describe.each(BACKENDS)("names of branches, agents and tags, on %s (REF-05)", (backend) => {
  it("refuses bad names before any write, with the reason", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const before = await snapshot(workflow);
    for (const [name, reason] of Object.entries(REFUSED_NAMES)) {
      const bad = expect.objectContaining({
        code: "INVALID_NAME",
        message: expect.stringMatching(reason),
      });
      const label = JSON.stringify(name).slice(0, 40);
      await expect(workflow.branch({ agent: "a", branch: name }), label).rejects.toEqual(bad);
      await expect(workflow.tag(name, "canonical"), label).rejects.toEqual(bad);
      await expect(workflow.deleteTag(name), label).rejects.toEqual(bad);
      await expect(workflow.branch({ agent: name, branch: "b" }), label).rejects.toThrow(
        agstateError("INVALID_NAME"),
      );
      await expect(workflow.branch(`a/${name}`), label).rejects.toThrow(
        agstateError("INVALID_NAME"),
      );
    }
    // An agent is an author too: no < and >, which an author line cannot hold.
    for (const agent of ["a<b", "a>b"]) {
      await expect(workflow.branch({ agent, branch: "b" })).rejects.toThrow(
        agstateError("INVALID_NAME"),
      );
    }
    for (const name of ["canon", "main", "refs/heads/main", "refs/tags/x", "a/b/c"]) {
      await expect(workflow.branch(name), name).rejects.toThrow(agstateError("INVALID_NAME"));
    }
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("takes good names, and keeps apart those that differ in case or form only", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const heads = new Map<string, string>();
    for (const name of GOOD_NAMES) {
      const branch = await workflow.branch({ agent: "a", branch: name, create: "always" });
      heads.set(branch.ref, (await branch.commit({ state: { name } })).id);
    }
    for (const agent of GOOD_NAMES) {
      const branch = await workflow.branch({ agent, branch: "b", create: "always" });
      heads.set(branch.ref, (await branch.commit({ state: { agent } })).id);
    }
    expect(new Set(heads.values()).size).toBe(2 * GOOD_NAMES.length);

    const reader = await (await another()).workflow("w");
    const refs = await reader.refs("refs/heads/agents/");
    expect(Object.fromEntries(refs.map((ref) => [ref.name, ref.id]))).toEqual(
      Object.fromEntries(heads),
    );
    const names = refs.map((ref) => Buffer.from(ref.name));
    expect(names).toEqual([...names].sort(Buffer.compare));
    for (const [ref, id] of heads) {
      const short = ref.slice("refs/heads/".length);
      expect((await reader.branch(ref)).head.id, ref).toBe(id);
      expect((await reader.branch(short)).head.id, short).toBe(id);
      expect(await reader.resolve(short), short).toBe(id);
    }
    expect(await reader.stateAt("a/Main", "/name")).toBe("Main");
    expect(await reader.stateAt("a/main", "/name")).toBe("main");
  });

  it("does not let a tag stand in for canonical", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const old = canonical.head.id;
    await workflow.tag("canonical", old).catch((error: unknown) => {
      expect(error).toEqual(agstateError("INVALID_NAME"));
    });
    const { id } = await canonical.commit({ state: { agreed: true } });
    expect((await workflow.branch({ agent: "a", branch: "b" })).head.id).toBe(id);
    expect(await workflow.resolve("refs/heads/canonical")).toBe(id);
  });
});
