import { diff } from "fast-myers-diff";

/** A stretch of two sequences that does not match: `a` from `aFrom` to `aTo` against `b` from `bFrom` to `bTo`. */
export interface Gap {
  readonly aFrom: number;
  readonly aTo: number;
  readonly bFrom: number;
  readonly bTo: number;
}

/**
 * Above this many shared items on a side only items that are unique on both are aligned, since
 * the cost of the exact alignment can grow with the square.
 */
const ALIGN_MAX_ITEMS = 4000;

/**
 * Aligns two sequences of keys and gives the stretches that do not match, in order.
 *
 * Only keys that stand on both sides take part (Myers, "An O(ND) Difference
 * Algorithm", 1986), so that two sequences with nothing in common cost no more
 * than reading them.
 */
export function gaps(a: readonly string[], b: readonly string[]): Gap[] {
  let front = 0;
  while (front < a.length && front < b.length && a[front] === b[front]) front++;
  let back = 0;
  while (
    back < Math.min(a.length, b.length) - front &&
    a[a.length - 1 - back] === b[b.length - 1 - back]
  ) {
    back++;
  }
  const aTo = a.length - back;
  const bTo = b.length - back;
  if (front === aTo && front === bTo) return [];
  const matches = match(a, b, front, aTo, bTo);
  const result: Gap[] = [];
  let aFrom = front;
  let bFrom = front;
  for (const [i, j] of [...matches, [aTo, bTo] as const]) {
    if (i > aFrom || j > bFrom) result.push({ aFrom, aTo: i, bFrom, bTo: j });
    aFrom = i + 1;
    bFrom = j + 1;
  }
  return result;
}

/** Pairs of positions that match, rising on both sides. */
function match(
  a: readonly string[],
  b: readonly string[],
  from: number,
  aTo: number,
  bTo: number,
): (readonly [number, number])[] {
  const inA = new Set(a.slice(from, aTo));
  const inB = new Set(b.slice(from, bTo));
  const as = positions(a, from, aTo, inB);
  const bs = positions(b, from, bTo, inA);
  if (as.length > ALIGN_MAX_ITEMS || bs.length > ALIGN_MAX_ITEMS) {
    return matchUnique(a, b, as, bs);
  }
  const pairs: (readonly [number, number])[] = [];
  let i = 0;
  let j = 0;
  const same = (x: number, y: number) => a[as[x] as number] === b[bs[y] as number];
  for (const [sx, ex, sy, ey] of diff(as, bs, same)) {
    while (i < sx) pairs.push([as[i++] as number, bs[j++] as number]);
    i = ex;
    j = ey;
    if (j < sy) break;
  }
  while (i < as.length && j < bs.length) pairs.push([as[i++] as number, bs[j++] as number]);
  return pairs;
}

/**
 * Pairs the items that stand once on each side, as many as rise on both: the
 * longest increasing subsequence, by patience sorting (Fredman 1975).
 */
function matchUnique(
  a: readonly string[],
  b: readonly string[],
  as: readonly number[],
  bs: readonly number[],
): (readonly [number, number])[] {
  const inA = once(a, as);
  const inB = once(b, bs);
  /** The pair that ends the best sequence of each length, and for each pair the one before it. */
  const ends: (readonly [number, number])[] = [];
  const before = new Map<number, readonly [number, number] | undefined>();
  for (const i of as) {
    const key = a[i] as string;
    const j = inA.get(key) === i ? inB.get(key) : undefined;
    if (j === undefined || j < 0) continue;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as readonly [number, number])[1] < j) low = middle + 1;
      else high = middle;
    }
    before.set(i, ends[low - 1]);
    ends[low] = [i, j];
  }
  const pairs: (readonly [number, number])[] = [];
  for (let pair = ends.at(-1); pair !== undefined; pair = before.get(pair[0])) pairs.push(pair);
  return pairs.reverse();
}

/** Where each key stands; -1 when it stands more than once. */
function once(keys: readonly string[], at: readonly number[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const i of at) {
    const key = keys[i] as string;
    found.set(key, found.has(key) ? -1 : i);
  }
  return found;
}

function positions(
  keys: readonly string[],
  from: number,
  to: number,
  wanted: ReadonlySet<string>,
): number[] {
  const found: number[] = [];
  for (let i = from; i < to; i++) if (wanted.has(keys[i] as string)) found.push(i);
  return found;
}
