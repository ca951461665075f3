import { columns } from "../render/columns.js";
import { shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate reflog [REF]`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { maxCount?: number },
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const limit = options.maxCount === undefined ? {} : { limit: options.maxCount };
  const entries = await workflow.reflog(args[0] ?? "canonical", limit);
  if (out.json) {
    for (const entry of entries) await out.value(entry);
    return;
  }
  const rows = entries.map((entry) => [
    entry.new === null ? out.paint.bad("deleted") : out.paint.id(shortId(entry.new)),
    `${escapeLine(entry.selector)}:`,
    out.paint.dim(entry.date.toISOString().replace("T", " ")),
    escapeLine(entry.actor),
    escapeLine(entry.reason),
  ]);
  for (const line of columns(rows)) await out.line(line);
}
