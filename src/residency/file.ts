import { dirname, resolve } from "node:path";
import { quoteForMessage } from "../core/names.js";
import type { Environment } from "../core/variables.js";
import { locatedIn, readJsonFile } from "../objects/json-file.js";
import { type CheckedRegions, checkRegions, type RegionsConfig } from "./config.js";

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
      throw locatedIn(error, what);
    }
  }
  const what = `regions file ${quoteForMessage(source)}`;
  const { text, value } = await readJsonFile(source, {
    what,
    remedy: `name a JSON file with "catalogue" and "regions"`,
    maxBytes: REGIONS_FILE_MAX_BYTES,
  });
  try {
    return checkRegions(value, { what, environment, directory: dirname(resolve(source)) });
  } catch (error) {
    throw locatedIn(error, what, text);
  }
}
