import { AgstateError } from "../../core/errors.js";
import { OBJECT_ID_BYTES, objectIdAt } from "../../core/ids.js";
import { ENCODING, type ObjectRecord, type ObjectType } from "../port.js";

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
export function packInline(objects: readonly ObjectRecord[]): Buffer | null {
  if (objects.length === 0) return null;
  const total = objects.reduce((sum, { body }) => sum + FRAME_BYTES + body.length, 0);
  const packed = Buffer.allocUnsafe(total);
  let at = 0;
  for (const { id, type, body, encoding } of objects) {
    packed[at] = TYPE_NUMBER[type];
    packed[at + 1] = encoding ?? ENCODING.plain;
    packed.writeUInt32BE(body.length, at + 2);
    packed.write(id, at + 6, OBJECT_ID_BYTES, "hex");
    packed.set(body, at + FRAME_BYTES);
    at += FRAME_BYTES + body.length;
  }
  return packed;
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
): ObjectRecord[] {
  const objects: ObjectRecord[] = [];
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
    objects.push({
      id: objectIdAt(packed, at + 6),
      type: typeOf(packed[at]!),
      body: packed.subarray(start, end),
      ...(encoding === ENCODING.plain ? {} : { encoding }),
    });
    at = end;
  }
  return objects;
}
