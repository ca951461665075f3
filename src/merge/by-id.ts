import { isJsonObject, type JsonValue } from "../core/json.js";
import { canonicalText } from "../objects/canonical.js";
import { decodeAt } from "../objects/decode.js";
import type { ObjectReader } from "../objects/reader.js";
import { allElements, type ListSide } from "./list-tail.js";
import type { Side } from "./side.js";

/** A list of objects by the value of a member that tells them apart. */
export interface IdentifiedList {
  /** In the list's order: the path token of each element, such as `id="a7"`. */
  readonly tokens: readonly string[];
  readonly elements: ReadonlyMap<string, Side>;
}

/** The path token of the element whose member `key` has this value. */
function idToken(key: string, id: JsonValue): string {
  return `${key}=${canonicalText(id)}`;
}

/**
 * Reads a list's elements by their ids.
 *
 * @returns null when an element has no string or number under `key`, or two have the same
 */
export async function identify(
  reader: ObjectReader,
  list: ListSide,
  key: string,
): Promise<IdentifiedList | null> {
  const tokens: string[] = [];
  const elements = new Map<string, Side>();
  for (const element of await allElements(reader, list)) {
    const id = await memberOf(reader, element, key);
    if (typeof id !== "string" && typeof id !== "number") return null;
    const token = idToken(key, id);
    if (elements.has(token)) return null;
    tokens.push(token);
    elements.set(token, element);
  }
  return { tokens, elements };
}

async function memberOf(
  reader: ObjectReader,
  side: Side,
  key: string,
): Promise<JsonValue | undefined> {
  if (side.link !== undefined) return decodeAt(reader, side.link, [key]);
  if (!isJsonObject(side.value) || !Object.hasOwn(side.value, key)) return undefined;
  return side.value[key];
}

/** Which list gives the merged order, and the merged order of all tokens that survive. */
export interface MergedOrder {
  readonly skeleton: "ours" | "theirs";
  readonly tokens: readonly string[];
}

/**
 * Merges the order of three lists: whoever moved elements decides; what the
 * other side added follows the element that it followed there, ours before
 * theirs.
 *
 * @returns null when both sides moved elements, differently
 */
export function mergeOrder(
  base: readonly string[],
  ours: readonly string[],
  theirs: readonly string[],
  survives: (token: string) => boolean,
): MergedOrder | null {
  const [inBase, inOurs, inTheirs] = [new Set(base), new Set(ours), new Set(theirs)];
  const inAll = (token: string) => inBase.has(token) && inOurs.has(token) && inTheirs.has(token);
  const order = (list: readonly string[]) => JSON.stringify(list.filter(inAll));
  const shared = (list: readonly string[]) =>
    JSON.stringify(list.filter((token) => inOurs.has(token) && inTheirs.has(token)));
  let skeleton: "ours" | "theirs";
  if (order(theirs) === order(base)) skeleton = "ours";
  else if (order(ours) === order(base)) skeleton = "theirs";
  else if (shared(ours) === shared(theirs)) skeleton = "ours";
  else return null;

  const [from, other] = skeleton === "ours" ? [ours, theirs] : [theirs, ours];
  const inFrom = skeleton === "ours" ? inOurs : inTheirs;
  /** What is put behind each element; "" stands for the front. */
  const behind = new Map<string, string[]>();
  let before = "";
  for (const token of other) {
    if (inFrom.has(token)) before = token;
    else if (survives(token)) {
      const list = behind.get(before) ?? [];
      list.push(token);
      behind.set(before, list);
    }
  }
  const tokens: string[] = [];
  /** Theirs waits until ours has placed what it added behind the same element. */
  let waiting: string[] = [];
  const place = (added: string[]) => {
    for (const token of added) tokens.push(token);
  };
  if (skeleton === "theirs") place(behind.get("") ?? []);
  else waiting = behind.get("") ?? [];
  for (const token of from) {
    if (skeleton === "ours" && inTheirs.has(token)) {
      place(waiting);
      waiting = [];
    }
    if (survives(token)) tokens.push(token);
    const added = behind.get(token) ?? [];
    if (skeleton === "theirs") place(added);
    else waiting = [...waiting, ...added];
  }
  place(waiting);
  return { skeleton, tokens };
}

/** The index of the element that a token such as `id="a7"` names; undefined when there is none. */
export async function indexOfToken(
  reader: ObjectReader,
  list: ListSide,
  token: string,
): Promise<number | undefined> {
  const elements = await allElements(reader, list);
  // The key may hold "=" itself: every split is tried.
  for (let at = token.indexOf("="); at >= 0; at = token.indexOf("=", at + 1)) {
    const key = token.slice(0, at);
    for (let i = 0; i < elements.length; i++) {
      const id = await memberOf(reader, elements[i] as Side, key);
      if ((typeof id === "string" || typeof id === "number") && idToken(key, id) === token)
        return i;
    }
  }
  return undefined;
}
