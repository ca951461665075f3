import { parse as parseWithPosition } from "lossless-json";
import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { refuseLoss } from "./json-loss.js";
import { placeAt } from "./json-place.js";
import { decodeText } from "./utf8-text.js";

export interface StrictJsonOptions {
  /** The line of the file that the text begins on, for error messages; default 1. */
  readonly line?: number;
}

/**
 * Parses JSON text, or the UTF-8 bytes of a file, as `JSON.parse` does, except
 * that it never loses anything silently.
 *
 * A number that a double does not hold and a key that stands twice in one object
 * are errors that name the JSON path and the remedy; see `refuseLoss` for the
 * exact rules. That check always runs: it costs no more than `JSON.parse` itself.
 * A leading byte order mark is passed over. The position in a syntax error is a
 * line and a column, both from 1, the column in UTF-16 units.
 *
 * @param what how messages name the text, for example `state file "a.json"`
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function parseStrictJson(
  input: string | Uint8Array,
  what: string,
  options: StrictJsonOptions = {},
): JsonValue {
  const text = decodeText(input, what);
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw syntaxError(text, what, options.line ?? 1, error as Error);
  }
  refuseLoss(text, what);
  return value;
}

/**
 * The longest text in which the position of a syntax error is looked for, in UTF-16 units:
 * the second parser takes 40 bytes of memory for each.
 */
const POSITION_MAX_LENGTH = 8 * 1024 * 1024;

/**
 * `JSON.parse` says where only in newer engines, and not always, so a second parser is asked. Its error is not kept: it quotes
 * the text, of which this one tells a character at most.
 */
function syntaxError(text: string, what: string, firstLine: number, error: Error): AgstateError {
  if (text.trim() === "") {
    return new AgstateError("INVALID_VALUE", `${what} is empty; it must hold JSON`);
  }
  const found = text.length <= POSITION_MAX_LENGTH ? findSyntaxError(text) : undefined;
  if (found === undefined) {
    const reason = QUOTES_TEXT.test(error.message) ? "unexpected text" : error.message;
    return new AgstateError("INVALID_VALUE", `${what} is not JSON: ${printable(reason)}`);
  }
  const { line, column } = placeAt(text, found.position, firstLine);
  return new AgstateError(
    "INVALID_VALUE",
    `${what} is not JSON: ${found.reason} (line ${line}, column ${column})`,
    { line, column },
  );
}

/** How the engine begins where it quotes the text, unlike where it says what it expected. */
const QUOTES_TEXT = /^Unexpected token|"/;

function findSyntaxError(text: string): { reason: string; position: number } | undefined {
  try {
    // Numbers and keys do not matter here.
    parseWithPosition(text, undefined, { parseNumber: () => 0, onDuplicateKey: () => 0 });
    return undefined;
  } catch (error) {
    // Where the nesting is too deep for the parser, there is no position.
    const match = /^(.*) at position (\d+)$/su.exec((error as Error).message);
    if (match === null) return undefined;
    const reason = (match[1] as string).replace(/^(Invalid number) '[^']*'/, "$1");
    return { reason: printable(reason), position: Number(match[2]) };
  }
}

/** Parsers quote the offending characters, whatever they are. */
function printable(reason: string): string {
  return reason
    .slice(0, 160)
    .replace(
      /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
}
