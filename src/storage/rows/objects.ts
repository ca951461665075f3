import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { ENCODING, type StoredObject } from "../port.js";
import { TYPE_NUMBER, typeOf } from "./inline.js";

/** What stands in the column `kind`. */
export const KIND = { object: 0, tombstone: 1 } as const;

/** A row of objects, its id in hex. */
export interface ObjectRow {
  readonly type: number;
  readonly kind: number;
  readonly encoding: number;
  readonly id: ObjectId;
  readonly body: Buffer;
}

/**
 * Refuses an object of a kind or type that this version does not know.
 *
 * @throws AgstateError `CORRUPT_OBJECT`
 */
export function knownObject(row: ObjectRow): ObjectRow {
  const { kind, type, id } = row;
  const known = kind === KIND.object || kind === KIND.tombstone;
  if (known && Object.values(TYPE_NUMBER).includes(type)) return row;
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `object ${id} is of kind ${kind} and type ${type}, which no version writes; restore a backup`,
    { id, kind, type },
  );
}

/** The object of a row, whatever its numbers say: an unknown kind is an object, an unknown type a blob. */
export function objectOf({ id, type: number, kind, encoding, body }: ObjectRow): StoredObject {
  const type = typeOf(number);
  if (kind === KIND.tombstone) return { id, type, tombstone: body };
  return encoding === ENCODING.plain ? { id, type, body } : { id, type, body, encoding };
}
