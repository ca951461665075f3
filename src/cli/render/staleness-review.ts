import { isJsonObject, type JsonValue } from "../../core/json.js";
import type { ReviewInfo } from "../../store/reviews/review.js";
import { cutTo } from "./cut.js";
import { escapeLine } from "./escape.js";
import { resourceName, stepsWords } from "./handoff.js";
import type { Paint } from "./paint.js";
import { inlineJson } from "./value.js";

/** What somebody is asked who decides whether work may go on though not all is as it was. */
export function stalenessLines(paint: Paint, { subject: { input } }: ReviewInfo): string[] {
  if (!isJsonObject(input)) return [];
  const lines: string[] = [];
  for (const one of listIn(input.resources)) {
    const { type, id, found, was, now, steps } = one;
    lines.push(
      `  ${resourceName(paint, { type: told(type), id: told(id) })} ${paint.bad(told(found))}`,
    );
    if (typeof was === "string") lines.push(`    ${paint.removed(`- ${short(was)}`)}`);
    if (typeof now === "string") lines.push(`    ${paint.added(`+ ${short(now)}`)}`);
    if (Array.isArray(steps) && steps.length > 0) {
      lines.push(`    ${paint.dim(`relied on by ${stepsWords(steps as number[])}`)}`);
    }
  }
  if (lines.length > 0) lines.unshift("", paint.bold("Not as it was"));
  const drift = listIn(input.drift).map(
    ({ kind, name, change, now }) =>
      `  ${told(kind)} ${short(told(name ?? ""))} ${told(change)}${now === undefined ? "" : ` ${inlineJson(now, 40)}`}`,
  );
  if (drift.length > 0) lines.push("", paint.bold("What it was done with"), ...drift);
  const untold = Array.isArray(input.untold) ? (input.untold as JsonValue[]) : [];
  if (untold.length > 0) {
    lines.push(
      "",
      paint.bold("Not told any more"),
      ...untold.map((what) => `  ${short(told(what))}`),
    );
  }
  return lines;
}

function listIn(value: JsonValue | undefined) {
  return Array.isArray(value) ? (value as JsonValue[]).filter(isJsonObject) : [];
}

function told(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}

function short(value: string): string {
  return cutTo(escapeLine(value), 70);
}
