import { type Gap, gaps } from "../../merge/align.js";

/** How many items are aligned one by one: the cost of that can grow with the square. */
const SHORT_MAX_ITEMS = 4000;
/** How long a stretch is on average, and at most. */
const STRETCH_ITEMS = 32;
const STRETCH_MAX_ITEMS = 1024;
/** How much of an item decides whether a stretch ends with it, in characters. */
const HASHED_LENGTH = 256;

interface Stretch {
  readonly start: number;
  readonly key: string;
}

/**
 * Aligns two sequences of keys like `gaps`; long ones first by stretches whose
 * ends the items themselves decide, so that an item that is put in moves no
 * other stretch, and then within those that differ. What differs over a long
 * way is left as one gap.
 */
export function longGaps(a: readonly string[], b: readonly string[]): Gap[] {
  if (Math.max(a.length, b.length) <= SHORT_MAX_ITEMS) return gaps(a, b);
  const [as, bs] = [stretches(a), stretches(b)];
  const startOf = (list: readonly Stretch[], i: number, end: number) => list[i]?.start ?? end;
  const found: Gap[] = [];
  const keys = (list: readonly Stretch[]) => list.map(({ key }) => key);
  for (const outer of gaps(keys(as), keys(bs))) {
    const aFrom = startOf(as, outer.aFrom, a.length);
    const bFrom = startOf(bs, outer.bFrom, b.length);
    const aTo = startOf(as, outer.aTo, a.length);
    const bTo = startOf(bs, outer.bTo, b.length);
    if (Math.max(aTo - aFrom, bTo - bFrom) > SHORT_MAX_ITEMS) {
      found.push({ aFrom, aTo, bFrom, bTo });
      continue;
    }
    for (const gap of gaps(a.slice(aFrom, aTo), b.slice(bFrom, bTo))) {
      found.push({
        aFrom: aFrom + gap.aFrom,
        aTo: aFrom + gap.aTo,
        bFrom: bFrom + gap.bFrom,
        bTo: bFrom + gap.bTo,
      });
    }
  }
  return found;
}

function stretches(items: readonly string[]): Stretch[] {
  const list: Stretch[] = [];
  for (let start = 0; start < items.length; ) {
    let end = start;
    while (end < items.length) {
      const isLast = endsStretch(items[end] as string);
      end++;
      if (isLast || end - start >= STRETCH_MAX_ITEMS) break;
    }
    list.push({ start, key: JSON.stringify(items.slice(start, end)) });
    start = end;
  }
  return list;
}

function endsStretch(item: string): boolean {
  let hash = item.length;
  const end = Math.min(item.length, HASHED_LENGTH);
  for (let i = 0; i < end; i++) hash = (Math.imul(hash, 31) + item.charCodeAt(i)) | 0;
  return (hash >>> 8) % STRETCH_ITEMS === 0;
}
