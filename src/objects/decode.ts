import type { ObjectId } from "../core/ids.js";
import { type JsonValue, setOwn } from "../core/json.js";
import { parseIndex } from "../core/json-pointer.js";
import { anyWithheld, isWithheld, markIfHolder, type Withheld } from "../core/withheld.js";
import { KeyTable } from "./draft/key-table.js";
import type { Link } from "./encode.js";
import { unescapeKey } from "./keys.js";
import {
  type DecodedObject,
  type ObjectReader,
  type OpaqueObject,
  refuseWithheld,
} from "./reader.js";
import { runElements } from "./run-elements.js";
import type { ListElement } from "./runs.js";
import { readNode } from "./sequence.js";
import { StoredSequence } from "./sequence-edit.js";
import type { TreeEntry } from "./tree.js";
import { treeKind } from "./tree-kind.js";

type Loaded = ReadonlyMap<ObjectId, DecodedObject>;

/** Turns a blob of JSON into its value. */
type Parse = (blob: Blob) => JsonValue;
type Blob = DecodedObject & { readonly type: "blob" };

/**
 * Reads a whole value. Parts that are not told are {@link Withheld}.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
 */
export async function decodeValue(reader: ObjectReader, link: Link): Promise<JsonValue> {
  return new Assembly(reader, await reader.readWhole(link.id), parseBlob).value(link.id);
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
  return async (reader, link) =>
    new Assembly(reader, await reader.readWhole(link.id), parse).value(link.id);
}

function parseBlob(blob: Blob): JsonValue {
  return JSON.parse(blob.text) as JsonValue;
}

/** Puts a value together from its objects. */
class Assembly {
  constructor(
    private readonly reader: ObjectReader,
    private readonly loaded: Loaded,
    private readonly parse: Parse,
  ) {}

  value(id: ObjectId): JsonValue {
    const object = this.loaded.get(id) as DecodedObject;
    if (object.type === "blob") return this.parse(object);
    if (object.type === "opaque") return this.withheld(id, object);
    switch (treeKind(object.entries)) {
      case "text": {
        const parts: string[] = [];
        const hidden = this.text(id, parts);
        return hidden === null ? parts.join("") : this.withheld(id, { ...hidden, of: "tree" });
      }
      case "list": {
        const list: JsonValue[] = [];
        this.elements(id, Number.NaN, list);
        markIfHolder(list, list);
        return list;
      }
      default: {
        const members: Record<string, JsonValue> = {};
        const hidden = this.members(object.entries, members);
        if (hidden !== null) return this.withheld(id, { ...hidden, of: "tree" });
        if (anyWithheld()) markIfHolder(members, Object.values(members));
        return members;
      }
    }
  }

  private withheld(id: ObjectId, object: OpaqueObject): JsonValue {
    return this.reader.withheld(id, object) as unknown as JsonValue;
  }

  /** @returns the first piece that is not told, without which the text is none; else null */
  private text(id: ObjectId, into: string[]): OpaqueObject | null {
    const object = this.loaded.get(id) as DecodedObject;
    if (object.type === "opaque") return object;
    if (object.type === "blob") {
      into.push(object.text);
      return null;
    }
    for (const entry of object.entries) {
      const hidden = this.text(entry.id, into);
      if (hidden !== null) return hidden;
    }
    return null;
  }

  /** @param count how many elements are below, as the entry says that leads here */
  private elements(id: ObjectId, count: number, into: JsonValue[]): void {
    const object = this.loaded.get(id) as DecodedObject;
    // Of nodes and runs that are not told, each element stands for the whole of them.
    if (object.type === "opaque") {
      const element = this.withheld(id, object);
      for (let i = 0; i < count; i++) into.push(element);
      return;
    }
    const { entries } = object as DecodedObject & { type: "tree" };
    for (const entry of readNode(entries, id)) {
      if (entry.kind === "n") this.elements(entry.id, entry.count, into);
      else if (entry.kind === "e") into.push(this.value(entry.id));
      else {
        const run = this.loaded.get(entry.id) as DecodedObject;
        if (run.type === "opaque") this.elements(entry.id, entry.count, into);
        else {
          const elements = this.parse(run as Blob) as readonly JsonValue[];
          for (const element of elements) into.push(element);
        }
      }
    }
  }

  /** @returns the first bucket that is not told, without which nobody knows the keys; else null */
  private members(
    entries: readonly TreeEntry[],
    into: Record<string, JsonValue>,
  ): OpaqueObject | null {
    for (const entry of entries) {
      if (entry.name[0] === "{") {
        const bucket = this.loaded.get(entry.id) as DecodedObject;
        if (bucket.type === "opaque") return bucket;
        const hidden = this.members((bucket as DecodedObject & { type: "tree" }).entries, into);
        if (hidden !== null) return hidden;
      } else {
        setOwn(into, unescapeKey(entry.name), this.value(entry.id));
      }
    }
    return null;
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

/**
 * Finds a member or element of the value at a place; undefined when there is none of that name.
 *
 * @throws AgstateError `ERASED`, `WITHHELD` when the value is not told
 */
export async function placeBelow(
  reader: ObjectReader,
  place: Place,
  token: string,
): Promise<Place | undefined> {
  if ("value" in place) return valueBelow(place.value, token);
  const { id } = place.link;
  const object = await reader.read(id);
  if (object.type === "blob") return valueBelow(JSON.parse(object.text) as JsonValue, token);
  if (object.type === "opaque") throw refuseWithheld(reader.withheld(id, object));
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
  const element = (await runElements(reader, entry))[index - start] as ListElement;
  return "id" in element ? { link: element } : { value: JSON.parse(element.text) as JsonValue };
}

function valueBelow(value: JsonValue, token: string): Place | undefined {
  const given: unknown = value;
  if (isWithheld(given)) throw refuseWithheld(given);
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
