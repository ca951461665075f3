import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { environmentKeys, type KeyEnvironment } from "./environment-keys.js";
import { fileKeys } from "./file-keys.js";
import type { KeyProvider } from "./provider.js";

/**
 * Keys that are named in one word, as a command line does: `file:PATH` (a key file, or a directory of them) or `env:`
 * (variables `AGSTATE_KEY_<NAME>` of the given environment).
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function keysFrom(source: string, environment: KeyEnvironment): KeyProvider {
  if (source === "env:") return environmentKeys(environment);
  const path = /^file:(.+)$/s.exec(source)?.[1];
  if (path !== undefined) return fileKeys(path);
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `keys ${quoteForMessage(source)} are of no known kind; give file:PATH, or env: for variables AGSTATE_KEY_<NAME>`,
  );
}
