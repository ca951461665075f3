import { AgstateError } from "../core/errors.js";
import { hasOwn, type JsonValue } from "../core/json.js";
import { parsePointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import type { PlacedPart } from "./data-policy.js";
import type { Elsewhere } from "./pointer.js";

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
  /** Where the value belongs, if not here: then a pointer stands for it. Such a value is isolated, too. */
  readonly elsewhere: Elsewhere | null;
  readonly any: Isolation | null;
  readonly keys: ReadonlyMap<string, Isolation>;
  /** What holds below each key, which says whose it is. */
  readonly subject: Isolation | null;
  /** Whether the value, and so all below it, belongs to the owner. */
  readonly owned: boolean;
  /** Whose the owned values from here on are: the key that stood in the place of `{subject}`. */
  readonly owner: string | null;
}

/** What stands in a path in the place of the key that says whose the value is. */
export const SUBJECT_TOKEN = "{subject}";

/**
 * Builds the policy from JSON Pointers below the commit's root tree, such as
 * `/state/user/email`, `/state/messages/*` or `/step/output`, and from those of subjects, such as
 * `/state/users/{subject}`, whose values are isolated as well.
 *
 * @param placed which values belong to other regions; phases of steps are not looked at
 * @returns null when there are no paths
 * @throws AgstateError `INVALID_PATH`
 */
export function compileIsolation(
  paths: readonly string[],
  subjects: readonly string[] = [],
  placed: readonly PlacedPart[] = [],
): Isolation | null {
  if (paths.length + subjects.length + placed.length === 0) return null;
  const root = newNode();
  for (const path of paths) nodeAt(root, tokensOf(path, "isolation"), false).isolated = true;
  for (const path of subjects) {
    const tokens = tokensOf(path, "subjects'");
    if (tokens.filter((token) => token === SUBJECT_TOKEN).length !== 1) {
      throw new AgstateError(
        "INVALID_PATH",
        `subjects' path ${quoteForMessage(path)} must have ${SUBJECT_TOKEN} once, in the place of the key that says whose the value is, such as /state/users/${SUBJECT_TOKEN}`,
        { path },
      );
    }
    const node = nodeAt(root, tokens, true);
    node.isolated = true;
    node.owned = true;
  }
  for (const part of placed) {
    if (!("path" in part)) continue;
    const { path, region, classification } = part;
    const node = nodeAt(root, tokensOf(path, "placement"), false);
    node.isolated = true;
    node.elsewhere = { region, classification };
  }
  return root;
}

function tokensOf(path: string, what: string): string[] {
  const tokens = parsePointer(path);
  if (tokens.length < 2 || !["state", "step"].includes(tokens[0] as string)) {
    throw new AgstateError(
      "INVALID_PATH",
      `${what} path ${quoteForMessage(path)} must name a value below /state or /step, such as /state/user/email`,
      { path },
    );
  }
  return tokens;
}

/** The node at a path, made if it is not there; that of a subject is told from a key of its name. */
function nodeAt(
  root: MutableIsolation,
  tokens: readonly string[],
  subjects: boolean,
): MutableIsolation {
  let node = root;
  for (const token of tokens) {
    if (token === "*") {
      node.any ??= newNode();
      node = node.any;
    } else if (subjects && token === SUBJECT_TOKEN) {
      node.subject ??= newNode();
      node = node.subject;
    } else {
      let next = node.keys.get(token);
      if (next === undefined) {
        next = newNode();
        node.keys.set(token, next);
      }
      node = next;
    }
  }
  return node;
}

interface MutableIsolation extends Isolation {
  isolated: boolean;
  elsewhere: Elsewhere | null;
  owned: boolean;
  any: MutableIsolation | null;
  subject: MutableIsolation | null;
  keys: Map<string, MutableIsolation>;
}

function newNode(): MutableIsolation {
  return {
    isolated: false,
    elsewhere: null,
    any: null,
    keys: new Map(),
    subject: null,
    owned: false,
    owner: null,
  };
}

