import type { ObjectId } from "../../core/ids.js";
import type { ScanPage, SeenRow, Swept } from "../port.js";
import { TYPE_NUMBER } from "../rows/inline.js";
import { KIND } from "../rows/objects.js";
import { idOf, rawId } from "./rows.js";
import type { Statements } from "./statements.js";

/** Git's number of a commit among the types of a row. */
const COMMIT = 1;

/** Reads a page of what was last seen before a moment, and one row more to see whether it is the last. */
export function scanSeen(
  statements: Statements,
  wf: number,
  type: SeenRow["type"],
  before: number,
  after: string | null,
  limit: number,
): ScanPage<SeenRow> {
  const size = Math.max(1, limit);
  const number = type === "commit" ? COMMIT : TYPE_NUMBER[type];
  const found = statements.seenAfter.all(wf, rawId(after ?? ""), number, before, size + 1);
  const rows = found.slice(0, size).map((row): SeenRow => {
    const { generation, bytes } = row;
    const erased = row.kind === KIND.tombstone;
    return { id: idOf(row.id), type, generation, seenAt: row.seen_at, bytes, erased };
  });
  return { rows, next: found.length > size ? (rows.at(-1) as SeenRow).id : null };
}

/** Removes what the same collection has condemned; must run inside a write transaction. */
export function sweep(
  statements: Statements,
  wf: number,
  ids: readonly ObjectId[],
  by: number,
): Swept {
  const spared: ObjectId[] = [];
  const condemned: { raw: Buffer; commit: boolean }[] = [];
  let sparesCommit = false;
  for (const id of ids) {
    const raw = rawId(id);
    const row = statements.seen.get(wf, raw);
    if (row === undefined) continue;
    const commit = row.type === COMMIT;
    if (row.seen_at === -by) condemned.push({ raw, commit });
    else {
      spared.push(id);
      sparesCommit ||= commit;
    }
  }
  if (sparesCommit) return { removed: 0, spared };
  for (const { raw, commit } of condemned) {
    if (commit) statements.keepEntry.run(wf, raw);
    statements.remove.run(wf, raw);
  }
  return { removed: condemned.length, spared };
}
