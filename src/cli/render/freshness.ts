import type { FingerprintDrift } from "../../staleness/fingerprints.js";
import type { CheckedResource } from "../../staleness/types.js";
import type { Boundary } from "../../store/handoff/boundaries.js";
import type { FreshnessReport } from "../../store/handoff/resume.js";
import { changeLines } from "./changes.js";
import { columns } from "./columns.js";
import { formatDate } from "./commit.js";
import { cutTo } from "./cut.js";
import { escapeLine } from "./escape.js";
import { resourceName, stepsWords } from "./handoff.js";
import type { Paint } from "./paint.js";
import { plural } from "./sizes.js";
import { valueChanges } from "./value-changes.js";

/** How many that are as they were are named; `--json` names all. */
const SAME_SHOWN = 10;
/** How many that are not. */
const OTHERS_SHOWN = 50;
const LABEL = "           ";

/** What was found of everything that work relies on: first what stops it. */
export function freshnessLines(paint: Paint, report: FreshnessReport): string[] {
  const { resources, drift, untold } = report;
  const stops = resources.filter(({ verdict, tolerated }) => verdict !== "fresh" && !tolerated);
  const tolerated = resources.filter((one) => one.verdict !== "fresh" && one.tolerated);
  const same = resources.filter(({ verdict }) => verdict === "fresh");
  return [
    headLine(paint, report),
    verdictLine(paint, report, stops.length),
    ...section(
      [...stops, ...tolerated].slice(0, OTHERS_SHOWN).flatMap((one) => resourceBlock(paint, one)),
    ),
    ...rest(paint, stops.length + tolerated.length - OTHERS_SHOWN, "of these"),
    ...section(
      untold.map((what) => `${paint.bad("unknown")}  ${escapeLine(what)} is not told any more`),
    ),
    ...section(
      same.slice(0, SAME_SHOWN).map((one) => `${paint.good("fresh")}    ${sameWords(paint, one)}`),
    ),
    ...rest(paint, same.length - SAME_SHOWN, "as they were"),
    ...driftLines(paint, drift),
  ];
}

function headLine(paint: Paint, { branch, handoff }: FreshnessReport): string {
  const name = paint.ref(cutTo(escapeLine(branch), 40));
  if (handoff === null) return `${name} is not handed off`;
  const by = `by ${cutTo(escapeLine(handoff.by), 24)}, ${formatDate(handoff.at)}`;
  return `${name} was handed off ${by}`;
}

function verdictLine(paint: Paint, report: FreshnessReport, stops: number): string {
  const { verdict, resources } = report;
  const all = plural(resources.length, "resource");
  if (verdict === "fresh") {
    const tolerated = resources.filter((one) => one.verdict !== "fresh").length;
    const but = tolerated === 0 ? "" : `, ${tolerated} of them within their tolerance`;
    return `${paint.good("fresh")}: ${all} checked${but}`;
  }
  const what =
    stops === 0
      ? ""
      : `: ${stops} of ${all} ${stops === 1 ? "is" : "are"} not known to be as before`;
  return `${paint.bad(verdict)}${what}`;
}

function section(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", ...lines];
}

function rest(paint: Paint, count: number, what: string): string[] {
  return count > 0 ? [paint.dim(`  and ${count} more ${what}; --json names them`)] : [];
}

function resourceBlock(paint: Paint, checked: CheckedResource): string[] {
  const { resource, found, now, shown, why, tolerated } = checked;
  const said = tolerated ? paint.dim("tolerated") : paint.bad(found);
  const pad = " ".repeat(Math.max(0, 9 - (tolerated ? 9 : found.length)));
  const lines = [`${said}${pad}  ${resourceName(paint, resource)}`];
  const { version, steps } = resource;
  if (version !== null) lines.push(`${LABEL}${paint.removed(`- ${text(version)}`)}`);
  if (now !== null && now !== version) lines.push(`${LABEL}${paint.added(`+ ${text(now)}`)}`);
  if (shown !== undefined) lines.push(`${LABEL}now ${text(shown)}`);
  const relied = steps.length === 0 ? "" : `; relied on by ${stepsWords(steps)}`;
  lines.push(`${LABEL}${paint.dim(cutTo(`${escapeLine(why)}${relied}`, 68))}`);
  return lines;
}

function sameWords(paint: Paint, { resource, found }: CheckedResource): string {
  return `${resourceName(paint, resource)}${found === "ignored" ? paint.dim(" (not asked)") : ""}`;
}

function text(value: string): string {
  return cutTo(escapeLine(value), 64);
}

function driftLines(paint: Paint, drift: readonly FingerprintDrift[]): string[] {
  if (drift.length === 0) return [];
  const lines: string[] = [];
  const untold: string[] = [];
  for (const one of drift) {
    const path = [one.kind, ...(one.name === null ? [] : [one.name])];
    if (one.change === "untold") untold.push(path.join(" "));
    else {
      for (const change of valueChanges(one.recorded, one.now, path)) {
        lines.push(...changeLines(paint, change));
      }
    }
  }
  return [
    ...(lines.length === 0 ? [] : ["", paint.bold("What the work is done with has changed")]),
    ...lines.map((line) => `  ${line}`),
    ...(untold.length === 0
      ? []
      : [
          "",
          paint.dim(cutTo(`Not compared: ${escapeLine(untold.join(", "))} (--fingerprints)`, 78)),
        ]),
  ];
}

/** The hand-offs of a branch, and what going on from each would do again. */
export function boundaryLines(paint: Paint, boundaries: readonly Boundary[]): string[] {
  return columns(
    boundaries.map(({ handoff, steps, sideEffects }) => [
      paint.tag(cutTo(escapeLine(handoff.tag), 30)),
      formatDate(handoff.at),
      `${plural(steps, "step")} again`,
      sideEffects.length === 0
        ? paint.dim("no side effect")
        : paint.bad(plural(sideEffects.length, "side effect")),
    ]),
  );
}
