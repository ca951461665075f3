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

/** How many objects are asked for in one call. */
const BATCH = 2000;

type Loaded = ReadonlyMap<ObjectId, DecodedObject>;

/**
 * Reads a whole value, a level of its tree in each call to the storage.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
 */
export async function decodeValue(reader: ObjectReader, link: Link): Promise<JsonValue> {
  const loaded = new Map<ObjectId, DecodedObject>();
  let level = [link.id];
  while (level.length > 0) {
    const below = new Set<ObjectId>();
    for (let i = 0; i < level.length; i += BATCH) {
      const ids = level.slice(i, i + BATCH);
      const objects = await reader.readAll(ids);
      for (let j = 0; j < ids.length; j++) {
        const object = objects[j] as DecodedObject;
        loaded.set(ids[j] as ObjectId, object);
        if (object.type === "tree") for (const entry of object.entries) below.add(entry.id);
      }
    }
    level = [...below].filter((id) => !loaded.has(id));
  }
  return assemble(loaded, link.id);
}

function assemble(loaded: Loaded, id: ObjectId): JsonValue {
  const object = loaded.get(id) as DecodedObject;
  if (object.type === "blob") return JSON.parse(object.text) as JsonValue;
  switch (treeKind(object.entries)) {
    case "text": {
      const parts: string[] = [];
      collectText(loaded, id, parts);
      return parts.join("");
    }
    case "list": {
      const list: JsonValue[] = [];
      collectElements(loaded, id, list);
      return list;
    }
    default: {
      const members: Record<string, JsonValue> = {};
      collectMembers(loaded, object.entries, members);
      return members;
    }
  }
}

function collectText(loaded: Loaded, id: ObjectId, into: string[]): void {
  const object = loaded.get(id) as DecodedObject;
  if (object.type === "blob") into.push(object.text);
  else for (const entry of object.entries) collectText(loaded, entry.id, into);
}

function collectElements(loaded: Loaded, id: ObjectId, into: JsonValue[]): void {
  const object = loaded.get(id) as DecodedObject & { type: "tree" };
  for (const entry of readNode(object.entries, id)) {
    if (entry.kind === "n") collectElements(loaded, entry.id, into);
    else if (entry.kind === "e") into.push(assemble(loaded, entry.id));
    else {
      const run = loaded.get(entry.id) as DecodedObject & { type: "blob" };
      for (const element of JSON.parse(run.text) as JsonValue[]) into.push(element);
    }
  }
}

function collectMembers(
  loaded: Loaded,
  entries: readonly TreeEntry[],
  into: Record<string, JsonValue>,
): void {
  for (const entry of entries) {
    if (entry.name[0] === "{") {
      const bucket = loaded.get(entry.id) as DecodedObject & { type: "tree" };
      collectMembers(loaded, bucket.entries, into);
    } else {
      setOwn(into, unescapeKey(entry.name), assemble(loaded, entry.id));
    }
  }
}

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
  let at = link;
  for (let depth = 0; depth < tokens.length; depth++) {
    const object = await reader.read(at.id);
    if (object.type === "blob") {
      return lookUp(JSON.parse(object.text) as JsonValue, tokens.slice(depth));
    }
    const token = tokens[depth] as string;
    const kind = treeKind(object.entries);
    if (kind === "text") return undefined;
    if (kind === "list") {
      const index = parseIndex(token);
      const list = await StoredSequence.open(reader, at.id);
      if (index === undefined || index >= list.length) return undefined;
      const { entry, start } = await list.entryAt(index);
      if (entry.kind === "r") {
        const element = splitArray(await reader.text(entry.id))[index - start] as string;
        return lookUp(JSON.parse(element) as JsonValue, tokens.slice(depth + 1));
      }
      at = entry;
    } else {
      const next = await (await KeyTable.stored(reader, at.id)).get(token);
      if (next === undefined) return undefined;
      at = next;
    }
  }
  return decodeValue(reader, at);
}

/** The value at a path of a value at hand; undefined when there is none. */
function lookUp(value: JsonValue, tokens: readonly string[]): JsonValue | undefined {
  let at: JsonValue | undefined = value;
  for (const token of tokens) {
    if (Array.isArray(at)) {
      const index = parseIndex(token);
      at = index === undefined ? undefined : at[index];
    } else if (typeof at === "object" && at !== null && Object.hasOwn(at, token)) {
      at = (at as { [key: string]: JsonValue })[token];
    } else {
      return undefined;
    }
  }
  return at;
}
