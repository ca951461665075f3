import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { type JsonValue, openStore, type Workflow } from "../../src/index.js";
import { canonicalText } from "../../src/objects/canonical.js";
import { git, gitLines, temporaryFolder, tryGit } from "../support/git.js";
import { GitValues } from "../support/git-value.js";
import { all } from "../support/stores.js";

const folder = temporaryFolder();
const EPOCH = 1_700_000_000;

/** One thing that happens to a workflow; numbers pick among what there is. */
interface Event {
  readonly kind:
    | "commit"
    | "update"
    | "step"
    | "branch"
    | "merge"
    | "tag"
    | "delete"
    | "delete tag";
  readonly pick: number;
  readonly other: number;
  readonly skew: number;
}

const KINDS = {
  commit: 5,
  update: 5,
  step: 2,
  branch: 4,
  merge: 4,
  tag: 2,
  delete: 1,
  "delete tag": 1,
};

const historyArbitrary = fc.record({
  dates: fc.constantFrom("rising", "equal", "skewed"),
  events: fc.array(
    fc.record({
      kind: fc.oneof(
        ...Object.entries(KINDS).map(([kind, weight]) => ({
          weight,
          arbitrary: fc.constant(kind as Event["kind"]),
        })),
      ),
      pick: fc.nat(1000),
      other: fc.nat(1000),
      skew: fc.integer({ min: -30, max: 30 }),
    }),
    { minLength: 5, maxLength: 60, size: "max" },
  ),
});

/** A state of which now this part grows, now that; all sizes and kinds of trees occur. */
function stateOf(n: number): JsonValue {
  return {
    n,
    messages: Array.from({ length: n % 150 }, (_, i) => ({ i, text: "m".repeat((i * n) % 90) })),
    text: `line ${n % 7}\n`.repeat(n % 900),
    ".git": { "a/b": n % 5, "": null, "é😀": "x".repeat(n % 3000) },
    wide: Object.fromEntries(Array.from({ length: n % 400 }, (_, i) => [`k${i}`, i % 3])),
  };
}

/** Lets the events happen through the API. */
async function play(
  workflow: Workflow,
  { dates, events }: { dates: string; events: readonly Event[] },
): Promise<void> {
  const tags: string[] = [];
  for (const [i, { kind, pick, other, skew }] of events.entries()) {
    const offset = dates === "equal" ? 0 : dates === "rising" ? i : i + skew;
    const options = { date: new Date((EPOCH + offset) * 1000), message: `${kind} ${i}\n\n${skew}` };
    const heads = (await workflow.refs("refs/heads/")).map((ref) => ref.shortName);
    const name = heads[pick % heads.length]!;
    const another = heads[other % heads.length]!;
    const branch = await workflow.branch(name);
    switch (kind) {
      case "commit":
        await branch.commit({ ...options, state: stateOf(other), author: `author ${skew}` });
        break;
      case "update":
        await branch.update(
          [
            { op: "append", path: "/messages", value: { i, other } },
            { op: "text-append", path: "/text", text: `${skew} and more\n` },
            { op: "set", path: `/wide/k${other % 500}`, value: skew },
          ],
          options,
        );
        break;
      case "step":
        await branch.commit({
          ...options,
          step: {
            action: "inference",
            record: { name: kind, input: skew, output: stateOf(other) },
          },
          externalId: `run ${i}`,
          trace: `00-${i}`,
        });
        break;
      case "branch":
        await workflow.branch({ agent: `agent-${pick % 3}`, branch: `b${i}`, from: another });
        break;
      case "merge":
        await branch.commit({
          ...options,
          mergeParents: [another, heads[(other + 1) % heads.length]!],
          state: { ...((await branch.state()) as object), merged: i },
        });
        break;
      case "tag":
        await workflow.tag(`t${i}`, another);
        tags.push(`t${i}`);
        break;
      case "delete":
        if (name !== "canonical") await workflow.deleteBranch(name);
        break;
      case "delete tag":
        if (tags.length > 0) await workflow.deleteTag(tags.splice(pick % tags.length, 1)[0]!);
        break;
    }
  }
}

async function exported(workflow: Workflow): Promise<string> {
  const directory = join(mkdtempSync(join(folder, "store-")), "repository.git");
  await exportWorkflow(workflow, directory);
  return directory;
}

