import type { JsonValue } from "../../core/json.js";
import { decodeValue } from "../decode.js";
import { type Encoded, encodeValue, type Link, standing } from "../encode.js";
import type { Isolation } from "../isolation.js";
import type { ObjectReader } from "../reader.js";
import type { ObjectSink } from "../sink.js";

/** Where a draft reads what it needs, and writes what it becomes. */
export interface DraftContext {
  readonly reader: ObjectReader;
  readonly sink: ObjectSink;
  /** Opens the value behind a link. */
  open(link: Link): Promise<Draft>;
}

/**
 * A value that is being edited: loaded only along the paths that are touched,
 * encoded once at the end.
 */
export interface Draft {
  readonly kind: "leaf" | "stored" | "object" | "list" | "text";
  encode(policy: Isolation | null): Encoded | Promise<Encoded>;
  /** The whole value, as edited. */
  whole(): JsonValue | Promise<JsonValue>;
}

/** A value at hand as a whole: new, or small enough to have been one blob. */
export class LeafDraft implements Draft {
  readonly kind = "leaf";

  constructor(
    private readonly context: DraftContext,
    readonly value: JsonValue,
  ) {}

  encode(policy: Isolation | null): Encoded {
    return encodeValue(this.context.sink, this.value, policy);
  }

  whole(): JsonValue {
    return this.value;
  }
}

/** A value that stays as it is stored: not loaded, and not written again. */
export class StoredDraft implements Draft {
  readonly kind = "stored";

  constructor(
    private readonly context: DraftContext,
    private readonly link: Link,
  ) {}

  async encode(policy: Isolation | null = null): Promise<Encoded> {
    const { reader, sink } = this.context;
    sink.know(this.link.id);
    if (this.link.type === "tree") return { link: this.link };
    const object = await reader.read(this.link.id);
    if (object.type !== "blob" || object.elsewhere) return { link: this.link };
    const { text } = object;
    return standing(sink.of(policy), { text, bytes: Buffer.byteLength(text) }, policy);
  }

  whole(): Promise<JsonValue> {
    return decodeValue(this.context.reader, this.link);
  }
}
