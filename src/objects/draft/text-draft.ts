import type { ObjectId } from "../../core/ids.js";
import { type SmallText, smallCanonical } from "../canonical.js";
import { type Encoded, encodeValue, standing, treeOf } from "../encode.js";
import { LEAF_MAX_BYTES } from "../format.js";
import type { Isolation } from "../isolation.js";
import { TextRuns } from "../runs.js";
import { buildLevels } from "../sequence.js";
import { type SequenceKind, StoredSequence } from "../sequence-edit.js";
import { Pieces } from "./pieces.js";
import type { Draft, DraftContext } from "./types.js";

const TEXT_KIND: SequenceKind<string> = {
  mark: '"',
  chunker: (sink) => new TextRuns(sink),
  items: async (reader, entry, from, to) => [(await reader.text(entry.id)).slice(from, to)],
};

/** A string that is being edited: stretches of what is stored, and new text. Positions are UTF-16 units. */
export class TextDraft implements Draft {
  readonly kind = "text";
  private readonly pieces: Pieces<string>;

  private constructor(
    private readonly context: DraftContext,
    private readonly stored: StoredSequence | null,
  ) {
    this.pieces = new Pieces(
      stored?.length ?? 0,
      (text) => text.length,
      (text, at) => [text.slice(0, at), text.slice(at)],
    );
  }

  static from(context: DraftContext, value: string): TextDraft {
    const draft = new TextDraft(context, null);
    draft.splice(0, 0, value);
    return draft;
  }

  static async stored(context: DraftContext, id: ObjectId): Promise<TextDraft> {
    return new TextDraft(context, await StoredSequence.open(context.reader, id));
  }

  get length(): number {
    return this.pieces.length;
  }

  splice(index: number, deleteCount: number, text: string): void {
    this.pieces.splice(index, deleteCount, text === "" ? [] : [text]);
  }

  async encode(policy: Isolation | null): Promise<Encoded> {
    if (policy !== null && policy.elsewhere !== null) {
      return encodeValue(this.context.sink, await this.whole(), policy);
    }
    const sink = this.context.sink.of(policy);
    const small = await this.small();
    if (small !== null) return standing(sink, small, policy);
    if (this.stored !== null) {
      const root = await this.stored.edit(sink, TEXT_KIND, this.pieces.edits());
      return treeOf(root as ObjectId);
    }
    const runs = new TextRuns(sink);
    for (const edit of this.pieces.edits()) for (const text of edit.items) runs.push(text);
    runs.close();
    return treeOf(buildLevels(sink, '"', runs.entries));
  }

  /** The text as one blob, when it fits. */
  private async small(): Promise<SmallText | null> {
    if (this.length + 2 > LEAF_MAX_BYTES) return null;
    return smallCanonical(await this.whole());
  }

  async whole(): Promise<string> {
    let text = "";
    for (const piece of this.pieces.all) {
      if (piece.kind === "new") text += piece.items.join("");
      else text += await this.storedText(piece.from, piece.to);
    }
    return text;
  }

  private async storedText(from: number, to: number): Promise<string> {
    let text = "";
    for (let at = from; at < to; ) {
      const { entry, start, end } = await (this.stored as StoredSequence).entryAt(at);
      const until = Math.min(end, to);
      text += (await this.context.reader.text(entry.id)).slice(at - start, until - start);
      at = until;
    }
    return text;
  }
}
