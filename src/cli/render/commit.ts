import type { Commit, Ref } from "../../store/types.js";
import { type ReadTrace, traceReader } from "../trace-link.js";
import { escapeLine, escapeText } from "./escape.js";
import type { Paint } from "./paint.js";

/** How many hex digits a shortened id shows. */
const SHORT_ID_DIGITS = 10;

export function shortId(id: string): string {
  return id.slice(0, SHORT_ID_DIGITS);
}

/** The refs that point to each commit. */
export type Decorations = ReadonlyMap<string, readonly Ref[]>;

export function decorationsOf(refs: readonly Ref[]): Decorations {
  const at = new Map<string, Ref[]>();
  for (const ref of refs) {
    const list = at.get(ref.id);
    if (list === undefined) at.set(ref.id, [ref]);
    else list.push(ref);
  }
  for (const list of at.values()) list.sort((a, b) => rank(a) - rank(b));
  return at;
}

function rank(ref: Ref): number {
  if (ref.shortName === "canonical") return 0;
  return ref.name.startsWith("refs/heads/") ? 1 : 2;
}

/** A ref's name in the colour of its kind. */
export function paintRefName(paint: Paint, ref: Pick<Ref, "name" | "shortName">): string {
  const name = escapeLine(ref.shortName);
  if (ref.shortName === "canonical") return paint.canonical(name);
  return ref.name.startsWith("refs/tags/") ? paint.tag(name) : paint.ref(name);
}

function decorate(paint: Paint, refs: readonly Ref[] | undefined): string {
  return (refs ?? []).map((ref) => paintRefName(paint, ref)).join(", ");
}

/** The first line of a message. */
export function subjectOf(message: string): string {
  return escapeLine(message.split("\n", 1)[0] as string);
}

/** A commit on one line: shortened id, refs, subject. */
export function onelineCommit(paint: Paint, commit: Commit, decorations: Decorations): string {
  const refs = decorate(paint, decorations.get(commit.id));
  const subject = subjectOf(commit.message) || paint.dim(stepLine(commit) || "(no message)");
  return `${paint.id(shortId(commit.id))}${refs === "" ? "" : ` (${refs})`} ${subject}`;
}

/** A commit as `git log` shows it, the blank line after it left out. */
export function fullCommit(
  paint: Paint,
  commit: Commit,
  decorations: Decorations,
  readTrace: ReadTrace,
): string[] {
  const lines = [paint.id(`commit ${commit.id}`)];
  const refs = decorate(paint, decorations.get(commit.id));
  if (refs !== "") lines.push(`Refs:   ${refs}`);
  if (commit.parents.length > 1) lines.push(`Merge:  ${commit.parents.map(shortId).join(" ")}`);
  lines.push(`Author: ${escapeLine(commit.author)}`);
  if (commit.committer !== commit.author) lines.push(`Commit: ${escapeLine(commit.committer)}`);
  lines.push(`Date:   ${formatDate(commit.date)}`);
  const step = stepLine(commit);
  if (step !== "") lines.push(`Step:   ${step}`);
  if (commit.inFlight.length > 0) lines.push(`Open:   steps ${commit.inFlight.join(", ")}`);
  if (commit.stateVersion !== null) lines.push(`State:  version ${commit.stateVersion}`);
  lines.push(...traceLines(commit, readTrace));
  if (commit.externalId !== null) lines.push(`Extern: ${escapeLine(commit.externalId)}`);
  const { checkpointReason } = commit;
  if (checkpointReason !== null) lines.push(`Reason: ${escapeLine(checkpointReason)}`);
  if (commit.boundary === true) lines.push("Parent: dropped, as its retention is over");
  if (commit.message !== "") {
    lines.push("");
    for (const line of commit.message.split("\n")) lines.push(`    ${escapeText(line)}`.trimEnd());
  }
  return lines;
}

/** The trace that a commit was written in, by its id; a traceparent that is not W3C's as it is. */
function traceLines({ trace }: Commit, readTrace: ReadTrace): string[] {
  if (trace === null) return [];
  const read = readTrace(trace);
  if (read === null) return [`Trace:  ${escapeLine(trace)}`];
  const { traceId, spanId, flags, url } = read;
  const unsampled = (flags & 1) === 1 ? "" : ", not sampled";
  return [
    `Trace:  ${traceId}, span ${spanId}${unsampled}`,
    ...(url === undefined ? [] : [`        ${escapeLine(url)}`]),
  ];
}

function stepLine(commit: Commit): string {
  const { step } = commit;
  return step === null ? "" : `${step.number} ${step.action}, ${step.status}`;
}

/** A date as `2026-11-29 16:12:02 UTC`. */
export function formatDate(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** How long ago, in the greatest whole unit: `3 minutes ago`. */
export function ago(date: Date, now = Date.now()): string {
  const seconds = Math.max(0, Math.floor((now - date.getTime()) / 1000));
  for (const [unit, size] of UNITS) {
    const n = Math.floor(seconds / size);
    if (n >= 1) return `${n} ${unit}${n === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

const UNITS: readonly (readonly [string, number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** A commit as `--json` shows it. */
export function commitJson(
  commit: Commit,
  decorations?: Decorations,
  readTrace = traceReader(undefined),
): Record<string, unknown> {
  const refs = decorations?.get(commit.id)?.map((ref) => ref.shortName);
  const { traceId, spanId, url } = readTrace(commit.trace) ?? {};
  return {
    ...commit,
    date: commit.date.toISOString(),
    ...(traceId === undefined ? {} : { traceId, spanId }),
    ...(url === undefined ? {} : { traceUrl: url }),
    ...(refs === undefined ? {} : { refs }),
  };
}
