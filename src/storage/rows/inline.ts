import { AgstateError } from "../../core/errors.js";
import { OBJECT_ID_BYTES, objectIdAt } from "../../core/ids.js";
import { ENCODING, type ObjectType, type StoredObject } from "../port.js";

/** Git's own numbers for object types, as in pack files. */
export const TYPE_NUMBER: Readonly<Record<ObjectType, number>> = { tree: 2, blob: 3 };

/** The type of a number; whatever is no tree reads as a blob. */
export function typeOf(number: number): ObjectType {
  return number === TYPE_NUMBER.tree ? "tree" : "blob";
}

/** Type (1 byte), encoding (1), length of the body (4, big-endian), id (32). */
const FRAME_BYTES = 6 + OBJECT_ID_BYTES;

/**
 * Packs the objects that live in a commit's row: for each a frame, then its
 * body, one after the other, in the order given. None at all is null.
 */
export function packInline(objects: readonly StoredObject[]): Buffer | null {
  if (objects.length === 0) return null;
  const total = objects.reduce((sum, object) => sum + FRAME_BYTES + bytesOf(object).length, 0);
  const packed = Buffer.allocUnsafe(total);
  let at = 0;
  for (const object of objects) {
    const bytes = bytesOf(object);
    packed[at] = TYPE_NUMBER[object.type];
    packed[at + 1] =
      "tombstone" in object ? ENCODING.tombstone : (object.encoding ?? ENCODING.plain);
    packed.writeUInt32BE(bytes.length, at + 2);
    packed.write(object.id, at + 6, OBJECT_ID_BYTES, "hex");
    packed.set(bytes, at + FRAME_BYTES);
    at += FRAME_BYTES + bytes.length;
  }
  return packed;
}

/** What a row holds of an object: its body, or its tombstone. */
export function bytesOf(object: StoredObject): Uint8Array {
  return "tombstone" in object ? object.tombstone : object.body;
}

/** Bytes of bodies in a commit's row beside its own; what tombstones say is not counted. */
export function inlineSize(objects: readonly StoredObject[]): { objects: number; bytes: number } {
  const whole = objects.filter((object) => "body" in object);
  return { objects: whole.length, bytes: whole.reduce((sum, { body }) => sum + body.length, 0) };
}

/**
 * Unpacks what {@link packInline} made; bodies are views into `packed`.
 *
 * @param lenient whether bytes that end early are to be read as far as they go, for a caller
 *   that finds by hashing what is wrong with them
 * @throws AgstateError `CORRUPT_OBJECT` when the frames do not fill the bytes exactly
 */
export function unpackInline(
  packed: Buffer | null,
  commit: string,
  lenient = false,
): StoredObject[] {
  const objects: StoredObject[] = [];
  for (let at = 0; packed !== null && at < packed.length; ) {
    const start = at + FRAME_BYTES;
    const end = start <= packed.length ? start + packed.readUInt32BE(at + 2) : start;
    if (lenient && start > packed.length) break;
    if (!lenient && end > packed.length) {
      throw new AgstateError(
        "CORRUPT_OBJECT",
        `the objects kept in the row of commit ${commit} end in the middle of one; restore a backup`,
        { id: commit, length: packed.length, needed: end },
      );
    }
    const encoding = packed[at + 1]!;
    const id = objectIdAt(packed, at + 6);
    const type = typeOf(packed[at]!);
    const body = packed.subarray(start, end);
    if (encoding === ENCODING.tombstone) objects.push({ id, type, tombstone: body });
    else objects.push({ id, type, body, ...(encoding === ENCODING.plain ? {} : { encoding }) });
    at = end;
  }
  return objects;
}
