import { Option } from "commander";
import { AgstateError } from "../core/errors.js";
import { readTraceparent, type TraceParent } from "../core/traceparent.js";

/** What a traceparent says, and where its trace can be looked at. */
export interface Trace extends TraceParent {
  /** Where a template for it was given. */
  readonly url: string | undefined;
}

/** Reads traceparents of commits; null for what is none of W3C's. */
export type ReadTrace = (trace: string | null) => Trace | null;

/** The option that says where traces are looked at. */
export function traceUrlOption(): Option {
  return new Option(
    "--trace-url <template>",
    "where a trace is looked at: a URL with {traceId}, and {spanId} if it should be",
  ).env("AGSTATE_TRACE_URL");
}

/**
 * Makes the reader of traceparents, that fills a template's `{traceId}` and `{spanId}` in.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a template that gives no URL of a trace
 */
export function traceReader(template: string | undefined): ReadTrace {
  if (!template) return (trace) => read(trace, () => undefined);
  const filled = ({ traceId, spanId }: TraceParent) =>
    template.replaceAll("{traceId}", traceId).replaceAll("{spanId}", spanId);
  const sample = filled({ traceId: "0".repeat(32), spanId: "0".repeat(16), flags: 0 });
  if (!template.includes("{traceId}") || !URL.canParse(sample)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `--trace-url (AGSTATE_TRACE_URL) ${template} is no URL with {traceId} in it; give one such as https://traces.example/trace/{traceId}`,
      { template },
    );
  }
  return (trace) => read(trace, filled);
}

function read(
  trace: string | null,
  urlOf: (parent: TraceParent) => string | undefined,
): Trace | null {
  const parent = trace === null ? null : readTraceparent(trace);
  return parent === null ? null : { ...parent, url: urlOf(parent) };
}
