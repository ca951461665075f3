import { LRUCache } from "lru-cache";
import { AgstateError, isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import {
  type BelowRequest,
  type CommitRecord,
  ENCODING,
  type ObjectRecord,
  type Storage,
  type StoredObject,
} from "../storage/port.js";
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

/** How many objects are asked for in one call. */
const BATCH = 2000;
/** The most that one call brings of what lies below. */
export const BELOW_MAX_OBJECTS = 20_000;
export const BELOW_MAX_BYTES = 16 * 1024 * 1024;
/** The most objects that a call names as known. */
const KNOWN_MAX = 1000;

/** Where to begin reading ahead, and how far to go. */
export type AheadRequest = Omit<BelowRequest, "known">;

/** What was read ahead: commits as they are stored, and objects, which are in the cache too. */
export interface Ahead {
  readonly commits: readonly CommitRecord[];
  readonly objects: ReadonlyMap<ObjectId, DecodedObject>;
}

/** Reads the objects of one workflow, through a cache. */
export class ObjectReader {
  constructor(
    private readonly storage: Pick<Storage, "readObjects" | "readBelow">,
    private readonly workflow: string,
    private readonly cache: ObjectCache,
    /** Objects at hand that no call to the storage would find: those in a commit's row. */
    private readonly atHand: ObjectsAtHand = new Map(),
    /** What was last read as a whole: the next is often much the same. */
    private readonly whole: { id: ObjectId | null } = { id: null },
  ) {}

  /** A reader that also knows the given objects. */
  with(atHand: ObjectsAtHand): ObjectReader {
    return new ObjectReader(this.storage, this.workflow, this.cache, atHand, this.whole);
  }

  /** Whether reading ahead saves calls; without it each level of a tree costs one. */
  get readsAhead(): boolean {
    return this.storage.readBelow !== undefined;
  }

  /**
   * Reads what is likely to be asked for next, in one call to the storage: objects and what lies
   * below them, as far as the limits let it. What is missing, damaged or erased is an error only for
   * who reads it.
   */
  async readAhead(request: AheadRequest): Promise<Ahead> {
    const known = this.known();
    const below = await this.storage.readBelow?.(this.workflow, { ...request, known });
    const objects = new Map<ObjectId, DecodedObject>();
    for (const stored of below?.objects ?? []) {
      const object = "tombstone" in stored ? undefined : decodedOrNone(stored);
      if (object === undefined) continue;
      objects.set(stored.id, object);
      this.cache.set(this.key(stored.id), object);
    }
    return { commits: below?.commits ?? [], objects };
  }

  /**
   * Reads an object and all that lies below it: in one call to the storage or a few, where that can
   * read ahead, else in one a level.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
   */
  async readWhole(id: ObjectId): Promise<ReadonlyMap<ObjectId, DecodedObject>> {
    const loaded = new Map<ObjectId, DecodedObject>();
    const met = new Set<ObjectId>([id]);
    const found = this.peek(id);
    if (found !== undefined) loaded.set(id, found);
    let absent = found === undefined ? [id] : this.descend([id], loaded, met);
    while (absent.length > 0) {
      const asked = absent.slice(0, BATCH);
      let left = asked;
      if (this.readsAhead) {
        const limits = { maxObjects: BELOW_MAX_OBJECTS, maxBytes: BELOW_MAX_BYTES };
        const { objects } = await this.readAhead({ ids: asked, ...limits });
        for (const [key, object] of objects) loaded.set(key, object);
        left = asked.filter((each) => !loaded.has(each));
      }
      // Nothing came: it is too large, at hand after all, or there is something wrong with it.
      if (left.length === asked.length) {
        const objects = await this.readAll(left);
        for (const [i, each] of left.entries()) loaded.set(each, objects[i] as DecodedObject);
        left = [];
      }
      const came = asked.filter((each) => loaded.has(each));
      absent = [...left, ...absent.slice(BATCH), ...this.descend(came, loaded, met)];
    }
    this.whole.id = id;
    return loaded;
  }

  /** Loads what is at hand below loaded objects, and answers what is not. */
  private descend(
    from: readonly ObjectId[],
    loaded: Map<ObjectId, DecodedObject>,
    met: Set<ObjectId>,
  ): ObjectId[] {
    const absent: ObjectId[] = [];
    const open = [...from];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const object = loaded.get(id) as DecodedObject;
      if (object.type === "blob") continue;
      for (const entry of object.entries) {
        if (met.has(entry.id)) continue;
        met.add(entry.id);
        const below = loaded.get(entry.id) ?? this.peek(entry.id);
        if (below === undefined) absent.push(entry.id);
        else {
          loaded.set(entry.id, below);
          open.push(entry.id);
        }
      }
    }
    return absent;
  }

  /** The upper part of what was last read as a whole, as far as the cache still has it. */
  private known(): ObjectId[] {
    const { id: top } = this.whole;
    if (top === null || !this.cache.has(this.key(top))) return [];
    const known = new Set<ObjectId>([top]);
    for (const id of known) {
      const object = this.cache.peek(this.key(id));
      for (const entry of object?.type === "tree" ? object.entries : []) {
        if (known.size >= KNOWN_MAX) return [...known];
        if (this.cache.has(this.key(entry.id))) known.add(entry.id);
      }
    }
    return [...known];
  }

  /**
   * Reads one object.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
   */
  async read(id: ObjectId): Promise<DecodedObject> {
    const cached = this.peek(id);
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
      const cached = this.peek(id);
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
    return this.peek(id) !== undefined;
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

  /** An object that is at hand: the storage is not asked. */
  peek(id: ObjectId): DecodedObject | undefined {
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

/** An object that is no more than hinted at: what cannot be decoded is left to whoever reads it. */
function decodedOrNone(record: ObjectRecord): DecodedObject | undefined {
  if ((record.encoding ?? ENCODING.plain) !== ENCODING.plain) return undefined;
  try {
    return decodeRecord(record);
  } catch (error) {
    if (isAgstateError(error, "CORRUPT_OBJECT")) return undefined;
    throw error;
  }
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
