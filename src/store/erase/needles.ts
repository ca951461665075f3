import type { JsonValue } from "../../core/json.js";
import { isWithheld } from "../../core/withheld.js";
import { unescapeKey } from "../../objects/keys.js";

/** The shortest text that is looked for wherever it may have been copied to, in UTF-16 units. */
export const COPY_MIN_UNITS = 8;

/** Up to so many texts are looked for one by one, which is quicker than by their beginnings. */
const FEW = 8;

/**
 * Texts that are looked for in others. Each is looked for as it is, and as JSON escapes it, since tools hand JSON
 * around as text.
 */
export class Needles {
  readonly #all = new Set<string>();
  /** By their first units. */
  readonly #byHead = new Map<string, string[]>();

  /** Takes a text in; one that is too short is passed over. */
  add(text: string): void {
    if (text.length < COPY_MIN_UNITS) return;
    for (const form of new Set([text, JSON.stringify(text).slice(1, -1)])) this.#enter(form);
  }

  #enter(text: string): void {
    if (this.#all.has(text)) return;
    this.#all.add(text);
    const head = text.slice(0, COPY_MIN_UNITS);
    const alike = this.#byHead.get(head);
    if (alike === undefined) this.#byHead.set(head, [text]);
    else alike.push(text);
  }

  /** How many there are. */
  get size(): number {
    return this.#all.size;
  }

  /** Whether a text holds one. */
  within(text: string): boolean {
    if (this.#all.size <= FEW) {
      for (const needle of this.#all) if (text.includes(needle)) return true;
      return false;
    }
    return !this.matches(text).next().done;
  }

  /** Where in a text they stand: from and to, in UTF-16 units; they may overlap. */
  *matches(text: string): Generator<[from: number, to: number], void, undefined> {
    for (let at = 0; at + COPY_MIN_UNITS <= text.length; at++) {
      const alike = this.#byHead.get(text.slice(at, at + COPY_MIN_UNITS));
      if (alike === undefined) continue;
      for (const needle of alike) {
        if (text.startsWith(needle, at)) yield [at, at + needle.length];
      }
    }
  }

  /** Whether a value holds one, in a string or a key. */
  withinValue(value: JsonValue): boolean {
    if (this.#all.size === 0) return false;
    const open: JsonValue[] = [value];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (typeof at === "string") {
        if (this.within(at)) return true;
      } else if (Array.isArray(at)) {
        for (const element of at) open.push(element);
      } else if (typeof at === "object" && at !== null && !isWithheld(at)) {
        for (const [key, member] of Object.entries(at)) {
          if (this.within(key)) return true;
          open.push(member);
        }
      }
    }
    return false;
  }

  /**
   * Whether the text of a blob holds one: of a value, in a string or a key, or of a piece of a text. What is found in JSON as
   * it stands there counts, whatever it is part of.
   */
  withinBlob(text: string): boolean {
    if (this.#all.size === 0) return false;
    if (this.within(text)) return true;
    // Without an escape sequence, JSON holds its strings as they are.
    if (!text.includes("\\")) return false;
    let value: JsonValue;
    try {
      value = JSON.parse(text) as JsonValue;
    } catch {
      return false;
    }
    return this.withinValue(value);
  }

  /** Whether the name of an entry in an object's tree stands for a key that holds one. */
  withinName(name: string): boolean {
    return !/^[[{"]/.test(name) && this.within(unescapeKey(name));
  }
}

/** The strings of a value that are no keys. */
export function* leafStrings(value: JsonValue): Generator<string, void, undefined> {
  if (typeof value === "string") yield value;
  else if (isWithheld(value)) return;
  else if (Array.isArray(value)) for (const element of value) yield* leafStrings(element);
  else if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) yield* leafStrings(member);
  }
}
