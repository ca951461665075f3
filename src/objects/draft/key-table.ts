import type { ObjectId } from "../../core/ids.js";
import { bucketOf, encodeBucket, fanName, flatEntries, hashKey, type Link } from "../encode.js";
import { FLAT_MAX_ENTRIES } from "../format.js";
import { unescapeKey } from "../keys.js";
import type { ObjectReader } from "../reader.js";
import type { ObjectSink } from "../sink.js";
import type { TreeEntry } from "../tree.js";

/** What is at hand, or has to be waited for: each promise costs more than what is done here, far more where somebody traces. */
export type MaybePromise<T> = T | Promise<T>;

type Bucket = FlatBucket | FanBucket;

interface FlatBucket {
  readonly kind: "flat";
  readonly links: Map<string, Link>;
}

interface FanBucket {
  readonly kind: "fan";
  readonly children: Map<number, FanChild>;
}

interface FanChild {
  count: number;
  /** The stored bucket; null once it was changed. */
  stored: ObjectId | null;
  loaded: Bucket | null;
}

const FAN_NAME = /^\{([0-9a-f]{2})n([1-9][0-9]*)$/;

/**
 * The entries of an object, flat or as a fan-out, of which only the buckets that
 * are asked for are read, and only the changed ones written.
 */
export class KeyTable {
  private constructor(
    private readonly reader: ObjectReader,
    private top: Bucket,
    /** How many keys there are. */
    private size: number,
  ) {}

  static empty(reader: ObjectReader): KeyTable {
    return new KeyTable(reader, { kind: "flat", links: new Map() }, 0);
  }

  static async stored(reader: ObjectReader, id: ObjectId): Promise<KeyTable> {
    return KeyTable.of(reader, await reader.tree(id));
  }

  /** The table of a tree that is at hand. */
  static of(reader: ObjectReader, entries: readonly TreeEntry[]): KeyTable {
    const top = readBucket(entries);
    return new KeyTable(reader, top, countOf(top));
  }

  /** The keys whose entries differ between two stored objects; equal buckets are not read. */
  static async changed(
    reader: ObjectReader,
    a: ObjectId,
    b: ObjectId,
  ): Promise<Map<string, [Link | undefined, Link | undefined]>> {
    const left = await KeyTable.stored(reader, a);
    const right = await KeyTable.stored(reader, b);
    const changed = new Map<string, [Link | undefined, Link | undefined]>();
    await left.compare(left.top, right.top, changed);
    return changed;
  }

  private async compare(
    a: Bucket,
    b: Bucket,
    changed: Map<string, [Link | undefined, Link | undefined]>,
  ): Promise<void> {
    if (a.kind === "fan" && b.kind === "fan") {
      const none: FanChild = { count: 0, stored: null, loaded: { kind: "flat", links: new Map() } };
      for (const at of new Set([...a.children.keys(), ...b.children.keys()])) {
        const left = a.children.get(at) ?? none;
        const right = b.children.get(at) ?? none;
        if (left.stored !== null && left.stored === right.stored) continue;
        await this.compare(await this.load(left), await this.load(right), changed);
      }
      return;
    }
    const left = new Map<string, Link>();
    const right = new Map<string, Link>();
    await this.gather(a, left);
    await this.gather(b, right);
    for (const key of new Set([...left.keys(), ...right.keys()])) {
      const [before, after] = [left.get(key), right.get(key)];
      if (before?.id !== after?.id || before?.type !== after?.type) {
        changed.set(key, [before, after]);
      }
    }
  }

  get count(): number {
    return this.size;
  }

  /** Reads all entries; at once where they are in one bucket, as of most objects, as do the methods below. */
  all(): MaybePromise<ReadonlyMap<string, Link>> {
    if (this.top.kind === "flat") return this.top.links;
    const links = new Map<string, Link>();
    return this.gather(this.top, links).then(() => links);
  }

  get(key: string): MaybePromise<Link | undefined> {
    if (this.top.kind === "flat") return this.top.links.get(key);
    return this.bucket(key, null).then(({ links }) => links.get(key));
  }

  set(key: string, link: Link): MaybePromise<void> {
    if (this.top.kind === "fan") return this.setBelow(key, link);
    this.top.links.set(key, link);
    this.size = this.top.links.size;
  }

  delete(key: string): MaybePromise<void> {
    if (this.top.kind === "fan") return this.deleteBelow(key);
    this.top.links.delete(key);
    this.size = this.top.links.size;
  }

  private async setBelow(key: string, link: Link): Promise<void> {
    const isNew = (await this.get(key)) === undefined;
    (await this.bucket(key, isNew ? 1 : 0)).links.set(key, link);
    if (isNew) this.size++;
  }

  private async deleteBelow(key: string): Promise<void> {
    if ((await this.get(key)) === undefined) return;
    (await this.bucket(key, -1)).links.delete(key);
    this.size--;
  }

  /** The flat bucket of a key; with a `change` in the number of keys, the way to it is marked as changed. */
  private async bucket(key: string, change: number | null): Promise<FlatBucket> {
    let bucket = this.top;
    let hash = "";
    for (let depth = 0; bucket.kind === "fan"; depth++) {
      if (hash === "") hash = hashKey(key);
      const at = bucketOf(hash, depth);
      let child: FanChild | undefined = bucket.children.get(at);
      if (child === undefined) {
        child = { count: 0, stored: null, loaded: { kind: "flat", links: new Map() } };
        if (change !== null) bucket.children.set(at, child);
      }
      const loaded: Bucket = await this.load(child);
      if (change !== null) {
        child.count += change;
        child.stored = null;
      }
      bucket = loaded;
    }
    return bucket;
  }

  private async load(child: FanChild): Promise<Bucket> {
    child.loaded ??= readBucket(await this.reader.tree(child.stored as ObjectId));
    return child.loaded;
  }

  /** Writes the changed buckets and gives the tree of the object. */
  encode(sink: ObjectSink): MaybePromise<ObjectId> {
    if (this.top.kind === "flat") return encodeBucket(sink, this.top.links, 0);
    return this.encodeBucket(sink, this.top, this.size, 0);
  }

  private async encodeBucket(
    sink: ObjectSink,
    bucket: Bucket,
    count: number,
    depth: number,
  ): Promise<ObjectId> {
    if (bucket.kind === "flat") return encodeBucket(sink, bucket.links, depth);
    if (count <= FLAT_MAX_ENTRIES) {
      const links = new Map<string, Link>();
      await this.gather(bucket, links);
      return sink.tree(flatEntries(links));
    }
    const entries: TreeEntry[] = [];
    for (const [at, child] of bucket.children) {
      if (child.count === 0) continue;
      const id: ObjectId =
        child.stored ??
        (await this.encodeBucket(sink, child.loaded as Bucket, child.count, depth + 1));
      entries.push({ name: fanName(at, child.count), type: "tree", id });
    }
    return sink.tree(entries);
  }

  private async gather(bucket: Bucket, into: Map<string, Link>): Promise<void> {
    if (bucket.kind === "flat") {
      for (const [key, link] of bucket.links) into.set(key, link);
      return;
    }
    const children = [...bucket.children.values()].filter((child) => child.count > 0);
    // One call for all buckets that are not at hand.
    const absent = children.filter((child) => child.loaded === null);
    await this.reader.readAll(absent.map((child) => child.stored as ObjectId));
    for (const child of children) await this.gather(await this.load(child), into);
  }
}

function readBucket(entries: readonly TreeEntry[]): Bucket {
  if (entries[0]?.name[0] !== "{") {
    const links = new Map<string, Link>();
    for (const e of entries) links.set(unescapeKey(e.name), e);
    return { kind: "flat", links };
  }
  const children = new Map<number, FanChild>();
  for (const entry of entries) {
    const match = FAN_NAME.exec(entry.name);
    if (match === null) continue;
    children.set(Number.parseInt(match[1] as string, 16), {
      count: Number(match[2]),
      stored: entry.id,
      loaded: null,
    });
  }
  return { kind: "fan", children };
}

function countOf(bucket: Bucket): number {
  if (bucket.kind === "flat") return bucket.links.size;
  let count = 0;
  for (const child of bucket.children.values()) count += child.count;
  return count;
}
