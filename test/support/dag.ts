import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import type { ObjectId } from "../../src/core/ids.js";
import type { GraphSource } from "../../src/merge/history.js";
import { type GraphNode, PACKED_GRAPH_DIGITS, type PackedGraph } from "../../src/storage/port.js";
import { git, makeBareRepository } from "./git.js";

/** A commit of a random history: its parents are earlier commits, by index. */
export interface DagCommit {
  readonly parents: readonly number[];
  /** Committer date in seconds. */
  readonly time: number;
}

/** A random history. */
export interface Dag {
  readonly commits: readonly DagCommit[];
  /** The commits that a ref points to, by index; every childless commit is among them. */
  readonly tips: readonly number[];
}

export interface DagShape {
  readonly maxCommits: number;
  readonly maxParents: number;
}

const EPOCH_SECONDS = 1_700_000_000;

/**
 * Random histories: long lines, merges and octopus merges, criss-cross,
 * unrelated roots; dates rising, all equal, or skewed.
 *
 * `reach` says how far back parents lie: a small one makes few parallel lines
 * that criss-cross, a large one makes wide histories.
 */
export function dagArbitrary(shape: DagShape): fc.Arbitrary<Dag> {
  const parentCount = fc.oneof(
    { weight: 6, arbitrary: fc.constant(1) },
    { weight: 3, arbitrary: fc.constant(2) },
    { weight: 2, arbitrary: fc.integer({ min: 3, max: Math.max(3, shape.maxParents) }) },
    { weight: 1, arbitrary: fc.constant(0) },
  );
  const draw = fc.record({
    parentCount,
    picks: fc.array(fc.nat(), { minLength: shape.maxParents, maxLength: shape.maxParents }),
    skew: fc.integer({ min: -20, max: 20 }),
    tip: fc.nat({ max: 9 }),
  });
  return fc
    .record({
      draws: fc.array(draw, { minLength: 1, maxLength: shape.maxCommits, size: "max" }),
      reach: fc.constantFrom(2, 4, 8, 64),
      dates: fc.constantFrom("rising", "equal", "coarse", "skewed"),
    })
    .map(({ draws, reach, dates }) => {
      const commits = draws.map((d, index) => ({
        parents: pickParents(index, Math.min(d.parentCount, shape.maxParents), d.picks, reach),
        time: EPOCH_SECONDS + dateOffset(dates, index, d.skew),
      }));
      const hasChild = new Set(commits.flatMap((c) => c.parents));
      const tips = draws.flatMap((d, i) => (!hasChild.has(i) || d.tip === 0 ? [i] : []));
      return { commits, tips };
    });
}

function pickParents(index: number, count: number, picks: number[], reach: number): number[] {
  const span = Math.min(index, reach);
  const parents = new Set<number>();
  for (const pick of picks) {
    if (parents.size === Math.min(count, span)) break;
    let back = pick % span;
    while (parents.has(index - 1 - back)) back = (back + 1) % span;
    parents.add(index - 1 - back);
  }
  return [...parents];
}

function dateOffset(dates: string, index: number, skew: number): number {
  if (dates === "equal") return 0;
  if (dates === "coarse") return Math.floor(index / 5);
  return dates === "rising" ? index : index + skew;
}

/** A merge that names the same parent twice, with another line beside it. */
export const DUPLICATE_PARENTS: Dag = {
  commits: [[], [], [0, 0, 1], [2], [2, 1, 2]].map((parents) => ({ parents, time: EPOCH_SECONDS })),
  tips: [3, 4],
};

/** Many histories side by side, unrelated to each other: in one repository, where git is asked at once. */
export function sideBySide(dags: readonly Dag[]): Dag {
  const commits: DagCommit[] = [];
  const tips: number[] = [];
  for (const dag of dags) {
    const from = commits.length;
    for (const { parents, time } of dag.commits) {
      commits.push({ parents: parents.map((parent) => from + parent), time });
    }
    for (const tip of dag.tips) tips.push(from + tip);
  }
  return { commits, tips };
}

/**
 * A long line of commits with merges spread over it: each takes in a branch of one commit.
 * `line` has the numbers of the commits on the line of first parents, oldest first.
 */
export function longDag(count: number, merges: number): { dag: Dag; line: number[] } {
  const commits: DagCommit[] = [];
  const line: number[] = [];
  const add = (parents: readonly number[]): number =>
    commits.push({ parents, time: EPOCH_SECONDS + commits.length }) - 1;
  const every = Math.floor(count / merges);
  while (commits.length < count) {
    const head = line.at(-1);
    if (head === undefined) line.push(add([]));
    else if (commits.length % every === every - 2) line.push(add([head, add([head])]));
    else line.push(add([head]));
  }
  return { dag: { commits, tips: [line.at(-1)!] }, line };
}

/** A history in a real repository, and as graph nodes with the same ids. */
export interface GitDag {
  readonly directory: string;
  /** In the order of `Dag.commits`. */
  readonly nodes: readonly GraphNode[];
  readonly tips: readonly ObjectId[];
}

