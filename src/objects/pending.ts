import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { PendingRow } from "../storage/port.js";
import { canonicalText } from "./canonical.js";
import { createSha256 } from "./hash.js";

/** The first byte of a body: how what follows is written. */
const PLAIN = 1;
const SEALED = 2;

/** How many bytes of a hash follow. */
const CHECK_BYTES = 8;

/** Encrypts rows of a workflow whose payloads are encrypted, and opens them. */
export interface RowCipher {
  sealRow(plain: Uint8Array): Uint8Array;
  /** Null for what this cipher has not sealed. */
  openRow(sealed: Uint8Array): Uint8Array | null;
}

/**
 * Makes a pending row of a validated value. Its body is the byte 1, eight bytes of the SHA-256 of key, index and
 * text, and the text: canonical JSON. No id tells of damage to it, as of objects: the hash does.
 *
 * With a cipher the first byte is 2, and the hash is of what is encrypted, which holds key and index as well: so that a row
 * is checked without its key, and, with it, opens only where it was put.
 */
export function sealPending(
  key: string,
  index: number,
  value: JsonValue,
  cipher?: RowCipher,
): PendingRow {
  const text = Buffer.from(canonicalText(value));
  const content =
    cipher === undefined ? text : cipher.sealRow(Buffer.concat([placeOf(key, index), text]));
  const form = Buffer.of(cipher === undefined ? PLAIN : SEALED);
  return { key, index, body: Buffer.concat([form, check(key, index, content), content]) };
}

/**
 * The value of a pending row.
 *
 * @throws AgstateError `CORRUPT_OBJECT`; `UNSUPPORTED_ENCODING` when a newer version wrote it; `KEY_UNAVAILABLE` when it is
 *   encrypted and there is no cipher
 */
export function openPending(row: PendingRow, cipher?: RowCipher): JsonValue {
  const { form, content } = checkPending(row);
  if (form === PLAIN) return JSON.parse(content.toString("utf8")) as JsonValue;
  const { key, index } = row;
  if (cipher === undefined) {
    throw new AgstateError(
      "KEY_UNAVAILABLE",
      `${named(row)} is encrypted, but its workflow has no keys`,
      { key, index },
    );
  }
  const plain = cipher.openRow(content);
  const place = placeOf(key, index);
  if (plain !== null && Buffer.compare(plain.subarray(0, place.length), place) === 0) {
    return JSON.parse(Buffer.from(plain.subarray(place.length)).toString("utf8")) as JsonValue;
  }
  throw damaged(row);
}

/**
 * Checks a pending row as far as it can be without keys.
 *
 * @throws AgstateError `CORRUPT_OBJECT`; `UNSUPPORTED_ENCODING` when a newer version wrote it
 */
export function checkPending(row: PendingRow): { readonly form: number; readonly content: Buffer } {
  const { key, index, body } = row;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const form = bytes[0] ?? PLAIN;
  if (form !== PLAIN && form !== SEALED) {
    throw new AgstateError(
      "UNSUPPORTED_ENCODING",
      `${named(row)} is written in form ${form}; this version knows only ${PLAIN} and ${SEALED}, use a newer agstate`,
      { key, index, encoding: form },
    );
  }
  const content = bytes.subarray(1 + CHECK_BYTES);
  if (bytes.subarray(1, 1 + CHECK_BYTES).equals(check(key, index, content))) {
    return { form, content };
  }
  throw damaged(row);
}

function check(key: string, index: number, content: Uint8Array): Buffer {
  const hash = createSha256();
  hash.update(placeOf(key, index));
  hash.update(content);
  return Buffer.from(hash.digest()).subarray(0, CHECK_BYTES);
}

function placeOf(key: string, index: number): Buffer {
  return Buffer.from(`${key}\0${index}\0`);
}

function named({ key, index }: PendingRow): string {
  return `the pending row ${quoteForMessage(key)}, index ${index},`;
}

function damaged(row: PendingRow): AgstateError {
  const { key, index } = row;
  return new AgstateError("CORRUPT_OBJECT", `${named(row)} is damaged; restore a backup`, {
    key,
    index,
  });
}
