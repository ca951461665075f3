import { isJsonObject, type JsonValue } from "../../core/json.js";
import { isWithheld, type Withheld } from "../../core/withheld.js";
import { shortId } from "./commit.js";
import { escapeLine, escapeText } from "./escape.js";

/** A value as indented JSON that is safe on a terminal and still JSON: unsafe characters become \u escapes. */
export function prettyJson(value: JsonValue): string {
  return escapeText(JSON.stringify(value, null, 2));
}

/** A value on one line of JSON, cut to a number of characters. */
export function inlineJson(value: JsonValue, width: number): string {
  if (isWithheld(value)) return withheldWords(value);
  const text = escapeText(JSON.stringify(value));
  if (text.length <= width) return text;
  const cut = text.slice(0, width - 3);
  // Not in the middle of a character.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}...`;
}

/** Why a value is not told, in place of it. */
function withheldWords({ reason, region, link }: Withheld): string {
  const why = reason === "region" ? `in region ${escapeLine(region ?? "(unnamed)")}` : reason;
  return `(withheld: ${why}, ${link.type} ${shortId(link.id)})`;
}

/** The narrowest column that long texts are folded into. */
const WIDTH_MIN = 24;

/**
 * A value as lines for people: short values as JSON on one line, members by
 * indentation, texts of several lines as they are, folded at `width` columns.
 */
export function readableLines(value: JsonValue, width: number): string[] {
  if (isWithheld(value)) return [withheldWords(value)];
  const inline = escapeText(JSON.stringify(value));
  if (inline.length <= width) return [inline];
  const room = Math.max(width, WIDTH_MIN);
  if (typeof value === "string") return textLines(value, room);
  if (Array.isArray(value)) {
    return value.flatMap((element) => labelled("-", element as JsonValue, room));
  }
  if (isJsonObject(value)) {
    return Object.keys(value).flatMap((key) =>
      labelled(`${escapeLine(key)}:`, value[key] as JsonValue, room),
    );
  }
  return [inline];
}

function labelled(label: string, value: JsonValue, width: number): string[] {
  const lines = readableLines(value, width - label.length - 1);
  if (lines.length === 1 && `${label} ${lines[0]}`.length <= width) return [`${label} ${lines[0]}`];
  return [label, ...readableLines(value, width - 2).map((line) => `  ${line}`)];
}

function textLines(text: string, width: number): string[] {
  return text
    .replace(/\r\n/g, "\n")
    .split("\n")
    .flatMap((line) => fold(escapeText(line), width));
}

/** Folds a line at spaces where there are some, never inside a character. */
function fold(line: string, width: number): string[] {
  const parts: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    let end = space > width / 2 ? space + 1 : width;
    if (/[\ud800-\udbff]/.test(rest[end - 1] as string)) end--;
    parts.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end);
  }
  parts.push(rest);
  return parts;
}
