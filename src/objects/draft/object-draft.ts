import type { ObjectId } from "../../core/ids.js";
import { type JsonValue, setOwn } from "../../core/json.js";
import type { SmallText } from "../canonical.js";
import { decodeValue } from "../decode.js";
import { type Encoded, encodeValue, type Link, standing, toLink, treeOf } from "../encode.js";
import { LEAF_MAX_BYTES } from "../format.js";
import { type Isolation, isolationOfKey } from "../isolation.js";
import type { ObjectSink } from "../sink.js";
import type { TreeEntry } from "../tree.js";
import { KeyTable } from "./key-table.js";
import { type Draft, type DraftContext, LeafDraft } from "./types.js";

/** The least that a member takes in canonical form: two quotes, a colon, a value, and a comma. */
const MEMBER_MIN_BYTES = 5;

/** An object that is being edited: its members are links to what is stored, or drafts. */
export class ObjectDraft implements Draft {
  readonly kind = "object";
  /** Members that were opened or set; null where a member was deleted. */
  private readonly touched = new Map<string, Draft | null>();

  private constructor(
    private readonly context: DraftContext,
    private readonly table: KeyTable,
    /** Whether the object was a tree; its canonical form is then over the limit, or it is held apart. */
    private readonly wasTree: boolean,
  ) {}

  static from(context: DraftContext, value: { readonly [key: string]: JsonValue }): ObjectDraft {
    const draft = new ObjectDraft(context, KeyTable.empty(context.reader), false);
    for (const key of Object.keys(value)) {
      draft.touched.set(key, new LeafDraft(context, value[key] as JsonValue));
    }
    return draft;
  }

  /** The draft of an object whose tree is at hand. */
  static stored(context: DraftContext, entries: readonly TreeEntry[]): ObjectDraft {
    return new ObjectDraft(context, KeyTable.of(context.reader, entries), true);
  }

  /** Opens a member for editing; undefined when there is none. */
  async open(key: string): Promise<Draft | undefined> {
    const touched = this.touched.get(key);
    if (touched !== undefined) return touched ?? undefined;
    const found = this.table.get(key);
    const link = found instanceof Promise ? await found : found;
    if (link === undefined) return undefined;
    const draft = await this.context.open(link);
    this.touched.set(key, draft);
    return draft;
  }

  async has(key: string): Promise<boolean> {
    const touched = this.touched.get(key);
    return touched === undefined ? (await this.table.get(key)) !== undefined : touched !== null;
  }

  set(key: string, draft: Draft): void {
    this.touched.set(key, draft);
  }

  delete(key: string): void {
    this.touched.set(key, null);
  }

  async encode(policy: Isolation | null): Promise<Encoded> {
    if (policy !== null && policy.elsewhere !== null) {
      return encodeValue(this.context.sink, await this.whole(), policy);
    }
    const sink = this.context.sink.of(policy);
    return standing(sink, await this.encodeInto(sink, policy), policy);
  }

  private async encodeInto(sink: ObjectSink, policy: Isolation | null): Promise<Encoded> {
    const encoded = new Map<string, Encoded | null>();
    for (const [key, draft] of this.touched) {
      const made = draft === null ? null : draft.encode(isolationOfKey(policy, key));
      encoded.set(key, made instanceof Promise ? await made : made);
    }
    const small = await this.small(encoded, policy);
    if (small !== null) return small;
    for (const [key, member] of encoded) {
      const done =
        member === null ? this.table.delete(key) : this.table.set(key, toLink(sink, member));
      if (done !== undefined) await done;
    }
    const tree = this.table.encode(sink);
    return treeOf(tree instanceof Promise ? await tree : tree);
  }

  async whole(): Promise<JsonValue> {
    const members: Record<string, JsonValue> = {};
    for (const [key, link] of await this.table.all()) {
      if (!this.touched.has(key))
        setOwn(members, key, await decodeValue(this.context.reader, link));
    }
    for (const [key, draft] of this.touched) {
      if (draft !== null) setOwn(members, key, await draft.whole());
    }
    return members;
  }

