import type { JsonValue } from "../core/json.js";
import { canonicalText } from "../objects/canonical.js";
import { type Place, valueAt } from "../objects/decode.js";
import type { ObjectReader } from "../objects/reader.js";
import { StoredSequence } from "../objects/sequence-edit.js";
import { type Gap, gaps } from "./align.js";
import type { Span } from "./blame-asked.js";
import { changedElements, type SequenceElement } from "./list-diff.js";

/**
 * Aligns two lists: the stretches that do not match, `a` of the older and `b` of
 * the newer list, in order. Of two stored lists only what differs is read.
 */
export async function listGaps(reader: ObjectReader, older: Place, newer: Place): Promise<Gap[]> {
  if (!("link" in older && "link" in newer)) {
    return gaps(await texts(reader, older), await texts(reader, newer));
  }
  const found: Gap[] = [];
  for await (const region of changedElements(reader, older.link.id, newer.link.id)) {
    const { aStart, bStart } = region;
    for (const gap of gaps(region.a.map(keyOf), region.b.map(keyOf))) {
      found.push({
        aFrom: aStart + gap.aFrom,
        aTo: aStart + gap.aTo,
        bFrom: bStart + gap.bFrom,
        bTo: bStart + gap.bTo,
      });
    }
  }
  return found;
}

/** How many elements a list has. */
export async function listLength(reader: ObjectReader, list: Place): Promise<number> {
  if ("value" in list) return (list.value as readonly JsonValue[]).length;
  return (await StoredSequence.open(reader, list.link.id)).length;
}

const keyOf = (element: SequenceElement): string =>
  "text" in element ? element.text : element.link.id;

async function texts(reader: ObjectReader, list: Place): Promise<string[]> {
  return ((await valueAt(reader, list)) as readonly JsonValue[]).map(canonicalText);
}

/** Where an element of the newer list is in the older. */
export type OlderIndex =
  /** It is the same there. */
  | { readonly kind: "same"; readonly index: number }
  /** It stands against another one in a gap: it was changed. */
  | { readonly kind: "changed"; readonly index: number }
  | { readonly kind: "new" };

export function olderIndex(found: readonly Gap[], index: number): OlderIndex {
  const passed = gapsBefore(found, index);
  const gap = found[passed];
  if (gap === undefined || index < gap.bFrom) {
    return { kind: "same", index: index + shiftAfter(found, passed) };
  }
  const offset = index - gap.bFrom;
  return offset < gap.aTo - gap.aFrom
    ? { kind: "changed", index: gap.aFrom + offset }
    : { kind: "new" };
}

/** Splits spans of the newer list into what matches, at its place in the older list, and what does not. */
export function splitSpans(
  spans: readonly Span[],
  found: readonly Gap[],
): { same: Span[]; changed: Span[] } {
  const same: Span[] = [];
  const changed: Span[] = [];
  for (const span of spans) {
    const end = span.at + span.count;
    let passed = gapsBefore(found, span.at);
    for (let at = span.at; at < end; ) {
      while ((found[passed]?.bTo ?? end) <= at) passed++;
      const gap = found[passed];
      const inside = gap !== undefined && gap.bFrom <= at;
      const to = Math.min(end, gap === undefined ? end : inside ? gap.bTo : gap.bFrom);
      const first = span.first + (at - span.at);
      const count = to - at;
      if (inside) changed.push({ ...span, at, count, first });
      else same.push({ ...span, at: at + shiftAfter(found, passed), count, first });
      at = to;
    }
  }
  return { same, changed };
}

/** How many gaps end at or before an index of the newer list. */
function gapsBefore(found: readonly Gap[], index: number): number {
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((found[middle] as Gap).bTo <= index) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What takes an index of the newer list to the older, between gaps. */
function shiftAfter(found: readonly Gap[], passed: number): number {
  const last = found[passed - 1];
  return last === undefined ? 0 : last.aTo - last.bTo;
}
