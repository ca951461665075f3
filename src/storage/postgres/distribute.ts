import { AgstateError } from "../../core/errors.js";
import type { Run } from "./connection.js";
import { codeOf } from "./errors.js";
import { quoteIdentifier } from "./schema.js";
import { readScript } from "./script.js";

/** What the script says where the extension is missing. */
const NO_CITUS = "AG003";

/**
 * Distributes a store's tables and functions over the workers of Citus, in the
 * caller's transaction; it may be done again.
 *
 * @throws AgstateError `STORE_MISMATCH` where the extension is missing
 */
export async function distribute(run: Run, schema: string): Promise<void> {
  try {
    await run(readScript("distributed/citus.sql", { schema }));
  } catch (error) {
    if (codeOf(error) !== NO_CITUS) throw error;
    throw new AgstateError(
      "STORE_MISMATCH",
      `schema ${schema} was not distributed: ${(error as Error).message}; run CREATE EXTENSION citus as a superuser, add the workers, and run agstate migrate --distributed again`,
      { schema, missing: "extension citus" },
    );
  }
}

/** Whether a store was distributed before. */
export async function isDistributed(run: Run, schema: string): Promise<boolean> {
  const rows = await run(
    `SELECT FROM ${quoteIdentifier(schema)}.meta WHERE key = 'distributed' LIMIT 1`,
  );
  return rows.length > 0;
}
