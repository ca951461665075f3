import { isJsonObject, type JsonValue, setOwn } from "../../core/json.js";
import { isWithheld } from "../../core/withheld.js";
import type { Needles } from "./needles.js";
import { belowIndex, belowKey, endsHere, type Paths } from "./paths.js";

/** What stands in the place of a string that held what was erased. */
const ERASED_TEXT = "[erased]";

/**
 * A value without what is erased: what stands at the paths is taken out, a string that holds a copy becomes
 * {@link ERASED_TEXT}, and a key that does goes with its member. What does not change is the same as before.
 *
 * @returns undefined when the value itself goes
 */
export function cleanValue(
  value: JsonValue,
  paths: Paths,
  needles: Needles,
): JsonValue | undefined {
  if (endsHere(paths)) return undefined;
  if (typeof value === "string") return needles.within(value) ? ERASED_TEXT : value;
  if (Array.isArray(value)) {
    const list: JsonValue[] = [];
    let changed = false;
    for (const [i, element] of value.entries()) {
      const cleaned = cleanValue(element, belowIndex(paths, i), needles);
      changed ||= cleaned !== element;
      if (cleaned !== undefined) list.push(cleaned);
    }
    return changed ? list : value;
  }
  if (isWithheld(value) || !isJsonObject(value)) return value;
  const members: Record<string, JsonValue> = {};
  let changed = false;
  for (const [key, member] of Object.entries(value)) {
    const cleaned = needles.within(key)
      ? undefined
      : cleanValue(member, belowKey(paths, key), needles);
    changed ||= cleaned !== member;
    if (cleaned !== undefined) setOwn(members, key, cleaned);
  }
  return changed ? members : value;
}
