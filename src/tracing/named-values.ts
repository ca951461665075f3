import { hasOwn } from "../core/json.js";
import type { SecretKeys } from "../core/secret-keys.js";

/** Members by which objects name what their member `value` is, as lists of headers and of variables do. */
const NAMING = ["name", "key", "header", "field", "id"] as const;

/** Headers are known in a list of names and values by turns. */
const HEADER = /^(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key)$/i;

/** Whether an object's member `value` is secret by what another member calls it: `{"name":"API_KEY","value":...}`. */
export function isNamedSecret(object: object, isSecret: SecretKeys): boolean {
  if (!hasOwn(object, "value")) return false;
  const { value, ...others } = object as Readonly<Record<string, unknown>>;
  return NAMING.some((member) => {
    const name = hasOwn(others, member) ? others[member] : undefined;
    return typeof name === "string" && isSecret(name, value);
  });
}

/** Whether a part of a list is secret by the one before: the second of a pair, the value of an option, that of a header. */
export function isAfterSecretName(
  list: readonly unknown[],
  at: number,
  isSecret: SecretKeys,
): boolean {
  const name = list[at - 1];
  if (typeof name !== "string") return false;
  if (HEADER.test(name)) return true;
  return (list.length === 2 || /^--?[a-z]/i.test(name)) && isSecret(name, list[at]);
}
