import { AgstateError } from "../core/errors.js";
import { formatPointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { DEPTH_MAX } from "./format.js";

/** An object or a list that the scan is inside of. */
interface Level {
  /** The keys seen so far; null in a list. */
  readonly keys: Set<string> | null;
  /** The current key or index. */
  at: string | number;
  expectsKey: boolean;
}

/**
 * Refuses JSON text of which `JSON.parse` would silently lose a part: a number
 * that a double does not hold, or a key that stands twice in one object.
 *
 * Numbers that are lost: an integer literal (digits only) that the nearest
 * double neither equals nor is written as, a number that overflows to Infinity,
 * one that is not zero and underflows to zero. Literals with a fraction or an exponent are
 * taken as doubles, which is what writes them. Nesting deeper than a state may
 * have is refused too, before anything recursive sees it.
 *
 * One pass without recursion that jumps over strings.
 *
 * @param text must be valid JSON
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function refuseLoss(text: string, what: string): void {
  const levels: Level[] = [];
  let level: Level | undefined;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: {
        const end = endOfString(text, i + 1);
        if (level?.expectsKey === true) {
          level.at = keyAt(text, i, end);
          level.expectsKey = false;
          const keys = level.keys as Set<string>;
          if (keys.has(level.at)) refuseKey(what, levels);
          keys.add(level.at);
        }
        i = end;
        break;
      }
      case 0x7b: // {
      case 0x5b: {
        const isObject = text.charCodeAt(i) === 0x7b;
        if (levels.length >= DEPTH_MAX) refuseDepth(what);
        level = { keys: isObject ? new Set() : null, at: 0, expectsKey: isObject };
        levels.push(level);
        break;
      }
      case 0x7d: // }
      case 0x5d:
        levels.pop();
        level = levels.at(-1);
        break;
      case 0x2c:
        if (level === undefined) break;
        if (level.keys === null) level.at = (level.at as number) + 1;
        else level.expectsKey = true;
        break;
      default: {
        const end = endOfNumber(text, i);
        if (end === i) break;
        // Up to 15 digits are exact, and too small or too large only with an exponent.
        if (end - i > 15 || hasExponent(text, i, end)) {
          checkNumber(what, text.slice(i, end), levels);
        }
        i = end - 1;
      }
    }
  }
}

/** Where the string that begins before `from` has its closing quote. */
export function endOfString(text: string, from: number): number {
  let quote = text.indexOf('"', from);
  for (; quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return quote;
  }
  return text.length;
}

/** The key that stands between two quotes. */
export function keyAt(text: string, open: number, close: number): string {
  const raw = text.slice(open + 1, close);
  return raw.includes("\\") ? (JSON.parse(text.slice(open, close + 1)) as string) : raw;
}

/** The end of the run of number characters at `from`; `from` itself when there is none. */
function endOfNumber(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first !== 0x2d && !isDigit(first)) return from;
  let end = from + 1;
  while (isNumberPart(text.charCodeAt(end))) end++;
  return end;
}

/** Whether it is a digit or one of `+ - . E e`; false behind the end of the text. */
function isNumberPart(code: number): boolean {
  return isDigit(code) || (code | 0x20) === 0x65 || code === 0x2b || code === 0x2d || code === 0x2e;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function hasExponent(text: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if ((text.charCodeAt(i) | 0x20) === 0x65) return true;
  return false;
}

function checkNumber(what: string, literal: string, levels: readonly Level[]): void {
  const number = Number(literal);
  let problem: string;
  if (!Number.isFinite(number)) {
    problem = "which is beyond the range of a double";
  } else if (number === 0 && /^-?[0.]*[1-9]/.test(literal)) {
    problem = "which a double cannot tell from 0";
  } else if (/^-?\d+$/.test(literal) && !isKept(literal, number)) {
    problem = `which would be rounded to ${number}`;
  } else {
    return;
  }
  const path = pathOf(levels);
  throw new AgstateError(
    "INVALID_VALUE",
    `${what} has ${path === "" ? "" : `at ${quoteForMessage(path)} `}the number ${shorten(literal)}, ${problem}; write it as a string`,
    { path, literal: shorten(literal) },
  );
}

/** Whether the number is the literal's very value, or is written as the literal again. */
function isKept(literal: string, number: number): boolean {
  return String(number) === literal || BigInt(literal) === BigInt(number);
}

function shorten(literal: string): string {
  return literal.length > 60 ? `${literal.slice(0, 57)}...` : literal;
}

function refuseKey(what: string, levels: readonly Level[]): never {
  const path = pathOf(levels);
  throw new AgstateError(
    "INVALID_VALUE",
    `${what} has the key ${quoteForMessage(path)} twice, and only one of the two would be kept; remove one`,
    { path, key: levels.at(-1)?.at },
  );
}

function refuseDepth(what: string): never {
  throw new AgstateError(
    "LIMIT_EXCEEDED",
    `${what} is nested deeper than ${DEPTH_MAX} levels, the limit`,
    { limit: DEPTH_MAX },
  );
}

function pathOf(levels: readonly Level[]): string {
  return formatPointer(levels.map((level) => level.at));
}
