import type { ObjectId } from "../core/ids.js";
import { RunCut } from "./cut.js";
import { ELEMENT_MAX_BYTES, PIECE_MAX_CODE_POINTS } from "./format.js";
import type { SequenceEntry } from "./sequence.js";
import type { ObjectSink } from "./sink.js";

/** A list element as the chunker takes it: small enough for a run, or standing alone. */
export type ListElement =
  | { readonly text: string; readonly bytes: number }
  | { readonly type: "blob" | "tree"; readonly id: ObjectId };

/** Whether an element of this size may be part of a run. */
export function fitsRun(bytes: number): boolean {
  return bytes <= ELEMENT_MAX_BYTES;
}

/** Cuts list elements into runs, from a fresh cut on. */
export class ListRuns {
  private readonly cut = new RunCut();
  private open: string[] = [];
  readonly entries: SequenceEntry[] = [];

  constructor(private readonly sink: ObjectSink) {}

  get atCut(): boolean {
    return this.cut.empty;
  }

  push(element: ListElement): void {
    if ("id" in element) {
      this.close();
      this.entries.push({ kind: "e", count: 1, type: element.type, id: element.id });
      return;
    }
    this.open.push(element.text);
    if (this.cut.closesAfter(element.text, element.bytes)) this.close();
  }

  close(): void {
    this.cut.reset();
    if (this.open.length === 0) return;
    this.entries.push({
      kind: "r",
      count: this.open.length,
      type: "blob",
      id: this.sink.blob(`[${this.open.join(",")}]`),
    });
    this.open = [];
  }
}

/**
 * Cuts a text into runs of pieces, from a fresh cut on. A piece is a line with
 * its line feed; a line of more than `PIECE_MAX_CODE_POINTS` code points is cut
 * into pieces of that many.
 */
export class TextRuns {
  private readonly cut = new RunCut();
  private open = "";
  /** What came in but is not a whole piece yet. */
  private rest = "";
  readonly entries: SequenceEntry[] = [];

  constructor(private readonly sink: ObjectSink) {}

  get atCut(): boolean {
    return this.cut.empty && this.rest === "";
  }

  push(text: string): void {
    const whole = this.rest + text;
    let at = 0;
    // Looked for once a line, or a long line would be searched again for each of its pieces.
    let feed = whole.indexOf("\n");
    for (;;) {
      if (feed >= 0 && feed < at) feed = whole.indexOf("\n", at);
      const end = pieceEnd(whole, at, feed);
      if (end < 0) break;
      this.piece(whole.slice(at, end));
      at = end;
    }
    this.rest = whole.slice(at);
  }

  private piece(piece: string): void {
    this.open += piece;
    if (this.cut.closesAfter(piece, Buffer.byteLength(piece))) this.closeRun();
  }

  close(): void {
    if (this.rest !== "") {
      const last = this.rest;
      this.rest = "";
      this.piece(last);
    }
    this.closeRun();
  }

  private closeRun(): void {
    this.cut.reset();
    if (this.open === "") return;
    this.entries.push({
      kind: "r",
      count: this.open.length,
      type: "blob",
      id: this.sink.blob(this.open),
    });
    this.open = "";
  }
}

/**
 * Where the piece that begins at `from` ends, or -1 when the text ends before the piece does.
 *
 * @param feed where the next line feed is, -1 when there is none
 */
function pieceEnd(text: string, from: number, feed: number): number {
  const lineEnd = feed < 0 ? text.length : feed + 1;
  if (lineEnd - from < PIECE_MAX_CODE_POINTS) return feed < 0 ? -1 : lineEnd;
  let at = from;
  for (let points = 0; points < PIECE_MAX_CODE_POINTS; points++) {
    if (at >= lineEnd) return feed < 0 ? -1 : lineEnd;
    const unit = text.charCodeAt(at);
    const pair = unit >= 0xd800 && unit <= 0xdbff;
    // A pair whose second half has not arrived yet.
    if (pair && at + 1 >= text.length) return -1;
    at += pair ? 2 : 1;
  }
  return at;
}

/** Splits the canonical text of a JSON array into the texts of its elements, without parsing them. */
export function splitArray(text: string): string[] {
  const elements: string[] = [];
  let depth = 0;
  let start = 1;
  for (let i = 1; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // "
        i = stringEnd(text, i);
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth++;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x2c: // ,
        if (depth === 0) {
          elements.push(text.slice(start, i));
          start = i + 1;
        }
        break;
      default:
    }
  }
  if (text.length > 2) elements.push(text.slice(start, -1));
  return elements;
}

/** The index of the quote that closes the string which opens at `from`. */
function stringEnd(text: string, from: number): number {
  for (let i = from + 1; ; i++) {
    i = text.indexOf('"', i);
    if (i < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(i - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return i;
  }
}
