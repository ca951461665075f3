import { LRUCache } from "lru-cache";
import type { ObjectId } from "../core/ids.js";
import type { GraphNode } from "../storage/port.js";
import { DescendingWalk } from "./descending-walk.js";
import { GraphReader, type GraphSource } from "./graph-reader.js";

export type { GraphSource } from "./graph-reader.js";

/** How many nodes a reader remembers between walks. */
const CACHE_MAX_NODES = 16_384;

/** Marks of {@link HistoryReader.aheadBehind}: which of the two commits reaches a node. */
const LEFT = 1;
const RIGHT = 2;
const BOTH = LEFT | RIGHT;

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
  readonly #cache = new LRUCache<ObjectId, GraphNode>({ max: CACHE_MAX_NODES });

  constructor(source: GraphSource) {
    this.#source = source;
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
  async *topoWalk(tips: readonly ObjectId[]): AsyncGenerator<GraphNode, void, undefined> {
    const reader = this.#reader();
    const starts = await reader.read([...new Set(tips)]);
    const walk = new DescendingWalk(reader);
    for (const start of starts) walk.add(start, 0);

    const places = new Map<ObjectId, Place>();
    const placeOf = (node: GraphNode): Place => {
      let place = places.get(node.id);
      if (place === undefined) {
        place = { node, children: 0, shown: false };
        places.set(node.id, place);
      }
      return place;
    };
    const countChildrenAbove = async (generation: number): Promise<void> => {
      while (walk.generation > generation) {
        const { node } = walk.pop()!;
        for (const parent of await walk.expand(node, 0)) placeOf(parent).children++;
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
  async *firstParentWalk(tip: ObjectId): AsyncGenerator<GraphNode, void, undefined> {
    const reader = this.#reader();
    let next: ObjectId | undefined = tip;
    while (next !== undefined) {
      const [node]: GraphNode[] = await reader.read([next]);
      yield node!;
      next = node!.parents[0];
    }
  }

  /** Whether `ancestor` is reached from `descendant`. */
  async isAncestor(ancestor: ObjectId, descendant: ObjectId): Promise<boolean> {
    return (await this.mergedInto([ancestor], descendant)).has(ancestor);
  }

  /**
   * Counts what each of two commits reaches and the other does not, as
   * `git rev-list --left-right --count a...b` does.
   */
  async aheadBehind(a: ObjectId, b: ObjectId): Promise<{ ahead: number; behind: number }> {
    const reader = this.#reader();
    const [left, right] = await reader.read([a, b]);
    const walk = new DescendingWalk(reader, BOTH);
    walk.add(left!, LEFT);
    walk.add(right!, RIGHT);
    let ahead = 0;
    let behind = 0;
    while (walk.open > 0) {
      const { node, marks } = walk.pop()!;
      if (marks === LEFT) ahead++;
      if (marks === RIGHT) behind++;
      await walk.expand(node, marks);
    }
    return { ahead, behind };
  }

  /** Finds which of the tips are ancestors of the target, in one walk that ends at the oldest tip. */
  async mergedInto(tips: readonly ObjectId[], target: ObjectId): Promise<Set<ObjectId>> {
    const reader = this.#reader();
    const [start, ...nodes] = await reader.read([target, ...tips]);
    const sought = new Set(tips);
    const oldestLast = nodes.sort((a, b) => b.generation - a.generation);
    const merged = new Set<ObjectId>();

    const walk = new DescendingWalk(reader);
    walk.add(start!, 0);
    for (;;) {
      while (oldestLast.length > 0 && merged.has(oldestLast.at(-1)!.id)) oldestLast.pop();
      const floor = oldestLast.at(-1)?.generation;
      if (floor === undefined || walk.generation < floor) return merged;
      const { node } = walk.pop()!;
      if (sought.has(node.id)) merged.add(node.id);
      if (node.generation > floor) await walk.expand(node, 0);
    }
  }

  #reader(): GraphReader {
    return new GraphReader(this.#source, this.#cache);
  }
}
