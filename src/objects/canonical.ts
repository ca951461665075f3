import stringify from "fast-json-stable-stringify";
import type { JsonObject, JsonValue } from "../core/json.js";
import { LEAF_MAX_BYTES } from "./format.js";

/**
 * The canonical text of a validated JSON value: no white space, keys in UTF-16
 * order, numbers and strings as `JSON.stringify` writes them. Its UTF-8 is what
 * is hashed and stored.
 */
export function canonicalText(value: JsonValue): string {
  // What is in order already, as validated values are, the platform writes the same, several times faster.
  return isInOrder(value) ? JSON.stringify(value) : stringify(value);
}

/** Whether all keys come in UTF-16 order, which those that look like array indexes may not. */
function isInOrder(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isInOrder(value[i])) return false;
    return true;
  }
  let last = "";
  for (const key in value) {
    if (key < last || !isInOrder((value as JsonObject)[key] as JsonValue)) return false;
    last = key;
  }
  return true;
}

/** A value's canonical text and the number of its bytes. */
export interface SmallText {
  readonly text: string;
  readonly bytes: number;
}

/**
 * The canonical text of a value that fits one blob, or null when it has more
 * than `LEAF_MAX_BYTES` bytes. Costs in proportion to the limit, not the value.
 */
export function smallCanonical(value: JsonValue): SmallText | null {
  if (lowerBound(value, LEAF_MAX_BYTES) < 0) return null;
  const text = canonicalText(value);
  const bytes = Buffer.byteLength(text);
  return bytes <= LEAF_MAX_BYTES ? { text, bytes } : null;
}

/** What is left of a budget of bytes after a value, counting no more bytes than it surely has; negative when spent. */
function lowerBound(value: JsonValue, budget: number): number {
  if (typeof value === "string") return budget - value.length - 2;
  if (typeof value !== "object" || value === null) return budget - 1;
  // Brackets and separators: one more byte than there are elements, or one less than that when empty.
  let left = budget - 1;
  if (Array.isArray(value)) {
    left -= value.length;
    for (const element of value) {
      if (left < 0) return left;
      left = lowerBound(element, left);
    }
    return left;
  }
  for (const key in value) {
    left -= key.length + 4;
    if (left < 0) return left;
    left = lowerBound((value as Record<string, JsonValue>)[key] as JsonValue, left);
  }
  return left;
}
