/**
 * A binary heap: `pop` answers the item that comes first by `compare`.
 *
 * Items that compare equal come in no particular order. Push and pop cost O(log n).
 */
export class PriorityQueue<T> {
  readonly #heap: T[] = [];
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#heap.length;
  }

  peek(): T | undefined {
    return this.#heap[0];
  }

  /** Goes through at most `count` items near the front, in no particular order. */
  *front(count: number): Generator<T> {
    const end = Math.min(count, this.#heap.length);
    for (let i = 0; i < end; i++) yield this.#heap[i]!;
  }

  /** Puts another item in place of each, which must come neither before nor after it. */
  replace(other: (item: T) => T): void {
    const heap = this.#heap;
    for (let i = 0; i < heap.length; i++) heap[i] = other(heap[i]!);
  }

  push(item: T): void {
    const heap = this.#heap;
    let hole = heap.length;
    heap.push(item);
    while (hole > 0) {
      const above = (hole - 1) >> 1;
      if (this.#compare(heap[above]!, item) <= 0) break;
      heap[hole] = heap[above]!;
      hole = above;
    }
    heap[hole] = item;
  }

  pop(): T | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length > 0) this.#sink(last!);
    return first;
  }

  /** Puts an item where the front was, and moves it down to its place. */
  #sink(item: T): void {
    const heap = this.#heap;
    let hole = 0;
    for (;;) {
      let below = 2 * hole + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && this.#compare(heap[below + 1]!, heap[below]!) < 0) below++;
      if (this.#compare(item, heap[below]!) <= 0) break;
      heap[hole] = heap[below]!;
      hole = below;
    }
    heap[hole] = item;
  }
}
