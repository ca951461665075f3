import ms from "ms";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/**
 * Reads a grace period, such as `12h`, in milliseconds.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function graceMsOf(text: string): number {
  return millisecondsOf(text, "grace period", { grace: text }, "30m, 12h or 14d");
}

/**
 * Reads by how much clocks may differ, such as `500ms`, in milliseconds.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function toleranceMsOf(text: string): number {
  return millisecondsOf(text, "tolerance", { tolerance: text }, "500ms, 2s or 1m");
}

/**
 * Reads how long something may wait, such as `12h`, in milliseconds.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function expiryMsOf(text: string): number {
  return millisecondsOf(text, "expiry", { expires: text }, "30m, 12h or 7d");
}

/** Nobody reads faster, and the file system is not to be kept busy. */
const INTERVAL_MIN_MS = 50;

/** The longest that a timer of Node waits. */
const INTERVAL_MAX_MS = 2 ** 31 - 1;

/**
 * Reads how often to look at something, such as `500ms`, in milliseconds.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function intervalMsOf(text: string): number {
  const intervalMs = millisecondsOf(text, "interval", { interval: text }, "500ms, 2s or 1m");
  if (intervalMs >= INTERVAL_MIN_MS && intervalMs <= INTERVAL_MAX_MS) return intervalMs;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the interval ${quoteForMessage(text)} is too ${intervalMs < INTERVAL_MIN_MS ? "short" : "long"}; give one from ${INTERVAL_MIN_MS}ms to 24d`,
    { interval: text },
  );
}

function millisecondsOf(
  text: string,
  what: string,
  details: Readonly<Record<string, string>>,
  examples: string,
): number {
  const value = /^\d+(\.\d+)? *[a-z]+$|^0$/i.test(text) ? ms(text as ms.StringValue) : undefined;
  if (value !== undefined && Number.isFinite(value)) return Math.round(value);
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the ${what} ${quoteForMessage(text)} is not a time; give a number and a unit, such as ${examples}, or 0`,
    details,
  );
}
