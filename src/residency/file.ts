import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { parsePointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { placeOf } from "../objects/json-place.js";
import { parseStrictJson } from "../objects/strict-json.js";
import { decodeText } from "../objects/utf8-text.js";
import { type CheckedRegions, checkRegions, type RegionsConfig } from "./config.js";
import type { Environment } from "./variables.js";

/** The largest file of regions, in bytes. */
const REGIONS_FILE_MAX_BYTES = 1024 * 1024;

/**
 * Reads and checks regions: a JSON file's path, or the configuration itself. It is read once.
 *
 * @throws AgstateError `INVALID_ARGUMENT` when the file cannot be read; `INVALID_VALUE`, `LIMIT_EXCEEDED`. Each names
 *   the file, and where it can, line and column.
 */
export async function readRegions(
  source: string | RegionsConfig,
  environment: Environment,
): Promise<CheckedRegions> {
  if (typeof source !== "string") {
    const what = "configuration of regions";
    try {
      return checkRegions(source, { what, environment, directory: process.cwd() });
    } catch (error) {
      throw located(error, what);
    }
  }
  const what = `regions file ${quoteForMessage(source)}`;
  const text = decodeText(await bytesOf(source, what), what);
  const value = parseStrictJson(text, what);
  try {
    return checkRegions(value, { what, environment, directory: dirname(resolve(source)) });
  } catch (error) {
    throw located(error, what, text);
  }
}

async function bytesOf(path: string, what: string): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size > REGIONS_FILE_MAX_BYTES) {
      throw new AgstateError(
        "LIMIT_EXCEEDED",
        `${what} has ${size} bytes; at most ${REGIONS_FILE_MAX_BYTES} are allowed`,
        { size, limit: REGIONS_FILE_MAX_BYTES },
      );
    }
    return await readFile(path);
  } catch (error) {
    if (isAgstateError(error)) throw error;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot read ${what}: ${(error as Error).message}; name a JSON file with "catalogue" and "regions"`,
      { file: path },
      { cause: error },
    );
  }
}

/** Says in which file it is wrong, and where there. */
function located(error: unknown, what: string, text?: string): unknown {
  if (!isAgstateError(error, "INVALID_VALUE")) return error;
  const place =
    text === undefined ? undefined : placeOf(text, parsePointer(String(error.details.at)));
  const where = place === undefined ? "" : ` (line ${place.line}, column ${place.column})`;
  return new AgstateError("INVALID_VALUE", `${what}: ${error.message}${where}`, {
    ...error.details,
    ...place,
  });
}
