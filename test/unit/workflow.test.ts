import { describe, expect, it } from "vitest";
import type { CreateWorkflowOptions } from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

describe.each(BACKENDS)("a workflow, on %s", (backend) => {
  it("begins with its declarations on a ref of their own, and canonical's first commit", async () => {
    const { store, another } = await makeStore(backend, { region: "eu-1" });
    const declared = {
      classification: "regulated",
      storageRegion: "eu-1",
      retentionPolicy: "P90D",
      isolation: ["/step/output", "/state/user/email", "/state/user/email"],
      subjects: ["/state/users/{subject}"],
    } as const;
    const made = await store.createWorkflow("w", { ...declared, author: "ops", state: { n: 1 } });
    const isolation = ["/state/user/email", "/step/output"];
    expect(made.info).toEqual({
      id: "w",
      ...declared,
      isolation,
      keyed: "hashes",
      placement: [],
      createdAt: expect.any(Date),
      completedAt: null,
    });

    const workflow = await (await another()).workflow("w");
    expect(workflow.info).toEqual(made.info);
    expect((await workflow.refs()).map((ref) => ref.name)).toEqual([
      "refs/audit/workflow",
      "refs/heads/canonical",
    ]);
    expect(await workflow.stateAt("audit/workflow")).toEqual({
      ...{ workflow: "w", ...declared, isolation },
      createdAt: made.info.createdAt.getTime(),
    });
    expect(await workflow.commitAt("audit/workflow")).toMatchObject({
      ...{ parents: [], generation: 1, author: "ops", message: "Create workflow w" },
    });
    const canonical = await workflow.canonical();
    expect(canonical.head).toMatchObject({ parents: [], author: "ops", nextStep: 1 });
    expect(canonical.author).toBe("agstate");
    expect(await canonical.state()).toEqual({ n: 1 });
    expect(await canonical.reflog()).toMatchObject([
      { seq: 1, old: null, new: canonical.head.id, actor: "ops", reason: "workflow: created" },
    ]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("is internal, of no region, kept for ever, and empty unless it says otherwise", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    expect(workflow.info).toMatchObject({
      classification: "internal",
      storageRegion: null,
      retentionPolicy: null,
      isolation: [],
      subjects: [],
      keyed: "nothing",
    });
    expect(await workflow.stateAt("canonical")).toEqual({});
  });

  const REFUSED: [CreateWorkflowOptions, code: string][] = [
    [{ classification: "secret" as never }, "INVALID_ARGUMENT"],
    [{ classification: "" as never }, "INVALID_ARGUMENT"],
    [{ classification: "Public" as never }, "INVALID_ARGUMENT"],
    [{ storageRegion: "us-1" }, "STORE_MISMATCH"],
    [{ storageRegion: "EU-1" }, "STORE_MISMATCH"],
    [{ storageRegion: "" }, "INVALID_NAME"],
    [{ classification: "sensitive" }, "INVALID_ARGUMENT"],
    [{ classification: "regulated" }, "INVALID_ARGUMENT"],
    ...[
      "",
      "P",
      "PT",
      "P1",
      "90D",
      "P90",
      "p90d",
      "P1DT",
      "P1.5D",
      "P-1D",
      "P1D1Y",
      "P1H",
      "PT1D",
    ].map((retentionPolicy): [CreateWorkflowOptions, string] => [
      { retentionPolicy },
      "INVALID_ARGUMENT",
    ]),
    [{ retentionPolicy: "P1D\n" }, "INVALID_ARGUMENT"],
    [{ retentionPolicy: 90 as never }, "INVALID_ARGUMENT"],
    ...["", "/", "/state", "state/x", "/envelope/x", "/other", "/state/~", "x"].map(
      (path): [CreateWorkflowOptions, string] => [{ isolation: [path] }, "INVALID_PATH"],
    ),
    ...["/state/users", "/state/{subject}/{subject}", "{subject}", "/x/{subject}"].map(
      (path): [CreateWorkflowOptions, string] => [{ subjects: [path] }, "INVALID_PATH"],
    ),
    [{ author: "<a>" }, "INVALID_NAME"],
    [{ state: { a: Number.NaN } }, "INVALID_VALUE"],
  ];

  it("is refused with bad declarations, and nothing of it is left", async () => {
    const { store } = await makeStore(backend, { region: "eu-1" });
    for (const [options, code] of REFUSED) {
      const label = JSON.stringify(options);
      await expect(store.createWorkflow("w", options), label).rejects.toMatchObject({ code });
      await expect(store.workflow("w"), label).rejects.toThrow(
        agstateError("WORKFLOW_NOT_FOUND", { workflow: "w" }),
      );
    }
    expect(await all(store.workflows())).toEqual([]);
  });

  it("may have any period, and any region that its store stands in", async () => {
    const { store } = await makeStore(backend, { region: "eu-1" });
    const periods = [
      "P1Y",
      "P6M",
      "P2W",
      "P90D",
      "P1Y2M3W4D",
      "PT36H",
      "PT5M",
      "PT1S",
      "P1DT2H3M4S",
    ];
    for (const retentionPolicy of periods) {
      const workflow = await store.createWorkflow(retentionPolicy, {
        retentionPolicy,
        storageRegion: "eu-1",
      });
      expect(workflow.info).toMatchObject({ retentionPolicy, storageRegion: "eu-1" });
    }
    await expect(
      (await makeStore(backend)).store.createWorkflow("w", { storageRegion: "eu-1" }),
    ).rejects.toThrow(agstateError("STORE_MISMATCH", { storeRegion: null }));
  });

  it("is made once, whoever tries", async () => {
    const { store, another } = await makeStore(backend);
    const other = await another();
    const results = await Promise.allSettled(
      [store, other, store].map((one, i) => one.createWorkflow("w", { state: { i } })),
    );
    expect(results.filter((result) => result.status === "fulfilled").length).toBe(1);
    for (const result of results) {
      if (result.status === "rejected") {
        expect(result.reason).toEqual(agstateError("WORKFLOW_EXISTS", { workflow: "w" }));
      }
    }
    const workflow = await other.workflow("w");
    const report = await workflow.fsck();
    expect(report).toMatchObject({ problems: [], commits: 2, refs: 2 });
  });

  it("shares nothing with others of the store", async () => {
    const { store } = await makeStore(backend);
    const [one, two] = [await store.createWorkflow("one"), await store.createWorkflow("two")];
    const branch = await one.branch({ agent: "a", branch: "x" });
    const { id } = await branch.commit({ state: { secret: "x".repeat(3000) }, externalId: "e" });
    await one.tag("t", "a/x");
    for (const revision of [id, id.slice(0, 20), "a/x", "t"]) {
      await expect(two.resolve(revision)).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
    }
    await expect(two.branch("a/x")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    await expect((await two.canonical()).commit({ mergeParents: [id] })).rejects.toThrow(
      agstateError("REVISION_NOT_FOUND"),
    );
    expect(await two.findExternal("e")).toEqual([]);
    expect((await two.refs()).length).toBe(2);
    expect((await all(two.log())).length).toBe(2);
    expect((await two.usage()).commits).toBe(2);
  });

  it("is listed with the others by the bytes of their ids, however many", async () => {
    const { store } = await makeStore(backend);
    const ids = ["b", "a", "B", "é", "z", "\u{1f600}", "\uff5e", "a b", "1", "10", "2"];
    for (const id of ids) await store.createWorkflow(id);
    const sorted = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect((await all(store.workflows())).map((info) => info.id)).toEqual(sorted);
  });

  it("logs all refs, or those asked for, and as many commits as asked for", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branches = [];
    for (const name of ["x", "y"]) {
      const branch = await workflow.branch({ agent: "a", branch: name });
      for (let i = 0; i < 3; i++) {
        await branch.commit({
          state: { name, i },
          message: `${name}${i}`,
          date: new Date(2e12 + i),
        });
      }
      branches.push(branch);
    }
    const messages = async (options: Parameters<typeof workflow.log>[0]) =>
      (await all(workflow.log(options))).map((commit) => commit.message);
    expect((await messages({})).length).toBe(8);
    expect(await messages({ revisions: ["a/x"] })).toEqual([
      ...["x2", "x1", "x0", "Create workflow w"],
    ]);
    expect(await messages({ revisions: ["a/x~1", "a/y~2"] })).toEqual([
      ...["x1", "x0", "y0", "Create workflow w"],
    ]);
    expect(await messages({ revisions: ["a/x"], limit: 2 })).toEqual(["x2", "x1"]);
    expect(await messages({ revisions: [] })).toEqual([]);
    expect(await messages({ limit: 0 })).toEqual([]);
    await expect(messages({ revisions: ["a/x", "nope"] })).rejects.toThrow(
      agstateError("REVISION_NOT_FOUND"),
    );
  });

  it("keeps tags where they were put", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.canonical();
    const old = branch.head.id;
    const tag = await workflow.tag("t", "canonical", { actor: "me", reason: "a session ends" });
    expect(tag).toMatchObject({ name: "refs/tags/t", shortName: "tags/t", id: old, seq: 1 });
    await branch.commit({ state: { n: 1 } });
    expect(await workflow.resolve("t")).toBe(old);
    expect(await workflow.deleteTag("t")).toEqual({ id: old });
    await expect(workflow.resolve("t")).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
    await workflow.tag("t", "canonical");
    expect((await workflow.reflog("t")).map((line) => [line.actor, line.reason])).toEqual([
      ["agstate", 'tag: "canonical"'],
      ["agstate", "tag: deleted"],
      ["me", "a session ends"],
    ]);
    // A tag is no branch, and the other way round.
    await expect(workflow.deleteBranch("tags/t")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    await expect(workflow.deleteTag("nope")).rejects.toThrow(agstateError("REF_NOT_FOUND"));
  });
});
