import {
  CLASSIFICATIONS,
  type Classification,
  isClassification,
} from "../../core/classification.js";
import { AgstateError } from "../../core/errors.js";
import { checkOneLine, quoteForMessage } from "../../core/names.js";
import { DEFAULT_KEY_NAME, type KeyProvider } from "../../keys/provider.js";

/** How a store's workflows are encrypted. */
export interface KeyOptions {
  /** Who holds the keys that wrap data keys. */
  readonly provider: KeyProvider;
  /** Which workflows are encrypted when they are created; default those that are sensitive or regulated. */
  readonly encrypt?: readonly Classification[];
  /** The key that wraps the data keys of new workflows; default `default`. */
  readonly keyName?: string;
}

/** Key options with their defaults filled in. */
export interface CheckedKeyOptions {
  readonly provider: KeyProvider;
  readonly encrypt: ReadonlySet<Classification>;
  readonly keyName: string;
}

/** What is encrypted where nothing else is said, and what has its hashes keyed in any case. */
export const GUARDED: ReadonlySet<Classification> = new Set(["sensitive", "regulated"]);

/** Longest name of a key, in bytes: services have long ones. */
const KEY_NAME_MAX_BYTES = 2048;

/** @throws AgstateError `INVALID_ARGUMENT`, `INVALID_VALUE` */
export function checkKeyOptions(given: KeyOptions): CheckedKeyOptions {
  const { provider, encrypt = [...GUARDED], keyName = DEFAULT_KEY_NAME } = given;
  if (typeof provider?.wrap !== "function" || typeof provider.unwrap !== "function") {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "keys.provider has no wrap and unwrap; give fileKeys(PATH), environmentKeys(process.env), or one of your own",
    );
  }
  for (const each of encrypt) {
    if (isClassification(each)) continue;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `keys.encrypt names the classification ${quoteForMessage(String(each))}; there are ${CLASSIFICATIONS.join(", ")}`,
      { classification: each },
    );
  }
  return { provider, encrypt: new Set(encrypt), keyName: checkKeyName(keyName) };
}

/** @throws AgstateError `INVALID_VALUE` */
export function checkKeyName(keyName: string): string {
  if (keyName === "") {
    throw new AgstateError("INVALID_VALUE", "the key's name is empty; leave it out for default");
  }
  return checkOneLine("key name", keyName, KEY_NAME_MAX_BYTES);
}
