import { DateTime, Duration } from "luxon";

/**
 * The moment, in whole seconds, before which what is kept for a period is over: so long before now, by the calendar
 * of UTC. Months and years are taken off first, and a day that the month has not is its last; minus infinity where
 * the period is longer than dates go back.
 *
 * @param now milliseconds since the Unix epoch
 */
export function cutoffOf(period: string, now: number): number {
  const at = DateTime.fromMillis(now, { zone: "utc" }).minus(Duration.fromISO(period));
  return at.isValid ? Math.floor(at.toMillis() / 1000) : Number.NEGATIVE_INFINITY;
}
