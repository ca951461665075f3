import type { GcReport } from "../../store/gc/collect.js";
import { graceMsOf } from "../duration.js";
import { escapeLine } from "../render/escape.js";
import { formatBytes, plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly dryRun?: boolean;
  readonly grace?: string;
}

/** `agstate gc`: collects the named workflow, or every workflow of the store. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const dryRun = options.dryRun ?? false;
  const grace = options.grace === undefined ? {} : { graceMs: graceMsOf(options.grace) };
  let count = 0;
  let bytes = 0;
  for await (const workflow of session.workflows()) {
    const report = await workflow.gc({ dryRun, ...grace });
    count++;
    bytes += report.bytes;
    if (out.json) await out.value(report);
    else await out.line(`${escapeLine(workflow.id)}: ${describe(report)}`);
  }
  if (out.json) return;
  if (count !== 1) {
    const verb = dryRun ? "would be removed" : "removed";
    await out.line(`${plural(count, "workflow")}, ${formatBytes(bytes)} ${verb}`);
  }
  if (dryRun && bytes > 0) {
    await out.line(out.paint.dim("Nothing was removed: leave out --dry-run to do so."));
  }
}

function describe(report: GcReport): string {
  const { commitsHeld } = report;
  const held = commitsHeld > 0 ? `; holds alone keep ${plural(commitsHeld, "commit")}` : "";
  return removedWords(report) + held + payloadWords(report);
}

function payloadWords({ payloads }: GcReport): string {
  if (payloads === undefined) return "";
  const { removed, unreached } = payloads;
  const swept = removed > 0 ? `; removed ${plural(removed, "payload")} in other regions` : "";
  return unreached.length > 0 ? `${swept}; could not reach ${unreached.join(", ")}` : swept;
}

function removedWords({ commits, trees, blobs, bytes, dryRun }: GcReport): string {
  if (commits + trees + blobs === 0) return "nothing to remove";
  const counts = [
    commits > 0 ? plural(commits, "commit") : "",
    trees > 0 ? plural(trees, "tree") : "",
    blobs > 0 ? plural(blobs, "blob") : "",
  ].filter(Boolean);
  const verb = dryRun ? "would remove" : "removed";
  return `${verb} ${counts.join(", ")} (${formatBytes(bytes)})`;
}