/** Nothing said of a value, or of what is in it, but what is given. */
export function isolationNode(given: Partial<Isolation>): Isolation {
  return { ...newNode(), ...given };
}

/** A policy for the one key of an object; null where nothing is said of it. */
export function isolationBelow(key: string, policy: Isolation | null): Isolation | null {
  return policy && { ...newNode(), keys: new Map([[key, policy]]) };
}

/** The policy for the value under a key. */
export function isolationOfKey(policy: Isolation | null, key: string): Isolation | null {
  if (policy === null) return null;
  const { any, owner, subject } = policy;
  let found = policy.keys.get(key) ?? null;
  if (any !== null) found = found === null ? any : union(found, any);
  found = ownedBy(found, owner);
  if (subject !== null) {
    const named = ownedBy(subject, key) as Isolation;
    found = found === null ? named : union(named, found);
  }
  return policy.owned ? belongingTo(owner, found) : found;
}

/** The policy for the elements of a list. */
export function isolationOfElement(policy: Isolation | null): Isolation | null {
  if (policy === null) return null;
  const found = ownedBy(policy.any, policy.owner);
  return policy.owned ? belongingTo(policy.owner, found) : found;
}

/** The policy of a part of what belongs to somebody: it does, too, where nothing else is said. */
function belongingTo(owner: string | null, policy: Isolation | null): Isolation {
  if (policy?.owned === true) return policy;
  return { ...(policy ?? newNode()), owned: true, owner };
}

function ownedBy(policy: Isolation | null, owner: string | null): Isolation | null {
  if (policy === null || owner === null || policy.owner !== null) return policy;
  return { ...policy, owner };
}

/** The same policy with its owner told to all below, so that it can be joined with one of another's. */
function settled(policy: Isolation): Isolation {
  const { owner } = policy;
  if (owner === null) return policy;
  const keys = new Map<string, Isolation>();
  for (const [key, node] of policy.keys) keys.set(key, ownedBy(node, owner) as Isolation);
  return { ...policy, keys, any: ownedBy(policy.any, owner), owner: policy.owned ? owner : null };
}

/** Both policies for one value; where both say whose it is, or where it belongs, the first does. */
export function union(one: Isolation, other: Isolation): Isolation {
  const [a, b] = [settled(one), settled(other)];
  const keys = new Map(a.keys);
  for (const [key, node] of b.keys) {
    const known = keys.get(key);
    keys.set(key, known === undefined ? node : union(known, node));
  }
  const both = (x: Isolation | null, y: Isolation | null) =>
    x === null ? y : y === null ? x : union(x, y);
  return {
    isolated: a.isolated || b.isolated,
    elsewhere: a.elsewhere ?? b.elsewhere,
    any: both(a.any, b.any),
    keys,
    subject: both(a.subject, b.subject),
    owned: a.owned || b.owned,
    owner: a.owner ?? b.owner,
  };
}

/** Where the value at a path belongs, or what it is a part of, or a part of it; null when all of it belongs here. */
export function elsewhereAt(policy: Isolation | null, tokens: readonly string[]): Elsewhere | null {
  if (policy === null || policy.elsewhere !== null) return policy?.elsewhere ?? null;
  const [token, ...rest] = tokens;
  if (token !== undefined) return elsewhereAt(isolationOfKey(policy, token), rest);
  for (const node of [policy.any, policy.subject, ...policy.keys.values()]) {
    const found = elsewhereAt(node, []);
    if (found !== null) return found;
  }
  return null;
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
  if (policy.any !== null || policy.subject !== null) {
    return Object.keys(object).some((key) =>
      standsApart(isolationOfKey(policy, key), object[key] as JsonValue),
    );
  }
  for (const [key, node] of policy.keys) {
    if (hasOwn(object, key) && standsApart(node, object[key] as JsonValue)) return true;
  }
  return false;
}
