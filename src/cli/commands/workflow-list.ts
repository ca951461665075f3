import { columns } from "../render/columns.js";
import { formatDate } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate workflow list`. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  const store = await session.store();
  const rows: string[][] = [];
  for await (const info of store.workflows()) {
    if (out.json) await out.value(info);
    else
      rows.push([
        escapeLine(info.id),
        info.classification,
        formatDate(info.createdAt),
        info.completedAt === null ? "" : out.paint.dim("completed"),
      ]);
  }
  if (out.json) return;
  if (rows.length === 0)
    await out.line("No workflows yet. Make one with agstate workflow create NAME.");
  for (const line of columns(rows)) await out.line(line);
}