/** Writes a history into a fresh bare repository, each tip under `refs/heads/`, through `git fast-import`. */
export function writeDag(folder: string, dag: Dag): GitDag {
  const directory = makeBareRepository(mkdtempSync(join(folder, "dag-")));
  const marks = join(directory, "marks");
  git(directory, ["fast-import", "--quiet", `--export-marks=${marks}`], {
    input: importStream(dag),
  });
  const ids: ObjectId[] = [];
  for (const line of readFileSync(marks, "utf8").trimEnd().split("\n")) {
    const [mark, id] = line.split(" ");
    ids[Number(mark!.slice(1)) - 1] = id as ObjectId;
  }
  return { directory, nodes: dagNodes(dag, ids), tips: dag.tips.map((tip) => ids[tip]!) };
}

function importStream(dag: Dag): string {
  const lines: string[] = [];
  dag.commits.forEach((commit, i) => {
    lines.push("commit refs/build", `mark :${i + 1}`, `author a <a@b> ${commit.time} +0000`);
    // The committer keeps commits apart that are alike in everything else.
    lines.push(`committer c${i} <a@b> ${commit.time} +0000`);
    lines.push(`data <<.`, "m", ".");
    // Without a `from`, fast-import goes on from the ref that was built last.
    if (commit.parents.length === 0) lines.push(`from ${"0".repeat(64)}`);
    commit.parents.forEach((p, n) => {
      lines.push(`${n === 0 ? "from" : "merge"} :${p + 1}`);
    });
    lines.push("");
  });
  dag.tips.forEach((tip) => {
    lines.push(`reset refs/heads/b${tip}`, `from :${tip + 1}`, "");
  });
  lines.push("reset refs/build", `from ${"0".repeat(64)}`, "");
  return lines.join("\n");
}

/** The graph nodes of a history whose commits have these ids. */
export function dagNodes(dag: Dag, ids: readonly ObjectId[]): GraphNode[] {
  const nodes: GraphNode[] = [];
  dag.commits.forEach((commit, i) => {
    const generation = 1 + Math.max(0, ...commit.parents.map((p) => nodes[p]!.generation));
    const parents = commit.parents.map((p) => ids[p]!);
    nodes.push({ id: ids[i]!, parents, generation, time: commit.time });
  });
  return nodes;
}

/** An id for tests that need no real commit. */
export function fakeId(index: number): ObjectId {
  return index.toString(16).padStart(64, "0") as ObjectId;
}

/** A history in memory that answers as `Storage.readGraph` does, and counts what it is asked. */
export class MemoryGraph implements GraphSource {
  readonly #nodes: Map<ObjectId, GraphNode>;
  /** Round trips so far. */
  reads = 0;
  /** Nodes answered so far. */
  nodesRead = 0;

  constructor(nodes: readonly GraphNode[]) {
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
  }

  async read(ids: readonly ObjectId[], limit: number): Promise<GraphNode[]> {
    this.reads++;
    const rows = new Map<ObjectId, GraphNode>();
    const levels = new Map<number, Set<GraphNode>>();
    let generation = 0;
    const reach = (id: ObjectId): GraphNode | undefined => {
      const node = this.#nodes.get(id);
      if (node === undefined) return undefined;
      const level = levels.get(node.generation) ?? new Set();
      levels.set(node.generation, level.add(node));
      generation = Math.max(generation, node.generation);
      return node;
    };
    for (const id of ids) {
      const node = reach(id);
      if (node !== undefined) rows.set(id, node);
    }
    for (; generation > 0 && rows.size < limit; generation--) {
      for (const node of levels.get(generation) ?? []) {
        if (rows.size < limit) rows.set(node.id, node);
        for (const parent of node.parents) reach(parent);
      }
    }
    this.nodesRead += rows.size;
    return [...rows.values()];
  }
}

/** Like {@link MemoryGraph}, and answers as `Storage.readGraphNear` does: with what was written before. */
export class NearGraph extends MemoryGraph {
  readonly #order: readonly GraphNode[];
  readonly #place: ReadonlyMap<ObjectId, number>;
  /** Nodes answered by `readNear` so far. */
  nearRead = 0;

  /** @param nodes in the order of writing */
  constructor(nodes: readonly GraphNode[]) {
    super(nodes);
    this.#order = nodes;
    this.#place = new Map(nodes.map((node, place) => [node.id, place]));
  }

  async readNear(ids: readonly ObjectId[], limit: number): Promise<PackedGraph> {
    this.reads++;
    const [first, ...others] = ids.map((id) => this.#place.get(id)).filter((p) => p !== undefined);
    if (first === undefined) return new Uint8Array();
    const near = this.#order.slice(Math.max(0, first - limit), first + 1);
    near.push(...others.map((place) => this.#order[place]!));
    this.nearRead += near.length;
    return packGraph(near);
  }
}

/** Packs nodes as `Storage.readGraphNear` does. */
export function packGraph(nodes: readonly GraphNode[]): PackedGraph {
  const digits = (value: number, count: number) => String(value).padStart(count, "0");
  return Buffer.concat(
    nodes.map(({ id, parents, generation, time }) =>
      Buffer.concat([
        Buffer.from(digits(generation, PACKED_GRAPH_DIGITS.generation)),
        Buffer.from(digits(time, PACKED_GRAPH_DIGITS.time)),
        Buffer.from(digits(parents.length, PACKED_GRAPH_DIGITS.parents)),
        Buffer.from([id, ...parents].join(""), "hex"),
      ]),
    ),
  );
}
