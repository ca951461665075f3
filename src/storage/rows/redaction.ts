import type { ObjectId } from "../../core/ids.js";
import type { Redacted, Redaction, StoredObject } from "../port.js";

/** The answer where there is no such workflow. */
export const NOTHING_REDACTED: Redacted = {
  objects: 0,
  inline: 0,
  grafts: 0,
  pending: 0,
  bytes: 0,
};

/** The same tombstones by the id of what they stand for. */
export function tombstonesById({ tombstones }: Redaction): Map<ObjectId, Uint8Array> {
  return new Map(tombstones.map(({ id, tombstone }) => [id, tombstone]));
}

/** What a commit's row holds once tombstones stand in it; `count` is 0 where none of them does. */
export function redactInline(
  inline: readonly StoredObject[],
  tombstones: ReadonlyMap<ObjectId, Uint8Array>,
): { inline: StoredObject[]; count: number; bytes: number } {
  let [count, bytes] = [0, 0];
  const redacted = inline.map((object): StoredObject => {
    const tombstone = tombstones.get(object.id);
    if (tombstone === undefined || "tombstone" in object) return object;
    count++;
    bytes += object.body.length;
    return { id: object.id, type: object.type, tombstone };
  });
  return { inline: redacted, count, bytes };
}
