import { beforeAll, describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { openStore, type Workflow } from "../../src/index.js";
import { encodeCommit } from "../../src/objects/commit.js";
import { hashObject } from "../../src/objects/hash.js";
import type { CommitRecord, Storage } from "../../src/storage/port.js";
import { agstateError, all } from "../support/stores.js";

const LINE = 200_000;
const MERGES = 10_000;
const BATCH = 5000;
const REF = "refs/heads/canonical";

/** Writes commits straight to the storage, as a backup would: a line, then merges that each take in one commit beside it. */
class HistoryWriter {
  private readonly pending: CommitRecord[] = [];
  private made = 0;

  constructor(
    private readonly storage: Storage,
    private readonly base: CommitRecord,
    private head: { id: ObjectId; generation: number },
  ) {}

  async write(): Promise<void> {
    for (let i = 0; i < LINE; i++) await this.advance([this.head]);
    for (let i = 0; i < MERGES; i++) {
      const from = this.head;
      await this.advance([from]);
      await this.advance([from, this.head]);
    }
    await this.flush();
  }

  private async advance(parents: readonly { id: ObjectId; generation: number }[]): Promise<void> {
    this.made++;
    const time = this.base.time + this.made;
    const body = encodeCommit({
      tree: this.base.inline[0]!.id,
      parents: parents.map((parent) => parent.id),
      author: "a",
      committer: "a",
      workflow: "w",
      authorTime: time,
      committerTime: time,
      nonce: this.made.toString(16).padStart(32, "0"),
      nextStep: 1,
      inFlight: [],
      message: `number ${this.made}`,
    });
    const commit: CommitRecord = {
      id: hashObject("commit", body),
      body,
      parents: parents.map((parent) => parent.id),
      generation: 1 + Math.max(...parents.map((parent) => parent.generation)),
      time,
      externalId: null,
      inline: this.base.inline,
    };
    this.pending.push(commit);
    this.head = commit;
    if (this.pending.length >= BATCH) await this.flush();
  }

  private async flush(): Promise<void> {
    const commits = this.pending.splice(0);
    if (commits.length === 0) return;
    const log = { actor: "a", reason: "test", time: 0, trace: "" };
    const move = {
      ref: REF,
      expect: { kind: "any" },
      incarnation: "0".repeat(32),
      maxStep: 0,
      log,
    } as const;
    const { moves } = await this.storage.write({
      workflow: "w",
      objects: [],
      moves: [{ ...move, target: commits.at(-1)!.id, commits }],
      atomic: true,
    });
    expect(moves[0]!.outcome).toBe("moved");
  }
}

describe("200,000 commits in a line, then 10,000 merges (OBJ-03)", () => {
  const total = LINE + 2 * MERGES;
  let workflow: Workflow;
  let root = "";
  let reads = 0;

  beforeAll(async () => {
    const store = await openStore("memory:", {
      wrap: (storage) => ({
        ...storage,
        readGraph: (w, ids, limit) => {
          reads += limit;
          return storage.readGraph(w, ids, limit);
        },
        // The model sorts all rows anew for every page, so one page keeps this short.
        scanCommits: (w, after) => storage.scanCommits(w, after, Number.MAX_SAFE_INTEGER),
        scanSeen: (w, type, before, after) =>
          storage.scanSeen(w, type, before, after, Number.MAX_SAFE_INTEGER),
      }),
    });
    workflow = await store.createWorkflow("w");
    const { storage } = workflow.internals;
    root = (await workflow.canonical()).head.id;
    const [base] = await storage.readCommits("w", [root as ObjectId]);
    await new HistoryWriter(storage, base!, { id: base!.id, generation: 1 }).write();
    return () => store.close();
  });

  it("logs the newest twenty after reading little", async () => {
    reads = 0;
    const log = await all(workflow.log({ limit: 20 }));
    expect(log.slice(0, 3).map((c) => c.message)).toEqual(
      [total, total - 1, total - 2].map((n) => `number ${n}`),
    );
    expect(log.length).toBe(20);
    expect(reads).toBeLessThan(5000);
  });

  it("goes 150,000 first parents back", async () => {
    const id = await workflow.resolve("canonical~150000");
    expect((await workflow.commitAt(id)).message).toBe(`number ${LINE - (150_000 - MERGES)}`);
    expect(await workflow.resolve(`canonical~${LINE + MERGES}`)).toBe(root);
    await expect(workflow.resolve(`canonical~${LINE + MERGES + 1}`)).rejects.toThrow(
      agstateError("REVISION_NOT_FOUND"),
    );
  });

  it("counts what lies between, and finds what is merged", async () => {
    const old = await workflow.branch({ agent: "a", branch: "old", from: "canonical~150000" });
    expect(await workflow.aheadBehind("canonical", old.name)).toEqual({
      ahead: 150_000 + MERGES,
      behind: 0,
    });
    await old.commit({ state: { n: 1 } });
    expect(await workflow.aheadBehind(old.name, "canonical")).toEqual({
      ahead: 1,
      behind: 150_000 + MERGES,
    });
    expect((await workflow.merged("canonical")).map((ref) => ref.shortName)).toEqual(["canonical"]);
    await workflow.deleteBranch(old.name);
  });

  it("compares its two ends", async () => {
    expect(await workflow.diff("canonical~210000", "canonical")).toEqual([]);
  });

  it("passes fsck", async () => {
    const report = await workflow.fsck();
    // With the genesis commit, canonical's first, and the one of the deleted branch.
    expect(report).toMatchObject({ problems: [], commits: total + 3 });
  });

  it("is collected as far as nothing reaches it", async () => {
    // The commit of the deleted branch.
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject({ commits: 1 });
    await workflow.reset("canonical", "canonical~150000");
    const left = LINE - (150_000 - MERGES);
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject({ commits: total - left });
    // Beside the two that were there, each collection has told of itself in the audit.
    expect(await workflow.fsck()).toMatchObject({ problems: [], commits: left + 4 });
  });
});
