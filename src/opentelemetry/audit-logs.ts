import {
  LoggerProvider,
  type LoggerProviderConfig,
  type LogRecordExporter,
  type ReadableLogRecord,
} from "@opentelemetry/sdk-logs";
import { AgstateError } from "../core/errors.js";
import type { AuditTrail } from "../store/audit/trail.js";
import type { AuditEvent } from "../store/audit/types.js";

export interface AuditExportOptions {
  /**
   * Is given the trail's position after each batch that was taken, and waited for: kept somewhere, a trail `from` there goes
   * on where delivery stopped.
   */
  readonly delivered: (cursor: string) => void | Promise<void>;
  /** What the records say of who tells them; default the SDK's own. */
  readonly resource?: LoggerProviderConfig["resource"];
  /** The most events in a batch; default 500. */
  readonly batch?: number;
}

const BATCH = 500;

/** Severity numbers of OpenTelemetry's log data model. */
const SEVERITY = { info: { number: 9, text: "INFO" }, warn: { number: 13, text: "WARN" } } as const;

/**
 * Sends what a trail tells to an exporter of OpenTelemetry's logs, such as `OTLPLogExporter`, a batch after the other. A batch
 * that the exporter does not take ends it with an error, and nothing after it was sent; begun again from the last position it
 * sends that batch again. So each event is delivered at least once, and has in `agstate.entry` what tells it apart.
 *
 * The exporter is the caller's to shut down.
 *
 * @returns how many events were delivered
 * @throws AgstateError `STORE_UNAVAILABLE` when the exporter fails, and what reading the trail raises
 */
export async function exportAudit(
  trail: AuditTrail,
  exporter: LogRecordExporter,
  options: AuditExportOptions,
): Promise<number> {
  const { resource, batch = BATCH } = options;
  const made: ReadableLogRecord[] = [];
  const provider = new LoggerProvider({
    ...(resource && { resource }),
    processors: [
      {
        onEmit: (record) => void made.push(record),
        forceFlush: async () => {},
        shutdown: async () => {},
      },
    ],
  });
  const logger = provider.getLogger("agstate");
  let count = 0;
  const send = async () => {
    if (made.length === 0) return;
    await exported(exporter, made.splice(0));
    await options.delivered(trail.cursor);
  };
  for await (const event of trail) {
    logger.emit(recordOf(event));
    count++;
    // Nothing waits in memory for what may come much later.
    if (trail.ready === 0 || made.length >= batch) await send();
  }
  await send();
  return count;
}

function exported(exporter: LogRecordExporter, records: ReadableLogRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    exporter.export(records, ({ code, error }) => {
      if (code === 0) resolve();
      else reject(refused(records.length, error));
    });
  });
}

function refused(count: number, cause: Error | undefined): AgstateError {
  return new AgstateError(
    "STORE_UNAVAILABLE",
    `the exporter did not take ${count} events of the audit: ${cause?.message ?? "it did not say why"}; what came before is delivered, run it again`,
    { count },
    { cause },
  );
}

/** An event as a log record; of its attributes those that are none are left out. */
function recordOf(event: AuditEvent) {
  const severity = event.kind === "refused" ? SEVERITY.warn : SEVERITY.info;
  const attributes = {
    "agstate.workflow": event.workflow,
    "agstate.kind": event.kind,
    "agstate.ref": event.ref,
    "agstate.seq": event.seq,
    "agstate.entry": event.hash,
    "agstate.actor": event.actor,
    "agstate.reason": event.reason,
    "agstate.old": event.old,
    "agstate.new": event.new,
    "agstate.traceparent": event.trace,
    "agstate.steps": event.steps === null ? null : event.steps.map((step) => JSON.stringify(step)),
    "agstate.facts": event.facts === null ? null : JSON.stringify(event.facts),
  };
  return {
    eventName: `agstate.audit.${event.kind}`,
    timestamp: event.date,
    severityNumber: severity.number,
    severityText: severity.text,
    body: `${event.kind} ${event.shortName} by ${event.actor}: ${event.reason}`,
    attributes: Object.fromEntries(
      Object.entries(attributes).filter(([, value]) => value !== null),
    ),
  };
}
