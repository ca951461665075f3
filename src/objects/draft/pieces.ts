/** A stretch of the stored sequence that is kept, or items that are new. */
export type Piece<Item> =
  | { readonly kind: "stored"; readonly from: number; readonly to: number }
  | { readonly kind: "new"; readonly items: Item[]; size: number };

/**
 * A sequence as pieces of what is stored and of what is new (a piece table), so
 * that edits by position apply one after another without reading anything.
 */
export class Pieces<Item> {
  private pieces: Piece<Item>[];

  constructor(
    readonly storedLength: number,
    private readonly sizeOf: (item: Item) => number,
    private readonly cut: (item: Item, at: number) => [Item, Item],
  ) {
    this.pieces = storedLength > 0 ? [{ kind: "stored", from: 0, to: storedLength }] : [];
  }

  get length(): number {
    let length = 0;
    for (const piece of this.pieces) length += this.lengthOf(piece);
    return length;
  }

  get all(): readonly Piece<Item>[] {
    return this.pieces;
  }

  /** The position of what is at `index`: in the stored sequence, or a new item. */
  at(index: number): { readonly stored: number } | { readonly item: Item } {
    let start = 0;
    for (const piece of this.pieces) {
      const size = this.lengthOf(piece);
      if (index < start + size) {
        if (piece.kind === "stored") return { stored: piece.from + index - start };
        for (const item of piece.items) {
          start += this.sizeOf(item);
          if (index < start) return { item };
        }
      }
      start += size;
    }
    throw new RangeError(`index ${index} is outside the sequence`);
  }

  splice(index: number, deleteCount: number, items: readonly Item[]): void {
    const before = this.split(index);
    const after = this.split(index + deleteCount);
    const replacement = items.length > 0 ? [this.newPiece([...items])] : [];
    this.pieces.splice(before, after - before, ...replacement);
    this.joinNew(before);
  }

  /** Splits at a position and gives the number of pieces before it. */
  private split(index: number): number {
    let start = 0;
    for (let i = 0; i < this.pieces.length; i++) {
      const piece = this.pieces[i] as Piece<Item>;
      const size = this.lengthOf(piece);
      if (index <= start) return i;
      if (index < start + size) {
        this.pieces.splice(i, 1, ...this.halves(piece, index - start));
        return i + 1;
      }
      start += size;
    }
    return this.pieces.length;
  }

  private halves(piece: Piece<Item>, at: number): [Piece<Item>, Piece<Item>] {
    if (piece.kind === "stored") {
      return [
        { kind: "stored", from: piece.from, to: piece.from + at },
        { kind: "stored", from: piece.from + at, to: piece.to },
      ];
    }
    const left: Item[] = [];
    const right: Item[] = [];
    let start = 0;
    for (const item of piece.items) {
      const size = this.sizeOf(item);
      if (start + size <= at) left.push(item);
      else if (start >= at) right.push(item);
      else {
        const [a, b] = this.cut(item, at - start);
        left.push(a);
        right.push(b);
      }
      start += size;
    }
    return [this.newPiece(left), this.newPiece(right)];
  }

  /** Joins neighbouring new pieces, so that a run of appends stays one piece. */
  private joinNew(around: number): void {
    for (let i = Math.min(around + 1, this.pieces.length - 1); i >= Math.max(1, around); i--) {
      const left = this.pieces[i - 1] as Piece<Item>;
      const right = this.pieces[i] as Piece<Item>;
      if (left.kind === "new" && right.kind === "new") {
        for (const item of right.items) left.items.push(item);
        left.size += right.size;
        this.pieces.splice(i, 1);
      }
    }
  }

  private newPiece(items: Item[]): Piece<Item> {
    let size = 0;
    for (const item of items) size += this.sizeOf(item);
    return { kind: "new", items, size };
  }

  private lengthOf(piece: Piece<Item>): number {
    return piece.kind === "stored" ? piece.to - piece.from : piece.size;
  }

  /** The edits that turn the stored sequence into this one, in order. */
  edits(): { from: number; to: number; items: Item[] }[] {
    const edits: { from: number; to: number; items: Item[] }[] = [];
    let at = 0;
    let items: Item[] = [];
    const flush = (to: number): void => {
      if (to > at || items.length > 0) edits.push({ from: at, to, items });
      items = [];
    };
    for (const piece of this.pieces) {
      if (piece.kind === "new") {
        for (const item of piece.items) items.push(item);
      } else {
        flush(piece.from);
        at = piece.to;
      }
    }
    flush(this.storedLength);
    return edits;
  }
}
