import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import type { Workflow } from "../../src/index.js";
import { DescendingWalk } from "../../src/merge/descending-walk.js";
import { GraphCache, GraphReader, READ_AHEAD_MAX_NODES } from "../../src/merge/graph-reader.js";
import { type GraphSource, HistoryReader } from "../../src/merge/history.js";
import type { GraphNode } from "../../src/storage/port.js";
import {
  type Dag,
  dagArbitrary,
  dagNodes,
  fakeId,
  longDag,
  MemoryGraph,
  NearGraph,
  sideBySide,
  writeDag,
} from "../support/dag.js";
import { temporaryFolder } from "../support/git.js";
import { usually } from "../support/runs.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const folder = temporaryFolder();

type Query = readonly [ObjectId, ...ObjectId[]];

/** Asks git for all merge bases of each query, in one shell: a process of ours for each would cost more. */
function gitMergeBases(directory: string, queries: readonly Query[]): string[][] {
  const script =
    "while read -r query; do git merge-base --all $query; [ $? -le 1 ] || exit 2; echo .; done";
  const run = spawnSync("sh", ["-c", script], {
    cwd: directory,
    input: queries.map((query) => `${query.join(" ")}\n`).join(""),
    maxBuffer: 1024 * 1024 * 1024,
    env: { PATH: process.env.PATH ?? "", HOME: folder, GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" },
  });
  if (run.error !== undefined) throw run.error;
  if (run.status !== 0) throw new Error(`git merge-base failed: ${run.stderr}`);
  const answers = run.stdout.toString().split(".\n").slice(0, -1);
  expect(answers.length).toBe(queries.length);
  return answers.map((answer) => answer.split("\n").filter((line) => line !== ""));
}

/** The definition, the slow and plain way: common ancestors that no other common ancestor reaches. */
function byDefinition(nodes: readonly GraphNode[], [a, ...others]: Query): string[] {
  const parents = new Map(nodes.map((node) => [node.id, node.parents]));
  const reach = (tips: readonly ObjectId[]): Set<ObjectId> => {
    const reached = new Set(tips);
    for (const id of reached) for (const parent of parents.get(id)!) reached.add(parent);
    return reached;
  };
  const right = reach(others);
  const common = [...reach([a])].filter((id) => right.has(id));
  const below = reach(common.flatMap((id) => [...parents.get(id)!]));
  return common.filter((id) => !below.has(id));
}

const sorted = (ids: readonly string[]): string[] => [...ids].sort();

/** Queries of two to five commits of one history. */
const picksArbitrary = fc.array(fc.nat(), { minLength: 2, maxLength: 5 });

function queryOf(nodes: readonly GraphNode[], picks: readonly number[]): Query {
  const [a, ...others] = picks.map((pick) => nodes[pick % nodes.length]!.id);
  return [a!, ...others];
}

/** A source that never answers more than it was asked for. */
function withoutReadAhead(graph: MemoryGraph): GraphSource {
  return { read: (ids) => graph.read(ids, ids.length) };
}

/** Readers that differ in what they remember and in how they read, not in what they answer. */
function readers(nodes: readonly GraphNode[]): Record<string, HistoryReader> {
  const graph = new NearGraph(nodes);
  return {
    "without read-ahead": new HistoryReader(withoutReadAhead(graph)),
    "with a cache of 1 node": new HistoryReader(withoutReadAhead(graph), 1),
    "with a cache of 7 nodes": new HistoryReader(graph, 7),
    "with read-ahead": new HistoryReader({ read: (ids, limit) => graph.read(ids, limit) }),
    "from what is near": new HistoryReader(graph),
  };
}

/** Expects the same of each reader, cold and then warm, in the stated order. */
async function expectBases(
  nodes: readonly GraphNode[],
  queries: readonly Query[],
  expected: readonly string[][],
): Promise<void> {
  const byId = new Map(nodes.map((node) => [node.id as string, node]));
  const inOrder = (a: string, b: string) =>
    byId.get(b)!.generation - byId.get(a)!.generation || (a < b ? -1 : 1);
  for (const [how, reader] of Object.entries(readers(nodes))) {
    for (const turn of ["cold", "warm"]) {
      for (const [i, [a, ...others]] of queries.entries()) {
        const bases = await reader.mergeBases(a, others);
        expect({ how, turn, query: queries[i], bases }).toEqual({
          ...{ how, turn, query: queries[i] },
          bases: [...expected[i]!].sort(inOrder),
        });
      }
    }
  }
}

const SMALL = dagArbitrary({ maxCommits: 30, maxParents: 4 });
const LARGE = dagArbitrary({ maxCommits: 250, maxParents: 6 });

describe("merge bases of random graphs", () => {
  it("are the common ancestors that no other reaches, however the graph is read", async () => {
    const property = fc.asyncProperty(
      fc.oneof({ weight: 4, arbitrary: SMALL }, { weight: 1, arbitrary: LARGE }),
      fc.array(picksArbitrary, { minLength: 3, maxLength: 3 }),
      async (dag, picks) => {
        const nodes = dagNodes(
          dag,
          dag.commits.map((_, i) => fakeId(i + 1)),
        );
        const queries = picks.map((some) => queryOf(nodes, some));
        const expected = queries.map((query) => byDefinition(nodes, query));
        await expectBases(nodes, queries, expected);
      },
    );
    await fc.assert(property, { numRuns: usually(200, 15_000) });
  });

  it("are those of git merge-base --all, in many histories", async () => {
    const drawn = (dag: fc.Arbitrary<Dag>, count: number) =>
      fc.array(
        fc.record({ dag, picks: fc.array(picksArbitrary, { minLength: 1, maxLength: 2 }) }),
        { minLength: count, maxLength: count },
      );
    const property = fc.asyncProperty(drawn(SMALL, 140), drawn(LARGE, 10), async (...sizes) => {
      const histories = sizes.flat();
      const { directory, nodes } = writeDag(folder, sideBySide(histories.map(({ dag }) => dag)));
      const queries: Query[] = [];
      let from = 0;
      for (const { dag, picks } of histories) {
        const own = nodes.slice(from, from + dag.commits.length);
        for (const some of picks) queries.push(queryOf(own, some));
        from += dag.commits.length;
      }
      // Of different histories, so with no base.
      queries.push([queries[0]![0], queries.at(-1)![0]]);
      const answers = gitMergeBases(directory, queries);
      expect(answers.map(sorted)).toEqual(
        queries.map((query) => sorted(byDefinition(nodes, query))),
      );
      await expectBases(nodes, queries, answers);
    });
    // Not shrunk: a run takes a second, and the test above shrinks what fails in both.
    await fc.assert(property, { numRuns: usually(2, 20), endOnFailure: true });
  });
});

/** What happens to a workflow; numbers pick among its branches. */
const eventsArbitrary = fc.array(
  fc.record({
    kind: fc.oneof(
      { weight: 5, arbitrary: fc.constant("commit" as const) },
      { weight: 2, arbitrary: fc.constant("branch" as const) },
      { weight: 4, arbitrary: fc.constant("merge" as const) },
      { weight: 1, arbitrary: fc.constant("octopus" as const) },
    ),
    pick: fc.nat(1000),
    others: fc.array(fc.nat(1000), { minLength: 3, maxLength: 3 }),
    skew: fc.integer({ min: -30, max: 30 }),
  }),
  { minLength: 10, maxLength: 90, size: "max" },
);

/** Lets the events happen through the API; answers the commits that were heads, oldest first. */
async function play(
  workflow: Workflow,
  events: Parameters<Parameters<typeof eventsArbitrary.map>[0]>[0],
  skewed: boolean,
): Promise<ObjectId[]> {
  const branches = [await workflow.canonical()];
  const heads = [branches[0]!.head.id as ObjectId];
  for (const [i, { kind, pick, others, skew }] of events.entries()) {
    const branch = branches[pick % branches.length]!;
    const from = (n: number) => branches[others[n]! % branches.length]!.head.id;
    const seconds = 1_700_000_000 + (skewed ? i + skew : Math.floor(i / 3));
    const options = { state: { i }, date: new Date(1000 * seconds), message: `${kind} ${i}` };
    if (kind === "branch") {
      const old = heads[others[0]! % heads.length]!;
      branches.push(await workflow.branch({ agent: "a", branch: `b${i}`, from: old }));
      continue;
    }
    const mergeParents = { commit: [], merge: [from(0)], octopus: [from(0), from(1), from(2)] };
    await branch.commit({ ...options, mergeParents: mergeParents[kind] });
    heads.push(branch.head.id as ObjectId);
  }
  return heads;
}

describe.each(BACKENDS)("merge bases of histories made through the API (%s)", (backend) => {
  it("are those of git in the exported repository, cold and warm", async () => {
    const property = fc.asyncProperty(
      eventsArbitrary,
      fc.boolean(),
      fc.array(picksArbitrary, { minLength: 25, maxLength: 25 }),
      async (events, skewed, picks) => {
        const { store, another } = await makeStore(backend);
        const workflow = await store.createWorkflow("w");
        const heads = await play(workflow, events, skewed);
        const directory = join(mkdtempSync(join(folder, "store-")), "repository.git");
        await exportWorkflow(workflow, directory);

        const queries = picks.map((some): Query => {
          const [a, ...others] = some.map((pick) => heads[pick % heads.length]!);
          return [a!, ...others];
        });
        // The newest against the oldest: the longest walk.
        queries.push([heads.at(-1)!, heads[0]!], [heads[1 % heads.length]!, heads.at(-1)!]);
        const answers = gitMergeBases(directory, queries).map(sorted);
        const cold = (await (await another()).workflow("w")).internals.history;
        const { history, storage } = workflow.internals;
        const tiny = new HistoryReader({ read: (ids, n) => storage.readGraph("w", ids, n) }, 3);
        for (const reader of [cold, history, history, tiny]) {
          const bases: string[][] = [];
          for (const [a, ...others] of queries) bases.push(await reader.mergeBases(a, others));
          expect(bases.map(sorted)).toEqual(answers);
        }
      },
    );
    await fc.assert(property, { numRuns: 15, endOnFailure: true });
  });
});

/** A history by hand: names of commits with the names of their parents, and dates where they matter. */
function named(commits: readonly (readonly [name: string, parents: string, time?: number])[]) {
  const index = new Map(commits.map(([name], i) => [name, i]));
  const dag: Dag = {
    commits: commits.map(([, parents, time], i) => ({
      parents: parents === "" ? [] : parents.split(" ").map((parent) => index.get(parent)!),
      time: 1_700_000_000 + (time ?? i),
    })),
    tips: commits.map((_, i) => i),
  };
  const { directory, nodes } = writeDag(folder, dag);
  const id = (name: string) => nodes[index.get(name)!]!.id;
  /** Expects the bases of the first name and the rest, and that git says so too. */
  const expectNamed = async (query: string, ...bases: string[]) => {
    const [a, ...others] = query.split(" ").map(id);
    const expected = bases.map(id);
    const [answer] = gitMergeBases(directory, [[a!, ...others]]);
    expect(sorted(answer!)).toEqual(sorted(expected));
    await expectBases(nodes, [[a!, ...others]], [expected]);
  };
  return expectNamed;
}

describe("MRG-01: the merge base is decided by reachability alone", () => {
  it("of a long branch and a short one it is the newest common commit, not the nearest by steps", async () => {
    // From `top` the merge reaches `root` in two steps, and `fork` in four.
    const expectNamed = named([
      ["root", ""],
      ["fork", "root"],
      ["a1", "fork"],
      ["a2", "a1"],
      ["a3", "a2"],
      ["side", "root"],
      ["top", "side a3"],
      ["short", "fork"],
      ["twin", "side"],
    ]);
    await expectNamed("top short", "fork");
    await expectNamed("short top", "fork");
    await expectNamed("twin top", "side");
    await expectNamed("twin short", "root");
  });

  it("a base that is dated before its own ancestor is the base all the same", async () => {
    const expectNamed = named([
      ["root", "", 900],
      ["base", "root", 5],
      ["left", "base", 800],
      ["right", "base", 7],
      ["left2", "left", 1],
      ["right2", "right root", 1000],
    ]);
    await expectNamed("left right", "base");
    await expectNamed("left2 right2", "base");
    await expectNamed("right2 left2", "base");
  });

  it("a criss-cross has two bases, and what is below them is none", async () => {
    const expectNamed = named([
      ["root", ""],
      ["a", "root"],
      ["b", "root"],
      ["ab", "a b"],
      ["ba", "b a"],
      ["left", "ab"],
      ["right", "ba"],
    ]);
    await expectNamed("left right", "a", "b");
    await expectNamed("ab ba", "a", "b");
    await expectNamed("left b", "b");
  });

  it("of a commit and its ancestor it is the ancestor, of a commit and itself the commit", async () => {
    const expectNamed = named([
      ["root", ""],
      ["old", "root"],
      ["new", "old"],
    ]);
    await expectNamed("old new", "old");
    await expectNamed("new old", "old");
    await expectNamed("new new", "new");
    await expectNamed("root new", "root");
  });

  it("unrelated roots have none", async () => {
    const expectNamed = named([
      ["root", ""],
      ["one", "root"],
      ["other root", ""],
      ["lone", ""],
    ]);
    await expectNamed("one lone");
    await expectNamed("root lone");
  });

  it("of several others it is that of their merge, so not an ancestor of each", async () => {
    const expectNamed = named([
      ["root", ""],
      ["a", "root"],
      ["near", "a"],
      ["far", "root"],
      ["lone", ""],
    ]);
    await expectNamed("a near far", "a");
    await expectNamed("far near a", "root");
    await expectNamed("a lone near", "a");
    await expectNamed("near far a lone", "a");
  });
});

describe("merge bases in a history of 100,000 commits with 1,000 merges", () => {
  const COMMITS = 100_000;
  const { dag, line } = longDag(COMMITS, 1000);
  const nodes = dagNodes(
    dag,
    dag.commits.map((_, i) => fakeId(i + 1)),
  );
  const tip = nodes.at(-1)!;

  /** A fork of one commit from so many first parents back, read by a reader that knows nothing. */
  async function fork(back: number) {
    const base = nodes[line.at(-1 - back)!]!;
    const side = { ...base, id: fakeId(COMMITS + 1), parents: [base.id] };
    side.generation++;
    const graph = new NearGraph([...nodes, side]);
    const plain: GraphSource = { read: (ids, limit) => graph.read(ids, limit) };
    const ask = async (reader: HistoryReader) => {
      const before = { reads: graph.reads, exact: graph.nodesRead, near: graph.nearRead };
      expect(await reader.mergeBases(tip.id, [side.id])).toEqual([base.id]);
      const nodes = graph.nodesRead - before.exact + graph.nearRead - before.near;
      return { reads: graph.reads - before.reads, nodes };
    };
    return { ask, cold: new HistoryReader(graph), plain: new HistoryReader(plain) };
  }

  it("reads a few thousand nodes for a fork 500 commits back, and none when asked again", async () => {
    const { ask, cold, plain } = await fork(500);
    for (const reader of [cold, plain]) {
      const { reads, nodes } = await ask(reader);
      expect(nodes).toBeGreaterThan(500);
      expect(nodes).toBeLessThan(2500);
      expect(reads).toBeLessThan(10);
      expect(await ask(reader)).toEqual({ reads: 0, nodes: 0 });
    }
  });

  it("reads each node about once for a fork all the way back, in few round trips", async () => {
    const { ask, cold, plain } = await fork(line.length - 1);
    for (const reader of [cold, plain]) {
      const { reads, nodes } = await ask(reader);
      expect(nodes).toBeGreaterThanOrEqual(COMMITS);
      expect(nodes).toBeLessThan(1.02 * COMMITS + READ_AHEAD_MAX_NODES);
      expect(reads).toBeLessThan(COMMITS / READ_AHEAD_MAX_NODES + 10);
      expect(await ask(reader)).toEqual({ reads: 0, nodes: 0 });
    }
  });

  it("stops where one side has nothing open, and does not paint the rest of the other", async () => {
    const { ask, cold } = await fork(0);
    expect((await ask(cold)).nodes).toBeLessThan(200);
    // Once the tip is found to be the base, an old commit is open still, on the right side only.
    const parents = [tip.id, nodes[10]!.id];
    const merge = { ...tip, id: fakeId(COMMITS + 1), parents, generation: tip.generation + 1 };
    const graph = new NearGraph([...nodes, merge]);
    expect(await new HistoryReader(graph).mergeBases(tip.id, [merge.id])).toEqual([tip.id]);
    expect(graph.nodesRead + graph.nearRead).toBeLessThan(200);
  });

  it("holds a bounded part of it in memory, however long the walk", async () => {
    const MAX_NODES = 5000;
    const reader = new GraphReader(new MemoryGraph(nodes), new GraphCache(MAX_NODES));
    const walk = new DescendingWalk(reader);
    const [start] = await reader.read([tip.id]);
    walk.add(start!, 1);
    let came = 0;
    let most = 0;
    for (let node = walk.pop(); node !== undefined; node = walk.pop()) {
      came++;
      await walk.expand(node, 1);
      most = Math.max(most, reader.graph.size);
    }
    expect(came).toBe(COMMITS);
    // A page of nodes, each of which names at most one parent that did not come with it.
    expect(most).toBeLessThan(MAX_NODES + 2 * READ_AHEAD_MAX_NODES);
  });

  it("reads little near others when little of it is of use", async () => {
    // A line that stands scattered among twenty times as many commits of other lines.
    const COUNT = 5000;
    const root = { id: fakeId(1), parents: [], generation: 1, time: 1 };
    const scattered: GraphNode[] = [root];
    for (let i = 2; i <= COUNT; i++) {
      for (let k = 0; k < 20; k++) scattered.push({ ...root, id: fakeId(1e6 + 20 * i + k) });
      scattered.push({ ...root, id: fakeId(i), parents: [fakeId(i - 1)], generation: i });
    }
    const graph = new NearGraph(scattered);
    const reader = new HistoryReader(graph);
    expect(await reader.mergeBases(fakeId(COUNT), [root.id])).toEqual([root.id]);
    expect(graph.nearRead).toBeGreaterThan(0);
    expect(graph.nearRead).toBeLessThan(4 * COUNT + 2 * READ_AHEAD_MAX_NODES);
    expect(graph.reads).toBeLessThan(50);
  });

  it("throws when a commit that it needs is missing", async () => {
    const hole = nodes[line.at(-100)!]!.id;
    const graph = new NearGraph(nodes.filter((node) => node.id !== hole));
    for (const source of [graph, withoutReadAhead(graph)]) {
      const reader = new HistoryReader(source);
      await expect(reader.mergeBases(tip.id, [nodes[0]!.id])).rejects.toMatchObject({
        code: "MISSING_OBJECT",
        details: { id: hole },
      });
      await expect(reader.mergeBases(tip.id, [hole])).rejects.toMatchObject({
        code: "MISSING_OBJECT",
      });
    }
  });
});
