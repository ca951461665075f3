import type { ObjectId } from "../core/ids.js";
import type { ObjectRecord } from "../storage/port.js";
import { hashObject } from "./hash.js";
import { encodeTree, type TreeEntry } from "./tree.js";

/**
 * Collects the objects of one write, each once.
 *
 * Ids passed to `know` are stored already (they were read from the store while
 * editing) and are not written again.
 */
export class ObjectSink {
  private readonly records = new Map<ObjectId, ObjectRecord>();
  private readonly known = new Set<ObjectId>();

  know(id: ObjectId): void {
    this.known.add(id);
  }

  blob(text: string): ObjectId {
    return this.add("blob", Buffer.from(text));
  }

  tree(entries: TreeEntry[]): ObjectId {
    return this.add("tree", encodeTree(entries));
  }

  private add(type: "blob" | "tree", body: Buffer): ObjectId {
    const id = hashObject(type, body);
    if (!this.known.has(id) && !this.records.has(id)) this.records.set(id, { id, type, body });
    return id;
  }

  /** Takes an object out again, for those that travel inside their commit's row. */
  take(id: ObjectId): ObjectRecord | undefined {
    const record = this.records.get(id);
    this.records.delete(id);
    return record;
  }

  objects(): ObjectRecord[] {
    return [...this.records.values()];
  }
}
