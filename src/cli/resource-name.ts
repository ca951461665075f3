import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { ResourceName } from "../staleness/types.js";

/**
 * Reads the name of a resource: a URL, or a type and an id, such as `file:docs/rules.md`.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function resourceNameOf(text: string): ResourceName {
  if (/^https?:\/\//i.test(text)) return { type: "http", id: text };
  const colon = text.indexOf(":");
  if (colon > 0 && colon < text.length - 1) {
    return { type: text.slice(0, colon), id: text.slice(colon + 1) };
  }
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${quoteForMessage(text)} names no resource; give a URL, or TYPE:ID, such as file:docs/rules.md`,
    { resource: text },
  );
}
