import type { ObjectId } from "../core/ids.js";
import type { GraphNode } from "../storage/port.js";
import { type GraphReader, READ_AHEAD_MAX_NODES } from "./graph-reader.js";
import { PriorityQueue } from "./priority-queue.js";

/** A node on the frontier of a walk, and the marks that its descendants gave it. */
export interface MarkedNode {
  readonly node: GraphNode;
  readonly marks: number;
}

interface Waiting {
  readonly node: GraphNode;
  marks: number;
}

/**
 * Walks from some commits down to their ancestors, by falling generation.
 *
 * Each node comes once, after all its descendants in the walk: a parent's
 * generation is lower than its children's. So its marks, the union of what it
 * was added with, are final when it comes, whatever the dates say. The walk
 * holds its frontier and nothing else. What comes is not followed until
 * {@link expand} says so.
 *
 * This is the paint-down walk of Git's commit-reach.c, over exact generations
 * in place of dates.
 */
export class DescendingWalk {
  readonly #reader: GraphReader;
  readonly #settled: number;
  readonly #queue = new PriorityQueue<Waiting>((a, b) => b.node.generation - a.node.generation);
  readonly #waiting = new Map<ObjectId, Waiting>();
  #open = 0;

  /** @param settled the marks by which a node is of no more interest; see {@link open} */
  constructor(reader: GraphReader, settled = -1) {
    this.#reader = reader;
    this.#settled = settled;
  }

  /** How many nodes of the frontier do not have all the settled marks. */
  get open(): number {
    return this.#open;
  }

  /** The generation of the node that comes next; 0, which no node has, at the end. */
  get generation(): number {
    return this.#queue.peek()?.node.generation ?? 0;
  }

  /** Puts a node on the frontier, or adds marks to it there. It must not have come already. */
  add(node: GraphNode, marks: number): void {
    const known = this.#waiting.get(node.id);
    if (known === undefined) {
      const fresh = { node, marks };
      this.#waiting.set(node.id, fresh);
      this.#queue.push(fresh);
      if (marks !== this.#settled) this.#open++;
      return;
    }
    if (known.marks === this.#settled) return;
    known.marks |= marks;
    if (known.marks === this.#settled) this.#open--;
  }

  /** Takes the next node off the frontier; undefined at the end. */
  pop(): MarkedNode | undefined {
    const next = this.#queue.pop();
    if (next === undefined) return undefined;
    this.#waiting.delete(next.node.id);
    if (next.marks !== this.#settled) this.#open--;
    return next;
  }

  /**
   * Adds the parents of a node that came, and answers them in their order.
   *
   * @throws AgstateError `MISSING_OBJECT`
   */
  async expand(node: GraphNode, marks: number): Promise<GraphNode[]> {
    const parents = await this.#reader.read(node.parents, () => this.#parentsOfFrontier());
    for (const parent of parents) this.add(parent, marks);
    return parents;
  }

  *#parentsOfFrontier(): Generator<ObjectId> {
    for (const { node } of this.#queue.front(READ_AHEAD_MAX_NODES)) yield* node.parents;
  }
}
