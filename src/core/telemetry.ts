/**
 * What is told of work under way, as spans and measurements. Nothing here knows who listens: the tracing layer tells
 * OpenTelemetry, and {@link NO_TELEMETRY} nobody.
 */
import type { JsonValue } from "./json.js";

/** Names of spans, and of what they are about; docs/tracing.md says it of each. */
export type SpanName =
  | "execute_step"
  | "write_checkpoint"
  | "run"
  | "resume"
  | "merge"
  | "gc"
  | "retention"
  | "erase"
  | "validate_freshness";

/** Attributes by their names, as docs/tracing.md lists them; none is made of a payload. */
export interface Attributes {
  readonly "workflow.id"?: string;
  /** Whose branch it is; who writes, where a branch is nobody's. */
  readonly "agent.id"?: string;
  readonly branch?: string;
  readonly "step.seq"?: number;
  readonly "step.name"?: string;
  readonly "step.action"?: string;
  readonly "step.status"?: string;
  readonly "step.attempt"?: number;
  readonly "checkpoint.success"?: boolean;
  readonly "checkpoint.commit"?: string;
  readonly "agstate.branch.incarnation"?: string;
  readonly "agstate.run.id"?: string;
  /** How many steps a resumed run had on record. */
  readonly "agstate.run.recorded_steps"?: number;
  /** The commit that the branch was at when the step began. */
  readonly "agstate.step.base"?: string;
  /** In which part of a run; empty in none. */
  readonly "agstate.step.scope"?: string;
  readonly "agstate.step.key"?: string;
  readonly "agstate.commit.bytes"?: number;
  readonly "agstate.commit.objects"?: number;
  /** Nothing had changed, so that nothing was written. */
  readonly "agstate.commit.unchanged"?: boolean;
  /** Why it was made, where nobody's work asked for it. */
  readonly "agstate.commit.reason"?: string;
  readonly "agstate.merge.operation"?: string;
  readonly "agstate.merge.sources"?: readonly string[];
  readonly "agstate.merge.bases"?: readonly string[];
  readonly "agstate.merge.conflicts"?: number;
  readonly "agstate.merge.attempts"?: number;
  readonly "agstate.merge.status"?: string;
  /** The commit with the envelope that is checked. */
  readonly "agstate.freshness.boundary"?: string;
  readonly "agstate.freshness.verdict"?: string;
  readonly "agstate.freshness.resources"?: number;
  readonly "agstate.freshness.stale"?: number;
  readonly "agstate.freshness.unknown"?: number;
  readonly "agstate.freshness.drift"?: number;
  readonly "agstate.removed.commits"?: number;
  readonly "agstate.removed.objects"?: number;
  readonly "agstate.removed.bytes"?: number;
  /** The code of an AgstateError, or the name of another error. */
  readonly "error.type"?: string;
  readonly "gen_ai.operation.name"?: string;
  readonly "gen_ai.agent.id"?: string;
  readonly "gen_ai.conversation.id"?: string;
  readonly "gen_ai.tool.name"?: string;
  readonly "db.system.name"?: string;
  readonly "db.namespace"?: string;
  readonly "db.operation.name"?: string;
  readonly "db.operation.batch.size"?: number;
  readonly "db.response.status_code"?: string;
  readonly "server.address"?: string;
  readonly "server.port"?: number;
}

/** Attributes that hold payload, and are only set where that is allowed, after redaction. */
export type PayloadName =
  | "gen_ai.tool.call.arguments"
  | "gen_ai.tool.call.result"
  | "agstate.step.input"
  | "agstate.step.output";

/** What is counted: exact, whatever is sampled. */
export type CounterName =
  | "agstate.commits"
  | "agstate.commit.failures"
  | "agstate.commit.bytes"
  | "agstate.cas.retries"
  | "agstate.merge.conflicts"
  | "agstate.steps.in_doubt";

/** What is measured, as histograms. */
export type HistogramName =
  | "agstate.commit.duration"
  | "agstate.group.size"
  | "db.client.operation.duration"
  | "db.client.connection.wait_time";

/** Attributes of measurements: few values each. */
export type MeasuredBy = Pick<
  Attributes,
  | "error.type"
  | "step.action"
  | "db.system.name"
  | "db.operation.name"
  | "db.namespace"
  | "db.response.status_code"
  | "server.address"
  | "server.port"
> & { readonly "agstate.operation"?: string };

/** Where in the work of the process something was asked for, so that what is done later is told of as done for that. */
export interface Place {
  readonly "agstate place": never;
}

/** A piece of work that is told of. It ends once; what comes after its end is not told. */
export interface Span {
  /** Whether anybody is told. */
  readonly isRecording: boolean;
  /** Its W3C traceparent; undefined where nobody traces. */
  readonly traceparent: string | undefined;
  /** Within it. */
  readonly place: Place;
  set(attributes: Attributes): void;
  /** Sets what is payload, where that is allowed. */
  payload(name: PayloadName, value: () => JsonValue | undefined): void;
  /** Links it to another span, by its traceparent. */
  link(traceparent: string | undefined): void;
  /** Does work within it. */
  within<T>(work: () => T): T;
  end(): void;
  /**
   * Ends it with what went wrong.
   *
   * @param type what kind of error it is; default what `Telemetry.errorType` says
   */
  fail(error: unknown, type?: string): void;
}

export interface SpanOptions {
  readonly attributes?: Attributes;
  /** Where it was asked for; default here. */
  readonly at?: Place | undefined;
  /** W3C traceparent of what it is part of, in the place of `at`; one that cannot be read counts as none. */
  readonly traceparent?: string | undefined;
  /** W3C traceparents of what it goes on from or is done for as well. */
  readonly links?: readonly string[];
  /** Whether it waits for somebody else, such as a database. */
  readonly client?: boolean;
}

/** Tells of work. Nothing here throws, whoever listens. */
export interface Telemetry {
  /** @param name a {@link SpanName}; a database's call has the name of what it does */
  span(name: SpanName | `${string} ${string}`, options?: SpanOptions): Span;
  place(): Place;
  /** Does work as if it were asked for at a place. */
  at<T>(place: Place, work: () => T): T;
  count(name: CounterName, value: number, by?: MeasuredBy): void;
  /** @param value seconds where it is a duration */
  measure(name: HistogramName, value: number, by?: MeasuredBy): void;
  /** So many more, or fewer, writes wait. */
  queued(change: number): void;
  /** Whether anybody counts and measures. */
  readonly isCounting: boolean;
  /** What kind of error it is, in a word that holds nothing of what was worked on. */
  errorType(error: unknown): string;
}

const NOWHERE = {} as Place;

export const NO_SPAN: Span = {
  isRecording: false,
  traceparent: undefined,
  place: NOWHERE,
  set: () => undefined,
  payload: () => undefined,
  link: () => undefined,
  within: (work) => work(),
  end: () => undefined,
  fail: () => undefined,
};

/** Tells nobody. */
export const NO_TELEMETRY: Telemetry = {
  span: () => NO_SPAN,
  place: () => NOWHERE,
  at: (_place, work) => work(),
  count: () => undefined,
  measure: () => undefined,
  queued: () => undefined,
  isCounting: false,
  errorType: () => "_OTHER",
};

/** Does work within a span of its own, which ends with it. */
export async function spanning<T>(
  telemetry: Telemetry,
  name: SpanName,
  options: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = telemetry.span(name, options);
  try {
    const result = await span.within(() => work(span));
    span.end();
    return result;
  } catch (error) {
    span.fail(error);
    throw error;
  }
}
