import { type Context, ROOT_CONTEXT, type SpanContext, trace } from "@opentelemetry/api";
import { readTraceparent } from "../core/traceparent.js";

/** Reads a W3C traceparent; undefined when it is none. */
export function parseTraceparent(text: string): SpanContext | undefined {
  const read = readTraceparent(text);
  if (read === null) return undefined;
  return { traceId: read.traceId, spanId: read.spanId, traceFlags: read.flags, isRemote: true };
}

/** A traceparent's text. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** A context in which a traceparent's span is the parent; undefined when there is none such. */
export function contextOf(traceparent: string | undefined): Context | undefined {
  const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  return parent && trace.setSpanContext(ROOT_CONTEXT, parent);
}
