import { type Context, ROOT_CONTEXT, type SpanContext, trace } from "@opentelemetry/api";

/** The instrumentation scope that all spans and measurements are of. */
export const SCOPE = "agstate";

/** Version 00, and as the recommendation asks, later ones by what they share with it. */
const FORM = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

/**
 * Reads a W3C traceparent; undefined when it is none.
 *
 * @see https://www.w3.org/TR/trace-context/#traceparent-header
 */
export function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = FORM.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  if (text.startsWith("00") && text.length !== 55) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
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
