import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { GraphNode } from "../storage/port.js";
import { DescendingWalk } from "./descending-walk.js";
import { GraphCache, GraphReader, type GraphSource } from "./graph-reader.js";
import { mergeBases } from "./merge-bases.js";
import { walkAgain } from "./walk-again.js";

export type { GraphSource } from "./graph-reader.js";

/** How many nodes a reader remembers between walks. */
const CACHE_MAX_NODES = 262_144;

/** Marks of {@link HistoryReader.aheadBehind}: which of the two commits reaches a node. */
const LEFT = 1;
const RIGHT = 2;

/** Marks of {@link HistoryReader.mergedInto}: a tip that is asked for, and what the target reaches. */
const SOUGHT = 1;
const REACHED = 2;

/** A node on its way to its place in the topological order. */
interface Place {
  readonly node: GraphNode;
  /** Edges from children met by the walk, less those whose child has come: 0 means all came. */
  children: number;
  shown: boolean;
}

/**
 * Answers questions about the history of one workflow.
 *
 * Every method reads in batches, walks without recursion, and counts a commit
 * as an ancestor of itself.
 *
 * Every method throws AgstateError `MISSING_OBJECT` when a commit that it
 * needs is not stored.
 */
export class HistoryReader {
  readonly #source: GraphSource;
  readonly #cache: GraphCache;

  /** @param maxNodes about how many nodes are remembered between walks, some 50 bytes each */
  constructor(source: GraphSource, maxNodes = CACHE_MAX_NODES) {
    this.#source = source;
    this.#cache = new GraphCache(maxNodes);
  }

  /**
   * Goes through all ancestors of the tips, in the order of `git rev-list --topo-order`.
   *
   * A commit comes after all its children, and lines of history are not
   * interleaved. Where there is a choice, it falls as in Git: the tips by
   * falling date (equal dates in the order given), a merge's last parent before
   * its first. Reads little more than what is taken, unless a branch that is
   * to be shown next began long ago: then everything younger is read, because a
   * child may hide there.
   *
   * The order is that of Kahn's algorithm with a stack, as in Git's
   * sort_in_topological_order; the counting of children runs ahead just as far
   * as needed, as in its topo_walk. Unlike there, whether a commit is ready is
   * asked only when it is on top of the stack: offering one too early does no
   * harm, since its last child offers it again further up.
   */
  topoWalk(tips: readonly ObjectId[]): AsyncGenerator<GraphNode, void, undefined> {
    return this.#walkAgain(() => this.#topoWalk(tips));
  }

  async *#topoWalk(tips: readonly ObjectId[]): AsyncGenerator<GraphNode, void, undefined> {
    const reader = this.#reader();
    const numbers = await reader.read([...new Set(tips)]);
    const starts = numbers.map((number) => reader.graph.node(number));
    const walk = new DescendingWalk(reader);
    for (const number of numbers) walk.add(number, 0);

    const places = new Map<ObjectId, Place>();
    const placeOf = (node: GraphNode): Place => {
      const place = { node, children: 0, shown: false };
      places.set(node.id, place);
      return place;
    };
    const placeOfParent = (id: ObjectId): Place =>
      places.get(id) ?? placeOf(reader.graph.node(reader.graph.number(id)));
    const countChildrenAbove = async (generation: number): Promise<void> => {
      while (walk.generation > generation) {
        const next = walk.pop()!;
        const parents = reader.graph.parentIds(next);
        const reading = walk.expand(next, 0);
        if (reading !== undefined) await reading;
        for (const parent of parents) placeOfParent(parent).children++;
      }
    };

