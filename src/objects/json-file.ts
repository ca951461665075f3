import { readFile, stat } from "node:fs/promises";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { parsePointer } from "../core/json-pointer.js";
import { placeOf } from "./json-place.js";
import { parseStrictJson } from "./strict-json.js";
import { decodeText } from "./utf8-text.js";

/** A JSON file's text, and the value that it has. */
export interface JsonFile {
  readonly text: string;
  readonly value: unknown;
}

/**
 * Reads a JSON file that people write.
 *
 * @param what how messages name the file
 * @param remedy what is to be named instead where it cannot be read
 * @throws AgstateError `INVALID_ARGUMENT` when it cannot be read; `INVALID_VALUE` when it is not JSON, or has a key twice;
 *   `LIMIT_EXCEEDED`
 */
export async function readJsonFile(
  path: string,
  { what, remedy, maxBytes }: { what: string; remedy: string; maxBytes: number },
): Promise<JsonFile> {
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > maxBytes) {
      throw new AgstateError(
        "LIMIT_EXCEEDED",
        `${what} has ${size} bytes; at most ${maxBytes} are allowed`,
        { size, limit: maxBytes },
      );
    }
    bytes = await readFile(path);
  } catch (error) {
    if (isAgstateError(error)) throw error;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot read ${what}: ${(error as Error).message}; ${remedy}`,
      { file: path },
      { cause: error },
    );
  }
  const text = decodeText(bytes, what);
  return { text, value: parseStrictJson(text, what) };
}

/** An `INVALID_VALUE` that has its place in `details.at`, told with the file, and where its text is at hand, line and column. */
export function locatedIn(error: unknown, what: string, text?: string): unknown {
  if (!isAgstateError(error, "INVALID_VALUE")) return error;
  const place =
    text === undefined ? undefined : placeOf(text, parsePointer(String(error.details.at)));
  const where = place === undefined ? "" : ` (line ${place.line}, column ${place.column})`;
  return new AgstateError("INVALID_VALUE", `${what}: ${error.message}${where}`, {
    ...error.details,
    ...place,
  });
}
