import { describe, expect, it } from "vitest";
import { agstateError, all, BACKENDS, makeStore, snapshot } from "../support/stores.js";

describe.each(BACKENDS)("a branch, on %s", (backend) => {
  async function begin(state: unknown = { n: 0 }) {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state });
    return { store, another, workflow, branch: await workflow.branch({ agent: "a", branch: "x" }) };
  }

  it("writes nothing when nothing changed and nothing asks for a commit", async () => {
    const { workflow, branch } = await begin({ n: 0, list: [1, { a: "x".repeat(3000) }] });
    const before = await snapshot(workflow);
    const { head } = branch;
    const same = { list: [1, { a: "x".repeat(3000) }], n: -0 };
    expect(await branch.commit({ state: same })).toEqual(head);
    expect(await branch.commit({ state: await branch.state(), message: "" })).toEqual(head);
    expect(await branch.commit()).toEqual(head);
    expect(await branch.update([])).toEqual(head);
    expect(await branch.update([{ op: "set", path: "/n", value: 0 }])).toEqual(head);
    expect(
      await branch.update([
        { op: "append", path: "/list", value: 2 },
        { op: "delete", path: "/list/2" },
      ]),
    ).toEqual(head);
    expect(await branch.commit({ mergeParents: ["canonical", head.id, "a/x"] })).toEqual(head);
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("commits what did not change when something asks for it", async () => {
    const { workflow, branch } = await begin();
    await (await workflow.canonical()).commit({ state: { n: 1 } });
    const asks = [
      { message: "m" },
      { allowEmpty: true },
      { externalId: "e" },
      { step: { action: "read", record: {} } },
      { mergeParents: ["canonical"] },
    ] as const;
    for (const ask of asks) {
      const { head } = branch;
      const commit = await branch.commit(ask);
      expect(commit.parents[0]).toBe(head.id);
      expect(commit.id).not.toBe(head.id);
    }
    expect(await branch.state()).toEqual({ n: 0 });
    expect((await branch.reflog()).length).toBe(1 + asks.length);
  });

  it("never gives two commits one id", async () => {
    const { workflow, branch } = await begin();
    const other = await workflow.branch({ agent: "b", branch: "x" });
    const same = { state: { n: 1 }, author: "z", date: new Date(1e12), message: "m" };
    const ids = [await branch.commit(same), await other.commit(same)].map((commit) => commit.id);
    expect(ids[0]).not.toBe(ids[1]);
    const again = await branch.commit({ ...same, allowEmpty: true });
    expect(again.tree).toBe(branch.head.tree);
    expect(new Set([...ids, again.id]).size).toBe(3);
  });

  it("keeps what a commit says", async () => {
    const { another, branch } = await begin();
    const commit = await branch.commit({
      state: { n: 1 },
      message: "first line\n\nmore",
      author: "somebody else",
      date: new Date(1_600_000_000_999),
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      externalId: "thread 7",
      reason: "because",
    });
    expect(commit).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{64}$/),
      tree: expect.stringMatching(/^[0-9a-f]{64}$/),
      parents: [expect.stringMatching(/^[0-9a-f]{64}$/)],
      author: "somebody else",
      committer: "somebody else",
      date: new Date(1_600_000_000_000),
      message: "first line\n\nmore",
      step: null,
      nextStep: 1,
      inFlight: [],
      stateVersion: null,
      generation: 2,
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      externalId: "thread 7",
      checkpointReason: null,
    });
    const reader = await (await another()).workflow("w");
    expect(await reader.commitAt(commit.id)).toEqual(commit);
    expect((await reader.branch("a/x")).head).toEqual(commit);
    expect(await reader.findExternal("thread 7")).toEqual([commit]);
    expect(await reader.findExternal("thread")).toEqual([]);
    expect((await reader.reflog("a/x"))[0]).toMatchObject({
      selector: "agents/a/x@{0}",
      seq: 2,
      old: commit.parents[0],
      new: commit.id,
      actor: "somebody else",
      reason: "because",
      trace: commit.trace,
    });
  });

  it.each([-1000, 253_402_300_800_000, Number.NaN])("refuses the date %d", async (time) => {
    const { workflow, branch } = await begin();
    const before = await snapshot(workflow);
    await expect(branch.commit({ state: { n: 1 }, date: new Date(time) })).rejects.toThrow(
      agstateError("INVALID_ARGUMENT"),
    );
    expect(await snapshot(workflow)).toEqual(before);
    for (const edge of [0, 253_402_300_799_999]) {
      const commit = await branch.commit({ date: new Date(edge), allowEmpty: true });
      expect(commit.date.getTime()).toBe(Math.floor(edge / 1000) * 1000);
    }
  });

  it("runs calls on one handle one after another", async () => {
    const { workflow, branch } = await begin({ list: [] });
    const many = Array.from({ length: 30 }, (_, i) => i);
    const commits = await Promise.all(
      many.map((i) =>
        i % 10 === 5
          ? branch.commit({ message: `m${i}` })
          : branch.update([{ op: "append", path: "/list", value: i }]),
      ),
    );
    expect(new Set(commits.map((commit) => commit.id)).size).toBe(30);
    commits.forEach((commit, i) => {
      if (i > 0) expect(commit.parents).toEqual([commits[i - 1]!.id]);
    });
    expect(await branch.state("/list")).toEqual(many.filter((i) => i % 10 !== 5));
    expect((await all(branch.log())).map((commit) => commit.id).slice(0, 30)).toEqual(
      commits.map((commit) => commit.id).reverse(),
    );
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("goes on after a call that failed, with what was before it", async () => {
    const { branch } = await begin({ list: [] });
    const append = (value: unknown) => branch.update([{ op: "append", path: "/list", value }]);
    const results = await Promise.allSettled([
      append(1),
      append(Number.NaN),
      branch.update([
        { op: "append", path: "/list", value: "never" },
        { op: "delete", path: "/nothing" },
      ]),
      branch.commit({ state: { list: [1] }, mergeParents: ["nowhere"] }),
      append(2),
    ]);
    expect(results.map((r) => (r.status === "rejected" ? r.reason.code : "done"))).toEqual([
      ...["done", "INVALID_VALUE", "PATH_NOT_FOUND", "REVISION_NOT_FOUND", "done"],
    ]);
    expect(await branch.state()).toEqual({ list: [1, 2] });
    expect((await all(branch.log())).length).toBe(3);
  });

  it("writes by many handles at once, each on its own branch", async () => {
    const { workflow } = await begin({ shared: "x".repeat(5000) });
    const agents = Array.from({ length: 8 }, (_, i) => `agent-${i}`);
    const branches = await Promise.all(
      agents.map((agent) => workflow.branch({ agent, branch: "b" })),
    );
    await Promise.all(
      branches.map(async (branch, b) => {
        for (let i = 0; i < 5; i++) {
          await branch.update([{ op: "set", path: "/own", value: { b, i } }]);
        }
      }),
    );
    for (const [b, agent] of agents.entries()) {
      expect(await workflow.stateAt(`${agent}/b`, "/own")).toEqual({ b, i: 4 });
      expect(await workflow.aheadBehind(`${agent}/b`, "canonical")).toEqual({
        ahead: 5,
        behind: 0,
      });
    }
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("records merge parents in the order given, each once", async () => {
    const { workflow, branch } = await begin();
    const one = await workflow.branch({ agent: "b", branch: "one" });
    const two = await workflow.branch({ agent: "b", branch: "two" });
    const [x, y] = [await one.commit({ state: { n: 1 } }), await two.commit({ state: { n: 2 } })];
    await two.commit({ state: { n: 3 } });
    const head = branch.head.id;
    const merge = await branch.commit({
      state: { n: 4 },
      mergeParents: ["b/two~1", "b/one", y.id, "a/x", "canonical"],
    });
    expect(merge.parents).toEqual([head, y.id, x.id]);
    expect(merge.generation).toBe(3);
    expect(await branch.state()).toEqual({ n: 4 });
    expect((await workflow.merged("a/x")).map((ref) => ref.shortName)).toEqual([
      ...["agents/a/x", "agents/b/one", "canonical"],
    ]);
    expect(await workflow.resolve("a/x^2")).toBe(y.id);
    expect(await workflow.resolve("a/x^3")).toBe(x.id);
    expect((await all(branch.log({ firstParent: true }))).map((c) => c.id)).toEqual([
      merge.id,
      head,
    ]);
    expect((await all(branch.log())).length).toBe(4);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("begins where it is told to", async () => {
    const { workflow, branch } = await begin();
    const first = await branch.commit({ state: { n: 1 } });
    await branch.commit({ state: { n: 2 } });
    await workflow.tag("t", "a/x");
    const froms = { "a/x~1": 1, t: 2, [first.id.slice(0, 12)]: 1, "a/x@{1}": 1 };
    for (const [i, [from, n]] of Object.entries(froms).entries()) {
      const made = await workflow.branch({ agent: "b", branch: `from-${i}`, from });
      expect(await made.state()).toEqual({ n });
      expect(made.author).toBe("b");
      expect((await made.reflog())[0]).toMatchObject({ old: null, actor: "b" });
    }
    await expect(workflow.branch({ agent: "b", branch: "z", from: "nowhere" })).rejects.toThrow(
      agstateError("REVISION_NOT_FOUND"),
    );
    await expect(workflow.branch("b/z")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
  });

  it("chains its log: each entry holds the hash of the one before", async () => {
    const { workflow, branch } = await begin();
    for (let i = 1; i <= 3; i++) await branch.commit({ state: { n: i } });
    await workflow.deleteBranch("a/x", { actor: "janitor", reason: "done" });
    const again = await workflow.branch({ agent: "a", branch: "x" });
    await again.commit({ state: { n: 9 } });
    const log = await workflow.reflog("a/x");
    expect(log.map((line) => line.seq)).toEqual([7, 6, 5, 4, 3, 2, 1]);
    log.forEach((line, i) => {
      const before = log[i + 1];
      expect(line.previous).toBe(before?.hash ?? "0".repeat(64));
      expect(line.old).toBe(before?.new ?? null);
      expect(line.selector).toBe(`agents/a/x@{${i}}`);
    });
    expect(new Set(log.map((line) => line.incarnation)).size).toBe(2);
    expect(log[2]).toMatchObject({ new: null, actor: "janitor", reason: "done" });
    expect((await workflow.reflog("a/x", { limit: 2 })).map((line) => line.seq)).toEqual([7, 6]);
  });

  it("reads by path, and says when there is nothing", async () => {
    const { branch } = await begin({
      "a/b": { "~": [10, { "": "empty key" }] },
      long: ["x".repeat(3000), "y".repeat(3000)],
      wide: Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`k${i}`, i])),
      none: null,
    });
    expect(await branch.state("/a~1b/~0/1/")).toBe("empty key");
    expect(await branch.state("/long/1")).toBe("y".repeat(3000));
    expect(await branch.state("/wide/k599")).toBe(599);
    expect(await branch.state("/none")).toBe(null);
    for (const path of [
      ...["/x", "/a", "/a~1b/~0/2", "/a~1b/~0/-", "/a~1b/~0/01", "/a~1b/~0/-1", "/long/2"],
      ...["/none/x", "/wide/k600", "/wide/k1/0", "/long/0/0", "/long/length", "/"],
    ]) {
      await expect(branch.state(path), path).rejects.toThrow(
        agstateError("PATH_NOT_FOUND", { path }),
      );
    }
    for (const path of ["x", "a/b", "/~", "/~2", "/a~"]) {
      await expect(branch.state(path), path).rejects.toThrow(agstateError("INVALID_PATH"));
    }
  });

  it("lives without a state, and gets one again", async () => {
    const { workflow, branch } = await begin();
    await branch.update([{ op: "delete", path: "" }]);
    await expect(branch.state()).rejects.toThrow(agstateError("PATH_NOT_FOUND", { path: "" }));
    await expect(branch.update([{ op: "set", path: "/a", value: 1 }])).rejects.toThrow(
      agstateError("PATH_NOT_FOUND"),
    );
    expect(await workflow.diff("a/x~1", "a/x")).toEqual([
      { kind: "removed", path: "", before: { n: 0 } },
    ]);
    for (const [i, state] of [0, null, "", [], false].entries()) {
      if (i % 2 === 0) await branch.commit({ state });
      else await branch.update([{ op: "set", path: "", value: state }]);
      expect(await branch.state()).toEqual(state);
    }
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});
