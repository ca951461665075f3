import type { ObjectId } from "../../core/ids.js";
import { compareUtf8 } from "../../core/utf8.js";
import type { Redaction } from "../port.js";

/** What the function `redact` answers. */
export interface RedactedColumns {
  readonly objects: string;
  readonly inline: string;
  readonly grafts: string;
  readonly pending: string;
  readonly bytes: string;
}

/** Packs a redaction as the arguments of `redact` after the workflow's, all in the order of locks. */
export function encodeRedaction(redaction: Redaction): unknown[] {
  const tombstones = [...redaction.tombstones].sort(byId);
  const grafts = [...redaction.grafts].sort(byId);
  const pending = [...(redaction.pending ?? [])].sort(
    (a, b) => compareUtf8(a.key, b.key) || a.index - b.index,
  );
  return [
    rawIds(tombstones.map(({ id }) => id)),
    tombstones.map(({ tombstone }) => tombstone.length),
    Buffer.concat(tombstones.map(({ tombstone }) => tombstone)),
    rawIds([...redaction.inline].sort()),
    rawIds(grafts.map(({ id }) => id)),
    grafts.map(({ parents }) => parents.length),
    rawIds(grafts.flatMap(({ parents }) => parents)),
    pending.map(({ key }) => key),
    pending.map(({ index }) => index),
    redaction.condemnedBy ?? null,
  ];
}

function byId(a: { readonly id: ObjectId }, b: { readonly id: ObjectId }): number {
  return a.id < b.id ? -1 : 1;
}

function rawIds(ids: readonly ObjectId[]): Buffer {
  return Buffer.from(ids.join(""), "hex");
}
