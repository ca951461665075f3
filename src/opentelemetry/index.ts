/**
 * agstate/opentelemetry: what happened to workflows, as OpenTelemetry tells it.
 *
 * @module
 */
export { type AuditExportOptions, exportAudit } from "./audit-logs.js";
