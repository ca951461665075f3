import ms from "ms";
import { AgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { Tolerance } from "./types.js";

const TIME = /^\d+(?:\.\d+)? ?[a-z]+$/i;
const MAX_AGE = "max-age=";

/**
 * Reads a tolerance: `exact`, `ignore`, `max-age=1h`, or an object with `maxAgeMs`.
 *
 * @throws AgstateError `INVALID_VALUE`
 */
export function parseTolerance(given: unknown): Tolerance {
  if (given === "exact" || given === "ignore") return given;
  if (typeof given === "string") {
    const value = given.startsWith(MAX_AGE) ? parseTime(given.slice(MAX_AGE.length)) : undefined;
    if (isMaxAge(value)) return { maxAgeMs: value };
    throw invalid(quoteForMessage(given));
  }
  if (isJsonObject(given) && Object.keys(given).length === 1 && isMaxAge(given.maxAgeMs)) {
    return { maxAgeMs: given.maxAgeMs };
  }
  throw invalid(isJsonObject(given) ? "an object" : typeof given);
}

/** A time such as `10s` or `1.5h`, in whole milliseconds; undefined for anything else. */
export function parseTime(given: unknown): number | undefined {
  if (typeof given !== "string" || !TIME.test(given)) return undefined;
  const timeMs = ms(given as ms.StringValue);
  return timeMs === undefined || !Number.isFinite(timeMs) ? undefined : Math.round(timeMs);
}

/** A tolerance as `parseTolerance` reads it. */
export function toleranceText(tolerance: Tolerance): string {
  return typeof tolerance === "string" ? tolerance : `max-age=${tolerance.maxAgeMs}ms`;
}

function isMaxAge(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function invalid(shown: string): AgstateError {
  return new AgstateError(
    "INVALID_VALUE",
    `tolerance is ${shown}; write exact, ignore, or a greatest age such as max-age=1h, which as an object is { maxAgeMs: 3600000 }`,
    { field: "tolerance" },
  );
}
