import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { openStore, type Workflow } from "../../src/index.js";
import { loadCommit } from "../../src/objects/commit-reader.js";
import type { Storage } from "../../src/storage/port.js";
import { git, gitLines, makeBareRepository, temporaryFolder, tryGit } from "../support/git.js";

const folder = temporaryFolder();
const freshPath = () => join(mkdtempSync(join(folder, "withheld-")), "repository.git");
const MARK = "someone@example.com";

interface Made {
  readonly storage: Storage;
  readonly workflow: Workflow;
  readonly commits: ObjectId[];
}

/** A history with a merge, of which every state but the last holds the same value apart. */
async function made(): Promise<Made> {
  let storage: Storage | undefined;
  const store = await openStore("memory:", {
    wrap: (given) => {
      storage = given;
      return given;
    },
  });
  const isolation = ["/state/user/email", "/step/input"];
  const state = { user: { email: MARK, name: "S" }, list: ["x".repeat(3000)] };
  const workflow = await store.createWorkflow("w", { state, isolation });
  const canonical = await workflow.canonical();
  const commits: ObjectId[] = [];
  for (let i = 0; i < 4; i++) {
    const step = { action: "read" as const, record: { name: "read", input: MARK, i } };
    const { id } = await canonical.commit({ state: { ...state, i }, step, message: `m${i}` });
    commits.push(id as ObjectId);
  }
  const branch = await workflow.branch({ agent: "a", branch: "b", from: commits[1]! });
  await branch.update([{ op: "set", path: "/side", value: 1 }]);
  await workflow.merge(["a/b"]);
  await canonical.refresh();
  await canonical.update([{ op: "delete", path: "/user/email" }]);
  await workflow.tag("v1", commits[2]!);
  return { storage: storage as Storage, workflow, commits };
}

/** Erases every blob that holds the mark, in rows of their own and in those of commits. */
async function erase({ storage, workflow }: Made): Promise<ObjectId[]> {
  const tombstone = Buffer.from('{"reason":"erased"}');
  const found = new Map<ObjectId, { id: ObjectId; type: "blob" | "tree"; tombstone: Uint8Array }>();
  const inline: ObjectId[] = [];
  for (const object of (await storage.scanObjects("w", null, 1000)).rows) {
    if ("body" in object && Buffer.from(object.body).includes(MARK)) {
      found.set(object.id, { id: object.id, type: object.type, tombstone });
    }
  }
  for (const commit of (await storage.scanCommits("w", null, 1000)).rows) {
    for (const object of commit.inline) {
      if (!("body" in object) || !Buffer.from(object.body).includes(MARK)) continue;
      found.set(object.id, { id: object.id, type: object.type, tombstone });
      inline.push(commit.id);
    }
  }
  await storage.redact("w", { tombstones: [...found.values()], inline, grafts: [] });
  workflow.internals.context.objectCache.clear();
  workflow.internals.context.commitCache.clear();
  return [...found.keys()];
}

function fsckOf(directory: string) {
  const { status, stdout, stderr } = tryGit(directory, ["fsck", "--strict", "--full"]);
  return { status, said: `${stdout}${stderr}` };
}

describe("an export of a history with erased objects, against git", () => {
  it("is a partial clone with the ids of the store, which git accepts", async () => {
    const all = await made();
    const erased = await erase(all);
    expect(erased.length).toBeGreaterThan(0);
    const directory = freshPath();
    const result = await exportWorkflow(all.workflow, directory);
    expect(result).toMatchObject({ withheld: erased.length, boundaries: 0 });
    expect(fsckOf(directory)).toEqual({ status: 0, said: "" });
    const ours: string[] = [];
    for await (const commit of all.workflow.log({ revisions: ["canonical"] })) ours.push(commit.id);
    expect(gitLines(directory, ["log", "--topo-order", "--format=%H", "canonical"])).toEqual(ours);
    expect(git(directory, ["show", "v1:state/user/name"])).toBe('"S"');
    const gone = tryGit(directory, ["cat-file", "-p", erased[0]!]);
    expect(gone.status).not.toBe(0);
  });

  it("is refused where a repository has a config of its own, and leaves it as it was", async () => {
    const all = await made();
    await erase(all);
    const directory = makeBareRepository(freshPath());
    await expect(exportWorkflow(all.workflow, directory)).rejects.toMatchObject({
      code: "EXPORT_TARGET",
    });
    expect(git(directory, ["count-objects"])).toContain("0 objects");
  });

  it("redacted, is complete, with a blob in the place of each and new ids only where one is below", async () => {
    const all = await made();
    await erase(all);
    const directory = freshPath();
    const result = await exportWorkflow(all.workflow, directory, { redacted: true });
    expect(result.withheld).toBeGreaterThan(0);
    expect(fsckOf(directory)).toEqual({ status: 0, said: "" });
    const said = git(directory, ["show", "v1:state/user/email"]);
    expect(said).toBe('{"$agstate":"withheld","reason":"erased"}');
    const [genesis] = gitLines(directory, ["rev-parse", "refs/audit/workflow"]);
    expect(genesis).toBe(await all.workflow.resolve("refs/audit/workflow"));
    const subjects = gitLines(directory, ["log", "--topo-order", "--format=%s", "canonical"]);
    const messages: string[] = [];
    for await (const { message } of all.workflow.log({ revisions: ["canonical"] })) {
      messages.push(message);
    }
    expect(subjects).toEqual(messages);
  });

  it("redacted, without anything erased, is the same as it is otherwise", async () => {
    const { workflow } = await made();
    const [plain, redacted] = [freshPath(), freshPath()];
    await exportWorkflow(workflow, plain);
    await exportWorkflow(workflow, redacted, { redacted: true });
    const refs = (directory: string) => gitLines(directory, ["for-each-ref"]);
    expect(refs(redacted)).toEqual(refs(plain));
  });
});

describe("an export of a thinned history, against git", () => {
  it("is shallow where a commit's parents are gone", async () => {
    const { storage, workflow, commits } = await made();
    const boundary = commits[1]!;
    const grafts = [{ id: boundary, parents: [] }];
    await storage.redact("w", { tombstones: [], inline: [], grafts });
    workflow.internals.context.commitCache.clear();
    const fresh = await (await reopened(storage)).workflow("w");
    const directory = freshPath();
    expect(await exportWorkflow(fresh, directory)).toMatchObject({ withheld: 0, boundaries: 1 });
    expect(fsckOf(directory)).toEqual({ status: 0, said: "" });
    expect(git(directory, ["rev-parse", "--is-shallow-repository"]).trim()).toBe("true");
    const log = gitLines(directory, ["log", "--format=%H", "canonical"]);
    expect(log.at(-1)).toBe(boundary);
    expect(log).not.toContain(commits[0]);
    const [row] = await storage.readCommits("w", [boundary]);
    expect(loadCommit(row!).parents).toEqual([]);
  });
});

/** Another store on the same storage, which knows of nothing yet. */
async function reopened(storage: Storage) {
  return openStore("memory:", { wrap: () => storage });
}
