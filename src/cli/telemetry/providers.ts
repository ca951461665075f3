import { VERSION } from "../../core/version.js";
import { measureBy } from "../../tracing/process.js";
import type { Environment, Wanted } from "./wanted.js";

/** What an export ends with. */
export interface Provider {
  /** Sends what is left; settles when it was delivered, or given up. */
  readonly shutdown: () => Promise<void>;
  readonly url: string;
}

/**
 * Makes OpenTelemetry's SDK the one that this process tells of its work, and gives what is to be shut down at its end.
 *
 * Headers, limits, sampler, batches and certificates are as the variables that the SDK reads by itself say.
 *
 * @throws an error with the code `ERR_MODULE_NOT_FOUND` where its packages are not installed
 */
export async function startProviders(
  { traces, metrics }: Wanted,
  environment: Environment,
): Promise<Provider[]> {
  const [node, resources, traceOtlp, meters, metricOtlp] = await Promise.all([
    import("@opentelemetry/sdk-trace-node"),
    import("@opentelemetry/resources"),
    traces === undefined ? undefined : import("@opentelemetry/exporter-trace-otlp-http"),
    metrics === undefined ? undefined : import("@opentelemetry/sdk-metrics"),
    metrics === undefined ? undefined : import("@opentelemetry/exporter-metrics-otlp-http"),
  ]);
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = resources;
  const own = resourceFromAttributes({ "service.name": "agstate", "service.version": VERSION });
  const named = detectResources({ detectors: [envDetector] });
  const resource = defaultResource().merge(own).merge(named);
  const providers: Provider[] = [];
  if (traces !== undefined && traceOtlp !== undefined) {
    const spanProcessors = [new node.BatchSpanProcessor(new traceOtlp.OTLPTraceExporter())];
    const provider = new node.NodeTracerProvider({ resource, spanProcessors });
    provider.register();
    providers.push({ shutdown: () => provider.shutdown(), url: traces });
  }
  if (metrics !== undefined && meters !== undefined && metricOtlp !== undefined) {
    const { OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: preference } = environment;
    // Commands come one after the other under one name: what each of them adds can be added up, what each counted from 0 cannot.
    const temporalityPreference = metricOtlp.AggregationTemporalityPreference.DELTA;
    const exporter = new metricOtlp.OTLPMetricExporter(preference ? {} : { temporalityPreference });
    const interval = Number(environment.OTEL_METRIC_EXPORT_INTERVAL);
    const reader = new meters.PeriodicExportingMetricReader({
      exporter,
      ...(interval > 0 && { exportIntervalMillis: interval }),
    });
    const provider = new meters.MeterProvider({ resource, readers: [reader] });
    measureBy(provider);
    providers.push({ shutdown: () => provider.shutdown(), url: metrics });
  }
  return providers;
}
