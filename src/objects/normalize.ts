import { AgstateError } from "../core/errors.js";
import { hasOwn, type JsonValue, setOwn } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { anyWithheld, isWithheldJson, markIfHolder, Withheld } from "../core/withheld.js";
import { DEPTH_MAX, KEY_MAX_BYTES } from "./format.js";
import { isSameJson, Kept } from "./kept.js";
import { oversizeKeyBytes } from "./keys.js";

/**
 * Validates a value and takes a private copy of it, sharing what is equal.
 *
 * The rules are those of `JSON.stringify` where it loses nothing: `toJSON` is
 * called, a member that is `undefined` is left out, `-0` becomes `0`. What it
 * would lose or change silently is an error that names the JSON path: NaN and
 * Infinity, `undefined` and holes in arrays, functions, symbols, BigInt, class
 * instances without `toJSON` (Map, Set, typed arrays, Error ...), cycles, and
 * lone surrogates in strings and keys. A shared reference is fine. Members come in
 * UTF-16 order, as far as JavaScript keeps any.
 *
 * Where a subtree equals the one of `previous` at the same place, the result
 * holds that very object, so that `===` tells what is unchanged. `previous`
 * must be an earlier result. A `Kept` value stands for what it holds, and is
 * walked the first time only.
 *
 * @param maxBytes the most bytes of JSON, escape sequences not counted
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function normalize(
  value: unknown,
  options: {
    previous?: JsonValue | undefined;
    maxBytes: number;
    what?: string;
    /** Where the value goes; paths in errors begin there, and it counts for the depth. */
    at?: readonly string[];
  },
): JsonValue {
  const walk = new Walk(options.what ?? "state", options.maxBytes, options.at ?? []);
  return walk.value(value, options.previous);
}

/** Like `normalize`, for values that all go to one place; their bytes are counted together. */
export function normalizeAll(
  values: readonly unknown[],
  options: { maxBytes: number; at: readonly string[] },
): JsonValue[] {
  const walk = new Walk("state", options.maxBytes, options.at);
  return values.map((value) => walk.value(value, undefined));
}

/** From here on, an object that is met again is not walked again. */
const UNFOLD_FROM_BYTES = 1_000_000;

class Walk {
  private readonly path: (string | number)[];
  private bytes = 0;

  constructor(
    private readonly what: string,
    private readonly maxBytes: number,
    at: readonly string[],
  ) {
    this.path = [...at];
  }

  value(value: unknown, previous: JsonValue | undefined): JsonValue {
    switch (typeof value) {
      case "string":
        return this.string(value);
      case "number":
        if (!Number.isFinite(value)) this.refuse(`is ${value}, which JSON cannot hold`);
        this.count(1);
        return value === 0 ? 0 : value;
      case "boolean":
        this.count(4);
        return value;
      case "object":
        return value === null ? null : this.object(value, previous);
      case "undefined":
        return this.refuse("is undefined, which JSON cannot hold; use null or leave it out");
      case "bigint":
        return this.refuse(`is the BigInt ${value}n, which JSON cannot hold; use a string`);
      default:
        return this.refuse(`is a ${typeof value}, which JSON cannot hold`);
    }
  }

  private string(text: string): string {
    if (!text.isWellFormed()) {
      this.refuse("holds a lone surrogate (half of a character), which UTF-8 cannot hold");
    }
    this.count(Buffer.byteLength(text) + 2);
    return text;
  }

  /**
   * What objects came to, and how many bytes they count, once a value is so
   * large that shared references in it could unfold without end.
   */
  private unfolded: Map<object, { result: JsonValue; bytes: number }> | undefined;

  private object(given: object, previous: JsonValue | undefined): JsonValue {
    if (given instanceof Kept) return this.kept(given, previous);
    if (given instanceof Withheld) return this.withheld(given, previous);
    if (this.bytes < UNFOLD_FROM_BYTES) return this.fold(given, previous);
    this.unfolded ??= new Map();
    const known = this.unfolded.get(given);
    if (known !== undefined) {
      this.count(known.bytes);
      return known.result;
    }
    const before = this.bytes;
    const result = this.fold(given, previous);
    this.unfolded.set(given, { result, bytes: this.bytes - before });
    return result;
  }

  /** What is not told stays what it is, whoever holds it. */
  private withheld(given: Withheld, previous: JsonValue | undefined): JsonValue {
    this.count(4);
    const before: unknown = previous;
    const same = before instanceof Withheld && before.link.id === given.link.id;
    return (same ? before : given) as unknown as JsonValue;
  }

  private kept(kept: Kept, previous: JsonValue | undefined): JsonValue {
    const { size } = kept;
    const depth = this.path.length;
    if (
      size !== undefined &&
      this.bytes + size.bytes <= this.maxBytes &&
      depth + size.levels < DEPTH_MAX
    ) {
      this.count(size.bytes);
      if (previous !== undefined && previous !== kept.value && isSameJson(previous, kept.value)) {
        // So that next time the very object is at hand.
        kept.value = previous as object & JsonValue;
      }
      return kept.value;
    }
    const { bytes } = this;
    this.deepest = depth;
    kept.value = this.fold(kept.value, previous) as object & JsonValue;
    kept.size ??= { bytes: this.bytes - bytes, levels: this.deepest - depth };
    return kept.value;
  }

