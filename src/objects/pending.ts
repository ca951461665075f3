import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { PendingRow } from "../storage/port.js";
import { canonicalText } from "./canonical.js";
import { digestText } from "./hash.js";

/** The first byte of a body: how what follows is written. */
const PLAIN = 1;

/** How many bytes of a hash follow. */
const CHECK_BYTES = 8;

/**
 * Makes a pending row of a validated value. Its body is the byte 1, eight bytes of the SHA-256 of key, index and
 * text, and the text: canonical JSON. No id tells of damage to it, as of objects: the hash does.
 */
export function sealPending(key: string, index: number, value: JsonValue): PendingRow {
  const text = canonicalText(value);
  const body = Buffer.allocUnsafe(1 + CHECK_BYTES + Buffer.byteLength(text));
  body[0] = PLAIN;
  body.write(check(key, index, text), 1, "hex");
  body.write(text, 1 + CHECK_BYTES);
  return { key, index, body };
}

/**
 * The value of a pending row.
 *
 * @throws AgstateError `CORRUPT_OBJECT`; `UNSUPPORTED_ENCODING` when a newer version wrote it
 */
export function openPending({ key, index, body }: PendingRow): JsonValue {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const row = `the pending row ${quoteForMessage(key)}, index ${index},`;
  if (bytes.length > 0 && bytes[0] !== PLAIN) {
    throw new AgstateError(
      "UNSUPPORTED_ENCODING",
      `${row} is written in form ${bytes[0]}; this version knows only ${PLAIN}, use a newer agstate`,
      { key, index, encoding: bytes[0] },
    );
  }
  const text = bytes.toString("utf8", 1 + CHECK_BYTES);
  if (bytes.toString("hex", 1, 1 + CHECK_BYTES) === check(key, index, text)) {
    return JSON.parse(text) as JsonValue;
  }
  throw new AgstateError("CORRUPT_OBJECT", `${row} is damaged; restore a backup`, { key, index });
}

function check(key: string, index: number, text: string): string {
  return digestText(`${key}\0${index}\0${text}`).slice(0, 2 * CHECK_BYTES);
}
