import { AgstateError } from "./errors.js";

/**
 * The limits that may be set at `openStore`. None of them takes part in how a
 * value is mapped to objects: those constants are part of the format and stand
 * in `objects/format.ts`.
 */
export interface Limits {
  /**
   * Largest value that one call brings in (a state, a step record, the values of
   * an operation), in bytes of JSON without escape sequences, and longest text
   * that appends add up to. A state may grow beyond it by many updates.
   */
  readonly stateMaxBytes: number;
  /** Longest commit message, in bytes of UTF-8. */
  readonly messageMaxBytes: number;
  /** Size of the cache of decoded objects, in bytes: most of what a process that only writes holds. */
  readonly cacheMaxBytes: number;
  /** How long a write waits for other processes on the same store, and for a server that is away, in milliseconds. */
  readonly busyTimeoutMs: number;
  /**
   * How long what no ref reaches any more is kept, in milliseconds: `gc` leaves it alone,
   * and a deleted branch can be brought back.
   */
  readonly graceMs: number;
  /**
   * How many connections a store on a server holds at most. `pool_max` in the store's URL goes
   * before it.
   */
  readonly poolMax: number;
  /**
   * How long a server works on one call before it gives it up, in milliseconds.
   * `statement_timeout_ms` in the store's URL goes before it.
   */
  readonly statementTimeoutMs: number;
}

export const DEFAULT_LIMITS: Limits = {
  stateMaxBytes: 512 * 1024 * 1024,
  messageMaxBytes: 1024 * 1024,
  cacheMaxBytes: 24 * 1024 * 1024,
  busyTimeoutMs: 30_000,
  graceMs: 14 * 24 * 60 * 60 * 1000,
  poolMax: 8,
  statementTimeoutMs: 60_000,
};

/**
 * Fills in the defaults for the limits that were not given.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a limit that is not a positive whole number.
 */
export function resolveLimits(given: Partial<Limits> = {}): Limits {
  const limits = { ...DEFAULT_LIMITS };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new AgstateError("INVALID_ARGUMENT", `there is no limit called ${name}`, {
        limit: name,
      });
    }
    if (!Number.isSafeInteger(value) || value <= 0) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `limit ${name} is ${String(value)}; it must be a whole number above 0`,
        { limit: name, value: String(value) },
      );
    }
    limits[name as keyof Limits] = value;
  }
  return limits;
}
