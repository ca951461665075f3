/** What a W3C traceparent says. */
export interface TraceParent {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** 8 bits, of which the lowest says that the trace is recorded. */
  readonly flags: number;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a traceparent of this version of W3C's Trace Context, or of a later one, where more may follow the flags.
 *
 * @returns null for text that is none
 * @see https://www.w3.org/TR/trace-context/#traceparent-header
 */
export function readTraceparent(text: string): TraceParent | null {
  const match = FORM.exec(text);
  if (match === null) return null;
  const [, version, traceId = "", spanId = "", flags = "", more] = match;
  if (version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}
