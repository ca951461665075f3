import type { ObjectId } from "../../src/core/ids.js";
import type { JsonValue } from "../../src/core/json.js";
import { decodeValue } from "../../src/objects/decode.js";
import { createDraftContext } from "../../src/objects/draft/draft.js";
import { type Draft, type DraftContext, LeafDraft } from "../../src/objects/draft/types.js";
import { encodeValue, type Link, toLink } from "../../src/objects/encode.js";
import type { Isolation } from "../../src/objects/isolation.js";
import { createObjectCache, ObjectReader } from "../../src/objects/reader.js";
import { ObjectSink } from "../../src/objects/sink.js";
import type { ObjectRecord } from "../../src/storage/port.js";

/** A map of objects that counts, for tests of the mapping alone. */
export class ObjectStore {
  readonly objects = new Map<ObjectId, ObjectRecord>();
  reads = 0;
  readBytes = 0;

  /** A reader with a cache of its own, so that every first read counts. */
  reader(): ObjectReader {
    const storage = {
      readObjects: async (_workflow: string, ids: readonly ObjectId[]) =>
        ids.map((id) => {
          const object = this.objects.get(id);
          this.reads++;
          this.readBytes += object?.body.length ?? 0;
          return object;
        }),
    };
    return new ObjectReader(storage, "w", createObjectCache(64 * 1024 * 1024));
  }

  /** Stores what a sink holds; gives how many objects and bytes were new or sent again. */
  keep(sink: ObjectSink): { sent: number; bytes: number; again: number } {
    let bytes = 0;
    let again = 0;
    const objects = sink.objects();
    for (const o of objects) {
      bytes += o.body.length;
      if (this.objects.has(o.id)) again++;
      this.objects.set(o.id, o);
    }
    return { sent: objects.length, bytes, again };
  }

  write(value: JsonValue, policy: Isolation | null = null) {
    const sink = new ObjectSink();
    const link = toLink(sink, encodeValue(sink, value, policy));
    return { link, ...this.keep(sink) };
  }

  async edit(
    link: Link,
    change: (context: DraftContext, draft: Draft) => Promise<Draft | null>,
    policy: Isolation | null = null,
  ) {
    const context = createDraftContext(this.reader(), new ObjectSink());
    const draft = await change(context, await context.open(link));
    const encoded = await (draft ?? new LeafDraft(context, null)).encode(policy);
    const result = toLink(context.sink, encoded);
    return { link: result, ...this.keep(context.sink) };
  }

  read(link: Link): Promise<JsonValue> {
    return decodeValue(this.reader(), link);
  }
}

/** The id that a value has when it is built from nothing. */
export function freshLink(value: JsonValue, policy: Isolation | null = null): Link {
  const sink = new ObjectSink();
  return toLink(sink, encodeValue(sink, value, policy));
}
