import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/** The error of a URL that names no kind of store. It tells the kind that is named only: what follows may hold a password. */
export function unknownStore(url: string): AgstateError {
  const [kind = url] = /^[^:]*:/.exec(url) ?? [];
  return new AgstateError(
    "INVALID_ARGUMENT",
    `store ${quoteForMessage(kind === url ? url : `${kind}...`)} is of no known kind; give sqlite:DIRECTORY, postgres://... or memory:`,
    { kind },
  );
}
