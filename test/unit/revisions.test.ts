import { describe, expect, it } from "vitest";
import type { Branch, Workflow } from "../../src/index.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

describe.each(BACKENDS)("revisions, on %s", (backend) => {
  /** canonical: c0 - c1 - m, where m merges a/x: c0 - x1 - x2. */
  async function begin() {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: "c0", "a/b": ["deep"] } });
    const canonical = await workflow.canonical();
    const ids: Record<string, string> = { c0: canonical.head.id };
    const x = await workflow.branch({ agent: "a", branch: "x" });
    const commit = async (branch: Branch, n: string, mergeParents: string[] = []) => {
      ids[n] = (await branch.update([{ op: "set", path: "/n", value: n }], { mergeParents })).id;
    };
    await commit(x, "x1");
    await commit(x, "x2");
    await commit(canonical, "c1");
    await commit(canonical, "m", ["a/x"]);
    await workflow.tag("v1", "a/x~1");
    return { workflow, ids };
  }

  it("mean the commits that Git would mean", async () => {
    const { workflow, ids } = await begin();
    const means: Record<string, string> = {
      canonical: "m",
      "heads/canonical": "m",
      "refs/heads/canonical": "m",
      "agents/a/x": "x2",
      "a/x": "x2",
      "refs/heads/agents/a/x": "x2",
      v1: "x1",
      "tags/v1": "x1",
      "refs/tags/v1": "x1",
      "canonical~": "c1",
      "canonical~0": "m",
      "canonical~1": "c1",
      "canonical~2": "c0",
      "canonical~~": "c0",
      "canonical^": "c1",
      "canonical^0": "m",
      "canonical^1": "c1",
      "canonical^2": "x2",
      "canonical^2~1": "x1",
      "canonical^2~2": "c0",
      "canonical^2^": "x1",
      "canonical^^": "c0",
      "a/x@{0}": "x2",
      "a/x@{1}": "x1",
      "a/x@{2}": "c0",
      "a/x@{1}~1": "c0",
      "canonical@{2}": "c0",
      "canonical@{0}^2": "x2",
      "canonical:/n": "m",
      "canonical~1:": "c1",
      "v1^0:/a~1b/0": "x1",
    };
    for (const [revision, name] of Object.entries(means)) {
      expect(await workflow.resolve(revision), revision).toBe(ids[name]);
      expect((await workflow.commitAt(revision)).id, revision).toBe(ids[name]);
    }
    for (const id of Object.values(ids)) {
      expect(await workflow.resolve(id)).toBe(id);
      expect(await workflow.resolve(id.toUpperCase())).toBe(id);
      expect(await workflow.resolve(id.slice(0, 20))).toBe(id);
      expect(await workflow.resolve(`${id.slice(0, 20)}~0^0`)).toBe(id);
    }
    expect(await workflow.resolve(`${ids.m}^2`)).toBe(ids.x2);
  });

  it("read a value when a path follows", async () => {
    const { workflow } = await begin();
    expect(await workflow.stateAt("canonical~1:/n")).toBe("c1");
    expect(await workflow.stateAt("a/x@{1}:/a~1b/0")).toBe("deep");
    expect(await workflow.stateAt("canonical:")).toEqual({ n: "m", "a/b": ["deep"] });
    expect(await workflow.stateAt("canonical", "/n")).toBe("m");
    expect(await workflow.stateAt("canonical:/n", "/a~1b")).toEqual(["deep"]);
    await expect(workflow.stateAt("canonical:/x")).rejects.toThrow(
      agstateError("PATH_NOT_FOUND", { path: "/x" }),
    );
    await expect(workflow.stateAt("canonical:/~")).rejects.toThrow(agstateError("INVALID_PATH"));
  });

  it("say what is wrong with them", async () => {
    const { workflow, ids } = await begin();
    const wrong: Record<string, "INVALID_REVISION" | "REVISION_NOT_FOUND"> = {
      "": "INVALID_REVISION",
      "~1": "INVALID_REVISION",
      "@{1}": "INVALID_REVISION",
      "canonical:n": "INVALID_REVISION",
      ":/n": "INVALID_REVISION",
      "canonical@{yesterday}": "INVALID_REVISION",
      "canonical@{-1}": "INVALID_REVISION",
      "canonical@{}": "INVALID_REVISION",
      "canonical@{9999999999}": "INVALID_REVISION",
      "canonical~9999999999": "INVALID_REVISION",
      "canonical@{3}": "REVISION_NOT_FOUND",
      "canonical@{4}": "REVISION_NOT_FOUND",
      "canonical~3": "REVISION_NOT_FOUND",
      "canonical^3": "REVISION_NOT_FOUND",
      "canonical~2^": "REVISION_NOT_FOUND",
      "canonical~x": "REVISION_NOT_FOUND",
      HEAD: "REVISION_NOT_FOUND",
      nowhere: "REVISION_NOT_FOUND",
      "refs/heads/nowhere": "REVISION_NOT_FOUND",
      "a/y": "REVISION_NOT_FOUND",
      Canonical: "REVISION_NOT_FOUND",
      abc: "REVISION_NOT_FOUND",
      "0000": "REVISION_NOT_FOUND",
      ["f".repeat(64)]: "REVISION_NOT_FOUND",
      ["f".repeat(65)]: "REVISION_NOT_FOUND",
      [`${ids.m}@{0}`]: "REVISION_NOT_FOUND",
      [`${ids.m}0`]: "REVISION_NOT_FOUND",
      "canonical\n": "REVISION_NOT_FOUND",
    };
    for (const [revision, code] of Object.entries(wrong)) {
      await expect(workflow.resolve(revision), JSON.stringify(revision)).rejects.toThrow(
        agstateError(code, { revision }),
      );
    }
    await expect(workflow.resolve(undefined as never)).rejects.toThrow(
      agstateError("INVALID_REVISION"),
    );
    await expect(workflow.resolve("canonical~3")).rejects.toThrow(/ends 2 commits back/);
    await expect(workflow.resolve("canonical@{3}")).rejects.toThrow(/has 3 entries/);
  });

  it("tell an object that is no commit from one that is not there", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { long: "x".repeat(3000) } });
    const { id } = (await workflow.internals.commitAt("canonical")).root.state!;
    await expect(workflow.resolve(id)).rejects.toThrow(/is a tree, not a commit/);
    await expect(workflow.resolve(id)).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
  });

  it("follow the log of a branch through its deletion", async () => {
    const { workflow, ids } = await begin();
    await workflow.deleteBranch("a/x");
    await expect(workflow.resolve("a/x")).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
    await expect(workflow.resolve("a/x@{0}")).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
    expect(await workflow.resolve("a/x@{1}")).toBe(ids.x2);
    expect((await workflow.reflog("a/x")).map((line) => line.new)).toEqual([
      ...[null, ids.x2, ids.x1, ids.c0],
    ]);
    await workflow.branch({ agent: "a", branch: "x", from: "v1" });
    expect(await workflow.resolve("a/x@{0}")).toBe(ids.x1);
    await expect(workflow.resolve("a/x@{1}")).rejects.toThrow(/did not exist then/);
    expect(await workflow.resolve("a/x@{2}")).toBe(ids.x2);
  });
});

