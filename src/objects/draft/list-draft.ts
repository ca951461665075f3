import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import type { SmallText } from "../canonical.js";
import { decodeValue } from "../decode.js";
import { type Encoded, encodeValue, type Link, standing, toElement, treeOf } from "../encode.js";
import { LEAF_MAX_BYTES } from "../format.js";
import { type Isolation, isolationOfElement } from "../isolation.js";
import type { ObjectReader } from "../reader.js";
import { runElements } from "../run-elements.js";
import { type ListElement, ListRuns, splitArray } from "../runs.js";
import { buildLevels, type SequenceEntry } from "../sequence.js";
import { type SequenceKind, StoredSequence } from "../sequence-edit.js";
import type { ObjectSink } from "../sink.js";
import { Pieces } from "./pieces.js";
import { type Draft, type DraftContext, LeafDraft } from "./types.js";

const LIST_KIND: SequenceKind<ListElement> = {
  mark: "[",
  chunker: (sink) => new ListRuns(sink),
  items: storedElements,
};

/** A list that is being edited: stretches of what is stored, and drafts of new elements. */
export class ListDraft implements Draft {
  readonly kind = "list";
  private readonly pieces: Pieces<{ draft: Draft }>;

  private constructor(
    private readonly context: DraftContext,
    private readonly stored: StoredSequence | null,
  ) {
    this.pieces = new Pieces(
      stored?.length ?? 0,
      () => 1,
      (item) => [item, item],
    );
  }

  static from(context: DraftContext, value: readonly JsonValue[]): ListDraft {
    const draft = new ListDraft(context, null);
    draft.splice(0, 0, value);
    return draft;
  }

  static async stored(context: DraftContext, id: ObjectId): Promise<ListDraft> {
    return new ListDraft(context, await StoredSequence.open(context.reader, id));
  }

  get length(): number {
    return this.pieces.length;
  }

  splice(index: number, deleteCount: number, values: readonly JsonValue[]): void {
    this.spliceDrafts(
      index,
      deleteCount,
      values.map((value) => new LeafDraft(this.context, value)),
    );
  }

  spliceDrafts(index: number, deleteCount: number, drafts: readonly Draft[]): void {
    this.pieces.splice(
      index,
      deleteCount,
      drafts.map((draft) => ({ draft })),
    );
  }

  /** Opens the element at `index`, which is below `length`, for editing. */
  async open(index: number): Promise<Draft> {
    const place = this.pieces.at(index);
    if ("item" in place) return place.item.draft;
    const stored = this.stored as StoredSequence;
    const { entry, start } = await stored.entryAt(place.stored);
    const at = place.stored - start;
    const [element] = await storedElements(this.context.reader, entry, at, at + 1);
    const draft =
      "id" in (element as ListElement)
        ? await this.context.open(element as Link)
        : new LeafDraft(this.context, JSON.parse((element as SmallText).text) as JsonValue);
    this.replace(index, draft);
    return draft;
  }

  replace(index: number, draft: Draft): void {
    const place = this.pieces.at(index);
    if ("item" in place) place.item.draft = draft;
    else this.pieces.splice(index, 1, [{ draft }]);
  }

  async encode(policy: Isolation | null): Promise<Encoded> {
    if (policy !== null && policy.elsewhere !== null) {
      return encodeValue(this.context.sink, await this.whole(), policy);
    }
    const sink = this.context.sink.of(policy);
    return standing(sink, await this.encodeInto(sink, policy), policy);
  }

  private async encodeInto(sink: ObjectSink, policy: Isolation | null): Promise<Encoded> {
    const inner = isolationOfElement(policy);
    const elements = new Map<{ draft: Draft }, Encoded>();
    for (const piece of this.pieces.all) {
      if (piece.kind === "stored") continue;
      for (const item of piece.items) {
        elements.set(item, await item.draft.encode(inner));
      }
    }
    const small = await this.small(elements, inner);
    if (small !== null) return small;
    const apart = inner?.isolated === true;
    const edits = this.pieces.edits().map((edit) => ({
      ...edit,
      items: edit.items.map((item) => toElement(sink, elements.get(item) as Encoded, apart)),
    }));
    if (this.stored !== null) {
      const root = await this.stored.edit(sink, LIST_KIND, edits);
      return treeOf(root as ObjectId);
    }
    const runs = new ListRuns(sink);
    for (const edit of edits) for (const element of edit.items) runs.push(element);
    runs.close();
    return treeOf(buildLevels(sink, "[", runs.entries));
  }

  async whole(): Promise<JsonValue> {
    const list: JsonValue[] = [];
    for (const piece of this.pieces.all) {
      if (piece.kind === "new") {
        for (const { draft } of piece.items) list.push(await draft.whole());
      } else {
        for (let at = piece.from; at < piece.to; at++) list.push(await this.storedValue(at));
      }
    }
    return list;
  }

  private async storedValue(at: number): Promise<JsonValue> {
    const { reader } = this.context;
    const { entry, start } = await (this.stored as StoredSequence).entryAt(at);
    const [element] = await storedElements(reader, entry, at - start, at - start + 1);
    return "id" in (element as ListElement)
      ? decodeValue(reader, element as Link)
      : (JSON.parse((element as SmallText).text) as JsonValue);
  }

  /** The list as one blob, when it fits and no element is held apart. */
  private async small(
    elements: ReadonlyMap<{ draft: Draft }, Encoded>,
    inner: Isolation | null,
  ): Promise<SmallText | null> {
    const length = this.length;
    if (length === 0) return { text: "[]", bytes: 2 };
    if (inner?.isolated === true || length * 2 + 1 > LEAF_MAX_BYTES) return null;
    for (const element of elements.values()) if ("link" in element) return null;
    const removed = this.pieces.edits().some((edit) => edit.to > edit.from);
    if (this.stored !== null && !removed) return null;
    const texts: string[] = [];
    let bytes = 1;
    for (const piece of this.pieces.all) {
      if (piece.kind === "new") {
        for (const item of piece.items) {
          const element = elements.get(item) as SmallText;
          texts.push(element.text);
          bytes += element.bytes + 1;
        }
      } else {
        for (let at = piece.from; at < piece.to; ) {
          const { entry, start, end } = await (this.stored as StoredSequence).entryAt(at);
          if (entry.type === "tree") return null;
          const until = Math.min(end, piece.to);
          const stored = await this.storedTexts(entry, at - start, until - start);
          if (stored === null) return null;
          for (const text of stored) {
            texts.push(text);
            bytes += Buffer.byteLength(text) + 1;
          }
          if (bytes > LEAF_MAX_BYTES) return null;
          at = until;
        }
      }
      if (bytes > LEAF_MAX_BYTES) return null;
    }
    return { text: `[${texts.join(",")}]`, bytes };
  }

  /** The texts of elements; null when they are withheld. */
  private async storedTexts(
    entry: SequenceEntry,
    from: number,
    to: number,
  ): Promise<string[] | null> {
    const object = await this.context.reader.read(entry.id);
    if (object.type !== "blob" || object.elsewhere) return null;
    return entry.kind === "e" ? [object.text] : splitArray(object.text).slice(from, to);
  }
}

async function storedElements(
  reader: ObjectReader,
  entry: SequenceEntry,
  from: number,
  to: number,
): Promise<ListElement[]> {
  return (await runElements(reader, entry)).slice(from, to);
}
