/**
 * Finds runs of text that were put in before, wherever they stand and however they are aligned.
 *
 * A text of up to 31 UTF-16 units is found as a whole. Of a longer one pieces of 24 units are kept, one at every 8th: any run of
 * 31 units holds one of them, so each run of 31 that a longer text shares is found. Pieces are looked up by a
 * hash of their first 16 units that rolls over the text, so that looking goes over it once (Karp and Rabin, 1987). Fewer would be
 * shared by thousands of pieces, where payloads are made of words.
 */

/** Shorter texts are not kept: what is not secret would share them. */
export const KEPT_MIN_UNITS = 16;

/** Texts of up to so many units are found as a whole, and every shared run of so many of longer ones. */
export const RUN_UNITS = 31;

const STRIDE = 8;
const PIECE_UNITS = RUN_UNITS + 1 - STRIDE;
/** How many units are hashed: no piece has fewer. */
const KEY_UNITS = KEPT_MIN_UNITS;
/** A piece that repeats itself within so many units says nothing: a line of dashes, a table's frame. */
const PERIOD_MAX = 4;

/** Who put a text in; compared by identity. */
export interface Owner {
  readonly region: string;
}

interface Piece<O> {
  readonly owner: O;
  readonly source: string;
  readonly at: number;
  readonly length: number;
}

/** Bits that say whether there may be pieces of a hash, so that most positions cost one look. */
const FILTER_BITS = 22;
const FACTOR = 0x01000193;
/** `FACTOR` to the power of one less than the units that are hashed. */
const TOP_FACTOR = powerOf(FACTOR, KEY_UNITS - 1);

export class RunIndex<O extends Owner> {
  private readonly pieces = new Map<number, Piece<O>[]>();
  private filter: Uint8Array | undefined;

  /** Keeps a text; one that is too short, or says nothing, is passed over. */
  add(text: string, owner: O): void {
    for (const [at, length] of cuts(text)) {
      if (saysNothing(text, at, length)) continue;
      const hash = hashAt(text, at);
      const piece = { owner, source: text, at, length };
      const others = this.pieces.get(hash);
      if (others === undefined) this.pieces.set(hash, [piece]);
      else if (!others.some((other) => other.owner === owner && isSame(other, piece)))
        others.push(piece);
      this.filter ??= new Uint8Array(2 ** (FILTER_BITS - 3));
      const bit = bitOf(hash);
      this.filter[bit >>> 3] = (this.filter[bit >>> 3] as number) | (1 << (bit & 7));
    }
  }

  /** Takes out what an owner put in of a text. The filter keeps its bits: it only ever says *may*. */
  remove(text: string, owner: O): void {
    for (const [at] of cuts(text)) {
      const hash = hashAt(text, at);
      const left = (this.pieces.get(hash) ?? []).filter((piece) => piece.owner !== owner);
      if (left.length > 0) this.pieces.set(hash, left);
      else this.pieces.delete(hash);
    }
    if (this.pieces.size === 0) this.filter = undefined;
  }

  /**
   * Whose text it shares a run with.
   *
   * @param counts whether a text of an owner counts, where it is met
   */
  find(text: string, counts: (owner: O, source: string) => boolean): O | undefined {
    const { filter } = this;
    if (filter === undefined || text.length < KEPT_MIN_UNITS) return undefined;
    let hash = hashAt(text, 0);
    for (let at = 0; ; at++) {
      const bit = bitOf(hash);
      if (((filter[bit >>> 3] as number) & (1 << (bit & 7))) !== 0) {
        for (const piece of this.pieces.get(hash) ?? []) {
          if (isAt(text, at, piece) && counts(piece.owner, piece.source)) return piece.owner;
        }
      }
      const next = at + KEY_UNITS;
      if (next >= text.length) return undefined;
      const without = hash - Math.imul(text.charCodeAt(at), TOP_FACTOR);
      hash = (Math.imul(without, FACTOR) + text.charCodeAt(next)) | 0;
    }
  }
}

/** Where the pieces of a text begin, and how long they are. */
function* cuts(text: string): Generator<readonly [at: number, length: number], void, undefined> {
  if (text.length < KEPT_MIN_UNITS) return;
  if (text.length <= RUN_UNITS) yield [0, text.length];
  else for (let at = 0; at + PIECE_UNITS <= text.length; at += STRIDE) yield [at, PIECE_UNITS];
}

function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let i = at; i < at + KEY_UNITS; i++)
    hash = (Math.imul(hash, FACTOR) + text.charCodeAt(i)) | 0;
  return hash;
}

function bitOf(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> (32 - FILTER_BITS);
}

function isAt(text: string, at: number, { source, at: from, length }: Piece<unknown>): boolean {
  if (at + length > text.length) return false;
  for (let i = 0; i < length; i++) {
    if (text.charCodeAt(at + i) !== source.charCodeAt(from + i)) return false;
  }
  return true;
}

function isSame(a: Piece<unknown>, b: Piece<unknown>): boolean {
  return a.length === b.length && isAt(b.source, b.at, a);
}

/** Whether a piece is white space alone, or repeats itself within a few units. */
export function saysNothing(text: string, at = 0, length = text.length): boolean {
  for (let period = 1; period <= PERIOD_MAX; period++) {
    let i = at + period;
    while (i < at + length && text.charCodeAt(i) === text.charCodeAt(i - period)) i++;
    if (i >= at + length) return true;
  }
  return text.slice(at, at + length).trim() === "";
}

function powerOf(base: number, exponent: number): number {
  let power = 1;
  for (let i = 0; i < exponent; i++) power = Math.imul(power, base);
  return power;
}
