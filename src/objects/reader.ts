import { LRUCache } from "lru-cache";
import { AgstateError, isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { explainWithheld, Withheld, type WithheldNote } from "../core/withheld.js";
import {
  type BelowRequest,
  type CommitRecord,
  ENCODING,
  type ObjectRecord,
  type Storage,
  type StoredObject,
} from "../storage/port.js";
import {
  CLOSED,
  noteOfTombstone,
  type Opener,
  PLAIN_SEAL,
  type Resolver,
  type Seal,
} from "./sealing.js";
import { decodeTree, type TreeEntry } from "./tree.js";

/** An object as read, decoded once: a tree's entries, a blob's text, or why neither is told. */
export type DecodedObject = ReadableObject | OpaqueObject;

type ReadableObject =
  | { readonly type: "tree"; readonly entries: readonly TreeEntry[] }
  | {
      readonly type: "blob";
      readonly text: string;
      readonly seal?: Seal;
      /** Whether a pointer is stored here, and the text in another region: it must not become part of another blob. */
      readonly elsewhere?: true;
    };

/** An object whose bytes are erased, elsewhere, or sealed. */
export interface OpaqueObject {
  readonly type: "opaque";
  readonly of: "blob" | "tree";
  readonly note: WithheldNote;
}

/** How the blobs of a workflow are sealed, where they are, and opened. */
export interface Sealing {
  readonly seal: Seal;
  readonly opener: Opener;
  /** Left out where nothing can be read from other regions. */
  readonly resolver?: Resolver | undefined;
}

const UNSEALED: Sealing = { seal: PLAIN_SEAL, opener: CLOSED };

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
      (object.type === "tree"
        ? object.entries.length * ENTRY_BYTES
        : object.type === "blob"
          ? object.text.length
          : 0),
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
    private readonly sealing: Sealing = UNSEALED,
  ) {}

  /** How blobs of the workflow are sealed. */
  get seal(): Seal {
    return this.sealing.seal;
  }

  /** How bodies that are not plain are opened. */
  get opener(): Opener {
    return this.sealing.opener;
  }

  /**
   * Decodes an object that was read otherwise, as by a scan.
   *
   * @throws AgstateError `CORRUPT_OBJECT`
   */
  decode(stored: StoredObject): DecodedObject {
    return decodeRecord(stored, this.sealing.opener);
  }

  /** A reader that also knows the given objects. */
  with(atHand: ObjectsAtHand): ObjectReader {
    const { storage, workflow, cache, whole, sealing } = this;
    return new ObjectReader(storage, workflow, cache, atHand, whole, sealing);
  }

  /** Whether reading ahead saves calls; without it each level of a tree costs one. */
  get readsAhead(): boolean {
    return this.storage.readBelow !== undefined;
  }

  /**
   * Reads what is likely to be asked for next, in one call to the storage: objects and what lies
   * below them, as far as the limits let it. What is missing or damaged is an error only for who reads it.
   */
  async readAhead(request: AheadRequest): Promise<Ahead> {
    const known = this.known();
    const below = await this.storage.readBelow?.(this.workflow, { ...request, known });
    const objects = new Map<ObjectId, DecodedObject>();
    if (below !== undefined) await this.sealing.opener.prepare?.(below.objects);
    const resolved = await this.resolve(below?.objects ?? []);
    for (const stored of below?.objects ?? []) {
      const object = resolved.get(stored.id) ?? this.decodedOrNone(stored);
      if (object === undefined) continue;
      objects.set(stored.id, object);
      this.keep(stored.id, object);
    }
    return { commits: below?.commits ?? [], objects };
  }

  /**
   * Reads an object and all that lies below it: in one call to the storage or a few, where that can
   * read ahead, else in one a level.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
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
      if (object.type !== "tree") continue;
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
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
   */
  async read(id: ObjectId): Promise<DecodedObject> {
    const cached = this.peek(id);
    if (cached !== undefined) return cached;
    return (await this.readAll([id]))[0] as DecodedObject;
  }

  /**
   * Reads objects in one call to the storage, the answer in the order of `ids`.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
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
      await this.sealing.opener.prepare?.(rows.filter((row) => row !== undefined));
      const resolved = await this.resolve(rows);
      for (let i = 0; i < missing.length; i++) {
        const id = missing[i] as ObjectId;
        const row = rows[i];
        if (row === undefined) throw notStored(id);
        const object = resolved.get(id) ?? decodeRecord(row, this.sealing.opener);
        this.keep(id, object);
        found.set(id, object);
      }
    }
    return ids.map((id) => found.get(id) as DecodedObject);
  }

  /** Whether an object is at hand: it was read, and so verified, or written before. */
  has(id: ObjectId): boolean {
    return this.peek(id) !== undefined;
  }

  /**
   * Reads a tree's entries.
   *
   * @throws AgstateError `ERASED`, `WITHHELD` when they are not told
   */
  async tree(id: ObjectId): Promise<readonly TreeEntry[]> {
    const object = await this.read(id);
    if (object.type === "opaque") throw refuseWithheld(this.withheld(id, object));
    if (object.type !== "tree") throw wrongType(id, "tree");
    return object.entries;
  }

  /**
   * Reads a blob as text.
   *
   * @throws AgstateError `ERASED`, `WITHHELD` when it is not told
   */
  async text(id: ObjectId): Promise<string> {
    const object = await this.read(id);
    if (object.type === "opaque") throw refuseWithheld(this.withheld(id, object));
    if (object.type !== "blob") throw wrongType(id, "blob");
    return object.text;
  }

  /** What stands in a value for an object that is not told. */
  withheld(id: ObjectId, { of, note }: OpaqueObject): Withheld {
    return new Withheld(this.workflow, { type: of, id }, note);
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

  /** Keeps an object in the cache, unless another time more may be told of it. */
  private keep(id: ObjectId, object: DecodedObject): void {
    const { reason } = object.type === "opaque" ? object.note : { reason: null };
    if (reason !== "region" && reason !== "key") this.cache.set(this.key(id), object);
  }

  /** What pointers among stored objects stand for, as far as it can be had. */
  private async resolve(
    stored: readonly (StoredObject | undefined)[],
  ): Promise<ReadonlyMap<ObjectId, DecodedObject>> {
    const objects = new Map<ObjectId, DecodedObject>();
    const { resolver } = this.sealing;
    if (resolver === undefined) return objects;
    const pointers = stored.filter(isPointer);
    if (pointers.length === 0) return objects;
    for (const [id, told] of await resolver.resolve(pointers)) {
      if (typeof told === "string") objects.set(id, { type: "blob", text: told, elsewhere: true });
      else objects.set(id, { type: "opaque", of: "blob", note: told });
    }
    return objects;
  }

  /** An object that is no more than hinted at: what cannot be decoded is left to whoever reads it. */
  private decodedOrNone(stored: StoredObject): DecodedObject | undefined {
    try {
      return decodeRecord(stored, this.sealing.opener);
    } catch (error) {
      if (isAgstateError(error, "CORRUPT_OBJECT")) return undefined;
      throw error;
    }
  }

  private key(id: ObjectId): string {
    return `${id}${this.workflow}`;
  }
}

