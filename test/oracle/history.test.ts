import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { READ_AHEAD_MAX_NODES } from "../../src/merge/graph-reader.js";
import { type GraphSource, HistoryReader } from "../../src/merge/history.js";
import type { GraphNode } from "../../src/storage/port.js";
import {
  DUPLICATE_PARENTS,
  dagArbitrary,
  dagNodes,
  fakeId,
  MemoryGraph,
  writeDag,
} from "../support/dag.js";
import { git, gitLines, temporaryFolder } from "../support/git.js";
import { usually } from "../support/runs.js";

const folder = temporaryFolder();
const SHAPE = { maxCommits: 60, maxParents: 5 };

/** A source that never answers more than it was asked for. */
function withoutReadAhead(graph: MemoryGraph): GraphSource {
  return { read: (ids) => graph.read(ids, ids.length) };
}

async function walk(nodes: AsyncGenerator<GraphNode>, limit = Number.POSITIVE_INFINITY) {
  const ids: ObjectId[] = [];
  for await (const node of nodes) {
    ids.push(node.id);
    if (ids.length >= limit) break;
  }
  return ids;
}

describe("history of random graphs, against git", () => {
  it("walks in the order of rev-list --topo-order, from all tips and from some in any order", async () => {
    const property = fc.asyncProperty(
      dagArbitrary(SHAPE),
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (dag, picks, readAhead) => {
        const { directory, nodes, tips } = writeDag(folder, dag);
        const graph = new MemoryGraph(nodes);
        const reader = new HistoryReader(readAhead ? graph : withoutReadAhead(graph));

        const some = picks.map((pick) => nodes[pick % nodes.length]!.id);
        expect(await walk(reader.topoWalk(some))).toEqual(
          gitLines(directory, ["rev-list", "--topo-order", ...some]),
        );

        const sorted = gitLines(directory, ["for-each-ref", "--format=%(objectname)"]);
        expect([...sorted].sort()).toEqual([...tips].sort());
        expect(await walk(reader.topoWalk(sorted as ObjectId[]))).toEqual(
          gitLines(directory, ["rev-list", "--topo-order", "--all"]),
        );
      },
    );
    await fc.assert(property, {
      numRuns: usually(20, 3000),
      examples: [[DUPLICATE_PARENTS, [4, 3], true]],
    });
  });

  it("counts ahead and behind, finds ancestors and merged tips, and follows first parents", async () => {
    const property = fc.asyncProperty(
      dagArbitrary(SHAPE),
      fc.nat(),
      fc.nat(),
      async (dag, pickA, pickB) => {
        const { directory, nodes } = writeDag(folder, dag);
        const reader = new HistoryReader(new MemoryGraph(nodes));
        const a = nodes[pickA % nodes.length]!.id;
        const b = nodes[pickB % nodes.length]!.id;

        const counted = git(directory, ["rev-list", "--left-right", "--count", `${a}...${b}`]);
        const { ahead, behind } = await reader.aheadBehind(a, b);
        expect(`${ahead}\t${behind}\n`).toBe(counted);

        const reached = new Set(gitLines(directory, ["rev-list", b]));
        expect(await reader.isAncestor(a, b)).toBe(reached.has(a));
        const all = nodes.map((node) => node.id);
        expect(await reader.mergedInto(all, b)).toEqual(reached);

        expect(await walk(reader.firstParentWalk(a))).toEqual(
          gitLines(directory, ["rev-list", "--first-parent", a]),
        );
      },
    );
    await fc.assert(property, {
      numRuns: usually(15, 2000),
      examples: [[DUPLICATE_PARENTS, 4, 3]],
    });
  });
});

/** A line of commits, then merges that each take in a fresh branch of one commit from the line's end. */
function longHistory(line: number, merges: number): { graph: MemoryGraph; tip: ObjectId } {
  const commits: { parents: number[]; time: number }[] = [];
  for (let i = 0; i < line; i++) commits.push({ parents: i === 0 ? [] : [i - 1], time: 1 });
  for (let i = 0; i < merges; i++) {
    const base = commits.length - 1;
    commits.push({ parents: [base], time: 1 }, { parents: [base, base + 1], time: 1 });
  }
  const ids = commits.map((_, i) => fakeId(i + 1));
  const graph = new MemoryGraph(dagNodes({ commits, tips: [] }, ids));
  return { graph, tip: ids.at(-1)! };
}

describe("history of 200,000 commits and 10,000 merges", () => {
  const LINE = 200_000;
  const MERGES = 10_000;
  const { graph, tip } = longHistory(LINE, MERGES);
  const total = LINE + 2 * MERGES;
  const root = fakeId(1);

  async function cost<T>(work: (reader: HistoryReader) => Promise<T>) {
    const before = { reads: graph.reads, nodes: graph.nodesRead };
    const result = await work(new HistoryReader(graph));
    return { result, reads: graph.reads - before.reads, nodes: graph.nodesRead - before.nodes };
  }

  it("is walked whole, in few round trips, each node read about once", async () => {
    const { result, reads, nodes } = await cost((reader) => walk(reader.topoWalk([tip])));
    expect(result.length).toBe(total);
    expect(new Set(result).size).toBe(total);
    expect(result.at(-1)).toBe(root);
    expect(reads).toBeLessThan(total / READ_AHEAD_MAX_NODES + 10);
    expect(nodes).toBeLessThan(1.01 * total);
  });

  it("shows its newest 20 after reading a few dozen nodes", async () => {
    const { result, reads, nodes } = await cost((reader) => walk(reader.topoWalk([tip]), 20));
    expect(result.length).toBe(20);
    expect(reads).toBe(1);
    expect(nodes).toBeLessThan(100);
  });

  it("shows its newest 20 as cheaply when an old commit is a tip too", async () => {
    const { result, nodes } = await cost((reader) => walk(reader.topoWalk([tip, fakeId(50)]), 20));
    expect(result[0]).toBe(tip);
    expect(nodes).toBeLessThan(200);
  });

  it("answers questions that reach from end to end", async () => {
    const { result: first } = await cost((reader) => walk(reader.firstParentWalk(tip)));
    expect(first.length).toBe(LINE + MERGES);
    const { result: counts } = await cost((reader) => reader.aheadBehind(tip, root));
    expect(counts).toEqual({ ahead: total - 1, behind: 0 });
    const { result: isAncestor } = await cost((reader) => reader.isAncestor(root, tip));
    expect(isAncestor).toBe(true);
  });

  it("does not look below the generation of a supposed ancestor", async () => {
    const nearTip = fakeId(total - 1);
    const { result, nodes } = await cost((reader) => reader.isAncestor(tip, nearTip));
    expect(result).toBe(false);
    expect(nodes).toBeLessThan(100);
  });

  it("holds a history with a hole in it to be damaged", async () => {
    const reader = new HistoryReader(
      new MemoryGraph([{ id: fakeId(2), parents: [root], generation: 2, time: 1 }]),
    );
    await expect(walk(reader.topoWalk([fakeId(2)]))).rejects.toMatchObject({
      code: "MISSING_OBJECT",
      details: { id: root },
    });
  });
});
