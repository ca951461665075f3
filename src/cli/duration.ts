import ms from "ms";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/**
 * Reads a grace period, such as `12h`, in milliseconds.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function graceMsOf(text: string): number {
  const value = /^\d+(\.\d+)? *[a-z]+$|^0$/i.test(text) ? ms(text as ms.StringValue) : undefined;
  if (value !== undefined && Number.isFinite(value)) return Math.round(value);
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the grace period ${quoteForMessage(text)} is not a time; give a number and a unit, such as 30m, 12h or 14d, or 0`,
    { grace: text },
  );
}
