/** Number of the newest migration that this version knows. */
export const SCHEMA_VERSION = 10;

/** The schema that is used where the URL names none. */
export const DEFAULT_SCHEMA = "agstate";

/** A name as an SQL identifier. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
