import { hasOwn, type JsonValue } from "../core/json.js";

/**
 * A value that may be stored again and again: `normalize` walks it once, and then takes what it made of it.
 *
 * To anybody else it is its value, by `toJSON`. The value is JSON, holds no other one, and is left alone by
 * whoever made it.
 */
export class Kept {
  /** What normalising it counted, and how many levels of objects and arrays are below it; unknown before. */
  size: { readonly bytes: number; readonly levels: number } | undefined;

  constructor(public value: object & JsonValue) {}

  toJSON(): JsonValue {
    return this.value;
  }
}

/** Whether two values are the same JSON; the order of members does not count. */
export function isSameJson(a: JsonValue, b: JsonValue): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => isSameJson(item, b[index] as JsonValue));
  }
  const [one, other] = [a, b] as { readonly [key: string]: JsonValue }[] as [Members, Members];
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every(
      (key) => hasOwn(other, key) && isSameJson(one[key] as JsonValue, other[key] as JsonValue),
    )
  );
}

type Members = { readonly [key: string]: JsonValue };
