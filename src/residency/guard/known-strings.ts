import { LRUCache } from "lru-cache";
import type { JsonValue } from "../../core/json.js";
import type { Pointer } from "../../objects/pointer.js";
import type { ForeignPayload } from "./guard.js";
import { KEPT_MIN_UNITS, saysNothing } from "./run-index.js";
import { readings, stringsOf } from "./texts.js";

/** Of how many strings a pointer tells at most: the longest. */
const STRINGS_MAX = 64;

/** How much of a hash is kept, in hex digits: 64 bits, so that none is met by chance. */
const DIGITS = 16;

/** How many strings of payloads that were not read are known in a workflow; those that were met last. */
const KNOWN_MAX = 100_000;

/** A keyed hash of a text, as hex digits. */
export type Digest = (text: string) => string;

/** The beginnings of keyed hashes of a payload's strings, by which those know a copy who never read it. */
export function stringHashes(digest: Digest, value: JsonValue): string[] {
  return [...new Set(stringsOf(value))]
    .filter((text) => text.length >= KEPT_MIN_UNITS && !saysNothing(text))
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
    .slice(0, STRINGS_MAX)
    .map((text) => hashOf(digest, text))
    .sort();
}

function hashOf(digest: Digest, text: string): string {
  return digest(`string\0${text}`).slice(0, DIGITS);
}

/** The strings of a workflow's payloads, as its pointers tell of them. */
export class KnownStrings {
  private readonly owners = new LRUCache<string, ForeignPayload>({ max: KNOWN_MAX });

  constructor(
    private readonly workflow: string,
    private readonly digest: Digest,
  ) {}

  /** Learns of a pointer that was read. */
  learn({ region, hash, strings }: Pointer): void {
    const owner = { region, hash, workflow: this.workflow };
    for (const string of strings) if (!this.owners.has(string)) this.owners.set(string, owner);
  }

  /** Whose string a text is, as a whole, if it may not go into a region. */
  find(text: string, into: string | null): ForeignPayload | undefined {
    if (this.owners.size === 0 || text.length < KEPT_MIN_UNITS) return undefined;
    for (const reading of readings(text)) {
      const owner = this.owners.get(hashOf(this.digest, reading));
      if (owner !== undefined && owner.region !== into) return owner;
    }
    return undefined;
  }
}