/**
 * Decodes a stored object.
 *
 * @throws AgstateError `CORRUPT_OBJECT`
 */
export function decodeRecord(stored: StoredObject, opener: Opener = CLOSED): DecodedObject {
  const { id, type } = stored;
  if ("tombstone" in stored) {
    return { type: "opaque", of: type, note: noteOfTombstone(stored.tombstone) };
  }
  if ((stored.encoding ?? ENCODING.plain) !== ENCODING.plain) {
    const opened = opener.open(stored);
    if (typeof opened === "string") return { type: "blob", text: opened };
    return "text" in opened
      ? { type: "blob", ...opened }
      : { type: "opaque", of: type, note: opened };
  }
  const body = Buffer.from(stored.body.buffer, stored.body.byteOffset, stored.body.byteLength);
  return type === "tree"
    ? { type: "tree", entries: decodeTree(body, id) }
    : { type: "blob", text: body.toString("utf8") };
}

function isPointer(stored: StoredObject | undefined): stored is ObjectRecord {
  return stored !== undefined && "body" in stored && stored.encoding === ENCODING.pointer;
}

/** The error of who needs an object that is not there. */
export function notStored(id: ObjectId): AgstateError {
  return new AgstateError(
    "MISSING_OBJECT",
    `object ${id} is not in the store; run agstate fsck to see what refers to it`,
    { id },
  );
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

/** The error of who needs what is withheld. */
export function refuseWithheld(value: Withheld): AgstateError {
  const { reason, region, classification, link } = value;
  const gone = reason === "erased" || reason === "expired";
  return new AgstateError(
    gone ? "ERASED" : "WITHHELD",
    `object ${link.id} ${explainWithheld(value)}`,
    {
      id: link.id,
      reason,
      ...(region !== null && { region }),
      ...(classification !== null && { classification }),
    },
  );
}
