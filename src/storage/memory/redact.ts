import type { ObjectId } from "../../core/ids.js";
import type { Redacted, Redaction } from "../port.js";
import { redactInline, tombstonesById } from "../rows/redaction.js";
import { copyObject, type WorkflowState } from "./workflow-state.js";

/** Takes something out of a workflow of the model in place. */
export function redact(state: WorkflowState, redaction: Redaction): Redacted {
  const redacted = { objects: 0, inline: 0, grafts: 0, pending: 0, bytes: 0 };
  const tombstones = tombstonesById(redaction);
  const { condemnedBy } = redaction;
  const isSpared = (id: ObjectId) =>
    condemnedBy !== undefined && state.seen.get(id) !== -condemnedBy;
  for (const id of new Set(redaction.inline)) {
    const commit = state.commits.get(id);
    if (commit === undefined || isSpared(id)) continue;
    const { inline, count, bytes } = redactInline(commit.inline, tombstones);
    redacted.inline += count;
    redacted.bytes += bytes;
    state.commits.set(id, { ...commit, inline: inline.map(copyObject) });
  }
  for (const { id, parents } of redaction.grafts) {
    const commit = state.commits.get(id);
    const kept = commit?.parents.filter((parent) => parents.includes(parent));
    if (commit === undefined || kept === undefined || kept.length === commit.parents.length)
      continue;
    redacted.grafts++;
    state.commits.set(id, { ...commit, parents: kept });
  }
  for (const [id, tombstone] of tombstones) {
    const object = state.objects.get(id);
    if (object === undefined || "tombstone" in object || isSpared(id)) continue;
    redacted.objects++;
    redacted.bytes += object.body.length;
    state.objects.set(id, copyObject({ id, type: object.type, tombstone }));
  }
  for (const { key, index } of redaction.pending ?? []) {
    const rows = state.pending.get(key);
    const row = rows?.get(index);
    if (rows === undefined || row === undefined) continue;
    redacted.pending++;
    redacted.bytes += row.body.length;
    rows.delete(index);
    if (rows.size === 0) state.pending.delete(key);
  }
  return redacted;
}
