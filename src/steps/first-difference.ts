import { hasOwn, isJsonObject, type JsonValue } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";

/**
 * The JSON Pointer of the first place, in the order of the keys, at which two values differ; undefined where they are alike.
 *
 * It tells where to look without telling what is there.
 */
export function firstDifference(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
): string | undefined {
  const found = difference(a, b);
  return found === undefined ? undefined : formatPointer(found.reverse());
}

/** The way to the first difference, from its end. */
function difference(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
): (string | number)[] | undefined {
  if (a === b) return undefined;
  for (const [key, one, other] of members(a, b) ?? []) {
    if (one === undefined || other === undefined) return [key];
    const below = difference(one, other);
    if (below === undefined) continue;
    below.push(key);
    return below;
  }
  return members(a, b) === undefined ? [] : undefined;
}

type Member = [key: string | number, one: JsonValue | undefined, other: JsonValue | undefined];

/** What two values have of each key or position; undefined when they are not both objects, or both lists. */
function members(a: JsonValue | undefined, b: JsonValue | undefined): Member[] | undefined {
  if (Array.isArray(a) && Array.isArray(b)) {
    const length = Math.max(a.length, b.length);
    return Array.from({ length }, (_, i) => [i, a[i], b[i]]);
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return undefined;
  const of = (object: typeof a, key: string) => (hasOwn(object, key) ? object[key] : undefined);
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .map((key) => [key, of(a, key), of(b, key)]);
}
