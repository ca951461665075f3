import {
  type Context,
  context,
  diag,
  ProxyTracerProvider,
  SpanKind,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import {
  type CounterName,
  type HistogramName,
  type MeasuredBy,
  NO_SPAN,
  type Place,
  type Span,
  type SpanOptions,
  type Telemetry,
} from "../core/telemetry.js";
import { VERSION } from "../core/version.js";
import { errorType } from "./error-type.js";
import { Meters } from "./meters.js";
import { type PayloadOptions, type Redactor, redactor } from "./redact.js";
import { SCOPE } from "./scope.js";
import { TracedSpan } from "./traced-span.js";
import { contextOf, parseTraceparent } from "./traceparent.js";

/** Made once, as every span needs one of them. */
const WORK = { kind: SpanKind.INTERNAL };
const CALL = { kind: SpanKind.CLIENT };

export interface TracingOptions {
  /**
   * Puts what steps take and give, and what errors say, into spans, after redaction. Without it no payload enters
   * a span.
   */
  readonly payloads?: PayloadOptions | undefined;
}

/**
 * Tells OpenTelemetry, by its API alone: whoever has registered an SDK in this process gets it, also one that is registered
 * later; where nobody has, almost nothing is done.
 */
export class OpenTelemetry implements Telemetry {
  private readonly meters = new Meters();
  private readonly redact: Redactor | undefined;
  private provider: TracerProvider | undefined;
  private tracer: Tracer | undefined;

  constructor({ payloads }: TracingOptions = {}) {
    this.redact = payloads && redactor(payloads);
  }

  span(name: string, options: SpanOptions = {}): Span {
    const tracer = this.findTracer();
    if (tracer === undefined) return NO_SPAN;
    const { attributes, at, traceparent, links, client } = options;
    // What somebody else's processors and samplers throw must not stop the work.
    try {
      const under =
        contextOf(traceparent) ?? (at as unknown as Context | undefined) ?? context.active();
      const plain = client === true ? CALL : WORK;
      const how =
        links === undefined || links.length === 0
          ? plain
          : { ...plain, links: links.flatMap(linkTo) };
      const span = new TracedSpan(tracer.startSpan(name, how, under), under, this.redact);
      if (attributes !== undefined) span.set(attributes);
      return span;
    } catch (error) {
      diag.error("agstate: a span could not be started", error);
      return NO_SPAN;
    }
  }

  place(): Place {
    return context.active() as unknown as Place;
  }

  at<T>(place: Place, work: () => T): T {
    return context.with(place as unknown as Context, work);
  }

  count(name: CounterName, value: number, by?: MeasuredBy): void {
    this.meters.count(name, value, by);
  }

  measure(name: HistogramName, value: number, by?: MeasuredBy): void {
    this.meters.measure(name, value, by);
  }

  queued(change: number): void {
    this.meters.queued(change);
  }

  get isCounting(): boolean {
    return this.meters.isCounting;
  }

  errorType(error: unknown): string {
    return errorType(error);
  }

  /** The tracer of whoever is registered now; undefined when nobody is. */
  private findTracer(): Tracer | undefined {
    const provider = trace.getTracerProvider();
    if (provider !== this.provider || this.tracer === undefined) {
      this.provider = provider;
      // What stands in until somebody registers has nobody to delegate to before.
      this.tracer =
        provider instanceof ProxyTracerProvider
          ? provider.getDelegateTracer(SCOPE, VERSION)
          : provider.getTracer(SCOPE, VERSION);
    }
    return this.tracer;
  }
}

function linkTo(traceparent: string) {
  const linked = parseTraceparent(traceparent);
  return linked === undefined ? [] : [{ context: linked }];
}
