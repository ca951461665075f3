import { context, metrics, propagation, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { onTestFinished } from "vitest";

/** What OpenTelemetry's own SDK was told while a test ran. */
export interface Told {
  /** Spans that have ended, in that order. */
  spans(): ReadableSpan[];
  named(name: string): ReadableSpan[];
  /** The sum of a counter, or the count of a histogram, over what has these attributes. */
  total(metric: string, attributes?: Record<string, unknown>): Promise<number>;
  /** The sum of what a histogram has measured. */
  sum(metric: string): Promise<number>;
  clear(): void;
}

/** Makes providers those of this process until the running test ends. */
export function register(tracers: NodeTracerProvider, meters: MeterProvider): void {
  tracers.register();
  metrics.setGlobalMeterProvider(meters);
  onTestFinished(async () => {
    trace.disable();
    context.disable();
    propagation.disable();
    metrics.disable();
    await Promise.all([tracers.shutdown(), meters.shutdown()]);
  });
}

/** Registers the real SDK for the running test: every span is kept in memory. */
export function tellOpenTelemetry({ sampler }: { sampler?: Sampler } = {}): Told {
  const exporter = new InMemorySpanExporter();
  const tracers = new NodeTracerProvider({
    ...(sampler && { sampler }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: measured,
    exportIntervalMillis: 3_600_000,
  });
  const meters = new MeterProvider({ readers: [reader] });
  register(tracers, meters);
  const points = async (metric: string) => {
    await reader.forceFlush();
    const scopes = measured.getMetrics().at(-1)?.scopeMetrics ?? [];
    return scopes
      .flatMap((scope) => scope.metrics)
      .filter(({ descriptor }) => descriptor.name === metric)
      .flatMap(({ dataPoints }) => dataPoints as { attributes: object; value: unknown }[]);
  };
  return {
    spans: () => exporter.getFinishedSpans(),
    named: (name) => exporter.getFinishedSpans().filter((span) => span.name === name),
    async total(metric, attributes = {}) {
      let total = 0;
      for (const { attributes: own, value } of await points(metric)) {
        const has = Object.entries(attributes).every(
          ([key, wanted]) => (own as Record<string, unknown>)[key] === wanted,
        );
        if (has) total += typeof value === "number" ? value : (value as { count: number }).count;
      }
      return total;
    },
    async sum(metric) {
      const values = (await points(metric)).map(({ value }) => (value as { sum: number }).sum);
      return values.reduce((a, b) => a + b, 0);
    },
    clear: () => exporter.reset(),
  };
}

/** What a span is below; undefined when it begins a trace. */
export function parentOf(
  span: ReadableSpan,
  all: readonly ReadableSpan[],
): ReadableSpan | undefined {
  const id = span.parentSpanContext?.spanId;
  return all.find((other) => other.spanContext().spanId === id);
}

/** A W3C traceparent of a span. */
export function traceparentOf(span: ReadableSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-0${traceFlags}`;
}
