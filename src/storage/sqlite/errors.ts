import { accessSync, constants, statfsSync } from "node:fs";
import { AgstateError } from "../../core/errors.js";

/** The code of an error that SQLite or the operating system raised, or the empty string. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/**
 * Whether the error only says that another connection is in the way.
 *
 * SQLITE_PROTOCOL is what SQLite says when it lost the race for a WAL reader's
 * slot too many times in a row.
 */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED") || code === "SQLITE_PROTOCOL"
  );
}

/** The error of a call that waited for other connections for as long as it may. */
export function busyError(location: string, waitedMs: number, cause: unknown): AgstateError {
  const waited = Math.round(waitedMs);
  return new AgstateError(
    "STORE_BUSY",
    `store ${location} was locked by other processes for ${waited} ms; try again, or raise the limit busyTimeoutMs`,
    { path: location, waitedMs: waited },
    { cause },
  );
}

/**
 * Turns what SQLite or the file system raised into the error that callers see.
 *
 * Anything that is neither comes back unchanged.
 *
 * @param location the store's directory
 */
export function toStoreError(error: unknown, location: string): unknown {
  if (error instanceof AgstateError) return error;
  const code = codeOf(error);
  const told = toldError(error) as Error;
  const say = (as: "STORE_FULL" | "STORE_READONLY" | "STORE_DAMAGED" | "STORE_UNAVAILABLE") =>
    new AgstateError(
      as,
      `store ${location}: ${EXPLANATIONS[as]} (${code}: ${told.message})`,
      { path: location, sqlite: code },
      { cause: told },
    );

  if (code === "SQLITE_FULL" || code === "ENOSPC" || code === "EDQUOT") return say("STORE_FULL");
  if (code === "SQLITE_READONLY_DBMOVED") return say("STORE_UNAVAILABLE");
  if (code.startsWith("SQLITE_READONLY") || code === "EROFS" || code === "EACCES") {
    return say("STORE_READONLY");
  }
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB") return say("STORE_DAMAGED");
  if (code.startsWith("SQLITE_CANTOPEN") || code.startsWith("SQLITE_IOERR")) {
    if (isFull(location)) return say("STORE_FULL");
    return say(isReadOnly(location) ? "STORE_READONLY" : "STORE_UNAVAILABLE");
  }
  if (code.startsWith("SQLITE_") || /^E[A-Z]+$/.test(code)) return say("STORE_UNAVAILABLE");
  return error;
}

/** What a trigger, a function or a virtual table says, which may be a value; SQLite's own messages name tables, columns and files. */
const SAID_BY_OTHERS = /^SQLITE_CONSTRAINT_(?:TRIGGER|FUNCTION|VTAB)$/;

/** What may be told to callers, and to traces, of an error that SQLite or the operating system raised. */
export function toldError(error: unknown): unknown {
  const code = codeOf(error);
  if (!SAID_BY_OTHERS.test(code)) return error;
  const told = new Error("what is in the way was added to the file by others, and may tell values");
  return Object.assign(told, { code });
}

const EXPLANATIONS = {
  STORE_FULL: "no space is left, nothing was written; free some space and try again",
  STORE_READONLY:
    "it cannot be written to; agstate needs to write in the store's directory even to read, so make it writable or copy the store",
  STORE_DAMAGED:
    "its file is damaged or is no SQLite database; run `agstate fsck` to see how much is readable, or restore a backup (all files of the directory together)",
  STORE_UNAVAILABLE: "the operating system does not let agstate use it",
} as const;

/** SQLite says CANTOPEN or IOERR for what is really a directory without write permission. */
function isReadOnly(location: string): boolean {
  try {
    accessSync(location, constants.W_OK);
    return false;
  } catch (error) {
    return codeOf(error) === "EROFS" || codeOf(error) === "EACCES";
  }
}

/** SQLite says IOERR, not FULL, when the shared-memory file cannot grow. */
function isFull(location: string): boolean {
  try {
    return statfsSync(location).bavail === 0;
  } catch {
    return false;
  }
}
