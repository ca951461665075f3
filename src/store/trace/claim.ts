import type { SpanValue, TraceSpan } from "../../tracing/trace-span.js";

/** What a span says of a step, a commit or a merge. What it does not say is undefined, and is not judged. */
export interface Claim {
  readonly of: "step" | "commit" | "merge";
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly start: number;
  readonly end: number;
  readonly workflow: string;
  readonly agent: string | undefined;
  readonly branch: string | undefined;
  readonly incarnation: string | undefined;
  readonly seq: number | undefined;
  readonly name: string | undefined;
  readonly action: string | undefined;
  readonly status: string | undefined;
  readonly attempt: number | undefined;
  readonly key: string | undefined;
  readonly run: string | undefined;
  /** The commit that a step began at. */
  readonly base: string | undefined;
  readonly success: boolean | undefined;
  /** The commit that it wrote, that seals the step, or that the merge took the branch to. */
  readonly commit: string | undefined;
  /** The commits that were merged. */
  readonly sources: readonly string[] | undefined;
  readonly error: string | undefined;
}

/** Which spans claim something, and what of. */
const CLAIMING: Readonly<Record<string, Claim["of"]>> = {
  execute_step: "step",
  write_checkpoint: "commit",
  merge: "merge",
};

/**
 * What a span claims; undefined for one that claims nothing.
 *
 * @param same gives one and the same text for equal ones: most stand in very many spans
 */
export function claimOf(
  span: TraceSpan,
  workflow: string | null,
  same: (text: string) => string,
): Claim | undefined {
  const of = Object.hasOwn(CLAIMING, span.name) ? CLAIMING[span.name] : undefined;
  if (of === undefined || workflow === null) return undefined;
  const { traceId, spanId, parentSpanId, attributes } = span;
  const text = (key: string) => textIn(span, key);
  const common = (key: string) => {
    const value = textIn(span, key);
    return value === undefined ? undefined : same(value);
  };
  return {
    of,
    traceId,
    spanId,
    parentSpanId,
    start: millisecondsOf(span.start),
    end: millisecondsOf(span.end),
    workflow,
    agent: common("agent.id"),
    branch: common("branch"),
    incarnation: common("agstate.branch.incarnation"),
    seq: numberOf(attributes.get("step.seq")),
    name: common("step.name"),
    action: common("step.action"),
    status: common("step.status"),
    attempt: numberOf(attributes.get("step.attempt")),
    key: text("agstate.step.key"),
    run: common("agstate.run.id"),
    base: text("agstate.step.base"),
    success: of === "merge" ? hasMerged(span) : successIn(span),
    commit: text("checkpoint.commit"),
    sources: of === "merge" ? sourcesIn(span) : undefined,
    error: common("error.type"),
  };
}

function successIn({ attributes }: TraceSpan): boolean | undefined {
  const success = attributes.get("checkpoint.success");
  return typeof success === "boolean" ? success : undefined;
}

/** A merge that did not move its branch claims nothing. */
function hasMerged(span: TraceSpan): true | undefined {
  const status = textIn(span, "agstate.merge.status");
  return status === "merged" || status === "fast-forward" ? true : undefined;
}

/** What was merged; of a commit that was picked only the change is. */
function sourcesIn(span: TraceSpan): readonly string[] | undefined {
  const sources = span.attributes.get("agstate.merge.sources");
  if (textIn(span, "agstate.merge.operation") !== "merge" || !Array.isArray(sources)) return;
  return sources.filter((source) => typeof source === "string");
}

/** An attribute that is a text. */
export function textIn({ attributes }: TraceSpan, key: string): string | undefined {
  const value = attributes.get(key);
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: SpanValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Nanoseconds in milliseconds, with fractions: microseconds are as fine as clocks are. */
export function millisecondsOf(nanoseconds: bigint): number {
  return Number(nanoseconds / 1000n) / 1000;
}

/** A time that passes, in milliseconds, in the unit that reads best. */
export function lasting(ms: number): string {
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  return ms < 120_000 ? `${Math.round(ms / 100) / 10} s` : `${Math.round(ms / 60_000)} min`;
}

/**
 * By how much times of one process may differ, in milliseconds: an SDK reads the clock and the stopwatch one after the other,
 * and a busy system may let others run in between; and clocks are set right.
 */
const GRAIN_MS = 100;

/** By how much a clock that is being set right may run fast or slow, as a share of a span's time: twice what NTP does. */
const DRIFT = 0.001;

/** How finely the times of spans of one process tell, in milliseconds: they begin by the time of day, and go on by a stopwatch. */
export function grainOf(...claims: readonly Claim[]): number {
  return GRAIN_MS + DRIFT * Math.max(...claims.map(({ start, end }) => end - start));
}

/** What to do where times do not fit. */
export const CLOCKS =
  "a clock was set, or the span was changed: see whether the host keeps time (chronyc tracking, timedatectl)";
