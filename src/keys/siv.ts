import { aessiv } from "@noble/ciphers/aes.js";

/** How much longer what is sealed is than what was given, in bytes. */
const SIV_TAG_BYTES = 16;

/**
 * AES-SIV (RFC 5297): encryption that is authenticated and deterministic. Of one key and context, equal texts give equal
 * bytes, and tell no more than that they are equal; no nonce has to be kept.
 */
export class Siv {
  /**
   * @param key 32, 48 or 64 bytes: two AES keys of half of it
   * @param context what is authenticated as well, in parts
   */
  constructor(
    private readonly key: Uint8Array,
    private readonly context: readonly Uint8Array[],
  ) {}

  seal(plain: Uint8Array): Uint8Array {
    return aessiv(this.key, ...this.context).encrypt(plain);
  }

  /** What was sealed; null when it was changed, or sealed by another key or in another context. */
  open(sealed: Uint8Array): Uint8Array | null {
    if (sealed.length < SIV_TAG_BYTES) return null;
    try {
      return aessiv(this.key, ...this.context).decrypt(sealed);
    } catch {
      // The length is right, so that it can be nothing but the tag.
      return null;
    }
  }
}
