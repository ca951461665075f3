import { setTimeout as sleep } from "node:timers/promises";
import { busyError, isBusy } from "./errors.js";

/** The longest pause between two tries of a call that has just begun to wait. */
const FIRST_PAUSE_MS = 4;

/** A call that has waited this long tries again as often as timers allow. */
const PATIENCE_MS = 40;

/**
 * How long to wait before trying for the lock again: a uniform draw whose upper
 * end *shrinks* with the time already waited.
 *
 * A back-off that grows would starve: SQLite has no queue, so whoever tries
 * most often wins, and that must be who has waited longest.
 */
export function retryPause(waitedMs: number): number {
  const widest = Math.max(1, FIRST_PAUSE_MS * (1 - waitedMs / PATIENCE_MS));
  return Math.random() * widest;
}

/**
 * Runs a synchronous piece of work on the connection until no other connection is in the way.
 *
 * @throws AgstateError `STORE_BUSY` after `timeoutMs`
 */
export async function retryWhileBusy<T>(
  work: () => T,
  location: string,
  timeoutMs: number,
): Promise<T> {
  const since = performance.now();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      const waited = performance.now() - since;
      if (waited >= timeoutMs) throw busyError(location, waited, error);
      await sleep(retryPause(waited));
    }
  }
}
