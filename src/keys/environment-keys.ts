import { AgstateError } from "../core/errors.js";
import {
  checkLocalName,
  type KeyVersions,
  noSuchKey,
  parseKey,
  unwrapWith,
  wrapWith,
} from "./local.js";
import type { KeyProvider } from "./provider.js";

/** Variables by name, such as `process.env`. */
export type KeyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Keys in variables: `AGSTATE_KEY_<NAME>` holds 32 bytes in base64 or hex, in the environment that is given. Several, with commas
 * between them, are versions of one key: the last wraps, the others unwrap what they wrapped.
 */
export function environmentKeys(environment: KeyEnvironment): KeyProvider {
  return {
    async wrap(keyName, dataKey, context) {
      const keys = keysOf(environment, keyName);
      if (keys !== null) return wrapWith(keys, keyName, dataKey, context);
      const remedy = `set ${variableOf(keyName)} to 32 random bytes in base64`;
      throw noSuchKey(keyName, "in the environment", remedy);
    },
    async unwrap(wrapped, context) {
      const keys = keysOf(environment, wrapped.keyName);
      return keys === null ? null : unwrapWith(keys, wrapped, context);
    },
  };
}

function variableOf(keyName: string): string {
  return `AGSTATE_KEY_${checkLocalName(keyName).toUpperCase().replaceAll("-", "_")}`;
}

function keysOf(environment: KeyEnvironment, keyName: string): KeyVersions | null {
  const variable = variableOf(keyName);
  const value = environment[variable];
  if (value === undefined || value === "") return null;
  return value.split(",").map((text) => {
    const key = parseKey(text.trim());
    if (key !== null) return key;
    throw new AgstateError(
      "KEY_UNAVAILABLE",
      `the environment variable ${variable} does not hold 32 bytes in base64, or 64 hex digits; several with commas between them are versions of one key`,
      { variable },
    );
  });
}
