import { IdNumbers } from "./id-numbers.js";
import type { ObjectId } from "./ids.js";

/** A set of object ids in flat memory, where a `Set` of strings takes several times as much. */
export class IdSet {
  readonly #numbers = new IdNumbers();

  get size(): number {
    return this.#numbers.size;
  }

  has(id: ObjectId): boolean {
    return this.#numbers.find(id) >= 0;
  }

  /** Adds an id; false when it was there. */
  add(id: ObjectId): boolean {
    const { size } = this;
    this.#numbers.number(id);
    return this.size > size;
  }
}
