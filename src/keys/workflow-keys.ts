import type { ObjectId } from "../core/ids.js";
import type { Keyed } from "../objects/data-policy.js";
import { digestText } from "../objects/hash.js";
import type { RowCipher } from "../objects/pending.js";
import { CLOSED, type Opener, PLAIN_SEAL, type Seal } from "../objects/sealing.js";

/** The keys of one workflow, as far as they are at hand: what is written is sealed by them, and what is read opened. */
export interface WorkflowKeys {
  readonly workflow: string;
  readonly keyed: Keyed;
  /** Why what is encrypted cannot be read; null when it can, or nothing is. */
  readonly withheld: "key" | "erased" | null;
  /** How the workflow's payloads are sealed and opened. */
  readonly sealing: { readonly seal: Seal; readonly opener: Opener };
  /** What seals and opens pending rows; undefined where they stay as they are. */
  readonly rowCipher: RowCipher | undefined;

  /**
   * The digest of a value's canonical text, keyed where the workflow's hashes are.
   *
   * @throws AgstateError `KEY_UNAVAILABLE`, `ERASED`
   */
  digest(text: string): ObjectId;

  /** Runs what encodes values, again with the keys of their subjects when these were not at hand. */
  encoding<T>(work: () => Promise<T>): Promise<T>;
}

/** What stands for the keys of a workflow that has none; nothing of ciphers is loaded for it. */
export class NoKeys implements WorkflowKeys {
  readonly keyed = "nothing";
  readonly withheld = null;
  readonly sealing = { seal: PLAIN_SEAL, opener: CLOSED };
  readonly rowCipher = undefined;

  constructor(readonly workflow: string) {}

  digest(text: string): ObjectId {
    return digestText(text);
  }

  encoding<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}
