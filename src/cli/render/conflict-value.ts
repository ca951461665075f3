import stringWidth from "string-width";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import type { ConflictValue } from "../../store/merge/types.js";
import { cutBothTo, cutTo } from "./cut.js";
import { escapeLine } from "./escape.js";
import { longGaps } from "./long-gaps.js";
import type { Paint } from "./paint.js";
import { formatBytes, plural } from "./sizes.js";
import { readableLines } from "./value.js";
import { valueChanges } from "./value-changes.js";

/** How many lines of a value, or of what changed in it, are shown; `--json` shows all. */
const LINES_SHOWN = 8;

/** A value of a conflict: what stands beside its label, and lines below that. */
export interface ShownValue {
  readonly head: string;
  readonly below: readonly string[];
}

/** The base of a conflict: a short value as it is, of a long one what it is. */
export function shownBase(paint: Paint, base: ConflictValue, width: number): ShownValue {
  if (!base.exists) {
    const why = base.ambiguous === true ? "(none: the merge bases disagree)" : "(no value)";
    return { head: paint.dim(why), below: [] };
  }
  return { head: inline(base.value, width) ?? paint.dim(summaryOf(base.value)), below: [] };
}

/**
 * A side of a conflict: a short value as it is; of a long one what it changed
 * in the base, or, where the two cannot be compared, its beginning.
 */
export function shownSide(
  paint: Paint,
  base: ConflictValue,
  side: ConflictValue,
  width: number,
): ShownValue {
  if (!side.exists) {
    return { head: paint.dim(base.exists ? "(removed)" : "(no value)"), below: [] };
  }
  const { value } = side;
  const short = inline(value, width);
  if (short !== undefined) return { head: short, below: [] };
  const changed = base.exists ? changedLines(paint, base.value, value, width) : undefined;
  const below = changed ?? limited(paint, readableLines(value, width), (l) => cutTo(l, width));
  return { head: paint.dim(summaryOf(value)), below };
}

function inline(value: JsonValue, width: number): string | undefined {
  if (roughLength(value, width) > width) return undefined;
  const text = escapeLine(JSON.stringify(value));
  return cutTo(text, width) === text ? text : undefined;
}

/** A length that the text of a value surely has, counted no further than needed. */
function roughLength(value: JsonValue, enough: number): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  let length = 0;
  for (const part of Array.isArray(value) ? value : Object.values(value)) {
    length += 1 + roughLength(part as JsonValue, enough - length);
    if (length > enough) break;
  }
  return length;
}

function summaryOf(value: JsonValue): string {
  if (typeof value === "string") {
    const lines = value.split("\n").length;
    const size = formatBytes(Buffer.byteLength(value));
    return lines > 1 ? `a text of ${lines} lines, ${size}` : `a text of ${size}`;
  }
  if (Array.isArray(value)) return `a list of ${plural(value.length, "element")}`;
  return `an object of ${plural(Object.keys(value as object).length, "member")}`;
}

/** What a side changed in the base; undefined where they are not of one type. */
function changedLines(
  paint: Paint,
  base: JsonValue,
  value: JsonValue,
  width: number,
): string[] | undefined {
  if (typeof base === "string" && typeof value === "string") {
    return limited(paint, textLines(paint, base, value, width), (line) => line);
  }
  const comparable =
    (Array.isArray(base) && Array.isArray(value)) || (isJsonObject(base) && isJsonObject(value));
  if (!comparable) return undefined;
  const lines: string[] = [];
  let more = 0;
  for (const change of valueChanges(base, value)) {
    if (lines.length >= LINES_SHOWN) {
      more++;
      continue;
    }
    const short = cutTo(escapeLine(change.path), Math.floor(width / 2));
    const path = paint.path(short);
    const room = width - stringWidth(short) - "+  ".length;
    if (change.kind === "added") {
      lines.push(`${paint.added("+")} ${path} ${paint.added(cut(change.after, room))}`);
    } else if (change.kind === "removed") {
      lines.push(`${paint.removed("-")} ${path} ${paint.removed(cut(change.before, room))}`);
    } else {
      const [before, after] = cutBothTo(json(change.before), json(change.after), width - 4);
      lines.push(`~ ${path}`, paint.removed(`  - ${before}`), paint.added(`  + ${after}`));
    }
  }
  if (more > 0) lines.push(paint.dim(`... ${plural(more, "more change", "more changes")}`));
  return lines;
}

function json(value: JsonValue): string {
  return escapeLine(JSON.stringify(value));
}

function cut(value: JsonValue, width: number): string {
  return cutTo(json(value), width);
}

/** The lines that a side removed from a text and added to it. */
function textLines(paint: Paint, base: string, value: string, width: number): string[] {
  const [a, b] = [base.split("\n"), value.split("\n")];
  const lines: string[] = [];
  for (const gap of longGaps(a, b)) {
    const removed = a.slice(gap.aFrom, gap.aTo).map(escapeLine);
    const added = b.slice(gap.bFrom, gap.bTo).map(escapeLine);
    for (let i = 0; i < Math.min(removed.length, added.length); i++) {
      [removed[i], added[i]] = cutBothTo(removed[i] as string, added[i] as string, width - 2);
    }
    lines.push(...removed.map((line) => paint.removed(`- ${cutTo(line, width - 2)}`)));
    lines.push(...added.map((line) => paint.added(`+ ${cutTo(line, width - 2)}`)));
  }
  return lines;
}

function limited(
  paint: Paint,
  lines: readonly string[],
  shown: (line: string) => string,
): string[] {
  const more = lines.length - LINES_SHOWN;
  const few = lines.slice(0, LINES_SHOWN).map(shown);
  return more > 0 ? [...few, paint.dim(`... ${plural(more, "more line")}`)] : few;
}
