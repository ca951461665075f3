import type { ObjectId } from "../core/ids.js";
import type { ObjectRecord } from "../storage/port.js";
import { hashObject } from "./hash.js";
import type { DecodedObject } from "./reader.js";
import { encodeTree, type TreeEntry } from "./tree.js";

/** An object to be written, and what reading it back would give. */
export interface WrittenObject {
  readonly record: ObjectRecord;
  readonly decoded: DecodedObject;
}

/** A blob that is in no sink yet. */
export function blobObject(text: string): WrittenObject {
  return written("blob", Buffer.from(text), { type: "blob", text });
}

function written(type: "blob" | "tree", body: Buffer, decoded: DecodedObject): WrittenObject {
  return { record: { id: hashObject(type, body), type, body }, decoded };
}

/**
 * Collects the objects of one write, each once.
 *
 * Ids passed to `know` are stored already (they were read from the store while
 * editing) and are not written again.
 */
export class ObjectSink {
  private readonly written = new Map<ObjectId, WrittenObject>();
  private readonly known = new Set<ObjectId>();

  know(id: ObjectId): void {
    this.known.add(id);
  }

  blob(text: string): ObjectId {
    return this.add(blobObject(text));
  }

  /** Takes the entries over: they are sorted here, and must not change after. */
  tree(entries: TreeEntry[]): ObjectId {
    return this.add(written("tree", encodeTree(entries), { type: "tree", entries }));
  }

  private add(object: WrittenObject): ObjectId {
    const { id } = object.record;
    if (!this.known.has(id) && !this.written.has(id)) this.written.set(id, object);
    return id;
  }

  /** An object of this write as reading it back would give it. */
  get(id: ObjectId): DecodedObject | undefined {
    return this.written.get(id)?.decoded;
  }

  /** Drops what is not reached from the links: what a later edit of the same write undid. */
  keepReachable(links: Iterable<ObjectId>): void {
    const reached = new Set<ObjectId>();
    const waiting = [...links];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const object = this.written.get(id);
      if (object === undefined || reached.has(id)) continue;
      reached.add(id);
      if (object.decoded.type === "tree") {
        for (const entry of object.decoded.entries) waiting.push(entry.id);
      }
    }
    for (const id of this.written.keys()) if (!reached.has(id)) this.written.delete(id);
  }

  all(): WrittenObject[] {
    return [...this.written.values()];
  }

  objects(): ObjectRecord[] {
    return this.all().map((object) => object.record);
  }
}
