import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { bucketOf, hashKey } from "../objects/encode.js";
import { escapeKey } from "../objects/keys.js";
import type { DecodedObject, ObjectReader } from "../objects/reader.js";
import type { TreeEntry } from "../objects/tree.js";
import { treeKind } from "../objects/tree-kind.js";
import type { Asked } from "./blame-asked.js";

/** The most objects that one level of a page reads. */
const LEVEL_MAX_OBJECTS = 2000;
/** Of more members than this in a fan-out, the ways are not followed: it is compared as a whole. */
const FAN_MAX_KEYS = 16;

interface Way {
  readonly id: ObjectId;
  readonly asked: Asked;
  /** How many levels of a fan-out lie above. */
  readonly depth: number;
}

/**
 * Reads what a walk will look at in some states, a level of all of them in each
 * call to the storage, so that it is in the reader's cache.
 *
 * It only guesses: a list is followed to its end, where appends are. What it
 * leaves out, or what cannot be read, is for the walk itself to read.
 */
export async function warm(
  reader: ObjectReader,
  states: readonly ObjectId[],
  asked: Asked,
): Promise<void> {
  let level: Way[] = states.map((id) => ({ id, asked, depth: 0 }));
  const seen = new Map<Asked, Set<ObjectId>>();
  try {
    while (level.length > 0) {
      const objects = await reader.readAll(level.map(({ id }) => id));
      const next: Way[] = [];
      level.forEach((way, i) => {
        for (const below of waysBelow(objects[i] as DecodedObject, way)) {
          const known = seen.get(below.asked) ?? new Set();
          seen.set(below.asked, known);
          if (known.has(below.id) || next.length >= LEVEL_MAX_OBJECTS) continue;
          known.add(below.id);
          next.push(below);
        }
      });
      level = next;
    }
  } catch (error) {
    if (!isAgstateError(error, "MISSING_OBJECT", "ERASED", "WITHHELD")) throw error;
  }
}

function* waysBelow(object: DecodedObject, { asked, depth }: Way): Generator<Way> {
  if (object.type !== "tree") return;
  const { entries } = object;
  switch (treeKind(entries)) {
    case "text":
      return;
    case "list":
      yield { id: (entries.at(-1) as TreeEntry).id, asked, depth: 0 };
      return;
    case "fan":
      if (asked.children.size > FAN_MAX_KEYS) return;
      for (const key of asked.children.keys()) {
        const name = `{${bucketOf(hashKey(key), depth).toString(16).padStart(2, "0")}n`;
        const bucket = entries.find((entry) => entry.name.startsWith(name));
        if (bucket !== undefined) yield { id: bucket.id, asked, depth: depth + 1 };
      }
      return;
    case "object": {
      const byName = new Map(entries.map((entry) => [entry.name, entry.id]));
      for (const [key, below] of asked.children) {
        const id = byName.get(escapeKey(key));
        const looksInside = below.children.size > 0 || below.spans.length > 0;
        if (id !== undefined && looksInside) yield { id, asked: below, depth: 0 };
      }
    }
  }
}
