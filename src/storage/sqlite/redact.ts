import type { ObjectId } from "../../core/ids.js";
import type { Redacted, Redaction } from "../port.js";
import { packInline, unpackInline } from "../rows/inline.js";
import { redactInline, tombstonesById } from "../rows/redaction.js";
import { packIds, rawId, splitIds } from "./rows.js";
import type { Statements } from "./statements.js";

/** Takes something out of rows in place; must run inside a write transaction. */
export function redact(statements: Statements, wf: number, redaction: Redaction): Redacted {
  const redacted = { objects: 0, inline: 0, grafts: 0, pending: 0, bytes: 0 };
  const tombstones = tombstonesById(redaction);
  const { condemnedBy } = redaction;
  const isSpared = (id: ObjectId) =>
    condemnedBy !== undefined && statements.seen.get(wf, rawId(id))?.seen_at !== -condemnedBy;
  for (const id of new Set(redaction.inline)) {
    const packed = statements.inlineOf.get(wf, rawId(id));
    if (packed === undefined || isSpared(id)) continue;
    const { inline, count, bytes } = redactInline(unpackInline(packed, id), tombstones);
    if (count === 0) continue;
    statements.setInline.run(packInline(inline), wf, rawId(id));
    redacted.inline += count;
    redacted.bytes += bytes;
  }
  for (const { id, parents } of redaction.grafts) {
    const row = statements.commitGraph.get(wf, rawId(id));
    if (row === undefined) continue;
    const stored = splitIds(row.parents);
    const kept = stored.filter((parent) => parents.includes(parent));
    if (kept.length === stored.length) continue;
    // The first parent is the `old` of a log entry that the row keeps.
    statements.keepEntry.run(wf, rawId(id));
    statements.graft.run(packIds(kept), wf, rawId(id));
    redacted.grafts++;
  }
  for (const [id, tombstone] of tombstones) {
    const bytes = statements.bodySize.get(wf, rawId(id));
    if (bytes === undefined || isSpared(id)) continue;
    statements.bury.run(tombstone, wf, rawId(id));
    redacted.objects++;
    redacted.bytes += bytes;
  }
  for (const { key, index } of redaction.pending ?? []) {
    const bytes = statements.pendingSize.get(wf, key, index);
    if (bytes === undefined) continue;
    statements.removePending.run(wf, key, index);
    redacted.pending++;
    redacted.bytes += bytes;
  }
  return redacted;
}
