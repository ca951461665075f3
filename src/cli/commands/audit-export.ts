import { AgstateError } from "../../core/errors.js";
import { CursorFile } from "../cursor-file.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly cursor: string;
  readonly otlp?: string;
  readonly follow?: boolean;
}

/** Where OTLP over HTTP takes logs, below an endpoint's URL. */
const LOGS_PATH = "v1/logs";

/** `agstate audit export --cursor FILE`. */
export async function run(
  session: Session,
  _args: readonly string[],
  { cursor, otlp, follow = false }: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const { exportAudit, OTLPLogExporter } = await load();
  const url = otlp === undefined ? undefined : endpoint(otlp);
  const file = new CursorFile(cursor);
  const from = await file.read();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const trail = workflow.audit({
    ...(from !== undefined && { from }),
    follow,
    signal: stop.signal,
  });
  const exporter = new OTLPLogExporter(url === undefined ? {} : { url });
  if (follow) out.note(`Exporting workflow ${escapeLine(workflow.id)}; Ctrl-C ends it.`);
  try {
    const delivered = (position: string) => file.write(position);
    const count = await exportAudit(trail, exporter, { delivered });
    if (out.json) await out.value({ workflow: workflow.id, delivered: count });
    else await out.line(`Delivered ${plural(count, "event")}.`);
  } finally {
    await exporter.shutdown();
  }
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function endpoint(given: string): string {
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol)) {
    // It is not shown: it may have a password.
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "--otlp is not the URL of a collector; give one such as http://localhost:4318",
    );
  }
  return new URL(LOGS_PATH, given.endsWith("/") ? given : `${given}/`).href;
}

/** @throws AgstateError `INVALID_ARGUMENT` where the packages are not installed */
async function load() {
  try {
    const { OTLPLogExporter } = await import("@opentelemetry/exporter-logs-otlp-http");
    const { exportAudit } = await import("../../opentelemetry/index.js");
    return { OTLPLogExporter, exportAudit };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "exporting the audit needs two packages that are not installed; npm install @opentelemetry/sdk-logs @opentelemetry/exporter-logs-otlp-http beside agstate",
      {},
      { cause },
    );
  }
}
