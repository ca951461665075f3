import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-node";
import { readTrace, type SpanValue, type TraceSpan } from "../../src/index.js";
import { all } from "../support/stores.js";

/** What an exporter writes of spans, as it is read. */
export async function exported(spans: readonly ReadableSpan[]): Promise<TraceSpan[]> {
  async function* file() {
    yield JsonTraceSerializer.serializeRequest([...spans]) ?? "";
  }
  return all(readTrace(file()));
}

/** Which spans are meant: by name, and by attributes that they have. */
export type Which = (span: TraceSpan) => boolean;

export function which(name: string, attributes: Readonly<Record<string, SpanValue>> = {}): Which {
  return (span) =>
    span.name === name &&
    Object.entries(attributes).every(([key, value]) => span.attributes.get(key) === value);
}

/** The one span that is meant. */
export function only(spans: readonly TraceSpan[], meant: Which): TraceSpan {
  const [span, ...more] = spans.filter(meant);
  if (span === undefined || more.length > 0) throw new Error(`${more.length} more, or none`);
  return span;
}

/** A span with attributes changed; undefined takes one away. */
export function changed(
  span: TraceSpan,
  attributes: Readonly<Record<string, SpanValue | undefined>>,
  fields: Partial<TraceSpan> = {},
): TraceSpan {
  const all = new Map(span.attributes);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) all.delete(key);
    else all.set(key, value);
  }
  return { ...span, ...fields, attributes: all };
}

/** Spans of which the meant ones are put in others' place. */
export function edited(
  spans: readonly TraceSpan[],
  meant: Which,
  edit: (span: TraceSpan) => TraceSpan | TraceSpan[],
): TraceSpan[] {
  if (!spans.some(meant)) throw new Error("no such span");
  return spans.flatMap((span) => (meant(span) ? edit(span) : span));
}

/** A span and all that is part of it. */
export function withParts(spans: readonly TraceSpan[], root: TraceSpan): TraceSpan[] {
  const parts = spans.filter(
    ({ traceId, parentSpanId }) => traceId === root.traceId && parentSpanId === root.spanId,
  );
  return [root, ...parts.flatMap((part) => withParts(spans, part))];
}

/** A span at another time. */
export function shifted(span: TraceSpan, by: bigint): TraceSpan {
  return { ...span, start: span.start + by, end: span.end + by };
}

let drawn = 0;

/** A span id that no span has. */
export function newId(): string {
  return `f${(++drawn).toString(16).padStart(15, "0")}`;
}

/** Spans as OTLP JSON, as a collector would write them. */
export function otlpText(spans: readonly TraceSpan[]): string {
  const scopes = [...new Set(spans.map(({ scope }) => scope))];
  const scopeSpans = scopes.map((name) => ({
    scope: { name },
    spans: spans
      .filter(({ scope }) => scope === name)
      .map(({ start, end, attributes, scope: _, ...span }) => ({
        ...span,
        startTimeUnixNano: `${start}`,
        endTimeUnixNano: `${end}`,
        attributes: [...attributes].map(([key, value]) => ({ key, value: anyValue(value) })),
      })),
  }));
  return JSON.stringify({ resourceSpans: [{ scopeSpans }] });
}

function anyValue(value: SpanValue): unknown {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number" && Number.isInteger(value)) return { intValue: `${value}` };
  if (typeof value === "number") return { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  throw new Error("no test needs this");
}
