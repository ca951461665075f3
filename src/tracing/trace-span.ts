/** An attribute's value, of each kind that OTLP has: an integer that a double does not hold is a bigint, none at all is null. */
export type SpanValue =
  | string
  | boolean
  | number
  | bigint
  | Uint8Array
  | null
  | readonly SpanValue[]
  | SpanAttributes;

export type SpanAttributes = ReadonlyMap<string, SpanValue>;

/** A span as it was exported, whoever made it. */
export interface TraceSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  /** Undefined of a root. */
  readonly parentSpanId: string | undefined;
  /** The name of the instrumentation that made it. */
  readonly scope: string;
  readonly name: string;
  /** Nanoseconds since the Unix epoch. */
  readonly start: bigint;
  /** The same; 0 of a span that has not ended. */
  readonly end: bigint;
  readonly attributes: SpanAttributes;
}
