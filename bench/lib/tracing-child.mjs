/**
 * Commits to `memory:` in a process of its own, told of by OpenTelemetry as it is asked: `off` without our telling, `none` where
 * no SDK is registered, `apart` where one is, and is told nothing by us, `batch` with the SDK's batch processor, every span sampled, and an exporter that drops what it gets; `otlp`
 * with one that sends it to a collector.
 */
import { metrics, trace } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { openStore } from "../../dist/index.js";
import { stateSource } from "./states.mjs";

const { kind, steps, way, measures, endpoint } = JSON.parse(process.argv[2]);
if (way !== "off" && way !== "none") {
  const dropping = { export: (_, done) => done({ code: 0 }), shutdown: async () => {} };
  const exporter =
    way === "otlp" ? new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }) : dropping;
  // As large as the spans of a round, so that none is dropped before it is exported.
  const processor = new BatchSpanProcessor(exporter, { maxQueueSize: 16_384 });
  new NodeTracerProvider({ spanProcessors: [processor] }).register();
  // From the first span of anybody on, Node.js tells the context manager of every promise.
  trace.getTracer("bench").startActiveSpan("first", (span) => span.end());
}
if (measures) {
  const exporter = new OTLPMetricExporter({ url: `${endpoint}/v1/metrics` });
  const readers = [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 10_000 })];
  metrics.setGlobalMeterProvider(new MeterProvider({ readers }));
}

const store = await openStore(
  "memory:",
  way === "off" || way === "apart" ? { tracing: false } : {},
);
const states = stateSource(kind, 2);
let round = 0;

const answers = {
  async round() {
    // A new workflow each time, and the last one's states go with it.
    const workflow = await store.createWorkflow(`w${round++}`, { state: {} });
    const branch = await workflow.branch({ agent: "agent", branch: "main" });
    const given = Array.from({ length: steps }, states);
    const times = [];
    const before = process.cpuUsage();
    for (const state of given) {
      const since = performance.now();
      await branch.commit({ state });
      times.push(performance.now() - since);
    }
    const { user, system } = process.cpuUsage(before);
    return { times, cpu: (user + system) / 1000 };
  },
};

process.on("message", async (message) => {
  if (message === "close") process.exit(0);
  process.send(await answers[message]());
});
process.send("ready");
