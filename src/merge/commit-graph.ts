import { OBJECT_ID_BYTES, type ObjectId } from "../core/ids.js";
import { type GraphNode, PACKED_GRAPH_DIGITS, type PackedGraph } from "../storage/port.js";

/** 32-bit words of an id. */
const WORDS = OBJECT_ID_BYTES / 4;
const FIRST_CAPACITY = 512;
/** Fourfold: what is not written yet takes no memory, and copies cost a long cold walk its time. */
const GROWTH = 4;
/** 2^32 divided by the golden ratio: Knuth's multiplier for hashing by the upper bits of a product. */
const GOLDEN = 0x9e3779b1;
const DIGIT_ZERO = 0x30;

/**
 * Commits in memory, numbered as they come, in flat arrays: what a walk needs of 100,000
 * commits is some 8 MB, and following a parent is two array reads.
 *
 * A commit has a number as soon as its id is met as a parent's; the rest is known when it
 * {@link isRead}. Nothing is ever taken out: who wants to forget begins a new graph.
 */
export class CommitGraph {
  #size = 0;
  /** The ids, 32 bytes each, in the machine's byte order. */
  #words = new Int32Array(FIRST_CAPACITY * WORDS);
  #generations = new Float64Array(FIRST_CAPACITY);
  #times = new Float64Array(FIRST_CAPACITY);
  /** Where in the links a commit's parents stand, plus 1; 0 while it is not read. */
  #linksAt = new Int32Array(FIRST_CAPACITY);
  /** For each commit read, how many parents it has, and their numbers. */
  #links = new Int32Array(2 * FIRST_CAPACITY);
  #linksEnd = 0;
  /** A hash table with linear probing over the ids: number plus 1; 0 where it is free. */
  #slots = new Int32Array(2 * FIRST_CAPACITY);
  #shift = 32 - Math.log2(2 * FIRST_CAPACITY);
  readonly #id = new Int32Array(WORDS);
  readonly #idBytes = Buffer.from(this.#id.buffer);

  /** How many commits have a number. */
  get size(): number {
    return this.#size;
  }

  /** The number of a commit, given out now if need be. */
  number(id: ObjectId): number {
    this.#idBytes.write(id, 0, "hex");
    return this.#number(this.#id, 0);
  }

  isRead(commit: number): boolean {
    return this.#linksAt[commit] !== 0;
  }

  generation(commit: number): number {
    return this.#generations[commit]!;
  }

  parentCount(commit: number): number {
    return this.#links[this.#linksAt[commit]! - 1]!;
  }

  parent(commit: number, index: number): number {
    return this.#links[this.#linksAt[commit]! + index]!;
  }

