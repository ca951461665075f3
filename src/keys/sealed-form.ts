/** The first byte of a sealed body: by which key. */
export const BY_WORKFLOW = 1;
/** The subject's tag follows. */
export const BY_SUBJECT = 2;

/** How long a subject's tag is, in bytes: what its key is found by, instead of its name. */
export const SUBJECT_TAG_BYTES = 16;

/** The tag of the subject by whose key a body is sealed, as hex digits; null of one that none has sealed. */
export function subjectOfSealed(body: Uint8Array): string | null {
  if (body[0] !== BY_SUBJECT) return null;
  return Buffer.from(body.subarray(1, 1 + SUBJECT_TAG_BYTES)).toString("hex");
}
