import type { ObjectId } from "../../core/ids.js";
import type { PackedGraph } from "../port.js";
import { rawId } from "./rows.js";
import type { Statements } from "./statements.js";

/**
 * Reads the commits among the `limit` rows that were written up to the first of `ids`, and the
 * others of `ids`.
 *
 * Histories are written parents first, so a commit's ancestors stand before it, most of them near.
 */
export function readNear(
  statements: Statements,
  wf: number,
  ids: readonly ObjectId[],
  limit: number,
): PackedGraph {
  const [first, ...others] = ids
    .map((id) => statements.commitRowid.get(wf, rawId(id)))
    .filter((rowid) => rowid !== undefined);
  if (first === undefined) return Buffer.alloc(0);
  const from = first - limit;
  const apart = others.filter((rowid) => rowid < from || rowid > first);
  const found = [
    statements.commitsNear.get(from, first, wf),
    ...apart.map((rowid) => statements.commitsNear.get(rowid, rowid, wf)),
  ].filter((packed) => packed !== null && packed !== undefined);
  return found.length === 1 ? found[0]! : Buffer.concat(found);
}
