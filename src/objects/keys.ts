import { KEY_MAX_BYTES } from "./format.js";

/**
 * What may not stand in a tree entry's name as it is: what Git or a file system
 * would refuse or take for something else (control characters, separators,
 * `~1` short names, a leading dot, characters that HFS+ ignores), and the
 * marks by which agstate tells lists, texts and fan-outs from objects.
 */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are escaped here
  /[\u0000-\u001f\u007f/\\:%~"[\]{}\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]|^\./g;

const encoder = new TextEncoder();

/** The name of a key's tree entry: unsafe characters percent-encoded, the empty key as `%`. */
export function escapeKey(key: string): string {
  if (key === "") return "%";
  return key.replace(UNSAFE, percentEncode);
}

function percentEncode(char: string): string {
  let out = "";
  for (const byte of encoder.encode(char)) {
    out += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}

/** The key that an entry's name stands for; the inverse of {@link escapeKey}. */
export function unescapeKey(name: string): string {
  if (!name.includes("%")) return name;
  return name === "%" ? "" : decodeURIComponent(name);
}

/** The size of a key's escaped form in bytes, when that is over the limit; else 0. */
export function oversizeKeyBytes(key: string): number {
  // A UTF-16 unit escapes to at most 9 bytes, so short keys need no count.
  if (key.length * 9 <= KEY_MAX_BYTES) return 0;
  const size = Buffer.byteLength(escapeKey(key));
  return size > KEY_MAX_BYTES ? size : 0;
}
