import { shareOf } from "../../pressure/reasons.js";
import { DEFAULT_THRESHOLDS, shareAt } from "../../pressure/thresholds.js";
import type {
  MemoryLevel,
  MemorySource,
  PressureSample,
  Stalls,
  Throttling,
} from "../../pressure/types.js";
import { columns } from "./columns.js";
import { WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";
import { formatBytes, plural } from "./sizes.js";

/** A sample, and what it is held against. */
export interface PressureView {
  readonly sample: PressureSample;
  /** The first sample, from which on events are counted; null for all that the kernel has counted. */
  readonly first: PressureSample | null;
  readonly date: Date;
  readonly pid: number | "self";
  /** The part of a limit from which on agstate acts, above 0 and 1 at most. */
  readonly usage: number;
}

const BAR_WIDTH = 20;

/** What the names and per cents of stalls leave of a line. */
const STALLS_WIDTH = 44;

const ACTS = "  agstate acts";

const SOURCES: Readonly<Record<MemorySource, string>> = {
  "cgroup-v2": "cgroup v2",
  "cgroup-v1": "cgroup v1",
  machine: "the machine",
  heap: "V8",
};

/** A sample as a block of lines of at most 80 columns. */
export function blockOf(view: PressureView, paint: Paint): string[] {
  const { sample, date, pid, usage } = view;
  const whose = pid === "self" ? "this process" : `process ${pid}`;
  const time = date.toISOString().slice(11, 19);
  const ofMachine = percentOf(shareAt(usage, "machine"));
  const legend = `# in use  : page cache  | agstate acts (${percentOf(usage)}; of a machine ${ofMachine})`;
  return [
    `${paint.bold(`Limits on the memory of ${whose}`)}  ${paint.dim(`${time}Z`)}`,
    ...sample.levels.flatMap((level) => levelLines(level, usage, paint)),
    ...(sample.levels.length === 0 ? ["  no limit is known"] : [`  ${paint.dim(legend)}`]),
    paint.bold("Tasks waited, of the last 10 s and 60 s"),
    ...stallLines(sample, paint),
    paint.bold(
      view.first === null ? "Ever since the control group began" : "Since this command began",
    ),
    ...sinceLines(view, paint),
  ];
}

/** A sample as one line: the level nearest to where agstate acts, and what is worth a look beside it. */
export function lineOf(view: PressureView, paint: Paint): string {
  const { sample, date } = view;
  const nearness = (level: MemoryLevel) => shareOf(level) / shareAt(view.usage, level.source);
  const fullest = [...sample.levels].sort((a, b) => nearness(b) - nearness(a))[0];
  const cells = [`${date.toISOString().slice(11, 19)}Z`];
  if (fullest !== undefined) {
    const usage = shareAt(view.usage, fullest.source);
    cells.push(shareText(fullest, usage, paint), amountOf(fullest), SOURCES[fullest.source]);
    if (shareOf(fullest) >= usage) cells.push(paint.bad(ACTS.trim()));
  }
  const waits = [
    ...(sample.memory === null ? [] : [`memory ${waitOf(sample.memory)}`]),
    ...(sample.cpu === null ? [] : [`cpu ${waitOf(sample.cpu)}`]),
  ];
  if (waits.length > 0) cells.push(`waits: ${waits.join(", ")}`);
  const { oomKill, max, high } = eventsSince(view) ?? { oomKill: 0, max: 0, high: 0 };
  if (high > 0) cells.push(`slowed ${high}`);
  if (max > 0) cells.push(`at limit ${max}`);
  if (oomKill > 0) cells.push(paint.bad(`killed ${oomKill}`));
  return cells.join("  ");
}

function levelLines(level: MemoryLevel, threshold: number, paint: Paint): string[] {
  const usage = shareAt(threshold, level.source);
  const { path, source, limitBytes, highBytes, maxBytes, cacheBytes } = level;
  const isHigh = highBytes === limitBytes;
  const other = isHigh ? maxBytes : highBytes;
  const cells = [
    `    ${barOf(level, usage, paint)}`,
    shareText(level, usage, paint),
    amountOf(level),
    ...(other === null ? [] : [`${isHigh ? "max" : "high"} ${formatBytes(other)}`]),
    `cache ${formatBytes(cacheBytes)}`,
  ];
  const kind = `  ${SOURCES[source]}${isHigh ? ", memory.high" : ""}`;
  const acts = shareOf(level) >= usage ? ACTS : "";
  const name = cutFront(escapeLine(path), WIDTH - 2 - kind.length - acts.length);
  return [`  ${paint.path(name)}${paint.dim(kind)}${paint.bad(acts)}`, cells.join("  ")];
}

/** A bar of what is in use and of page cache behind it, with a mark where agstate acts. */
function barOf(level: MemoryLevel, usage: number, paint: Paint): string {
  const cellsOf = (bytes: number) =>
    Math.min(BAR_WIDTH, Math.round((BAR_WIDTH * bytes) / Math.max(level.limitBytes, 1)));
  const used = cellsOf(level.usedBytes);
  const charged = cellsOf(level.usedBytes + level.cacheBytes);
  const mark = Math.min(BAR_WIDTH - 1, Math.floor(BAR_WIDTH * usage));
  const acts = shareOf(level) >= usage;
  const cells = Array.from({ length: BAR_WIDTH }, (_, i) => {
    if (i === mark) return "|";
    if (i < used) return acts ? paint.bad("#") : paint.good("#");
    return i < charged ? paint.dim(":") : " ";
  });
  return `[${cells.join("")}]`;
}

function shareText(level: MemoryLevel, usage: number, paint: Paint): string {
  const ratio = shareOf(level);
  const text = percentOf(ratio).padStart(5);
  return ratio >= usage ? paint.bad(text) : text;
}

function amountOf({ usedBytes, limitBytes }: MemoryLevel): string {
  return `${formatBytes(usedBytes)} of ${formatBytes(limitBytes)}`;
}

/** Per cent of a ratio, rounded down, so that a limit is not said to be met before it is. */
function percentOf(ratio: number): string {
  return `${Math.min(999, Math.floor(ratio * 100 + 1e-9))} %`;
}

function waitOf({ some }: Stalls, last: "avg10" | "avg60" = "avg10"): string {
  return `${some[last].toFixed(1)} %`;
}

function stallLines({ memory, cpu }: PressureSample, paint: Paint): string[] {
  const row = (name: string, stalls: Stalls) => {
    const acts = actsOn(name, stalls) ? ACTS : "";
    const path = cutFront(escapeLine(stalls.path), STALLS_WIDTH - acts.length);
    return [
      `  for ${name}`,
      waitOf(stalls).padStart(7),
      waitOf(stalls, "avg60").padStart(7),
      paint.dim(path) + paint.bad(acts),
    ];
  };
  const rows = [
    ...(memory === null ? [] : [row("memory", memory)]),
    ...(cpu === null ? [] : [row("processors", cpu)]),
  ];
  return rows.length === 0 ? ["  not told by this kernel"] : columns(rows);
}

/** Whether agstate acts on how long tasks waited; for processors it does not, unless it is asked to. */
function actsOn(name: string, { some }: Stalls): boolean {
  const { stall10s } = DEFAULT_THRESHOLDS;
  return name === "memory" && stall10s !== null && some.avg10 >= stall10s;
}

function sinceLines(view: PressureView, paint: Paint): string[] {
  const events = eventsSince(view);
  const held = throttlingSince(view);
  const lines: string[] = [];
  if (events === null) lines.push("  memory: nothing is counted, as no control group has a limit");
  else {
    const { high, max, oom, oomKill } = events;
    const killed = `killed ${oomKill}`;
    lines.push(
      `  memory: slowed ${high}, at the limit ${max}, none left ${oom}, ${oomKill > 0 ? paint.bad(killed) : killed}`,
    );
  }
  if (view.sample.throttling?.periods === 0) lines.push("  processors: not limited");
  else if (held !== null) {
    const ms = Math.round(held.throttledUs / 1000);
    lines.push(
      `  processors: held back in ${held.throttledPeriods} of ${plural(held.periods, "period")}, for ${ms} ms`,
    );
  }
  return lines;
}

/** Events since the first sample; all of them where those are counted at another group than then. */
function eventsSince({ sample, first }: PressureView): PressureSample["events"] {
  const { events } = sample;
  const before = first?.events ?? null;
  if (events === null || before === null || events.path !== before.path) return events;
  return {
    path: events.path,
    high: since(events.high, before.high),
    max: since(events.max, before.max),
    oom: since(events.oom, before.oom),
    oomKill: since(events.oomKill, before.oomKill),
  };
}

function throttlingSince({ sample, first }: PressureView): Throttling | null {
  const { throttling } = sample;
  const before = first?.throttling ?? null;
  if (throttling === null || before === null || throttling.path !== before.path) return throttling;
  return {
    path: throttling.path,
    periods: since(throttling.periods, before.periods),
    throttledPeriods: since(throttling.throttledPeriods, before.throttledPeriods),
    throttledUs: since(throttling.throttledUs, before.throttledUs),
  };
}

function since(now: number, before: number): number {
  return Math.max(0, now - before);
}

/** Cuts a path to a width from the front: its end tells which it is. */
function cutFront(text: string, width: number): string {
  return text.length <= width ? text : `...${text.slice(text.length - width + 3)}`;
}
