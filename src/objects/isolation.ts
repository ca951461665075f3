import { AgstateError } from "../core/errors.js";
import { hasOwn, type JsonValue } from "../core/json.js";
import { parsePointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";

/**
 * An isolation policy as a tree of path tokens: where it says `isolated`, the
 * value is always an object of its own, never part of a greater blob, so that
 * it can be erased or kept elsewhere without touching its neighbours.
 *
 * `*` stands for any key or any list element. List elements are matched by `*`
 * only: an index would make an element's mapping depend on its position.
 */
export interface Isolation {
  readonly isolated: boolean;
  readonly any: Isolation | null;
  readonly keys: ReadonlyMap<string, Isolation>;
}

/**
 * Builds the policy from JSON Pointers below the commit's root tree, such as
 * `/state/user/email`, `/state/messages/*` or `/step/output`.
 *
 * @returns null when there are no paths
 * @throws AgstateError `INVALID_PATH`
 */
export function compileIsolation(paths: readonly string[]): Isolation | null {
  if (paths.length === 0) return null;
  const root = newNode();
  for (const path of paths) {
    const tokens = parsePointer(path);
    if (tokens.length < 2 || !["state", "step"].includes(tokens[0] as string)) {
      throw new AgstateError(
        "INVALID_PATH",
        `isolation path ${quoteForMessage(path)} must name a value below /state or /step, such as /state/user/email`,
        { path },
      );
    }
    let node = root;
    for (const token of tokens) {
      if (token === "*") {
        node.any ??= newNode();
        node = node.any;
      } else {
        let next = node.keys.get(token);
        if (next === undefined) {
          next = newNode();
          node.keys.set(token, next);
        }
        node = next;
      }
    }
    node.isolated = true;
  }
  return root;
}

interface MutableIsolation extends Isolation {
  isolated: boolean;
  any: MutableIsolation | null;
  keys: Map<string, MutableIsolation>;
}

function newNode(): MutableIsolation {
  return { isolated: false, any: null, keys: new Map() };
}

/** The policy for the value under a key. */
export function isolationOfKey(policy: Isolation | null, key: string): Isolation | null {
  if (policy === null) return null;
  const named = policy.keys.get(key) ?? null;
  if (named === null) return policy.any;
  if (policy.any === null) return named;
  return union(named, policy.any);
}

/** The policy for the elements of a list. */
export function isolationOfElement(policy: Isolation | null): Isolation | null {
  return policy === null ? null : policy.any;
}

function union(a: Isolation, b: Isolation): Isolation {
  const keys = new Map(a.keys);
  for (const [key, node] of b.keys) {
    const other = keys.get(key);
    keys.set(key, other === undefined ? node : union(other, node));
  }
  return {
    isolated: a.isolated || b.isolated,
    any: a.any === null ? b.any : b.any === null ? a.any : union(a.any, b.any),
    keys,
  };
}

/** Whether the value is isolated itself or holds something that is: it can then not be part of another blob. */
export function standsApart(policy: Isolation | null, value: JsonValue): boolean {
  return policy !== null && (policy.isolated || holdsIsolated(policy, value));
}

/** Whether something below the value is isolated, so that the value must be a tree whatever its size. */
export function holdsIsolated(policy: Isolation | null, value: JsonValue): boolean {
  if (policy === null || typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) {
    const element = policy.any;
    return element !== null && value.some((v) => standsApart(element, v));
  }
  const object = value as { readonly [key: string]: JsonValue };
  if (policy.any !== null) {
    return Object.keys(object).some((key) =>
      standsApart(isolationOfKey(policy, key), object[key] as JsonValue),
    );
  }
  for (const [key, node] of policy.keys) {
    if (hasOwn(object, key) && standsApart(node, object[key] as JsonValue)) return true;
  }
  return false;
}
