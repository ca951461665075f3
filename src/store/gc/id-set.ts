import { OBJECT_ID_BYTES, type ObjectId } from "../../core/ids.js";

/** 32-bit words of an id. */
const WORDS = OBJECT_ID_BYTES / 4;
const FIRST_SLOTS = 1024;

/**
 * A set of object ids in flat memory: some 64 bytes an id, where a `Set` of
 * strings takes several times as much.
 *
 * A hash table with linear probing that is at most half full. Ids are uniform, so
 * their first word is hash enough; the id of zeroes marks a free slot and is not
 * an object's.
 */
export class IdSet {
  #words = new Int32Array(FIRST_SLOTS * WORDS);
  #slots = FIRST_SLOTS;
  #size = 0;
  readonly #id = new Int32Array(WORDS);
  readonly #idBytes = Buffer.from(this.#id.buffer);

  get size(): number {
    return this.#size;
  }

  has(id: ObjectId): boolean {
    this.#idBytes.write(id, 0, "hex");
    return this.#isAt(this.#find(this.#words, this.#slots));
  }

  /** Adds an id; false when it was there. */
  add(id: ObjectId): boolean {
    this.#idBytes.write(id, 0, "hex");
    let slot = this.#find(this.#words, this.#slots);
    if (this.#isAt(slot)) return false;
    if (2 * (this.#size + 1) > this.#slots) {
      this.#grow();
      this.#idBytes.write(id, 0, "hex");
      slot = this.#find(this.#words, this.#slots);
    }
    this.#words.set(this.#id, slot * WORDS);
    this.#size++;
    return true;
  }

  /** The slot that holds the id at hand, or the free one where it belongs. */
  #find(words: Int32Array, slots: number): number {
    const id = this.#id;
    let slot = (id[0] as number) & (slots - 1);
    for (;;) {
      const at = slot * WORDS;
      let same = true;
      let free = true;
      for (let i = 0; i < WORDS; i++) {
        const word = words[at + i];
        if (word !== id[i]) same = false;
        if (word !== 0) free = false;
      }
      if (same || free) return slot;
      slot = (slot + 1) & (slots - 1);
    }
  }

  #isAt(slot: number): boolean {
    const at = slot * WORDS;
    for (let i = 0; i < WORDS; i++) if (this.#words[at + i] !== 0) return true;
    return false;
  }

  #grow(): void {
    const slots = 2 * this.#slots;
    const words = new Int32Array(slots * WORDS);
    for (let slot = 0; slot < this.#slots; slot++) {
      if (!this.#isAt(slot)) continue;
      this.#id.set(this.#words.subarray(slot * WORDS, (slot + 1) * WORDS));
      words.set(this.#id, this.#find(words, slots) * WORDS);
    }
    this.#words = words;
    this.#slots = slots;
  }
}
