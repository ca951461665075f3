import type { ObjectId } from "../core/ids.js";
import { type JsonValue, setOwn } from "../core/json.js";
import { parseIndex } from "../core/json-pointer.js";
import { KeyTable } from "./draft/key-table.js";
import type { Link } from "./encode.js";
import { unescapeKey } from "./keys.js";
import type { DecodedObject, ObjectReader } from "./reader.js";
import { splitArray } from "./runs.js";
import { readNode } from "./sequence.js";
import { StoredSequence } from "./sequence-edit.js";
import type { TreeEntry } from "./tree.js";
import { treeKind } from "./tree-kind.js";

type Loaded = ReadonlyMap<ObjectId, DecodedObject>;

/** Turns a blob of JSON into its value. */
type Parse = (blob: Blob) => JsonValue;
type Blob = DecodedObject & { readonly type: "blob" };

/**
 * Reads a whole value.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
 */
export async function decodeValue(reader: ObjectReader, link: Link): Promise<JsonValue> {
  return assemble(await reader.readWhole(link.id), link.id, parseBlob);
}

/**
 * Makes a `decodeValue` whose values share what they have in common, as long as the reader's cache has it:
 * each blob is parsed once. Nothing in these values may be changed.
 */
export function sharingDecoder(): typeof decodeValue {
  const parsed = new WeakMap<Blob, JsonValue>();
  const parse: Parse = (blob) => {
    const known = parsed.get(blob);
    if (known !== undefined) return known;
    const value = parseBlob(blob);
    parsed.set(blob, value);
    return value;
  };
  return async (reader, link) => assemble(await reader.readWhole(link.id), link.id, parse);
}

function parseBlob(blob: Blob): JsonValue {
  return JSON.parse(blob.text) as JsonValue;
}

function assemble(loaded: Loaded, id: ObjectId, parse: Parse): JsonValue {
  const object = loaded.get(id) as DecodedObject;
  if (object.type === "blob") return parse(object);
  switch (treeKind(object.entries)) {
    case "text": {
      const parts: string[] = [];
      collectText(loaded, id, parts);
      return parts.join("");
    }
    case "list": {
      const list: JsonValue[] = [];
      collectElements(loaded, id, list, parse);
      return list;
    }
    default: {
      const members: Record<string, JsonValue> = {};
      collectMembers(loaded, object.entries, members, parse);
      return members;
    }
  }
}

function collectText(loaded: Loaded, id: ObjectId, into: string[]): void {
  const object = loaded.get(id) as DecodedObject;
  if (object.type === "blob") into.push(object.text);
  else for (const entry of object.entries) collectText(loaded, entry.id, into);
}

function collectElements(loaded: Loaded, id: ObjectId, into: JsonValue[], parse: Parse): void {
  const object = loaded.get(id) as DecodedObject & { type: "tree" };
  for (const entry of readNode(object.entries, id)) {
    if (entry.kind === "n") collectElements(loaded, entry.id, into, parse);
    else if (entry.kind === "e") into.push(assemble(loaded, entry.id, parse));
    else {
      const run = parse(loaded.get(entry.id) as Blob) as readonly JsonValue[];
      for (const element of run) into.push(element);
    }
  }
}

function collectMembers(
  loaded: Loaded,
  entries: readonly TreeEntry[],
  into: Record<string, JsonValue>,
  parse: Parse,
): void {
  for (const entry of entries) {
    if (entry.name[0] === "{") {
      const bucket = loaded.get(entry.id) as DecodedObject & { type: "tree" };
      collectMembers(loaded, bucket.entries, into, parse);
    } else {
      setOwn(into, unescapeKey(entry.name), assemble(loaded, entry.id, parse));
    }
  }
}

/** Where a value stands: an object of its own, or at hand as a part of a blob that holds more than it. */
export type Place = { readonly link: Link } | { readonly value: JsonValue };

/**
 * Reads the value at a path, and only what lies on the way to it.
 *
 * @returns undefined when there is no value at the path
 */
export async function decodeAt(
  reader: ObjectReader,
  link: Link,
  tokens: readonly string[],
): Promise<JsonValue | undefined> {
  const place = await placeAt(reader, link, tokens);
  return place === undefined ? undefined : valueAt(reader, place);
}

/** Reads the whole value that stands at a place. */
export async function valueAt(reader: ObjectReader, place: Place): Promise<JsonValue> {
  return "value" in place ? place.value : decodeValue(reader, place.link);
}

/**
 * Finds the value at a path without reading it, where it is an object of its own.
 *
 * @returns undefined when there is no value at the path
 */
export async function placeAt(
  reader: ObjectReader,
  link: Link,
  tokens: readonly string[],
): Promise<Place | undefined> {
  let at: Place | undefined = { link };
  for (const token of tokens) {
    if (at === undefined) return undefined;
    at = await placeBelow(reader, at, token);
  }
  return at;
}

/** Finds a member or element of the value at a place; undefined when there is none of that name. */
export async function placeBelow(
  reader: ObjectReader,
  place: Place,
  token: string,
): Promise<Place | undefined> {
  if ("value" in place) return valueBelow(place.value, token);
  const { id } = place.link;
  const object = await reader.read(id);
  if (object.type === "blob") return valueBelow(JSON.parse(object.text) as JsonValue, token);
  switch (treeKind(object.entries)) {
    case "text":
      return undefined;
    case "list":
      return elementBelow(reader, id, parseIndex(token));
    default: {
      const link = await (await KeyTable.stored(reader, id)).get(token);
      return link && { link };
    }
  }
}

async function elementBelow(
  reader: ObjectReader,
  id: ObjectId,
  index: number | undefined,
): Promise<Place | undefined> {
  const list = await StoredSequence.open(reader, id);
  if (index === undefined || index >= list.length) return undefined;
  const { entry, start } = await list.entryAt(index);
  if (entry.kind !== "r") return { link: entry };
  const element = splitArray(await reader.text(entry.id))[index - start] as string;
  return { value: JSON.parse(element) as JsonValue };
}

function valueBelow(value: JsonValue, token: string): Place | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  let below: JsonValue | undefined;
  if (Array.isArray(value)) {
    const index = parseIndex(token);
    below = index === undefined ? undefined : (value[index] as JsonValue | undefined);
  } else if (Object.hasOwn(value, token)) {
    below = (value as { readonly [key: string]: JsonValue })[token];
  }
  return below === undefined ? undefined : { value: below };
}
