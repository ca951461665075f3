import { readFile, stat } from "node:fs/promises";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { parseStrictJson } from "../objects/strict-json.js";

/** The longest file that fits a JavaScript string, in bytes. */
const FILE_MAX_BYTES = 512 * 1024 * 1024;

/** Reads a file, or standard input for `-`. */
export async function readInput(file: string): Promise<Buffer> {
  if (file === "-") {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of process.stdin) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size > FILE_MAX_BYTES) throw tooLarge("standard input", size);
    }
    return Buffer.concat(chunks);
  }
  try {
    const { size } = await stat(file);
    if (size > FILE_MAX_BYTES) throw tooLarge(file, size);
    return await readFile(file);
  } catch (error) {
    if (error instanceof AgstateError) throw error;
    const { message } = error as Error;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot read ${quoteForMessage(file)}: ${message}`,
      {
        file,
      },
      { cause: error },
    );
  }
}

/** Reads a JSON value from a file or standard input, refusing what would be rounded. */
export async function readJson(file: string): Promise<unknown> {
  return parseStrictJson(await readInput(file), file === "-" ? "standard input" : file);
}

function tooLarge(what: string, size: number): AgstateError {
  return new AgstateError(
    "LIMIT_EXCEEDED",
    `${quoteForMessage(what)} has ${size} bytes or more; the limit is ${FILE_MAX_BYTES}`,
    { file: what, size, limit: FILE_MAX_BYTES },
  );
}
