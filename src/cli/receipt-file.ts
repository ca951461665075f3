import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { AgstateError } from "../core/errors.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { ErasureReceipt } from "../store/erase/types.js";

/** Only its owner reads it: it says what was erased. */
const MODE = 0o600;

/** Begins a receipt where there is none, so that none is lost. @throws AgstateError `INVALID_ARGUMENT` */
export function beginReceipt(file: string): void {
  try {
    closeSync(openSync(file, "wx", MODE));
  } catch (cause) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `no receipt can be written to ${quoteForMessage(file)} (${(cause as Error).message}); name a new file in a folder that is there, or use --again to go by a receipt`,
      { file },
      { cause },
    );
  }
}

/** Writes a receipt so that, whenever it is cut off, the file holds a whole one. */
export function writeReceipt(file: string, receipt: ErasureReceipt): void {
  const beside = `${file}.new`;
  const fd = openSync(beside, "w", MODE);
  try {
    writeSync(fd, `${JSON.stringify(receipt)}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(beside, file);
}

/** @throws AgstateError `INVALID_ARGUMENT` */
export function readReceipt(file: string): ErasureReceipt {
  let value: JsonValue | undefined;
  let problem = "";
  try {
    value = JSON.parse(readFileSync(file, "utf8")) as JsonValue;
  } catch (error) {
    // What is said of a text that is not JSON quotes it, and a receipt tells what was erased.
    problem = error instanceof SyntaxError ? " (not JSON)" : ` (${(error as Error).message})`;
  }
  if (isJsonObject(value) && value.agstate === "erasure-receipt" && value.v === 1) {
    return { ...(value as unknown as ErasureReceipt), at: new Date(String(value.at)) };
  }
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${quoteForMessage(file)} is no receipt of an erasure${problem}; name the file that agstate erase --receipt wrote`,
    { file },
  );
}
