import { readFile, stat } from "node:fs/promises";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { parsePointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { placeOf } from "../objects/json-place.js";
import { parseStrictJson } from "../objects/strict-json.js";
import { decodeText } from "../objects/utf8-text.js";
import { checkGovernance, type GovernancePolicy, placeInWords } from "./policy.js";

/** The largest file of rules, in bytes. */
const RULES_FILE_MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads rules for tools from a JSON file, for `openStore(url, { governance })`.
 *
 * It is read once: a store that is open keeps the rules that it was opened with.
 *
 * @throws AgstateError `INVALID_ARGUMENT` when the file cannot be read; `INVALID_VALUE` when it is not JSON, or
 *   has a key twice; `INVALID_POLICY`; `LIMIT_EXCEEDED`. Each names the file, and where it can, line and column.
 */
export async function readGovernanceFile(path: string): Promise<GovernancePolicy> {
  const what = `rules file ${quoteForMessage(path)}`;
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > RULES_FILE_MAX_BYTES) throw tooLarge(what, size);
    bytes = await readFile(path);
  } catch (error) {
    if (isAgstateError(error)) throw error;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot read ${what}: ${(error as Error).message}; name a JSON file such as {"rules":[{"tool":"search*","decision":"allow"}]}`,
      { file: path },
      { cause: error },
    );
  }
  return parseGovernance(bytes, what);
}

/**
 * Reads rules for tools from the bytes of a JSON file.
 *
 * @param what how messages name the file
 * @throws AgstateError `INVALID_VALUE`, `INVALID_POLICY`, `LIMIT_EXCEEDED`
 */
export function parseGovernance(bytes: Uint8Array, what: string): GovernancePolicy {
  if (bytes.length > RULES_FILE_MAX_BYTES) throw tooLarge(what, bytes.length);
  const text = decodeText(bytes, what);
  const value = parseStrictJson(text, what);
  try {
    return checkGovernance(value);
  } catch (error) {
    if (!isAgstateError(error, "INVALID_POLICY")) throw error;
    const { at, problem } = error.details as { readonly at: string; readonly problem: string };
    const { line, column } = placeOf(text, parsePointer(at));
    throw new AgstateError(
      "INVALID_POLICY",
      `${what} cannot be used: ${placeInWords(at)} ${problem} (line ${line}, column ${column})`,
      { at, problem, line, column },
      { cause: error },
    );
  }
}

function tooLarge(what: string, size: number): AgstateError {
  return new AgstateError(
    "LIMIT_EXCEEDED",
    `${what} has ${size} bytes; at most ${RULES_FILE_MAX_BYTES} are allowed`,
    { size, limit: RULES_FILE_MAX_BYTES },
  );
}
