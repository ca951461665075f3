import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { DEFAULT_SCHEMA } from "./schema.js";

/** PostgreSQL cuts longer identifiers, in silence. */
const IDENTIFIER_MAX_BYTES = 63;

/** Schemas that nobody can make, or that a search path takes for something else. */
const RESERVED = /^(?:pg_.*|\$user|information_schema)$/s;

/** The largest value that a setting of the server has, and a timer of Node. */
const INT_MAX = 2 ** 31 - 1;

/** Where a store is: what a URL such as `postgres://user@host/db?schema=agents` says. */
export interface PostgresTarget {
  /** For node-pg: the URL without the parameters that are agstate's. */
  readonly connectionString: string;
  readonly schema: string;
  /** What the URL says of limits, which goes before those of the caller. */
  readonly poolMax: number | undefined;
  readonly statementTimeoutMs: number | undefined;
  /** Whether moves of refs are told of by LISTEN, where that works, or found by reading only. */
  readonly watch: "listen" | "poll";
  /** Whether the tables are distributed by workflow. */
  readonly distributed: boolean;
  /** The URL without password, for messages. */
  readonly shown: string;
}

/** @throws AgstateError `INVALID_ARGUMENT` */
export function parseTarget(url: string): PostgresTarget {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    // Its error has the URL, and so the password.
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "the store's URL is no PostgreSQL URL; write it as postgres://USER@HOST:PORT/DATABASE?schema=NAME",
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
  if (RESERVED.test(schema)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `schema ${quoteForMessage(schema)} is a name that PostgreSQL keeps for itself; name another by ?schema=NAME`,
      { schema },
    );
  }
  parsed.searchParams.delete("schema");
  const poolMax = takeNumber(parsed, "pool_max");
  const statementTimeoutMs = takeNumber(parsed, "statement_timeout_ms");
  const watch = parsed.searchParams.get("watch") ?? "listen";
  if (watch !== "listen" && watch !== "poll") {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `watch=${quoteForMessage(watch)} in the store's URL is neither listen (the default) nor poll`,
      { watch },
    );
  }
  parsed.searchParams.delete("watch");
  const distributed = parsed.searchParams.get("distributed") ?? "false";
  if (distributed !== "true" && distributed !== "false") {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `distributed=${quoteForMessage(distributed)} in the store's URL is neither true nor false (the default)`,
      { distributed },
    );
  }
  parsed.searchParams.delete("distributed");
  const connectionString = parsed.toString();
  parsed.password = "";
  parsed.searchParams.delete("password");
  parsed.searchParams.set("schema", schema);
  const shown = parsed.toString();
  return {
    connectionString,
    schema,
    poolMax,
    statementTimeoutMs,
    watch,
    distributed: distributed === "true",
    shown,
  };
}

/** Takes a parameter that is a number out of a URL. */
function takeNumber(url: URL, name: string): number | undefined {
  const text = url.searchParams.get(name);
  url.searchParams.delete(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^[0-9]+$/.test(text) && value > 0 && value <= INT_MAX) return value;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${name} in the store's URL is ${quoteForMessage(text)}; it must be a whole number from 1 to ${INT_MAX}`,
    { parameter: name, value: text, limit: INT_MAX },
  );
}