/** Commits until two share their first four digits; there are 65,536 such beginnings. */
async function collide(workflow: Workflow): Promise<[prefix: string, ids: string[]]> {
  const byPrefix = new Map<string, string>();
  const branch = await workflow.branch({ agent: "a", branch: "many" });
  for (let i = 0; i < 3000; i++) {
    const { id } = await branch.commit({ allowEmpty: true });
    const prefix = id.slice(0, 4);
    const other = byPrefix.get(prefix);
    if (other !== undefined) return [prefix, [other, id].sort()];
    byPrefix.set(prefix, id);
  }
  throw new Error("3,000 commits without two that begin alike");
}

describe("shortened ids", () => {
  it("are refused when they are ambiguous, with the candidates", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const [prefix, ids] = await collide(workflow);
    const ambiguous = agstateError("AMBIGUOUS_REVISION", { revision: prefix, candidates: ids });
    await expect(workflow.resolve(prefix)).rejects.toThrow(ambiguous);
    await expect(workflow.resolve(prefix)).rejects.toThrow(new RegExp(ids.join("\\s+")));
    await expect(workflow.stateAt(`${prefix}~1:/x`)).rejects.toThrow(
      agstateError("AMBIGUOUS_REVISION", { candidates: ids }),
    );
    for (const id of ids) expect(await workflow.resolve(id.slice(0, 16))).toBe(id);
    // Too short to mean anything.
    await expect(workflow.resolve(prefix.slice(0, 3))).rejects.toThrow(
      agstateError("REVISION_NOT_FOUND"),
    );
  });

  it("mean the commit when nothing else that begins so is one", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.canonical();
    // Blobs until one begins as some commit does.
    const commits = new Map<string, string>();
    const blobs = new Set<string>();
    for (let i = 0; i < 3000; i++) {
      const { id } = await branch.commit({ state: { i } });
      commits.set(id.slice(0, 4), commits.has(id.slice(0, 4)) ? "several" : id);
      blobs.add((await workflow.internals.commitAt(id)).root.state!.id.slice(0, 4));
      const shared = [...blobs].find((p) => (commits.get(p) ?? "several") !== "several");
      if (shared === undefined) continue;
      expect(await workflow.resolve(shared)).toBe(commits.get(shared));
      return;
    }
    throw new Error("3,000 commits and as many blobs without two that begin alike");
  });
});
