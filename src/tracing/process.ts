/**
 * What a program of our own, rather than somebody's application, tells OpenTelemetry of itself: the span of all that it does, and
 * where the SDK's own complaints go.
 */
import {
  type Context,
  context,
  type DiagLogFunction,
  DiagLogLevel,
  diag,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { VERSION } from "../core/version.js";
import { SCOPE } from "./scope.js";

/** The variables that hold the context that a process is started in, by the names that propagators know. */
const CARRIER = { traceparent: "TRACEPARENT", tracestate: "TRACESTATE" } as const;

/** How a process ended. */
export interface ProcessEnd {
  readonly exitCode: number;
  /** A stable word for what went wrong; needed where the exit code is not 0. */
  readonly errorType: string | undefined;
}

/** The span of a whole process, by OpenTelemetry's conventions for command lines. */
export class ProcessSpan {
  private readonly span: Span;
  private readonly within: Context;

  /**
   * Begins it, as part of the trace that the environment tells of, if it tells of one.
   *
   * @param name of the program; {@link name} says more of what it does
   * @param executable the file name of what runs
   */
  constructor(
    name: string,
    executable: string,
    pid: number,
    environment: Readonly<Record<string, string | undefined>>,
  ) {
    const carrier = Object.fromEntries(
      Object.entries(CARRIER).map(([key, variable]) => [key, environment[variable]]),
    );
    const parent = propagation.extract(ROOT_CONTEXT, carrier);
    const attributes = { "process.executable.name": executable, "process.pid": pid };
    const tracer = trace.getTracer(SCOPE, VERSION);
    this.span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, parent);
    this.within = trace.setSpan(parent, this.span);
  }

  /** Names it by what is done, of which there must be few. */
  name(name: string): void {
    this.span.updateName(name);
  }

  /** Does work as its child. */
  do<T>(work: () => T): T {
    return context.with(this.within, work);
  }

  end({ exitCode, errorType }: ProcessEnd): void {
    this.span.setAttribute("process.exit.code", exitCode);
    if (errorType !== undefined) {
      this.span.setAttribute("error.type", errorType);
      this.span.setStatus({ code: SpanStatusCode.ERROR, message: errorType });
    }
    this.span.end();
  }
}

/** Makes a provider the one by which all of this process measures. */
export function measureBy(provider: MeterProvider): void {
  metrics.setGlobalMeterProvider(provider);
}

const LEVELS: Readonly<Record<string, DiagLogLevel>> = {
  none: DiagLogLevel.NONE,
  error: DiagLogLevel.ERROR,
  warn: DiagLogLevel.WARN,
  info: DiagLogLevel.INFO,
  debug: DiagLogLevel.DEBUG,
  verbose: DiagLogLevel.VERBOSE,
  all: DiagLogLevel.ALL,
};

/**
 * Has OpenTelemetry's own messages written, a line each.
 *
 * @param level one of none, error, warn, info, debug, verbose and all; nothing is written at any other
 */
export function diagnoseTo(write: (line: string) => void, level: string): void {
  const logLevel = LEVELS[level.toLowerCase()] ?? DiagLogLevel.NONE;
  const at =
    (name: string): DiagLogFunction =>
    (message, ...more) =>
      write(`opentelemetry ${name}: ${[message, ...more].map(textOf).join(" ")}`);
  const logger = {
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    debug: at("debug"),
    verbose: at("verbose"),
  };
  diag.setLogger(logger, { logLevel, suppressOverrideMessage: true });
}

/** Says something where OpenTelemetry's own messages go. */
export function complain(text: string): void {
  diag.warn(text);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.message;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Such as spans, which lead to what made them and back.
    return Object.prototype.toString.call(value);
  }
}
