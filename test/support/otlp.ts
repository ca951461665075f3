import type { Received } from "./http-service.js";

/** A span as OTLP/JSON has it, its attributes as an object. */
export interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly kind: number;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly scope: { readonly name: string; readonly version?: string };
}

/** A metric as OTLP/JSON has it. */
export interface OtlpMetric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: OtlpPoints;
  readonly histogram?: OtlpPoints;
}

interface OtlpPoints {
  /** 1 is delta, 2 is cumulative. */
  readonly aggregationTemporality: number;
  readonly dataPoints: readonly Readonly<Record<string, unknown>>[];
}

type KeyValues = readonly { readonly key: string; readonly value: Record<string, unknown> }[];

function objectOf(attributes: KeyValues): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [kind, held] = Object.entries(value)[0] ?? [];
      return [key, kind === "intValue" ? Number(held) : held];
    }),
  );
}

/** Every span that came to a receiver of OTLP/JSON. */
export function spansOf(received: readonly Received[]): OtlpSpan[] {
  return received
    .filter(({ path }) => path === "/v1/traces")
    .flatMap(({ body }) => JSON.parse(body).resourceSpans)
    .flatMap(({ resource, scopeSpans }) =>
      scopeSpans.flatMap(({ scope, spans }: { scope: OtlpSpan["scope"]; spans: OtlpSpan[] }) =>
        spans.map((span) => ({
          ...span,
          attributes: objectOf(span.attributes as unknown as KeyValues),
          resource: objectOf(resource.attributes),
          scope,
        })),
      ),
    );
}

/** Every metric that came to a receiver of OTLP/JSON. */
export function metricsOf(received: readonly Received[]): OtlpMetric[] {
  return received
    .filter(({ path }) => path === "/v1/metrics")
    .flatMap(({ body }) => JSON.parse(body).resourceMetrics)
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }: never) => metrics));
}
