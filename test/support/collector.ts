import { inspect } from "node:util";
import { DiagLogLevel, diag } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import {
  BatchSpanProcessor,
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { onTestFinished } from "vitest";
import { startHttpService } from "./http-service.js";
import { register } from "./tracing.js";

/** All that left the process, or was about to, while a test ran. */
export interface Exported {
  /** Requests as they came over the wire: first line, headers and body, spans compressed. */
  readonly requests: readonly Buffer[];
  /** What the SDK holds of spans, and what it logs. */
  readonly held: string;
  /** Names of spans, and what their attributes are called. */
  readonly names: ReadonlySet<string>;
}

/** A collector on loopback that the running test owns, and that keeps all bytes which come to it. */
export async function keepRequests(): Promise<{
  readonly url: string;
  readonly requests: () => readonly Buffer[];
}> {
  const { url, received } = await startHttpService((_, response) => {
    response.setHeader("content-type", "application/json").end("{}");
  });
  return { url, requests: () => received.flatMap(({ bytes }) => bytes) };
}

/** Registers OpenTelemetry's real SDK for the running test, with exporters over HTTP to a collector that keeps all. */
export async function exportAll(): Promise<() => Promise<Exported>> {
  const { url: at, requests } = await keepRequests();
  const logged: string[] = [];
  const log = (...said: unknown[]) => void logged.push(inspect(said, { depth: 6 }));
  diag.setLogger(
    { error: log, warn: log, info: log, debug: log, verbose: log },
    { logLevel: DiagLogLevel.ALL, suppressOverrideMessage: true },
  );
  const memory = new InMemorySpanExporter();
  const gzip = { url: `${at}/v1/traces`, compression: "gzip" as never };
  const tracers = new NodeTracerProvider({
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter(gzip), { maxQueueSize: 1e5 }),
      new SimpleSpanProcessor(memory),
    ],
  });
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: `${at}/v1/metrics` }),
    exportIntervalMillis: 3_600_000,
  });
  const meters = new MeterProvider({ readers: [reader] });
  onTestFinished(() => diag.disable());
  register(tracers, meters);
  return async () => {
    await Promise.all([tracers.forceFlush(), meters.forceFlush()]);
    const spans = memory.getFinishedSpans();
    const told = spans.map(({ name, attributes, events, links, status, resource, kind }) => ({
      ...{ name, attributes, events, links, status, kind },
      resource: resource.attributes,
    }));
    return {
      requests: requests(),
      held: `${inspect(told, { depth: Infinity, maxArrayLength: null, maxStringLength: null })}\n${logged.join("\n")}`,
      names: new Set(spans.flatMap(({ name, attributes }) => [name, ...Object.keys(attributes)])),
    };
  };
}
