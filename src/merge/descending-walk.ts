import type { ObjectId } from "../core/ids.js";
import { type GraphReader, READ_AHEAD_MAX_NODES } from "./graph-reader.js";
import { PriorityQueue } from "./priority-queue.js";

/** How many sets of marks there are: a set is a number of three bits. */
const MARK_SETS = 8;
/** Set beside the marks of a node that is on the frontier. */
const WAITING = 0x80;

/**
 * Walks from some commits down to their ancestors, by falling generation.
 *
 * Each node comes once, after all its descendants in the walk: a parent's
 * generation is lower than its children's. So its marks, the union of what it
 * was added with, are final when it comes, whatever the dates say. What comes is
 * not followed until {@link expand} says so. Beside the frontier the walk holds
 * a byte for each node of the reader's graph, which is bounded: when it is full,
 * the walk takes its frontier to another one.
 *
 * This is the paint-down walk of Git's commit-reach.c, over exact generations
 * in place of dates.
 */
export class DescendingWalk {
  readonly #reader: GraphReader;
  readonly #queue = new PriorityQueue<number>(
    (a, b) => this.#reader.graph.generation(b) - this.#reader.graph.generation(a),
  );
  #marks = new Uint8Array(1024);
  readonly #counts = new Array<number>(MARK_SETS).fill(0);

  constructor(reader: GraphReader) {
    this.#reader = reader;
  }

  /** How many nodes of the frontier have exactly these marks. */
  waiting(marks: number): number {
    return this.#counts[marks]!;
  }

  /** The generation of the node that comes next; 0, which no node has, at the end. */
  get generation(): number {
    const next = this.#queue.peek();
    return next === undefined ? 0 : this.#reader.graph.generation(next);
  }

  /** Puts a node that is read on the frontier, or adds marks to it there. It must not have come already. */
  add(node: number, marks: number): void {
    if (node >= this.#marks.length) this.#lengthen(node);
    const before = this.#marks[node]!;
    const after = before | marks | WAITING;
    if (after === before) return;
    this.#marks[node] = after;
    this.#counts[after & ~WAITING]!++;
    if ((before & WAITING) === 0) this.#queue.push(node);
    else this.#counts[before & ~WAITING]!--;
  }

  /** Takes the next node off the frontier; undefined at the end. */
  pop(): number | undefined {
    const node = this.#queue.pop();
    if (node === undefined) return undefined;
    const marks = this.#marks[node]! & ~WAITING;
    this.#marks[node] = marks;
    this.#counts[marks]!--;
    this.#reader.use();
    return node;
  }

  /** The marks of a node that came, or waits. */
  marks(node: number): number {
    return this.#marks[node]! & ~WAITING;
  }

  /**
   * Adds the parents of a node that came: at once when they are read, and then it answers
   * undefined; else there is something to wait for, which makes all numbers void.
   *
   * @throws AgstateError `MISSING_OBJECT`
   */
  expand(node: number, marks: number): Promise<void> | undefined {
    const { graph } = this.#reader;
    const count = graph.parentCount(node);
    for (let i = 0; i < count; i++) {
      if (!graph.isRead(graph.parent(node, i))) return this.#readParents(node, marks);
    }
    for (let i = 0; i < count; i++) this.add(graph.parent(node, i), marks);
    return undefined;
  }

  async #readParents(node: number, marks: number): Promise<void> {
    const ids = this.#reader.graph.parentIds(node);
    this.#renew();
    const parents = await this.#reader.read(ids, () => this.#parentsOfFrontier());
    for (const parent of parents) this.add(parent, marks);
  }

  #renew(): void {
    const { graph } = this.#reader;
    if (!this.#reader.renew(this.#queue.size)) return;
    const old = this.#marks;
    this.#marks = new Uint8Array(1024);
    this.#queue.replace((node) => {
      const number = this.#reader.graph.add(graph.node(node));
      if (number >= this.#marks.length) this.#lengthen(number);
      this.#marks[number] = old[node]!;
      return number;
    });
  }

  #lengthen(node: number): void {
    const longer = new Uint8Array(2 * Math.max(node, this.#reader.graph.size));
    longer.set(this.#marks);
    this.#marks = longer;
  }

  *#parentsOfFrontier(): Generator<ObjectId> {
    const { graph } = this.#reader;
    for (const node of this.#queue.front(READ_AHEAD_MAX_NODES)) {
      for (let i = 0; i < graph.parentCount(node); i++) {
        const parent = graph.parent(node, i);
        if (!graph.isRead(parent)) yield graph.id(parent);
      }
    }
  }
}
