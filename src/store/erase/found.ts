import type { ObjectId } from "../../core/ids.js";

/**
 * Why an object goes: all of it stood at a path (`value`); it holds such a value beside other things (`holder`), a copy
 * of one (`copy`) or a key that does (`key`); it is the record of a subject's step (`record`); or an earlier
 * erasure names it (`listed`).
 */
export type FoundAs = "value" | "holder" | "copy" | "key" | "record" | "listed";

/** Of what a value may be of that somebody else has as well, only these go wherever they are. */
const ANYWHERE: ReadonlySet<FoundAs> = new Set(["holder", "copy", "key"]);

export interface FoundObject {
  readonly type: "blob" | "tree";
  readonly as: FoundAs;
}

/** The objects that hold what is to be erased. */
export class Found {
  readonly #objects = new Map<ObjectId, FoundObject>();

  /** Takes an object in; what says more of it stays. */
  add(id: ObjectId, type: "blob" | "tree", as: FoundAs): void {
    const known = this.#objects.get(id);
    if (known === undefined || (!ANYWHERE.has(known.as) && ANYWHERE.has(as))) {
      this.#objects.set(id, { type, as });
    }
  }

  has(id: ObjectId): boolean {
    return this.#objects.has(id);
  }

  /** Whether what is in an object must be nowhere, not only at the place where it was found. */
  goesAnywhere(id: ObjectId): boolean {
    const found = this.#objects.get(id);
    return found !== undefined && ANYWHERE.has(found.as);
  }

  get size(): number {
    return this.#objects.size;
  }

  [Symbol.iterator](): IterableIterator<[ObjectId, FoundObject]> {
    return this.#objects[Symbol.iterator]();
  }
}
