/** What a W3C traceparent says. */
export interface TraceParent {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether the trace was recorded where it was written. */
  readonly sampled: boolean;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a traceparent, of this or a later version of W3C's Trace Context (sections 3.2 and 4.3), where more may follow the flags.
 *
 * @returns null for text that is none
 */
export function parseTraceparent(text: string): TraceParent | null {
  const match = FORM.exec(text);
  if (match === null) return null;
  const [, version, traceId, spanId, flags, more] = match as unknown as string[];
  if (version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(traceId as string) || /^0+$/.test(spanId as string)) return null;
  const sampled = (Number.parseInt(flags as string, 16) & 1) === 1;
  return { traceId: traceId as string, spanId: spanId as string, sampled };
}
