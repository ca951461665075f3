import { columns } from "../render/columns.js";
import { formatDate } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate workflow list`: of the store, or, with regions, where each lives by the catalogue alone. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  const rows: string[][] = [];
  const regions = await session.regions();
  if (regions !== undefined) {
    for await (const placement of regions.workflows()) {
      const { workflow, region, classification } = placement;
      if (out.json) await out.value(placement);
      else rows.push([escapeLine(workflow), classification, escapeLine(region)]);
    }
    rows.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  } else await listStore(session, rows);
  if (out.json) return;
  if (rows.length === 0)
    await out.line("No workflows yet. Make one with agstate workflow create NAME.");
  for (const line of columns(rows)) await out.line(line);
}

async function listStore(session: Session, rows: string[][]): Promise<void> {
  const { out } = session;
  const store = await session.store();
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
}
