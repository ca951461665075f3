import type { JsonValue } from "../../core/json.js";
import type { Change } from "../../merge/diff.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";
import { plural } from "./sizes.js";
import { inlineJson, readableLines } from "./value.js";

/** Values longer than this get lines of their own. */
const INLINE_WIDTH = 60;
/** What is left of 80 columns beside the mark and the indentation of `show`. */
const VALUE_WIDTH = 72;
/** How many lines of a long value are shown. */
const LINES_SHOWN = 12;

/** A change as lines: a mark and the path, then what was (`-`) and what is (`+`). */
export function changeLines(paint: Paint, change: Change): string[] {
  const path = paint.path(change.path === "" ? "(the whole state)" : escapeLine(change.path));
  switch (change.kind) {
    case "added":
      return withValue(`${paint.added("+")} ${path}`, paint.added, "+", change.after);
    case "removed":
      return withValue(`${paint.removed("-")} ${path}`, paint.removed, "-", change.before);
    case "changed":
      return [
        `~ ${path}`,
        ...valueLines(paint.removed, "-", change.before),
        ...valueLines(paint.added, "+", change.after),
      ];
  }
}

function withValue(
  head: string,
  paint: (text: string) => string,
  mark: string,
  value: JsonValue,
): string[] {
  const inline = inlineJson(value, INLINE_WIDTH + 1);
  return inline.length <= INLINE_WIDTH
    ? [`${head}: ${inline}`]
    : [head, ...valueLines(paint, mark, value)];
}

function valueLines(paint: (text: string) => string, mark: string, value: JsonValue): string[] {
  const lines = readableLines(value, VALUE_WIDTH);
  const shown = lines.slice(0, LINES_SHOWN);
  if (lines.length > LINES_SHOWN) {
    shown.push(`... ${plural(lines.length - LINES_SHOWN, "more line", "more lines")}`);
  }
  return shown.map((line) => paint(`    ${mark} ${line}`.trimEnd()));
}
