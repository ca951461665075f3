import stringWidth from "string-width";
import type { JsonObject, JsonValue } from "../../core/json.js";
import { parsePointer } from "../../core/json-pointer.js";
import type { BlameLine } from "../../store/blame.js";
import { columns } from "./columns.js";
import { shortId } from "./commit.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";
import { inlineJson } from "./value.js";

const AUTHOR_WIDTH = 16;
const LABEL_WIDTH = 18;
/** What a value gets even where the other columns are wide. */
const VALUE_MIN_WIDTH = 12;

/** A line of blame with the value that it is about; of a stretch of elements, all of them. */
export interface BlamedValue {
  readonly line: BlameLine;
  readonly values: readonly JsonValue[];
}

/** Finds what lines of blame are about, in the value that was blamed at a pointer. */
export function withValues(
  pointer: string,
  lines: readonly BlameLine[],
  value: JsonValue,
): BlamedValue[] {
  return lines.map((line) => {
    if (line.path === pointer) return { line, values: [value] };
    if (line.from !== null && line.to !== null) {
      return { line, values: (value as readonly JsonValue[]).slice(line.from, line.to) };
    }
    const key = parsePointer(line.path).at(-1) as string;
    return { line, values: [(value as JsonObject)[key] as JsonValue] };
  });
}

/**
 * Lines of blame in columns that fit 80: the commit, who, when, what, and its
 * value. A commit before which the history is not known has a `^`, as in Git.
 */
export function blameLines(
  paint: Paint,
  pointer: string,
  blamed: readonly BlamedValue[],
): string[] {
  const heads = blamed.map(({ line }) => ({
    id: line.boundary ? `^${shortId(line.commit.id).slice(1)}` : shortId(line.commit.id),
    author: cutTo(escapeLine(line.commit.author), AUTHOR_WIDTH),
    date: line.commit.date.toISOString().slice(0, 16).replace("T", " "),
    label: cutTo(escapeLine(labelOf(pointer, line)), LABEL_WIDTH),
  }));
  const widest = (texts: readonly string[]) =>
    texts.reduce((w, t) => Math.max(w, stringWidth(t)), 0);
  let room = WIDTH;
  for (const column of ["id", "author", "date", "label"] as const) {
    room -= widest(heads.map((head) => head[column])) + 2;
  }
  room = Math.max(room, VALUE_MIN_WIDTH);
  return columns(
    heads.map(({ id, author, date, label }, i) => [
      paint.id(id),
      author,
      paint.dim(date),
      paint.path(label),
      valueCell(paint, (blamed[i] as BlamedValue).values, room),
    ]),
  );
}

/** What a line is about, below the pointer that was blamed. */
function labelOf(pointer: string, { path, from, to }: BlameLine): string {
  if (from !== null && to !== null) return to - from === 1 ? `/${from}` : `/${from}-${to - 1}`;
  return path === pointer
    ? path.slice(path.lastIndexOf("/")) || "(all)"
    : path.slice(pointer.length);
}

function valueCell(paint: Paint, values: readonly JsonValue[], room: number): string {
  const [first] = values as readonly [JsonValue];
  if (values.length === 1) return cutTo(inlineJson(first, room), room);
  const more = ` (+${values.length - 1})`;
  const width = room - more.length;
  return cutTo(inlineJson(first, width), width) + paint.dim(more);
}
