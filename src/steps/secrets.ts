import { hasOwn, type JsonValue, setOwn } from "../core/json.js";
import { parsePointer } from "../core/json-pointer.js";

/** What stands in the place of a secret. */
const SECRET = "[secret]";

/** Members that hold credentials whatever the tool says, by lower-case name. */
const ALWAYS = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
  "x-api-key",
  "api-key",
]);

/**
 * A copy of a step's input with the values at the declared paths, and those of members that are
 * named like credential headers, replaced; what holds no secret is shared.
 *
 * @param paths JSON Pointers, with `*` for any member or element
 * @throws AgstateError `INVALID_PATH`
 */
export function withoutSecrets(input: JsonValue, paths: readonly string[]): JsonValue {
  if (paths.length === 0 && !holdsCredentials(input)) return input;
  return replace(
    input,
    paths.map((path) => parsePointer(path)),
  );
}

/** Whether a member is named like a credential header, at whatever depth. */
function holdsCredentials(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsCredentials);
  for (const key of Object.keys(value)) {
    const member = (value as { readonly [key: string]: JsonValue })[key] as JsonValue;
    if (ALWAYS.has(key.toLowerCase()) || holdsCredentials(member)) return true;
  }
  return false;
}

function replace(value: JsonValue, paths: readonly (readonly string[])[]): JsonValue {
  if (paths.some((path) => path.length === 0)) return SECRET;
  if (typeof value !== "object" || value === null) return value;
  const below = (key: string) =>
    paths.filter(([first]) => first === "*" || first === key).map((path) => path.slice(1));
  if (Array.isArray(value)) {
    const copy = value.map((element, i) => replace(element, below(String(i))));
    return copy.every((element, i) => element === value[i]) ? value : copy;
  }
  const object = value as { readonly [key: string]: JsonValue };
  const copy: { [key: string]: JsonValue } = {};
  let same = true;
  for (const key of Object.keys(object)) {
    if (!hasOwn(object, key)) continue;
    const member = object[key] as JsonValue;
    const kept = ALWAYS.has(key.toLowerCase()) ? SECRET : replace(member, below(key));
    same &&= kept === member;
    setOwn(copy, key, kept);
  }
  return same ? value : copy;
}
