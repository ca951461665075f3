/**
 * A Git object id in the SHA-256 object format: 64 lower-case hex digits.
 *
 * Made only by hashing (`objects/hash.ts`) or by {@link parseObjectId}.
 */
export type ObjectId = string & { readonly __objectId: never };

/** Length of an object id in hex digits. */
export const OBJECT_ID_HEX_LENGTH = 64;

/** Length of an object id in bytes. */
export const OBJECT_ID_BYTES = 32;

/** The id that stands for "no object" in reflog entries, as in Git. */
export const ZERO_ID = "0".repeat(OBJECT_ID_HEX_LENGTH) as ObjectId;

const FULL_ID = /^[0-9a-f]{64}$/;

/** Whether the text is a full object id. */
export function isObjectId(text: string): text is ObjectId {
  return FULL_ID.test(text);
}

/** Reads an object id from its 32 raw bytes inside a buffer. */
export function objectIdAt(buffer: Buffer, offset: number): ObjectId {
  return buffer.toString("hex", offset, offset + OBJECT_ID_BYTES) as ObjectId;
}
