import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { KeyContext, WrappedKey } from "./provider.js";

/** How long a key that wraps others is, in bytes. */
const WRAPPING_KEY_BYTES = 32;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION_HEX_DIGITS = 16;

/** What a key is told from other versions by: it says nothing of the key that could be used. */
export function versionOf(key: Uint8Array): string {
  return createHmac("sha256", key)
    .update("agstate/key-version/1")
    .digest("hex")
    .slice(0, VERSION_HEX_DIGITS);
}

/** A new key that wraps others, from the system's random numbers. */
export function newWrappingKey(): Uint8Array {
  return randomBytes(WRAPPING_KEY_BYTES);
}

/** Wraps a secret by AES-256-GCM (NIST SP 800-38D): a random nonce, what is encrypted, and the tag. */
export function wrapLocally(key: Uint8Array, secret: Uint8Array, bound: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(bound));
  return Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
}

/** What was wrapped, or null when it was wrapped by another key, bound to something else, or changed. */
export function unwrapLocally(key: Uint8Array, wrapped: Uint8Array, bound: string): Buffer | null {
  if (wrapped.length < NONCE_BYTES + TAG_BYTES) return null;
  const end = wrapped.length - TAG_BYTES;
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv("aes-256-gcm", key, wrapped.subarray(0, NONCE_BYTES), options);
  decipher.setAAD(Buffer.from(bound));
  decipher.setAuthTag(wrapped.subarray(end));
  const secret = decipher.update(wrapped.subarray(NONCE_BYTES, end));
  try {
    decipher.final();
  } catch {
    return null;
  }
  return secret;
}

/** The versions of one key, the present one last. */
export type KeyVersions = readonly Uint8Array[];

/** Wraps under the last version of a key. */
export function wrapWith(
  keys: KeyVersions,
  keyName: string,
  dataKey: Uint8Array,
  context: KeyContext,
): WrappedKey {
  const key = keys.at(-1) as Uint8Array;
  const version = versionOf(key);
  const wrapped = wrapLocally(key, dataKey, boundTo(keyName, version, context));
  return { keyName, version, wrapped };
}

/**
 * Unwraps with the version that wrapped it.
 *
 * @returns null when that version is not among them
 * @throws AgstateError `KEY_UNAVAILABLE` when it is, and the wrapped key is not what it wrapped
 */
export function unwrapWith(
  keys: KeyVersions,
  { keyName, version, wrapped }: WrappedKey,
  context: KeyContext,
): Uint8Array | null {
  const key = keys.find((each) => versionOf(each) === version);
  if (key === undefined) return null;
  const dataKey = unwrapLocally(key, wrapped, boundTo(keyName, version, context));
  if (dataKey !== null) return dataKey;
  throw new AgstateError(
    "KEY_UNAVAILABLE",
    `the wrapped data key does not open with key ${quoteForMessage(keyName)}, version ${version}: it was changed, or belongs to another workflow; restore a backup`,
    { keyName, version, context },
  );
}

function boundTo(keyName: string, version: string, context: KeyContext): string {
  const sorted = Object.entries(context).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([keyName, version, sorted]);
}

/** A key as text, as files and the environment have it: 32 bytes in base64, or 64 hex digits. */
export function parseKey(text: string): Uint8Array | null {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, "hex");
  if (!/^[A-Za-z0-9+/]{43}=?$/.test(text)) return null;
  return Buffer.from(text, "base64");
}

const LOCAL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/**
 * Checks the name of a key that a file or a variable is called by.
 *
 * @throws AgstateError `INVALID_NAME`
 */
export function checkLocalName(name: string): string {
  if (LOCAL_NAME.test(name)) return name;
  throw new AgstateError(
    "INVALID_NAME",
    `key name ${quoteForMessage(name)} is not 1 to 64 letters, digits, - and _, as names of files and variables are`,
    { keyName: name },
  );
}

/** The error of a key that is to wrap and is not there. */
export function noSuchKey(keyName: string, where: string, remedy: string): AgstateError {
  return new AgstateError(
    "KEY_UNAVAILABLE",
    `there is no key ${quoteForMessage(keyName)} ${where}; ${remedy}`,
    { keyName },
  );
}
