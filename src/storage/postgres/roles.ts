import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { toldMessage } from "../../core/server-error.js";
import type { Run } from "./connection.js";
import { codeOf } from "./errors.js";
import { quoteIdentifier } from "./schema.js";
import { readScript } from "./script.js";

/** What the script says of a schema that cannot have roles. */
const NO_PLACE = "AG002";

/** PostgreSQL cuts longer names, in silence. */
const NAME_MAX_BYTES = 63;

/** The roles of least privilege of a store; `migrations/postgres/roles` says what each may do. */
export interface RoleNames {
  readonly writer: string;
  readonly reader: string;
  readonly maintainer: string;
}

export const DEFAULT_ROLES: RoleNames = {
  writer: "agstate_writer",
  reader: "agstate_reader",
  maintainer: "agstate_maintainer",
};

/** @throws AgstateError `INVALID_ARGUMENT` */
export function checkRoleNames(names: RoleNames): RoleNames {
  const { writer, reader, maintainer } = names;
  const all = [writer, reader, maintainer];
  for (const name of all) {
    const bytes = Buffer.byteLength(name);
    if (bytes > 0 && bytes <= NAME_MAX_BYTES && !/^pg_|^(public|none)$|\0/.test(name)) continue;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `${quoteForMessage(name)} cannot be the name of a role; it needs 1 to ${NAME_MAX_BYTES} bytes, and is none that PostgreSQL keeps for itself`,
      { name, limit: NAME_MAX_BYTES },
    );
  }
  if (new Set(all).size < all.length) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `the roles ${all.map((name) => quoteForMessage(name)).join(", ")} must be three different ones`,
      { ...names },
    );
  }
  return { writer, reader, maintainer };
}

/**
 * Makes the roles and gives them their rights, in the caller's transaction; it may be done again.
 *
 * @throws AgstateError `STORE_READONLY`, `STORE_MISMATCH`
 */
export async function grantRoles(run: Run, schema: string, names: RoleNames): Promise<void> {
  try {
    await run(readScript("roles/roles.sql", { schema, ...names }));
  } catch (error) {
    const code = codeOf(error);
    const details = { schema, ...names, code };
    if (code === NO_PLACE) {
      const { message } = error as Error;
      throw new AgstateError("STORE_MISMATCH", `no roles were made: ${message}`, details);
    }
    if (code === "42501")
      throw new AgstateError(
        "STORE_READONLY",
        `no roles were made in schema ${schema} (${toldMessage(error)}); run agstate migrate --roles as a superuser, or as the owner of the tables with CREATEROLE, or let a superuser CREATE the roles before`,
        details,
      );
    throw error;
  }
}

/** The roles that a store was given last; null where it never was. */
export async function rolesOf(run: Run, schema: string): Promise<RoleNames | null> {
  const rows = await run<{ key: string; value: string }>(
    `SELECT key, value FROM ${quoteIdentifier(schema)}.meta WHERE key LIKE 'role\\_%'`,
  );
  const by = new Map(rows.map(({ key, value }) => [key, value]));
  const [writer, reader, maintainer] = ["writer", "reader", "maintainer"].map((role) =>
    by.get(`role_${role}`),
  );
  if (writer === undefined || reader === undefined || maintainer === undefined) return null;
  return { writer, reader, maintainer };
}
