import { constants, isUtf8 } from "node:buffer";
import { AgstateError } from "../core/errors.js";

/**
 * Decodes the bytes of a file as UTF-8 text, without a byte order mark.
 *
 * Nothing is replaced: bytes that are not UTF-8 are an error. A text may be at
 * most as long as the longest string of the JavaScript engine, counted in bytes.
 *
 * @param what how messages name the file, for example `state file "a.json"`
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function decodeText(input: string | Uint8Array, what: string): string {
  if (typeof input === "string") return withoutMark(input);
  const limit = constants.MAX_STRING_LENGTH;
  if (input.length > limit) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `${what} is ${input.length} bytes long; the limit is ${limit}, the longest text that Node.js can hold; split it`,
      { size: input.length, limit },
    );
  }
  if (!isUtf8(input)) {
    throw new AgstateError("INVALID_VALUE", `${what} is not UTF-8 text; save it as UTF-8`);
  }
  return withoutMark(
    Buffer.from(input.buffer, input.byteOffset, input.byteLength).toString("utf8"),
  );
}

function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}
