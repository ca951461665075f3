import { diff } from "fast-myers-diff";

/** A stretch of two sequences that does not match: `a` from `aFrom` to `aTo` against `b` from `bFrom` to `bTo`. */
export interface Gap {
  readonly aFrom: number;
  readonly aTo: number;
  readonly bFrom: number;
  readonly bTo: number;
}

/** Above this many shared items on a side, the alignment is by position, since its cost could grow with the square. */
const ALIGN_MAX_ITEMS = 20_000;

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
  if (as.length > ALIGN_MAX_ITEMS || bs.length > ALIGN_MAX_ITEMS) return [];
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
