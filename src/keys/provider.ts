/** What a wrapped key is bound to: a provider must refuse to unwrap it under any other. */
export type KeyContext = Readonly<Record<string, string>>;

/** A data key as a store keeps it. */
export interface WrappedKey {
  /** The key that wrapped it: a name of the provider's. */
  readonly keyName: string;
  /** Which version of that key; empty where the provider finds it by itself. */
  readonly version: string;
  readonly wrapped: Uint8Array;
}

/**
 * Who holds the keys that a user owns, and wraps data keys under them: a file, the environment, or a key management
 * service.
 *
 * Data keys have 64 bytes. Of each workflow one is wrapped when it is created, and unwrapped whenever it is opened by somebody
 * who has not opened it yet. The context is authenticated with the key (encryption context, additional authenticated data).
 */
export interface KeyProvider {
  /** Wraps a data key under the present version of a key. */
  wrap(keyName: string, dataKey: Uint8Array, context: KeyContext): Promise<WrappedKey>;
  /**
   * Unwraps a data key.
   *
   * @returns null when this provider does not have that key, or not that version: what it encrypts is then withheld
   * @throws when it may have the key and cannot say, or the wrapped key is not one of this context: that stops who asks
   */
  unwrap(wrapped: WrappedKey, context: KeyContext): Promise<Uint8Array | null>;
}

/** The key's name where none is given. */
export const DEFAULT_KEY_NAME = "default";
