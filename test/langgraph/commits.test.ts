import { mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Checkpoint,
  type CheckpointMetadata,
  emptyCheckpoint,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import type { Workflow } from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { forkRef, latestRef } from "../../src/langgraph/names.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage, WriteBatch } from "../../src/storage/port.js";
import { git, gitLines, temporaryFolder } from "../support/git.js";
import { withReadBelow } from "../support/read-below.js";
import { all, BACKENDS, makeStore } from "../support/stores.js";

const THREAD: RunnableConfig = { configurable: { thread_id: "t", checkpoint_ns: "" } };
const SMALL: CheckpointMetadata = { source: "loop", step: 0, parents: {} };
/** 10 KB, of which some is the same in each checkpoint and some is not. */
const large = (step: number): CheckpointMetadata & Record<string, unknown> => ({
  ...SMALL,
  step,
  prompt: Array.from({ length: 1000 }, (_, i) => `word-${i}`).join(" "),
  note: `${step}`.repeat(2000).slice(0, 2000),
});

const folder = temporaryFolder();
let clock = 0;

/** Puts a checkpoint in which every channel is new. */
function put(
  saver: AgstateSaver,
  at: RunnableConfig,
  values: Record<string, unknown>,
  metadata: CheckpointMetadata = SMALL,
): Promise<RunnableConfig> {
  const versions = Object.fromEntries(Object.keys(values).map((name) => [name, ++clock]));
  const checkpoint: Checkpoint = {
    ...emptyCheckpoint(),
    id: uuid6(++clock),
    channel_values: values,
    channel_versions: versions,
    versions_seen: { agent: { "branch:to:agent": clock } },
  };
  return saver.put(at, checkpoint, metadata, versions);
}

/** Which parts the commit at a revision has. */
async function partsAt(workflow: Workflow, revision: string): Promise<string[]> {
  const { root } = await workflow.internals.commitAt(revision);
  return Object.entries(root)
    .flatMap(([part, link]) => (link === undefined ? [] : part))
    .sort();
}

/** Wraps a storage such that what is written is kept. */
function recordingWrites() {
  const written: WriteBatch[] = [];
  const wrap = (storage: Storage): Storage => ({
    ...forward(storage),
    write(batch) {
      written.push(batch);
      return storage.write(batch);
    },
  });
  return { wrap, written };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

describe.each(BACKENDS)("the commits of checkpoints, on %s", (backend) => {
  async function begin(wrap?: (storage: Storage) => Storage) {
    const made = await makeStore(backend, wrap && { wrap });
    const saver = new AgstateSaver(made.store);
    const reopened = async () => new AgstateSaver(await made.another());
    return { ...made, saver, reopened };
  }

  it("have the channels for their state, and all else in their row", async () => {
    const { wrap, written } = recordingWrites();
    const { saver, store } = await begin(wrap);
    const at = await put(saver, THREAD, { n: 1, word: "a" });
    const next = await put(saver, at, { n: 2, word: "a" });
    await put(saver, next, { n: 2, word: "a" });
    const workflow = await store.workflow("t");
    expect(await workflow.stateAt("langgraph/latest")).toEqual({ n: 2, word: "a" });
    expect(await partsAt(workflow, "langgraph/latest")).toEqual(["checkpoint", "state"]);
    // The root tree and the frame in the row; a state is an object, if it is another one.
    const sizes = written
      .slice(-3)
      .map(({ objects, moves }) => [
        objects.length,
        moves.flatMap(({ commits }) => commits).flatMap(({ inline }) => inline).length,
      ]);
    expect(sizes).toEqual([
      [1, 2],
      [1, 2],
      [0, 2],
    ]);
    const changes = await workflow.diff("langgraph/latest~2", "langgraph/latest");
    expect(changes.map(({ path }) => path)).toEqual(["/n"]);
  });

  it("come through collection, the checks and Git with metadata of 10 KB", async () => {
    const { saver, store, reopened } = await begin();
    let at = THREAD;
    const configs: RunnableConfig[] = [];
    for (let step = 0; step < 4; step++) {
      at = await put(saver, at, { n: step }, large(step));
      configs.push(at);
    }
    const fork = await put(saver, configs[1] as RunnableConfig, { n: "fork" }, large(2));
    const workflow = await store.workflow("t");
    await workflow.gc({ graceMs: 0 });
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
    const cold = await reopened();
    for (const [step, config] of configs.entries()) {
      const tuple = await cold.getTuple(config);
      expect(tuple?.metadata).toStrictEqual(large(step));
      expect(tuple?.checkpoint.channel_values).toEqual({ n: step });
    }
    expect((await cold.getTuple(fork))?.metadata).toStrictEqual(large(2));
    const found = await all(cold.list({}, { filter: { step: 2 } }));
    expect(found.map(({ checkpoint }) => checkpoint.channel_values.n)).toEqual(["fork", 2]);

    const target = join(mkdtempSync(join(folder, "thread-")), "export.git");
    await exportWorkflow(workflow, target);
    expect(git(target, ["fsck", "--strict", "--full"]).trim()).toBe("");
    const tip = latestRef("");
    expect(gitLines(target, ["ls-tree", "--name-only", tip])).toEqual(["checkpoint", "state"]);
    expect(git(target, ["show", `${tip}:state`])).toBe('{"n":"fork"}');
    expect(gitLines(target, ["ls-tree", "--name-only", `${tip}:checkpoint`])).toEqual([
      "checkpoint",
      "metadata",
    ]);
    const left = forkRef("", idOf(at));
    expect(gitLines(target, ["merge-base", tip, left])).toEqual(
      gitLines(target, ["rev-parse", `${left}~2`]),
    );
    const tree = mkdtempSync(join(folder, "tree-"));
    git(target, ["--work-tree", tree, "checkout", "--quiet", tip, "--", "."]);
    expect(readdirSync(join(tree, "checkpoint/metadata"))).toContain("prompt");
  });

  it("send of a large record what differs from the one below", async () => {
    const { wrap, written } = recordingWrites();
    const { saver } = await begin(wrap);
    let at = THREAD;
    for (let step = 0; step < 3; step++) at = await put(saver, at, { n: 0 }, large(step));
    const sent = written
      .slice(-3)
      .map(({ objects }) => sum(objects.map(({ body }) => body.length)));
    expect(sent[0]).toBeGreaterThan(10_000);
    // The 2,000 bytes that are new, not the 8,000 beside them.
    for (const bytes of sent.slice(1)) expect(bytes).toBeLessThan(4000);
  });

  it("conflict in a merge of two forks where channels do, and are no checkpoints when merged", async () => {
    const { saver, store, reopened } = await begin();
    const base = { theirs: 1, ours: 1, both: 1, same: 1 };
    const root = await put(saver, THREAD, base, large(0));
    const left = await put(saver, root, { ...base, theirs: 2, both: 2, same: 3 }, large(1));
    const right = await put(saver, root, { ...base, ours: 2, both: 3, same: 3 }, large(2));
    const workflow = await store.workflow("t");
    const fork = forkRef("", idOf(left));
    const open = await workflow.merge([fork], { into: "langgraph/latest" });
    expect(open.conflicts.map(({ path }) => path)).toEqual(["/both"]);
    const done = await workflow.merge([fork], {
      into: "langgraph/latest",
      resolve: () => ({ value: 5 }),
    });
    expect(done.status).toBe("merged");
    expect(await workflow.stateAt("langgraph/latest")).toEqual({
      theirs: 2,
      ours: 2,
      both: 5,
      same: 3,
    });
    expect(await partsAt(workflow, "langgraph/latest")).toEqual(["merge", "state"]);
    // LangGraph goes on from the checkpoint below.
    const cold = await reopened();
    const tuple = await cold.getTuple(THREAD);
    expect(tuple?.config).toEqual(right);
    await put(cold, tuple?.config as RunnableConfig, { n: 1 });
    expect((await all(cold.list(THREAD))).map((each) => idOf(each.config)).sort()).toHaveLength(4);
    expect((await cold.getTuple(left))?.metadata).toStrictEqual(large(1));
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("have messages as their fields, which differ and merge one by one", async () => {
    const { saver, store } = await begin();
    const said = (id: string, content = id) => new HumanMessage({ id, content });
    const root = await put(saver, THREAD, { messages: [said("a"), said("b")] });
    const left = await put(saver, root, { messages: [said("a"), said("b"), said("left")] });
    await put(saver, root, { messages: [said("a", "edited"), said("b"), said("right")] });
    const workflow = await store.workflow("t");
    const [from, to] = [forkRef("", idOf(left)), "langgraph/latest"];
    expect((await workflow.stateAt(to)) as object).toEqual({
      messages: [
        { $agstate: "HumanMessage", id: "a", content: "edited" },
        { $agstate: "HumanMessage", id: "b", content: "b" },
        { $agstate: "HumanMessage", id: "right", content: "right" },
      ],
    });
    const paths = (await workflow.diff(`${to}~1`, to)).map(({ path }) => path);
    expect(paths).toContain("/messages/0/content");
    const policies = { "/messages": "by-id:id" } as const;
    const merged = await workflow.merge([from], { into: to, policies });
    expect(merged.status).toBe("merged");
    const { messages } = (await workflow.stateAt(to)) as { messages: { id: string }[] };
    expect(messages.map(({ id }) => id)).toEqual(["a", "b", "right", "left"]);
  });

  it("are not carried on by whoever commits on top of them", async () => {
    const { saver, store, reopened } = await begin();
    const root = await put(saver, THREAD, { n: 0, list: [] });
    const first = await put(saver, root, { n: 1, list: [] });
    const workflow = await store.workflow("t");
    const { message } = (await workflow.branch("langgraph/latest")).head;
    const hold = await workflow.hold("langgraph/latest", { reason: "kept" });
    expect(await partsAt(workflow, `refs/holds/${hold.name}`)).toEqual(["state"]);
    const branch = await workflow.branch({
      agent: "eve",
      branch: "look",
      from: "langgraph/latest",
    });
    await branch.update([{ op: "append", path: "/list", value: 1 }]);
    expect(await partsAt(workflow, "eve/look")).toEqual(["state"]);
    await branch.commit({ state: { n: 5 }, step: { action: "write", record: { name: "s" } } });
    expect(await partsAt(workflow, "eve/look")).toEqual(["state", "step"]);
    await workflow.cherryPick("langgraph/latest", { onto: "eve/look", message: "picked" });
    await branch.refresh();
    // Nor is a commit one that only says so.
    await branch.commit({ state: { n: 6 }, message, externalId: "a-checkpoint" });
    expect(await partsAt(workflow, "eve/look")).toEqual(["state"]);
    await workflow.merge(["eve/look"], { into: "langgraph/latest" });
    expect(await workflow.resolve("langgraph/latest")).toBe(await workflow.resolve("eve/look"));
    const cold = await reopened();
    expect((await cold.getTuple(THREAD))?.config).toEqual(first);
    expect(await all(cold.list(THREAD))).toHaveLength(2);
  });

  it.runIf(backend !== "memory")("cost as many calls to read, however large they are", async () => {
    const calls: number[][] = [];
    for (const metadata of [SMALL, large(1)]) {
      let counter: ReturnType<typeof counting> | undefined;
      const wrap = (storage: Storage) => {
        counter = counting(backend === "sqlite" ? withReadBelow(storage) : storage);
        return counter.storage;
      };
      const { saver, another } = await makeStore(backend, { wrap }).then((made) => ({
        ...made,
        saver: new AgstateSaver(made.store),
      }));
      const configs = [THREAD];
      for (let step = 0; step < 3; step++) {
        const values = { n: "x".repeat(5000), step };
        configs.push(await put(saver, configs.at(-1) as RunnableConfig, values, metadata));
      }
      const counts: number[] = [];
      // The latest, one further down, and the latest by its id.
      for (const config of [THREAD, configs[2], configs[3]] as RunnableConfig[]) {
        const cold = new AgstateSaver(await another());
        counter?.reset();
        expect((await cold.getTuple(config))?.metadata).toStrictEqual(metadata);
        counts.push(counter?.counts().roundTrips as number);
      }
      calls.push(counts);
    }
    expect(calls[1]).toEqual(calls[0]);
    expect(Math.min(...calls.flat())).toBeGreaterThan(1);
  });
});

function idOf(config: RunnableConfig): string {
  return config.configurable?.checkpoint_id as string;
}