  /** The object as one blob, when it fits and nothing in it is held apart. */
  private async small(
    encoded: ReadonlyMap<string, Encoded | null>,
    policy: Isolation | null,
  ): Promise<SmallText | null> {
    for (const member of encoded.values()) if (member !== null && "link" in member) return null;
    if (this.wasTree && policy === null && !(await this.shrank(encoded))) return null;
    if ((this.table.count - encoded.size) * MEMBER_MIN_BYTES > LEAF_MAX_BYTES) return null;
    const members = new Map<string, Link | Encoded>(await this.table.all());
    for (const [key, member] of encoded) {
      if (member === null) members.delete(key);
      else members.set(key, member);
    }
    let bytes = members.size + 1;
    for (const [key, member] of members) {
      if (isTree(member)) return null;
      if (policy !== null && isolationOfKey(policy, key)?.isolated === true) return null;
      bytes += key.length + 3 + ("bytes" in member ? member.bytes : 1);
      if (bytes > LEAF_MAX_BYTES) return null;
    }
    return this.join(members);
  }

  /** Whether the edits took away more bytes than they brought; only what was touched is read. */
  private async shrank(encoded: ReadonlyMap<string, Encoded | null>): Promise<boolean> {
    let growth = 0;
    for (const [key, member] of encoded) {
      const found = this.table.get(key);
      const old = found instanceof Promise ? await found : found;
      const frame = Buffer.byteLength(JSON.stringify(key)) + 2;
      if (old !== undefined) {
        if (old.type === "tree") return true;
        const { reader } = this.context;
        const object = reader.peek(old.id) ?? (await reader.read(old.id));
        if (object.type !== "blob" || object.elsewhere) return true;
        growth -= frame + Buffer.byteLength(object.text);
      }
      if (member !== null) growth += frame + (member as SmallText).bytes;
    }
    return growth < 0;
  }

  /** Puts the canonical texts of the members together, reading those not at hand; null when too large. */
  private async join(members: ReadonlyMap<string, Link | Encoded>): Promise<SmallText | null> {
    const texts = await this.textsOf([...members.values()].filter((m): m is Link => "id" in m));
    if (texts === null) return null;
    const parts = [...members.keys()].sort(byUtf16).map((key) => {
      const member = members.get(key) as Link | SmallText;
      return `${JSON.stringify(key)}:${"id" in member ? texts.get(member.id) : member.text}`;
    });
    const text = `{${parts.join(",")}}`;
    const bytes = Buffer.byteLength(text);
    return bytes <= LEAF_MAX_BYTES ? { text, bytes } : null;
  }

  /** Reads blobs a few at a time, and gives up, with null, when they cannot all be part of one. */
  private async textsOf(links: readonly Link[]): Promise<Map<ObjectId, string> | null> {
    const texts = new Map<ObjectId, string>();
    let bytes = 0;
    let batch = FIRST_BATCH;
    for (let at = 0; at < links.length; at += batch, batch *= 2) {
      const part = links.slice(at, at + batch);
      const objects = await this.context.reader.readAll(part.map((link) => link.id));
      for (const [i, link] of part.entries()) {
        const object = objects[i];
        // What is withheld, or belongs elsewhere, is no part of a blob.
        if (object?.type !== "blob" || object.elsewhere) return null;
        texts.set(link.id, object.text);
        bytes += object.text.length;
      }
      if (bytes > LEAF_MAX_BYTES) return null;
    }
    return texts;
  }
}

/** How many members are read first to see whether an object still is too large for a blob. */
const FIRST_BATCH = 8;

function isTree(member: Link | Encoded): boolean {
  return "link" in member || ("type" in member && member.type === "tree");
}

function byUtf16(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
