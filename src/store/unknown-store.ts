import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/** The error of a URL that names no kind of store. */
export function unknownStore(url: string): AgstateError {
  return new AgstateError(
    "INVALID_ARGUMENT",
    `store ${quoteForMessage(url)} is of no known kind; give sqlite:DIRECTORY, postgres://... or memory:`,
    { url },
  );
}
