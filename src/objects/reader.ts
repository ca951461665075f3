import { LRUCache } from "lru-cache";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { ObjectRecord, Storage, StoredObject } from "../storage/port.js";
import { decodeTree, type TreeEntry } from "./tree.js";

/** An object as read: a tree's entries or a blob's text, decoded once. */
export type DecodedObject =
  | { readonly type: "tree"; readonly entries: readonly TreeEntry[] }
  | { readonly type: "blob"; readonly text: string };

/** Decoded objects by workflow and id, least recently used first out; shared by all handles of a store. */
export type ObjectCache = LRUCache<string, DecodedObject>;

/** Objects that are not, or not yet, among the stored ones. */
export interface ObjectsAtHand {
  get(id: ObjectId): DecodedObject | undefined;
}

/** Rough cost of a cached object beyond its text: the map's and the objects' own memory. */
const OVERHEAD_BYTES = 200;
const ENTRY_BYTES = 160;

export function createObjectCache(maxBytes: number): ObjectCache {
  return new LRUCache({
    maxSize: maxBytes,
    sizeCalculation: (object) =>
      OVERHEAD_BYTES +
      (object.type === "tree" ? object.entries.length * ENTRY_BYTES : object.text.length),
  });
}

/** Reads the objects of one workflow, through a cache. */
export class ObjectReader {
  constructor(
    private readonly storage: Pick<Storage, "readObjects">,
    private readonly workflow: string,
    private readonly cache: ObjectCache,
    /** Objects at hand that no call to the storage would find: those in a commit's row. */
    private readonly atHand: ObjectsAtHand = new Map(),
  ) {}

  /** A reader that also knows the given objects. */
  with(atHand: ObjectsAtHand): ObjectReader {
    return new ObjectReader(this.storage, this.workflow, this.cache, atHand);
  }

  /**
   * Reads one object.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
   */
  async read(id: ObjectId): Promise<DecodedObject> {
    const cached = this.cached(id);
    if (cached !== undefined) return cached;
    return (await this.readAll([id]))[0] as DecodedObject;
  }

  /**
   * Reads objects in one call to the storage, the answer in the order of `ids`.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
   */
  async readAll(ids: readonly ObjectId[]): Promise<DecodedObject[]> {
    const found = new Map<ObjectId, DecodedObject>();
    const missing: ObjectId[] = [];
    for (const id of new Set(ids)) {
      const cached = this.cached(id);
      if (cached !== undefined) found.set(id, cached);
      else missing.push(id);
    }
    if (missing.length > 0) {
      const rows = await this.storage.readObjects(this.workflow, missing);
      for (let i = 0; i < missing.length; i++) {
        const id = missing[i] as ObjectId;
        const object = decodeStored(id, rows[i]);
        this.cache.set(this.key(id), object);
        found.set(id, object);
      }
    }
    return ids.map((id) => found.get(id) as DecodedObject);
  }

  /** Whether an object is at hand: it was read, and so verified, or written before. */
  has(id: ObjectId): boolean {
    return this.cached(id) !== undefined;
  }

  /** Reads a tree's entries. */
  async tree(id: ObjectId): Promise<readonly TreeEntry[]> {
    const object = await this.read(id);
    if (object.type !== "tree") throw wrongType(id, "tree");
    return object.entries;
  }

  /** Reads a blob as text. */
  async text(id: ObjectId): Promise<string> {
    const object = await this.read(id);
    if (object.type !== "blob") throw wrongType(id, "blob");
    return object.text;
  }

  /** Puts objects that were just written into the cache. */
  prime(
    objects: Iterable<{ readonly record: ObjectRecord; readonly decoded: DecodedObject }>,
  ): void {
    for (const { record, decoded } of objects) this.cache.set(this.key(record.id), decoded);
  }

  private cached(id: ObjectId): DecodedObject | undefined {
    return this.atHand.get(id) ?? this.cache.get(this.key(id));
  }

  private key(id: ObjectId): string {
    return `${id}${this.workflow}`;
  }
}

function decodeStored(id: ObjectId, stored: StoredObject | undefined): DecodedObject {
  if (stored === undefined) {
    throw new AgstateError(
      "MISSING_OBJECT",
      `object ${id} is not in the store; run agstate fsck to see what refers to it`,
      { id },
    );
  }
  if ("tombstone" in stored) {
    throw new AgstateError("ERASED", `object ${id} was erased`, { id });
  }
  return decodeRecord(stored);
}

export function decodeRecord(record: ObjectRecord): DecodedObject {
  const body = Buffer.from(record.body.buffer, record.body.byteOffset, record.body.byteLength);
  return record.type === "tree"
    ? { type: "tree", entries: decodeTree(body, record.id) }
    : { type: "blob", text: body.toString("utf8") };
}

function wrongType(id: ObjectId, wanted: string): AgstateError {
  return new AgstateError(
    "CORRUPT_OBJECT",
    `object ${id} is linked as a ${wanted} but is not one`,
    {
      id,
    },
  );
}