describe("random histories through the API, exported, against git", () => {
  it("are sound, in the same order, with the same refs, commits and values", async () => {
    const property = fc.asyncProperty(historyArbitrary, async (history) => {
      const store = await openStore("memory:", { limits: { cacheMaxBytes: 1 } });
      const workflow = await store.createWorkflow("w", { state: stateOf(history.events.length) });
      await play(workflow, history);
      const report = await workflow.fsck();
      expect(report.problems).toEqual([]);
      expect(report.unreachable).toBe(0);
      const directory = await exported(workflow);

      const fsck = tryGit(directory, ["fsck", "--strict", "--full"]);
      expect({ status: fsck.status, said: `${fsck.stdout}${fsck.stderr}` }).toEqual({
        status: 0,
        said: "",
      });

      const refs = (await workflow.refs()).map((ref) => `${ref.id} ${ref.name}`);
      expect(gitLines(directory, ["for-each-ref", "--format=%(objectname) %(refname)"])).toEqual(
        refs,
      );

      const log = await all(workflow.log());
      const format = "%H%x1f%P%x1f%T%x1f%an%x1f%ae%x1f%at%x1f%cn%x1f%ct%x1f%B%x1e";
      const shown = log.map((c) =>
        [
          ...[
            c.id,
            c.parents.join(" "),
            c.tree,
            c.author,
            `${c.author}@w`,
            c.date.getTime() / 1000,
          ],
          ...[c.committer, c.date.getTime() / 1000, `${c.message}\n`],
        ].join("\x1f"),
      );
      const asGit = git(directory, ["log", "--all", "--topo-order", `--format=tformat:${format}`]);
      // Git ends a message that is not empty with one line feed.
      const trimmed = (text: string) => text.replace(/\n*$/, "");
      expect(asGit.split("\x1e\n").slice(0, -1).map(trimmed)).toEqual(shown.map(trimmed));

      const values = new GitValues(directory);
      const { storage } = workflow.internals;
      const records = await storage.readCommits(
        "w",
        log.map((c) => c.id as ObjectId),
      );
      for (const record of records) {
        expect(values.body(record!.id).equals(record!.body)).toBe(true);
      }
      for (const commit of log) {
        expect(values.part(commit.id, "state")).toEqual(await workflow.stateAt(commit.id));
        expect(values.part(commit.id, "step") ?? null).toEqual(
          await workflow.stepRecord(commit.id),
        );
      }
      await store.close();
    });
    await fc.assert(property, { numRuns: 25, interruptAfterTimeLimit: 60_000 });
  });

  it("show a value of an object's tree as its canonical JSON, at a path of its keys", async () => {
    const store = await openStore("memory:");
    const state = {
      pad: "x".repeat(3000),
      small: { b: [1, 2.5e-7, "é\u0000"], a: { "": null } },
      nested: { "a/b": "y".repeat(2500), deep: { leaf: true, long: ["z".repeat(2100)] } },
      "%": "percent",
    };
    const workflow = await store.createWorkflow("w", { state, isolation: ["/state/small/a"] });
    await (await workflow.canonical()).update([{ op: "set", path: "/small/c", value: 1 }]);
    const directory = await exported(workflow);
    const paths = {
      "small/a": "/small/a",
      "small/b": "/small/b",
      "small/c": "/small/c",
      "nested/deep/leaf": "/nested/deep/leaf",
      "%25": "/%",
    };
    for (const [path, pointer] of Object.entries(paths)) {
      const value = await workflow.stateAt("canonical", pointer);
      expect(git(directory, ["show", `canonical:state/${path}`])).toBe(canonicalText(value));
    }
    expect(git(directory, ["show", "canonical~1:state/small/a"])).toBe('{"":null}');
    // What git says has changed is what diff says has changed.
    expect(gitLines(directory, ["diff", "--name-status", "canonical~1", "canonical"])).toEqual([
      "A\tstate/small/c",
    ]);
    expect(await workflow.diff("canonical~1", "canonical")).toEqual([
      { kind: "added", path: "/small/c", after: 1 },
    ]);
    await store.close();
  });

  it("are merged, ahead and behind as git sees them", async () => {
    const property = fc.asyncProperty(historyArbitrary, async (history) => {
      const store = await openStore("memory:");
      const workflow = await store.createWorkflow("w", { state: stateOf(3) });
      await play(workflow, history);
      const directory = await exported(workflow);
      // By sets: where dates are skewed, `git rev-list --left-right` may itself be wrong.
      const reached = new Map<string, Set<string>>();
      const names = (await workflow.refs("refs/heads/")).map((ref) => ref.shortName);
      for (const name of names) {
        reached.set(name, new Set(gitLines(directory, ["rev-list", `refs/heads/${name}`])));
      }
      const base = reached.get("canonical")!;
      for (const name of names) {
        const own = reached.get(name)!;
        expect(await workflow.aheadBehind(name, "canonical")).toEqual({
          ahead: [...own].filter((id) => !base.has(id)).length,
          behind: [...base].filter((id) => !own.has(id)).length,
        });
      }
      const merged = (await workflow.merged("canonical")).map((ref) => ref.name);
      const asGit = ["for-each-ref", "--merged=canonical", "--format=%(refname)", "refs/heads"];
      expect(gitLines(directory, asGit)).toEqual(merged);
      await store.close();
    });
    await fc.assert(property, { numRuns: 8, interruptAfterTimeLimit: 60_000 });
  });
});
