import type { Link } from "../objects/encode.js";
import type { ObjectReader } from "../objects/reader.js";
import { readNode, type SequenceEntry } from "../objects/sequence.js";
import { StoredSequence } from "../objects/sequence-edit.js";
import { changedElements } from "./list-diff.js";
import { elementsOf, identity, opened, type Side, same, sidesOf } from "./side.js";

/** A list as a merge looks at it: behind a link, or all elements at hand. */
export type ListSide =
  | { readonly link: Link; readonly length: number; readonly elements?: undefined }
  | { readonly link?: undefined; readonly length: number; readonly elements: readonly Side[] };

export const EMPTY_LIST: ListSide = { length: 0, elements: [] };

export async function openList(reader: ObjectReader, side: Side): Promise<ListSide> {
  const open = await opened(reader, side);
  if (open.link !== undefined) {
    const { length } = await StoredSequence.open(reader, open.link.id);
    return { link: open.link, length };
  }
  const elements = await elementsOf(reader, open);
  return { length: elements.length, elements };
}

/** What became of a list: whether what was there changed, and what was added behind it. */
export interface ListChange {
  /** Whether the older list is no longer there as it was, with everything new behind it. */
  readonly inner: boolean;
  /** Number of elements at the newer list's end that were added behind the older one's last. */
  readonly added: number;
}

/** Compares a list with what it was; the cost follows the change where both are stored. */
export async function listChange(
  reader: ObjectReader,
  before: ListSide,
  after: ListSide,
): Promise<ListChange> {
  const prefix = await commonPrefix(reader, before, after);
  if (prefix === before.length) return { inner: false, added: after.length - prefix };
  return { inner: true, added: await addedBehind(reader, before, after) };
}

/**
 * How many elements follow the last old element where that still stands, all of them new.
 *
 * Where the old last element is gone or was moved among others, nothing counts as added behind it.
 */
async function addedBehind(
  reader: ObjectReader,
  before: ListSide,
  after: ListSide,
): Promise<number> {
  let [a, b]: [readonly string[], readonly string[]] = [[], []];
  if (before.link !== undefined && after.link !== undefined) {
    for await (const region of changedElements(reader, before.link.id, after.link.id)) {
      const key = (e: (typeof region.a)[number]) => ("text" in e ? e.text : e.link.id);
      const atEnd =
        region.aStart + region.a.length === before.length &&
        region.bStart + region.b.length === after.length;
      // Only a stretch at the end of both can end in an addition.
      if (!atEnd) continue;
      if (region.a.length === 0) return region.b.length;
      [a, b] = [region.a.map(key), region.b.map(key)];
    }
  } else {
    a = (await allElements(reader, before)).map(identity);
    b = (await allElements(reader, after)).map(identity);
  }
  const last = a.at(-1);
  const at = last === undefined ? -1 : b.lastIndexOf(last);
  if (at < 0) return 0;
  const old = new Set(a);
  return b.slice(at + 1).some((key) => old.has(key)) ? 0 : b.length - at - 1;
}

export async function allElements(reader: ObjectReader, list: ListSide): Promise<readonly Side[]> {
  return list.link === undefined ? list.elements : elementsOf(reader, list);
}

/** The elements from an index to the end; what comes before is not read. */
export async function elementsFrom(
  reader: ObjectReader,
  list: ListSide,
  from: number,
): Promise<readonly Side[]> {
  if (list.link === undefined) return list.elements.slice(from);
  const sequence = await StoredSequence.open(reader, list.link.id);
  const found: Side[] = [];
  for (let at = from; at < list.length; ) {
    const { entry, start, end } = await sequence.entryAt(at);
    for (const side of (await sidesOf(reader, entry)).slice(at - start)) found.push(side);
    at = end;
  }
  return found;
}

/**
 * How many elements two lists have in common from the front.
 *
 * Equal nodes and runs are passed over by their ids, so that of two stored
 * lists only what lies around the first difference is read.
 */
export async function commonPrefix(
  reader: ObjectReader,
  a: ListSide,
  b: ListSide,
): Promise<number> {
  const left = await Cursor.at(reader, a);
  const right = await Cursor.at(reader, b);
  let count = 0;
  for (;;) {
    const [x, y] = [left.peek(), right.peek()];
    if (x === undefined || y === undefined) return count;
    if (x.entry !== undefined && y.entry !== undefined && sameEntry(x.entry, y.entry)) {
      count += x.entry.count;
      left.skip();
      right.skip();
    } else if (x.element !== undefined && y.element !== undefined) {
      if (!same(x.element, y.element)) return count;
      count++;
      left.skip();
      right.skip();
    } else if (countOf(x) >= countOf(y) && x.entry !== undefined) {
      await left.open();
    } else if (y.entry !== undefined) {
      await right.open();
    } else {
      await left.open();
    }
  }
}

type Item =
  | { readonly entry: SequenceEntry; readonly element?: undefined }
  | { readonly entry?: undefined; readonly element: Side };

const sameEntry = (a: SequenceEntry, b: SequenceEntry): boolean =>
  a.id === b.id && a.kind === b.kind;
const countOf = (item: Item): number => item.entry?.count ?? 1;

/** Goes through a list from the front, opening nodes and runs only when told to. */
class Cursor {
  /** What is still to come, nearest last. */
  private constructor(
    private readonly reader: ObjectReader,
    private readonly ahead: Item[],
  ) {}

  static async at(reader: ObjectReader, list: ListSide): Promise<Cursor> {
    if (list.link === undefined) {
      return new Cursor(reader, list.elements.map((element) => ({ element })).reverse());
    }
    const entries = readNode(await reader.tree(list.link.id), list.link.id);
    return new Cursor(reader, entries.map((entry) => ({ entry })).reverse());
  }

  peek(): Item | undefined {
    return this.ahead.at(-1);
  }

  skip(): void {
    this.ahead.pop();
  }

  /** Puts what the next entry holds in its place. */
  async open(): Promise<void> {
    const entry = this.ahead.pop()?.entry as SequenceEntry;
    if (entry.kind === "n") {
      for (const below of readNode(await this.reader.tree(entry.id), entry.id).toReversed()) {
        this.ahead.push({ entry: below });
      }
    } else {
      const elements = await sidesOf(this.reader, entry);
      for (const element of elements.reverse()) this.ahead.push({ element });
    }
  }
}
