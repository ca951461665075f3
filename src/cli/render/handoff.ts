import type { JsonValue } from "../../core/json.js";
import { toleranceText } from "../../staleness/tolerance.js";
import type { Resource } from "../../staleness/types.js";
import type { Listed } from "../../store/handoff/envelope.js";
import type { Handoff } from "../../store/handoff/info.js";
import { columns } from "./columns.js";
import { formatDate } from "./commit.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";
import { inlineJson, readableLines } from "./value.js";

/** How many of each kind are shown; `--json` shows all. */
const SHOWN = 20;
const INDENT = "  ";

/** A hand-off as whoever comes next reads it: what people said, then what agstate knows. */
export function handoffLines(paint: Paint, handoff: Handoff): string[] {
  const { summary, note, facts, resources, fingerprints } = handoff;
  const sections: [string, readonly string[]][] = [
    ["Goal", texts([summary.goal])],
    ["Done", items(summary.done)],
    ["Open", items(summary.open)],
    ["Decisions", items(summary.decisions)],
    ["Next", texts([summary.next])],
    ["Note", texts([note])],
    ["The session", sessionLines(paint, handoff)],
    ["In doubt", listed(facts.inDoubt, ({ number, name }) => [`step ${number}`, short(name, 50)])],
    [
      "Side effects",
      listed(facts.sideEffects, ({ number, name, action, status }) => [
        `step ${number}`,
        short(name, 40),
        action,
        status === "completed" ? status : paint.bad(status),
      ]),
    ],
    [
      "Open conflicts",
      listed(facts.conflicts, ({ merge, path }) => [short(merge, 30), paint.path(short(path, 40))]),
    ],
    [
      "Open reviews",
      listed(facts.reviews, ({ id, name }) => [paint.id(short(id, 36)), short(name, 36)]),
    ],
    ["Relies on", resourceLines(paint, resources)],
    ["Done with", fingerprintLines(fingerprints)],
  ];
  return sections
    .filter(([, lines]) => lines.length > 0)
    .flatMap(([title, lines], i) => [
      ...(i === 0 ? [] : [""]),
      paint.bold(title),
      ...lines.map((line) => `${INDENT}${line}`.trimEnd()),
    ]);
}

function sessionLines(paint: Paint, { branch, by, at, tag, facts, untold }: Handoff): string[] {
  const { steps } = facts;
  const did =
    steps === null
      ? "no step"
      : steps.count === 1
        ? `step ${steps.first}`
        : `${steps.count} steps, ${steps.first} to ${steps.last}`;
  const rows = [
    ["Branch", paint.ref(short(branch, 60))],
    ["Handed off", `${short(by, 40)}, ${formatDate(at)}`],
    ["Tag", paint.tag(short(`tags/${tag}`, 60))],
    ["Work", did],
  ];
  for (const what of untold) rows.push(["Not told", short(what, 64)]);
  return columns(rows);
}

function resourceLines(paint: Paint, resources: readonly Resource[]): string[] {
  const lines = resources.slice(0, SHOWN).flatMap((resource) => {
    const { version, tolerance, steps } = resource;
    const told = [
      version === null ? paint.bad("no version known") : short(version, 40),
      toleranceText(tolerance),
      ...(steps.length > 0 ? [stepsWords(steps)] : []),
    ];
    return [resourceName(paint, resource), `${INDENT}${told.join(", ")}`];
  });
  return more(lines, resources.length);
}

/** A resource as people name it. */
export function resourceName(paint: Paint, { type, id }: Pick<Resource, "type" | "id">): string {
  return `${short(type, 20)} ${paint.path(short(id, WIDTH - 26))}`;
}

/** Numbers of steps in words, those first that fit. */
export function stepsWords(steps: readonly number[]): string {
  const shown = steps.slice(0, 6).join(", ");
  return `${steps.length === 1 ? "step" : "steps"} ${shown}${steps.length > 6 ? ", ..." : ""}`;
}

function fingerprintLines(record: Handoff["fingerprints"]): string[] {
  if (record === null) return [];
  const rows: string[][] = [];
  const put = (kind: string, name: string, value: JsonValue) =>
    rows.push([kind, short(name, 24), inlineJson(value, 40)]);
  if (record.model !== undefined) put("model", "", record.model.value);
  if (record.code !== undefined) put("code", "", record.code.value);
  for (const [name, { value }] of Object.entries(record.tools ?? {})) put("tool", name, value);
  for (const [name, { value }] of Object.entries(record.prompts ?? {})) put("prompt", name, value);
  return more(columns(rows.slice(0, SHOWN)), rows.length);
}

function texts(given: readonly string[]): string[] {
  return given
    .filter((text) => text !== "")
    .flatMap((text) => text.split("\n").flatMap((line) => readable(line, WIDTH - 2)));
}

function items(given: readonly string[]): string[] {
  return given.flatMap((text) =>
    text
      .split("\n")
      .flatMap((line) => readable(line, WIDTH - 4))
      .map((line, i) => `${i === 0 ? "-" : " "} ${line}`),
  );
}

/** A line of a text, folded. */
function readable(line: string, width: number): string[] {
  // Read as a long text is, also where it is short enough to stand in quotes.
  if (line.length < width - 2) return [escapeLine(line)];
  return readableLines(line, width);
}

function listed<T>({ count, items: some }: Listed<T>, row: (item: T) => string[]): string[] {
  return more(columns(some.slice(0, SHOWN).map(row)), count);
}

function more(lines: readonly string[], count: number): string[] {
  return count > SHOWN ? [...lines, `and ${count - SHOWN} more; --json shows them`] : [...lines];
}

function short(text: string, width: number): string {
  return cutTo(escapeLine(text), width);
}
