import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { GraphNode, PackedGraph } from "../storage/port.js";
import { CommitGraph } from "./commit-graph.js";

/**
 * Where the history comes from: `Storage.readGraph` and `Storage.readGraphNear`, bound to a
 * workflow.
 *
 * `read` answers each of `ids` that is stored, and may go on with their
 * ancestors until `limit` nodes are read. `readNear`, where there is one, answers
 * what of `ids` and what else it finds cheaply, `limit` nodes more at most. A
 * source that reads no ancestors is correct, only slower.
 */
export interface GraphSource {
  read(ids: readonly ObjectId[], limit: number): Promise<GraphNode[]>;
  readNear?(ids: readonly ObjectId[], limit: number): Promise<PackedGraph>;
  /** How many ancestors each read brings along at least: more where a call costs much. */
  readonly aheadMinNodes?: number;
}

/** How many ancestors the first read of a walk brings along, where the source does not say. */
const READ_AHEAD_MIN_NODES = 64;
/** The most ancestors that one read brings along; an embedded store works some milliseconds on them. */
export const READ_AHEAD_MAX_NODES = 4096;
/** A walk that has use for fewer than one in so many nodes that were read near others reads exactly. */
const NEAR_USED_ONE_IN = 4;
/** How many nodes are read near others before that is judged. */
const NEAR_TRIAL_NODES = 1024;

/** The graph that walks share; begun anew when it is full, so that memory stays bounded. */
export class GraphCache {
  #graph = new CommitGraph();

  /** @param maxNodes how many commits a graph has a number for when it counts as full */
  constructor(readonly maxNodes: number) {}

  /** Begins anew; walks under way go on with what they have. */
  forget(): void {
    this.#graph = new CommitGraph();
  }

  get graph(): CommitGraph {
    if (this.#graph.size >= this.maxNodes) this.#graph = new CommitGraph();
    return this.#graph;
  }
}

/**
 * Reads nodes for one walk, a batch a round trip, into a graph that walks share.
 *
 * It reads ahead about as much as the walk has come so far: a short walk reads
 * little, and a long one of n nodes makes O(log n + n / READ_AHEAD_MAX_NODES)
 * round trips. No walk relies on what others have read.
 */
export class GraphReader {
  readonly #source: GraphSource;
  readonly #cache: GraphCache;
  #graph: CommitGraph;
  #used = 0;
  #nearNodes = 0;

  constructor(source: GraphSource, cache: GraphCache) {
    this.#source = source;
    this.#cache = cache;
    this.#graph = cache.graph;
  }

  /** What the numbers of the walk stand for. */
  get graph(): CommitGraph {
    return this.#graph;
  }

  /** Counts a node that the walk has come to: it decides how far reads go ahead. */
  use(): void {
    this.#used++;
  }

  /**
   * Goes on to another graph when this one is full and holds much that the walk has no use
   * for; answers whether it did, which makes all numbers void.
   *
   * @param kept how many nodes the walk takes along
   */
  renew(kept: number): boolean {
    if (this.#graph.size < Math.max(this.#cache.maxNodes, 4 * kept)) return false;
    this.#graph = this.#cache.graph;
    return true;
  }

  /**
   * Reads nodes, and answers their numbers in the order of `ids`.
   *
   * @param soon names unread nodes that the walk will ask for; read in the same round trip when there is one
   * @throws AgstateError `MISSING_OBJECT` when one of `ids` is not stored
   */
  async read(ids: readonly ObjectId[], soon?: () => Iterable<ObjectId>): Promise<number[]> {
    const graph = this.#graph;
    const numbers = ids.map((id) => graph.number(id));
    const unread = () => ids.filter((_, i) => !graph.isRead(numbers[i]!));
    let wanted = unread();
    if (wanted.length > 0 && this.#readsNear()) {
      await this.#readNear(wanted);
      wanted = unread();
    }
    if (wanted.length > 0) {
      await this.#readExactly(wanted, soon);
      for (const id of unread()) missing(id);
    }
    return numbers;
  }

  /** Reads nodes for a walk that holds no numbers, and answers all that is known of them. */
  async readNodes(ids: readonly ObjectId[]): Promise<GraphNode[]> {
    this.renew(0);
    const numbers = await this.read(ids);
    return numbers.map((number) => this.#graph.node(number));
  }

  /** Not for the first read: a short walk is best served by exactly what it needs. */
  #readsNear(): boolean {
    if (this.#source.readNear === undefined || this.#used < READ_AHEAD_MIN_NODES / 2) return false;
    return this.#nearNodes <= NEAR_TRIAL_NODES + NEAR_USED_ONE_IN * this.#used;
  }

  async #readNear(ids: readonly ObjectId[]): Promise<void> {
    const packed = await this.#source.readNear!(ids, this.#ahead(2));
    this.#nearNodes += this.#graph.addPacked(packed);
  }

  async #readExactly(ids: readonly ObjectId[], soon?: () => Iterable<ObjectId>): Promise<void> {
    const graph = this.#graph;
    const wanted = new Set(ids);
    for (const id of soon?.() ?? []) {
      if (wanted.size >= ids.length + READ_AHEAD_MAX_NODES) break;
      wanted.add(id);
    }
    const nodes = await this.#source.read([...wanted], wanted.size + this.#ahead(1));
    for (const node of nodes) graph.add(node);
  }

  #ahead(factor: number): number {
    const { aheadMinNodes = READ_AHEAD_MIN_NODES } = this.#source;
    return Math.min(Math.max(aheadMinNodes, factor * this.#used), READ_AHEAD_MAX_NODES);
  }
}

function missing(id: ObjectId): never {
  throw new AgstateError(
    "MISSING_OBJECT",
    `commit ${id} is not in the store; the history is damaged here, run fsck to see how far`,
    { id, type: "commit" },
  );
}
