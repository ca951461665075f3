import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { DEFAULT_SCHEMA } from "./schema.js";

/** PostgreSQL cuts longer identifiers, in silence. */
const IDENTIFIER_MAX_BYTES = 63;

/** Where a store is: what a URL such as `postgres://user@host/db?schema=agents` says. */
export interface PostgresTarget {
  /** For node-pg: the URL without the parameters that are agstate's. */
  readonly connectionString: string;
  readonly schema: string;
  /** The URL without password, for messages. */
  readonly shown: string;
}

/** @throws AgstateError `INVALID_ARGUMENT` */
export function parseTarget(url: string): PostgresTarget {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (error) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "the store's URL is no PostgreSQL URL; write it as postgres://USER@HOST:PORT/DATABASE?schema=NAME",
      {},
      { cause: error },
    );
  }
  const schema = parsed.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  const bytes = Buffer.byteLength(schema);
  if (schema === "" || bytes > IDENTIFIER_MAX_BYTES || schema.includes("\0")) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `schema ${quoteForMessage(schema)} has ${bytes} bytes; a name in PostgreSQL has 1 to ${IDENTIFIER_MAX_BYTES}`,
      { schema, limit: IDENTIFIER_MAX_BYTES },
    );
  }
  parsed.searchParams.delete("schema");
  const connectionString = parsed.toString();
  parsed.password = "";
  parsed.searchParams.delete("password");
  parsed.searchParams.set("schema", schema);
  return { connectionString, schema, shown: parsed.toString() };
}
