import { OBJECT_ID_BYTES, type ObjectId, objectIdAt } from "./ids.js";

/** 32-bit words of an id. */
const WORDS = OBJECT_ID_BYTES / 4;
/** Small, since most walks are short. */
const FIRST_CAPACITY = 64;

/**
 * Numbers object ids from 0 in the order in which they come, in flat memory: some 50 bytes an id, so that what is
 * known of each can be kept in arrays.
 *
 * A hash table with linear probing that is at most half full. Ids are uniform already, so their words folded into one are
 * hash enough.
 */
export class IdNumbers {
  #size = 0;
  #words = new Int32Array(FIRST_CAPACITY * WORDS);
  /** Number plus 1; 0 where it is free. */
  #slots = new Int32Array(2 * FIRST_CAPACITY);
  readonly #id = new Int32Array(WORDS);
  readonly #idBytes = Buffer.from(this.#id.buffer);

  /** How many ids have a number. */
  get size(): number {
    return this.#size;
  }

  /** The number of an id, given out now if need be. */
  number(id: ObjectId): number {
    const slot = this.#slot(id);
    const known = this.#slots[slot] as number;
    if (known !== 0) return known - 1;
    if (2 * (this.#size + 1) > this.#slots.length) {
      this.#grow();
      return this.number(id);
    }
    this.#words.set(this.#id, this.#size * WORDS);
    this.#slots[slot] = ++this.#size;
    return this.#size - 1;
  }

  /** The number of an id; -1 when it has none. */
  find(id: ObjectId): number {
    return (this.#slots[this.#slot(id)] as number) - 1;
  }

  id(number: number): ObjectId {
    return objectIdAt(Buffer.from(this.#words.buffer), number * OBJECT_ID_BYTES);
  }

  #slot(id: ObjectId): number {
    this.#idBytes.write(id, 0, "hex");
    return this.#find(this.#id, 0);
  }

  /** The slot of the id at a place among words, or the free one where it belongs. */
  #find(words: Int32Array, at: number): number {
    const mask = this.#slots.length - 1;
    let hash = 0;
    for (let word = at; word < at + WORDS; word++) hash ^= words[word] as number;
    let slot = (hash ^ (hash >>> 16)) & mask;
    for (
      let known = this.#slots[slot] as number;
      known !== 0;
      known = this.#slots[slot] as number
    ) {
      let same = 0;
      const own = (known - 1) * WORDS;
      while (same < WORDS && this.#words[own + same] === words[at + same]) same++;
      if (same === WORDS) return slot;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const words = new Int32Array(2 * this.#words.length);
    words.set(this.#words);
    this.#words = words;
    this.#slots = new Int32Array(2 * this.#slots.length);
    for (let n = 0; n < this.#size; n++) this.#slots[this.#find(words, n * WORDS)] = n + 1;
  }
}

/** A small number for each of many things, 0 at first; longer as it is needed. */
export class ByteColumn {
  #values = new Uint8Array(FIRST_CAPACITY);

  get(at: number): number {
    return this.#values[at] ?? 0;
  }

  set(at: number, value: number): void {
    if (at >= this.#values.length) {
      const longer = new Uint8Array(Math.max(at + 1, 2 * this.#values.length));
      longer.set(this.#values);
      this.#values = longer;
    }
    this.#values[at] = value;
  }
}
