/** Goes on with a run under OpenTelemetry's real SDK, which sends every span that ends to a collector at once. */
import { metrics } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { openStore } from "../../../dist/index.js";
import { args, say } from "../../fault/children/lines.mjs";

const exporter = new OTLPTraceExporter({ url: `${args.endpoint}/v1/traces` });
const processor = new SimpleSpanProcessor(exporter);
const resource = resourceFromAttributes({ "service.name": "booker" });
const tracers = new NodeTracerProvider({ resource, spanProcessors: [processor] });
tracers.register();
const meters = new MeterProvider({
  resource,
  readers: [
    new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter({ url: `${args.endpoint}/v1/metrics` }),
      exportIntervalMillis: 3_600_000,
    }),
  ],
});
metrics.setGlobalMeterProvider(meters);

const store = await openStore(args.url, { create: false });
const workflow = await store.workflow("trip");
const branch = await workflow.branch({ agent: "booker", branch: "1" });
try {
  await workflow.run(branch, async (ctx) => {
    await ctx.step({ name: "search", action: "write" }, async () => "found");
    await ctx.step({ name: "pay", action: "execute", inDoubt: args.inDoubt }, async () => {
      await processor.forceFlush();
      say("paying");
      if (args.hang) await new Promise((resolve) => setTimeout(resolve, 3_600_000));
      return "paid";
    });
  });
  say("ended");
} catch (error) {
  say(`stopped ${error.code}`);
}
await store.close();
await tracers.shutdown();
await meters.shutdown();
