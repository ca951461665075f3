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
    return this.add("blob", Buffer.from(text), { type: "blob", text });
  }

  /** Takes the entries over: they are sorted here, and must not change after. */
  tree(entries: TreeEntry[]): ObjectId {
    return this.add("tree", encodeTree(entries), { type: "tree", entries });
  }

  private add(type: "blob" | "tree", body: Buffer, decoded: DecodedObject): ObjectId {
    const id = hashObject(type, body);
    if (!this.known.has(id) && !this.written.has(id)) {
      this.written.set(id, { record: { id, type, body }, decoded });
    }
    return id;
  }

  all(): WrittenObject[] {
    return [...this.written.values()];
  }

  objects(): ObjectRecord[] {
    return this.all().map((object) => object.record);
  }
}