  id(commit: number): ObjectId {
    const bytes = Buffer.from(this.#words.buffer, commit * OBJECT_ID_BYTES, OBJECT_ID_BYTES);
    return bytes.toString("hex") as ObjectId;
  }

  parentIds(commit: number): ObjectId[] {
    const ids: ObjectId[] = [];
    for (let i = 0; i < this.parentCount(commit); i++) ids.push(this.id(this.parent(commit, i)));
    return ids;
  }

  /** What is known of a commit that is read. */
  node(commit: number): GraphNode {
    return {
      id: this.id(commit),
      parents: this.parentIds(commit),
      generation: this.#generations[commit]!,
      time: this.#times[commit]!,
    };
  }

  /** Takes a commit in, and answers its number. */
  add(node: GraphNode): number {
    const commit = this.number(node.id);
    if (this.isRead(commit)) return commit;
    this.#begin(commit, node.generation, node.time, node.parents.length);
    for (const parent of node.parents) this.#link(this.number(parent));
    return commit;
  }

  /**
   * Takes packed commits in, and answers how many there were. What does not have the form, as
   * damage may leave it, ends the reading without an error: it counts as not answered.
   */
  addPacked(packed: PackedGraph): number {
    const bytes = packed.byteOffset % 4 === 0 ? packed : new Uint8Array(packed);
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    const { generation, time, parents } = PACKED_GRAPH_DIGITS;
    let before = 0;
    for (let count = 0, at = 0; ; count++) {
      const digits = 4 * at;
      const height = decimal(bytes, digits, generation);
      const seconds = decimal(bytes, digits + generation, time);
      const parentCount = decimal(bytes, digits + generation + time, parents);
      const idAt = at + (generation + time + parents) / 4;
      const end = idAt + WORDS * (1 + parentCount);
      // So that NaN ends it as well.
      if (!(height > 0 && seconds >= 0 && end <= words.length)) return count;
      const commit = this.#number(words, idAt);
      if (!this.isRead(commit)) {
        this.#begin(commit, height, seconds, parentCount);
        for (at = idAt + WORDS; at < end; at += WORDS) {
          // Most often the parent is the commit that was written before.
          this.#link(this.#hasId(before, words, at) ? before : this.#number(words, at));
        }
      }
      before = commit;
      at = end;
    }
  }

  #begin(commit: number, generation: number, time: number, parents: number): void {
    this.#generations[commit] = generation;
    this.#times[commit] = time;
    while (this.#linksEnd + 1 + parents > this.#links.length) this.#links = longer(this.#links);
    this.#links[this.#linksEnd++] = parents;
    this.#linksAt[commit] = this.#linksEnd;
  }

  #link(parent: number): void {
    this.#links[this.#linksEnd++] = parent;
  }

  #number(words: Int32Array, at: number): number {
    const slots = this.#slots;
    let slot = this.#slot(words, at);
    for (let known = slots[slot]!; known !== 0; known = slots[slot]!) {
      if (this.#hasId(known - 1, words, at)) return known - 1;
      slot = (slot + 1) & (slots.length - 1);
    }
    if (2 * this.#size === slots.length) {
      this.#grow();
      return this.#number(words, at);
    }
    const commit = this.#size++;
    const own = this.#words;
    for (let i = 0, to = commit * WORDS; i < WORDS; i++) own[to + i] = words[at + i]!;
    slots[slot] = commit + 1;
    return commit;
  }

  /** Where in the hash table the search for an id begins. */
  #slot(words: Int32Array, at: number): number {
    let mixed = 0;
    for (let i = 0; i < WORDS; i++) mixed ^= words[at + i]!;
    return Math.imul(mixed, GOLDEN) >>> this.#shift;
  }

  #hasId(commit: number, words: Int32Array, at: number): boolean {
    const own = this.#words;
    for (let i = 0, from = commit * WORDS; i < WORDS; i++) {
      if (own[from + i] !== words[at + i]) return false;
    }
    return true;
  }

  #grow(): void {
    this.#words = longer(this.#words);
    this.#generations = longer(this.#generations);
    this.#times = longer(this.#times);
    this.#linksAt = longer(this.#linksAt);
    this.#slots = new Int32Array(GROWTH * this.#slots.length);
    this.#shift -= Math.log2(GROWTH);
    for (let commit = 0; commit < this.#size; commit++) {
      let slot = this.#slot(this.#words, commit * WORDS);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (this.#slots.length - 1);
      this.#slots[slot] = commit + 1;
    }
  }
}

/** The number that stands in so many digits; NaN when other bytes are among them. */
function decimal(bytes: Uint8Array, at: number, digits: number): number {
  let value = 0;
  for (let i = at; i < at + digits; i++) {
    const digit = bytes[i]! - DIGIT_ZERO;
    // Unsigned, so that what lies below the digits is above them too.
    if (digit >>> 0 > 9) return Number.NaN;
    value = 10 * value + digit;
  }
  return value;
}

function longer<T extends Int32Array | Float64Array>(array: T): T {
  const copy = new (array.constructor as new (length: number) => T)(GROWTH * array.length);
  copy.set(array);
  return copy;
}
