import type { Database } from "better-sqlite3";
import { AgstateError } from "../../core/errors.js";

/** The schema that this code reads and writes: the number of the last migration. */
export const SCHEMA_VERSION = 2;

/** What the first migration puts into the file's header: `agst` in ASCII. */
const APPLICATION_ID = 0x61677374;

/** The schema of a file; 0 for one that is empty. */
export function schemaVersion(db: Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}

/**
 * Refuses a database that this code must not touch.
 *
 * @throws AgstateError `STORE_TOO_NEW` for one of a newer agstate, `STORE_MISMATCH` for one of
 *   another program
 */
export function refuseForeign(db: Database, location: string): void {
  const found = schemaVersion(db);
  const isEmpty = found === 0 && db.prepare("SELECT 1 FROM sqlite_schema").get() === undefined;
  if (!isEmpty && db.pragma("application_id", { simple: true }) !== APPLICATION_ID) {
    throw new AgstateError(
      "STORE_MISMATCH",
      `${db.name} is a database of another program; name another directory as the store`,
      { path: location },
    );
  }
  if (found > SCHEMA_VERSION) {
    throw new AgstateError(
      "STORE_TOO_NEW",
      `store ${location} has schema ${found}; this agstate knows schemas up to ${SCHEMA_VERSION}, install a newer one`,
      { path: location, found, known: SCHEMA_VERSION },
    );
  }
}
