import pRetry from "p-retry";
import { inTime, pause, TIME_OVER } from "./in-time.js";
import { failureOf, observationOf } from "./observation.js";
import type { Checker, CheckFunction, Observation, Resource } from "./types.js";

/** Shortest pause before a resource is asked about again; it doubles, and up to as much is added by chance. */
const PAUSE_MS = 200;

/** What resources are asked about with, within one check. */
export interface Asking {
  /** Aborts with `TIME_OVER` when the time of the check is, or with the reason of whoever asked for it. */
  readonly over: AbortSignal;
  /** How much time there is until then, in milliseconds. */
  readonly leftMs: () => number;
  /** For one attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** How often it is asked again after an answer that may be another one soon. */
  readonly retries: number;
  readonly now: () => number;
  /** By how much clocks may differ, in milliseconds. */
  readonly skewMs: number;
  /** Does an attempt as soon as there are not too many others. */
  readonly limited: (attempt: () => Promise<Observation>) => Promise<Observation>;
}

/** An answer that may be another one soon, on its way through what tries again. */
class NotYet extends Error {
  constructor(readonly observation: Observation & { readonly kind: "unknown" }) {
    super(observation.why);
  }
}

/**
 * Asks a checker about a resource, again where that may help. Nothing waits in a place that others could use: a pause between two
 * attempts takes none.
 *
 * @throws the reason for which the check was aborted, unless that is its time
 */
export async function ask(
  { id, version }: Resource,
  checker: Checker | CheckFunction,
  how: Asking,
): Promise<Observation> {
  const { over, leftMs, timeoutMs, retries, now, skewMs } = how;
  let attempts = 0;
  let last: string | undefined;
  const attempt = async (): Promise<Observation> => {
    over.throwIfAborted();
    attempts++;
    try {
      return observationOf(
        await inTime(timeoutMs, over, async (signal) => {
          const about = { id, version };
          const context = { signal, now, skewMs };
          return typeof checker === "function"
            ? checker(about, context)
            : checker.observe(about, context);
        }),
      );
    } catch (error) {
      over.throwIfAborted();
      if (error !== TIME_OVER) return failureOf(error);
      return { kind: "unknown", why: `no answer within ${inSeconds(timeoutMs)}`, again: true };
    }
  };
  try {
    return await pRetry(
      async () => {
        const observation = await how.limited(attempt);
        if (observation.kind !== "unknown") return observation;
        last = observation.why;
        if (observation.again === true) throw new NotYet(observation);
        return observation;
      },
      {
        retries,
        minTimeout: PAUSE_MS,
        randomize: true,
        signal: over,
        shouldRetry: async ({ error }) => {
          if (!(error instanceof NotYet)) return false;
          const { waitMs = 0 } = error.observation;
          if (waitMs >= leftMs()) return false;
          if (waitMs > 0) await pause(waitMs, over);
          return true;
        },
      },
    );
  } catch (error) {
    if (over.aborted) {
      if (over.reason !== TIME_OVER) throw over.reason;
      return { kind: "unknown", why: outOfTime(attempts, last) };
    }
    if (!(error instanceof NotYet)) throw error;
    return { kind: "unknown", why: `${error.observation.why}${askedOften(attempts, error, how)}` };
  }
}

function askedOften(attempts: number, { observation }: NotYet, { retries }: Asking): string {
  const { waitMs } = observation;
  // With attempts left, its wait is why none was made.
  if (attempts <= retries && waitMs !== undefined) {
    return `; it wants to be asked again in ${inSeconds(waitMs)}, after this check's time`;
  }
  return attempts > 1 ? `, asked ${attempts} times` : "";
}

function outOfTime(attempts: number, last: string | undefined): string {
  if (attempts === 0) return "not asked: the time for the whole check was over";
  const before = last === undefined ? "" : `${last}; `;
  return `${before}the time for the whole check was over before it answered`;
}

/** A time in words, in seconds where it has any. */
function inSeconds(timeMs: number): string {
  return timeMs < 1000 ? `${Math.ceil(timeMs)} ms` : `${Math.ceil(timeMs / 100) / 10} s`;
}
