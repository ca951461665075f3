import { parseIndex } from "../core/json-pointer.js";
import { endOfString, keyAt } from "./json-loss.js";

/** A place in a text, both from 1; the column in UTF-16 units. */
export interface TextPlace {
  readonly line: number;
  readonly column: number;
}

/** @param firstLine the line that the text begins on */
export function placeAt(text: string, position: number, firstLine = 1): TextPlace {
  const before = text.slice(0, position);
  return {
    line: firstLine + before.split("\n").length - 1,
    column: position - before.lastIndexOf("\n"),
  };
}

/**
 * Where a value stands in JSON text, or, when there is none at the path, the nearest that holds its place.
 *
 * @param text must be valid JSON
 */
export function placeOf(text: string, path: readonly string[]): TextPlace {
  let at = skipSpace(text, 0);
  for (const token of path) {
    const found =
      text[at] === "{"
        ? memberAt(text, at, token)
        : text[at] === "["
          ? elementAt(text, at, parseIndex(token) ?? Number.POSITIVE_INFINITY)
          : undefined;
    if (found === undefined) break;
    at = found;
  }
  return placeAt(text, at);
}

function memberAt(text: string, open: number, key: string): number | undefined {
  let at = skipSpace(text, open + 1);
  while (text[at] === '"') {
    const end = endOfString(text, at + 1);
    const name = keyAt(text, at, end);
    const colon = skipSpace(text, end + 1);
    const value = skipSpace(text, colon + 1);
    if (name === key) return value;
    at = next(text, value);
  }
  return undefined;
}

function elementAt(text: string, open: number, index: number): number | undefined {
  let at = skipSpace(text, open + 1);
  for (let i = 0; i < index && text[at] !== "]"; i++) at = next(text, at);
  return text[at] === "]" ? undefined : at;
}

/** What comes after a value and its comma: a member, an element, or the closing bracket. */
function next(text: string, value: number): number {
  const end = skipSpace(text, skipValue(text, value));
  return text[end] === "," ? skipSpace(text, end + 1) : end;
}

/** The end of the value that begins there. */
function skipValue(text: string, from: number): number {
  let depth = 0;
  let at = from;
  do {
    const char = text[at];
    if (char === '"') at = endOfString(text, at + 1);
    else if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") depth--;
    else if (depth === 0) return endOfWord(text, at);
    at++;
  } while (depth > 0 && at < text.length);
  return at;
}

/** The end of a number, `true`, `false` or `null`. */
function endOfWord(text: string, from: number): number {
  let at = from;
  while (at < text.length && !/[\s,\]}]/.test(text[at] as string)) at++;
  return at;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (/\s/.test(text[at] ?? "")) at++;
  return at;
}