    // Popped from the end: reversed, so that equal dates come in the order given.
    const stack = starts
      .toReversed()
      .sort((a, b) => a.time - b.time)
      .map(placeOf);
    for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
      if (top.shown) continue;
      const { node } = top;
      await countChildrenAbove(node.generation);
      if (top.children > 0) continue;
      top.shown = true;
      places.delete(node.id);
      yield node;
      await countChildrenAbove(node.generation - 1);
      for (const parent of node.parents) {
        const place = places.get(parent)!;
        place.children--;
        stack.push(place);
      }
    }
  }

  /** Goes from a commit to its first parent, and so on down to a root. */
  firstParentWalk(tip: ObjectId): AsyncGenerator<GraphNode, void, undefined> {
    return this.#walkAgain(() => this.#firstParentWalk(tip));
  }

  async *#firstParentWalk(tip: ObjectId): AsyncGenerator<GraphNode, void, undefined> {
    const reader = this.#reader();
    let next: ObjectId | undefined = tip;
    while (next !== undefined) {
      const [node]: GraphNode[] = await reader.readNodes([next]);
      reader.use();
      yield node!;
      next = node!.parents[0];
    }
  }

  /** Remembers nothing that was read any more: commits were cut from their parents. */
  forget(): void {
    this.#cache.forget();
  }

  /** Reads commits, and some of their ancestors, for walks that begin there soon. */
  async load(tips: readonly ObjectId[]): Promise<void> {
    await this.#again(() => this.#reader().read([...new Set(tips)]));
  }

  /** Whether `ancestor` is reached from `descendant`. */
  async isAncestor(ancestor: ObjectId, descendant: ObjectId): Promise<boolean> {
    return (await this.mergedInto([ancestor], descendant)).has(ancestor);
  }

  /**
   * Counts what each of two commits reaches and the other does not, as
   * `git rev-list --left-right --count a...b` does.
   */
  aheadBehind(a: ObjectId, b: ObjectId): Promise<{ ahead: number; behind: number }> {
    return this.#again(() => this.#aheadBehind(a, b));
  }

  async #aheadBehind(a: ObjectId, b: ObjectId): Promise<{ ahead: number; behind: number }> {
    const reader = this.#reader();
    const [left, right] = await reader.read([a, b]);
    const walk = new DescendingWalk(reader);
    walk.add(left!, LEFT);
    walk.add(right!, RIGHT);
    let ahead = 0;
    let behind = 0;
    while (walk.waiting(LEFT) + walk.waiting(RIGHT) > 0) {
      const node = walk.pop()!;
      const marks = walk.marks(node);
      if (marks === LEFT) ahead++;
      if (marks === RIGHT) behind++;
      const reading = walk.expand(node, marks);
      if (reading !== undefined) await reading;
    }
    return { ahead, behind };
  }

  /** The commits that `tip` reaches and none of `others` does, as `git rev-list tip --not others...`, by falling generation. */
  notReached(tip: ObjectId, others: readonly ObjectId[]): Promise<ObjectId[]> {
    return this.#again(() => this.#notReached(tip, others));
  }

  async #notReached(tip: ObjectId, others: readonly ObjectId[]): Promise<ObjectId[]> {
    const reader = this.#reader();
    const [left, ...rights] = await reader.read([tip, ...others]);
    const walk = new DescendingWalk(reader);
    walk.add(left!, LEFT);
    for (const right of rights) walk.add(right, RIGHT);
    const ids: ObjectId[] = [];
    while (walk.waiting(LEFT) > 0) {
      const node = walk.pop()!;
      const marks = walk.marks(node);
      if (marks === LEFT) ids.push(reader.graph.id(node));
      const reading = walk.expand(node, marks);
      if (reading !== undefined) await reading;
    }
    return ids;
  }

  /**
   * Finds all best common ancestors of `a` and a hypothetical merge of `others`: what both
   * reach, less what is reached from another such commit.
   *
   * This is the set that `git merge-base --all a others...` answers; so with several others a
   * base need not be an ancestor of each of them. Several bases (criss-cross) come by falling
   * generation, equal ones by id; unrelated histories have none.
   */
  mergeBases(a: ObjectId, others: readonly ObjectId[]): Promise<ObjectId[]> {
    return this.#again(() => mergeBases(this.#reader(), a, others));
  }

  /** Finds which of the tips are ancestors of the target, in one walk that ends at the oldest tip. */
  mergedInto(tips: readonly ObjectId[], target: ObjectId): Promise<Set<ObjectId>> {
    return this.#again(() => this.#mergedInto(tips, target));
  }

  async #mergedInto(tips: readonly ObjectId[], target: ObjectId): Promise<Set<ObjectId>> {
    const reader = this.#reader();
    const [start, ...sought] = await reader.read([target, ...tips]);
    const floor = sought.reduce(
      (least, tip) => Math.min(least, reader.graph.generation(tip)),
      Number.POSITIVE_INFINITY,
    );
    const walk = new DescendingWalk(reader);
    walk.add(start!, REACHED);
    for (const tip of sought) walk.add(tip, SOUGHT);

    const merged = new Set<ObjectId>();
    while (walk.waiting(SOUGHT) + walk.waiting(SOUGHT | REACHED) > 0) {
      const node = walk.pop()!;
      const marks = walk.marks(node);
      if (marks === SOUGHT) continue;
      if (marks === (SOUGHT | REACHED)) merged.add(reader.graph.id(node));
      if (reader.graph.generation(node) <= floor) continue;
      const reading = walk.expand(node, REACHED);
      if (reading !== undefined) await reading;
    }
    return merged;
  }

  /**
   * Does something once more, without what is remembered, when a commit is not stored: another process may have dropped
   * history since that was read. Only damage stays missing.
   */
  async #again<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isAgstateError(error, "MISSING_OBJECT")) throw error;
      this.forget();
      return work();
    }
  }

  /** The same for a walk. */
  #walkAgain(
    walk: () => AsyncGenerator<GraphNode, void, undefined>,
  ): AsyncGenerator<GraphNode, void, undefined> {
    return walkAgain(
      walk,
      ({ id }) => id,
      () => this.forget(),
    );
  }

  #reader(): GraphReader {
    return new GraphReader(this.#source, this.#cache);
  }
}
