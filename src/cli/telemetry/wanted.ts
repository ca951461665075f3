/** Variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a command line's own telemetry goes: a URL for each kind that is exported. */
export interface Wanted {
  readonly traces: string | undefined;
  readonly metrics: string | undefined;
}

/**
 * What OpenTelemetry's variables ask for; null where they ask for nothing, as they usually do.
 *
 * Unlike the SDK's, an endpoint that is not named is none: a command that nobody wants to trace must not look for a collector.
 */
export function wantedOf(environment: Environment): Wanted | null {
  if (environment.OTEL_SDK_DISABLED?.trim().toLowerCase() === "true") return null;
  const endpointOf = (signal: "TRACES" | "METRICS"): string | undefined => {
    const exporters = environment[`OTEL_${signal}_EXPORTER`]?.trim() || "otlp";
    if (!exporters.split(",").some((name) => name.trim() === "otlp")) return undefined;
    const named = environment[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]?.trim();
    return named || environment.OTEL_EXPORTER_OTLP_ENDPOINT?.trim() || undefined;
  };
  const [traces, metrics] = [endpointOf("TRACES"), endpointOf("METRICS")];
  return traces === undefined && metrics === undefined ? null : { traces, metrics };
}

/** Why nothing can come of what is wanted, whatever the collector does; undefined where it can. */
export function misfitOf(
  { traces, metrics }: Wanted,
  environment: Environment,
): string | undefined {
  for (const url of [traces, metrics]) {
    if (url === undefined || /^https?:\/\/[^/]/i.test(url)) continue;
    // Which may hold a password.
    return "OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector; give one such as http://localhost:4318";
  }
  const signals = [traces && "TRACES_", metrics && "METRICS_"].filter(Boolean);
  for (const signal of signals) {
    const protocol =
      environment[`OTEL_EXPORTER_OTLP_${signal}PROTOCOL`] ||
      environment.OTEL_EXPORTER_OTLP_PROTOCOL;
    if (protocol?.trim() !== "grpc") continue;
    return "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and agstate sends OTLP over HTTP; set it to http/json, and the endpoint to the collector's port for HTTP, usually 4318";
  }
  return undefined;
}