  /** How many keys and indexes lead to the deepest object or array of the kept value that is walked. */
  private deepest = 0;

  private fold(given: object, previous: JsonValue | undefined): JsonValue {
    const value = this.convert(given);
    if (typeof value !== "object" || value === null) return this.value(value, previous);
    if (this.path.length >= DEPTH_MAX) this.refuseDepth(value);
    if (this.path.length > this.deepest) this.deepest = this.path.length;
    this.count(2);
    this.ancestors.push(value);
    const result = Array.isArray(value)
      ? this.array(value, Array.isArray(previous) ? previous : undefined)
      : this.members(
          value as Record<string, unknown>,
          typeof previous === "object" && previous !== null && !Array.isArray(previous)
            ? (previous as Record<string, JsonValue>)
            : undefined,
        );
    this.ancestors.pop();
    return result;
  }

  /** The objects above the current one, to tell a cycle from mere depth. */
  private readonly ancestors: object[] = [];

  /** Applies `toJSON` and refuses what is neither a plain object nor an array. */
  private convert(given: object): unknown {
    const toJSON = (given as { toJSON?: unknown }).toJSON;
    let value: unknown = given;
    if (given instanceof Date && Number.isNaN(given.getTime())) {
      this.refuse("is an invalid Date, which would become null");
    }
    if (typeof toJSON === "function") {
      value = toJSON.call(given, String(this.path.at(-1) ?? ""));
      if (typeof value !== "object" || value === null) return value;
    }
    const prototype = Object.getPrototypeOf(value);
    if (Array.isArray(value)) {
      if (prototype !== Array.prototype && !isForeignPlain(prototype, "Array")) {
        this.refuse(`is an instance of ${className(prototype)}, not a plain array`);
      }
    } else if (
      prototype !== Object.prototype &&
      prototype !== null &&
      !isForeignPlain(prototype, "Object")
    ) {
      this.refuse(
        `is an instance of ${className(prototype)}, which JSON cannot hold; convert it first or give it a toJSON method`,
      );
    }
    return value;
  }

  private array(value: readonly unknown[], previous: readonly JsonValue[] | undefined): JsonValue {
    const length = value.length;
    this.count(length);
    // Holes make fewer keys, and are told apart below.
    if (Object.keys(value).length > length) {
      const extra = Object.keys(value)[length] as string;
      this.refuse(`is an array with the member ${quoteForMessage(extra)}, which JSON cannot hold`);
    }
    const same = previous !== undefined && previous.length === length;
    const out: JsonValue[] = new Array(length);
    let equal = same;
    // Unequal lengths: what matches from the front, then from the back, is shared; the middle is new.
    let front = 0;
    let shift = 0;
    if (!same && previous !== undefined) shift = length - previous.length;
    let matching = previous !== undefined;
    for (; front < length; front++) {
      const before = matching ? (previous as readonly JsonValue[])[front] : undefined;
      const now = this.element(value, front, before);
      out[front] = now;
      if (now !== before) {
        equal = false;
        if (!same) {
          matching = false;
          front++;
          break;
        }
      }
    }
    let back = length;
    if (!same && previous !== undefined) {
      while (back > front && back - 1 - shift >= front - 1 && back - 1 - shift >= 0) {
        const before = previous[back - 1 - shift];
        const now = this.element(value, back - 1, before);
        out[--back] = now;
        if (now !== before) break;
      }
    }
    for (let i = front; i < back; i++) out[i] = this.element(value, i, undefined);
    if (equal) return previous as readonly JsonValue[];
    markIfHolder(out, out);
    return out;
  }

  private element(array: readonly unknown[], index: number, previous: JsonValue | undefined) {
    this.path.push(index);
    if (!(index in array)) this.refuse("is a hole in a sparse array; fill it with null");
    const now = this.value(array[index], previous);
    this.path.pop();
    return now;
  }

  private members(
    value: Record<string, unknown>,
    previous: Record<string, JsonValue> | undefined,
  ): JsonValue {
    if (isWithheldJson(value)) {
      this.refuse(
        "is what a withheld value looks like as JSON, which would be stored in its place; give the value as it was read, or leave it out",
      );
    }
    const keys = sortedKeys(value);
    for (const symbol of Object.getOwnPropertySymbols(value)) {
      if (Object.prototype.propertyIsEnumerable.call(value, symbol)) {
        this.refuse(`has the symbol key ${String(symbol)}, which JSON cannot hold`);
      }
    }
    if (previous === undefined) {
      const made: Record<string, JsonValue> = {};
      for (const key of keys) {
        const now = this.member(key, value[key], undefined);
        if (now !== undefined) setOwn(made, key, now);
      }
      if (anyWithheld()) markIfHolder(made, Object.values(made));
      return made;
    }
    const names: string[] = [];
    const values: JsonValue[] = [];
    let equal = true;
    for (const key of keys) {
      const had = hasOwn(previous, key);
      const before = had ? previous[key] : undefined;
      const now = this.member(key, value[key], before);
      if (now === undefined) continue;
      if (!had || now !== before) equal = false;
      names.push(key);
      values.push(now);
    }
    if (equal && Object.keys(previous).length === names.length) return previous;
    const out: Record<string, JsonValue> = {};
    for (let i = 0; i < names.length; i++) setOwn(out, names[i] as string, values[i]);
    markIfHolder(out, values);
    return out;
  }

  /** A member's value; undefined when it is left out. */
  private member(key: string, raw: unknown, before: JsonValue | undefined): JsonValue | undefined {
    if (raw === undefined) return undefined;
    this.key(key);
    this.path.push(key);
    const now = this.memberValue(raw, before);
    this.path.pop();
    return now;
  }

  /** A member's value; undefined when its `toJSON` says that it has none. */
  private memberValue(raw: unknown, before: JsonValue | undefined): JsonValue | undefined {
    if (typeof raw === "object" && raw !== null && !isOurs(raw)) {
      const toJSON = (raw as { toJSON?: unknown }).toJSON;
      if (typeof toJSON === "function") {
        const converted = this.convert(raw);
        if (converted === undefined) return undefined;
        return this.value(converted, before);
      }
    }
    return this.value(raw, before);
  }

  private key(key: string): void {
    checkKey(key, this.what, this.path);
    this.count(key.length + 3);
  }

  private count(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > this.maxBytes) {
      throw new AgstateError(
        "LIMIT_EXCEEDED",
        `the ${this.what} has more than ${this.maxBytes} bytes, the limit stateMaxBytes; raise it at openStore or keep large payloads elsewhere`,
        { limit: this.maxBytes, atLeast: this.bytes, path: formatPointer(this.path) },
      );
    }
  }

  private refuseDepth(value: object): never {
    if (this.ancestors.includes(value)) {
      this.path.splice(16);
      this.refuse("leads back to itself (a cycle), which JSON cannot hold");
    }
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `the ${this.what} is nested deeper than ${DEPTH_MAX} levels, the limit; the path begins ${formatPointer(this.path.slice(0, 8))}`,
      { limit: DEPTH_MAX, path: formatPointer(this.path) },
    );
  }

  private refuse(problem: string): never {
    throw new AgstateError("INVALID_VALUE", `${place(this.what, this.path)} ${problem}`, {
      path: formatPointer(this.path),
    });
  }
}

/** What has a `toJSON` for others, and is known here. */
function isOurs(value: object): boolean {
  return value instanceof Kept || value instanceof Withheld;
}

/** Up to so many keys are put in order in place, which makes no garbage. */
const FEW_KEYS = 32;

/** In UTF-16 order, so that the copy's canonical text needs no sorting, however often it is made. */
function sortedKeys(value: object): string[] {
  const keys = Object.keys(value);
  if (keys.length > FEW_KEYS) return keys.sort();
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string;
    let at = i;
    for (; at > 0 && (keys[at - 1] as string) > key; at--) keys[at] = keys[at - 1] as string;
    keys[at] = key;
  }
  return keys;
}

function place(what: string, path: readonly (string | number)[]): string {
  return path.length === 0 ? `the ${what}` : `${what} at ${quoteForMessage(formatPointer(path))}`;
}

/**
 * Checks a key of the object at `path`.
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function checkKey(key: string, what: string, path: readonly (string | number)[]): void {
  if (!key.isWellFormed()) {
    throw new AgstateError(
      "INVALID_VALUE",
      `${place(what, path)} has the key ${quoteForMessage(key)} with a lone surrogate, which UTF-8 cannot hold`,
      { path: formatPointer(path) },
    );
  }
  const oversize = oversizeKeyBytes(key);
  if (oversize > 0) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `${place(what, path)} has a key of ${oversize} bytes (escaped); the limit is ${KEY_MAX_BYTES}`,
      { path: formatPointer(path), size: oversize, limit: KEY_MAX_BYTES },
    );
  }
}

function className(prototype: { constructor?: { name?: string } }): string {
  return prototype?.constructor?.name || "an unnamed class";
}

/** Whether a prototype is another realm's `Object.prototype` or `Array.prototype` (a worker's, a vm context's). */
function isForeignPlain(prototype: object, name: "Object" | "Array"): boolean {
  const top = name === "Object" ? prototype : Object.getPrototypeOf(prototype);
  return (
    top !== null &&
    Object.getPrototypeOf(top) === null &&
    hasOwn(prototype, "constructor") &&
    (prototype.constructor as { name?: string })?.name === name
  );
}
