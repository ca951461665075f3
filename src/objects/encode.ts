import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import { firstWithheld, holdsWithheld, isWithheld } from "../core/withheld.js";
import { canonicalText, type SmallText, smallCanonical } from "./canonical.js";
import { FLAT_MAX_ENTRIES } from "./format.js";
import { digestText } from "./hash.js";
import {
  holdsIsolated,
  type Isolation,
  isolationOfElement,
  isolationOfKey,
  standsApart,
} from "./isolation.js";
import { escapeKey } from "./keys.js";
import { refuseWithheld } from "./reader.js";
import { fitsRun, type ListElement, ListRuns, TextRuns } from "./runs.js";
import { buildLevels } from "./sequence.js";
import type { ObjectSink } from "./sink.js";
import type { Link, TreeEntry } from "./tree.js";

export type { Link };

/** A value as objects: small enough for a blob (not written yet), or an object that is in the sink or stored. */
export type Encoded = SmallText | { readonly link: Link };

/** Maps a validated value to objects, from scratch. */
export function encodeValue(sink: ObjectSink, value: JsonValue, policy: Isolation | null): Encoded {
  if (policy !== null && policy.elsewhere !== null && !isWithheld(value)) {
    const hidden = firstWithheld(value);
    if (hidden !== null) throw refuseWithheld(hidden);
    return { link: sink.of(policy).pointer(policy.elsewhere, canonicalText(value)) };
  }
  const into = sink.of(policy);
  return standing(into, encodeInto(into, value, policy), policy);
}

/** What a value of a subject is where it begins: an object of its own, sealed by the subject's key with all below it. */
export function standing(into: ObjectSink, encoded: Encoded, policy: Isolation | null): Encoded {
  if (policy?.owned !== true || !policy.isolated || "link" in encoded) return encoded;
  return { link: toLink(into, encoded) };
}

function encodeInto(sink: ObjectSink, value: JsonValue, policy: Isolation | null): Encoded {
  if (isWithheld(value)) return { link: sink.withheld(value) };
  if (!holdsWithheld(value)) {
    const small = smallCanonical(value);
    if (small !== null && !holdsIsolated(policy, value)) return small;
  }
  if (typeof value === "string") return treeOf(encodeText(sink, value));
  if (Array.isArray(value)) return treeOf(encodeList(sink, value, policy));
  return treeOf(encodeObject(sink, value as { [key: string]: JsonValue }, policy));
}

/** A value that is a tree. */
export function treeOf(id: ObjectId): Encoded {
  return { link: { type: "tree", id } };
}

/** Writes a small value's blob, if it is one, and gives what an entry links to. */
export function toLink(sink: ObjectSink, encoded: Encoded): Link {
  return "link" in encoded ? encoded.link : { type: "blob", id: sink.blob(encoded.text) };
}

function encodeText(sink: ObjectSink, text: string): ObjectId {
  const runs = new TextRuns(sink);
  runs.push(text);
  runs.close();
  return buildLevels(sink, '"', runs.entries);
}

function encodeList(
  sink: ObjectSink,
  list: readonly JsonValue[],
  policy: Isolation | null,
): ObjectId {
  const runs = new ListRuns(sink);
  const inner = isolationOfElement(policy);
  for (const value of list) {
    runs.push(toElement(sink, encodeValue(sink, value, inner), standsApart(inner, value)));
  }
  runs.close();
  return buildLevels(sink, "[", runs.entries);
}

/** An encoded value as a list element: part of a run when it is small and not isolated. */
export function toElement(sink: ObjectSink, encoded: Encoded, apart: boolean): ListElement {
  if (!("link" in encoded) && !apart && fitsRun(encoded.bytes)) return encoded;
  return toLink(sink, encoded);
}

function encodeObject(
  sink: ObjectSink,
  object: { readonly [key: string]: JsonValue },
  policy: Isolation | null,
): ObjectId {
  const links = new Map<string, Link>();
  for (const key of Object.keys(object)) {
    const value = object[key] as JsonValue;
    links.set(key, toLink(sink, encodeValue(sink, value, isolationOfKey(policy, key))));
  }
  return encodeBucket(sink, links, 0);
}

/** Where a key goes in a fan-out: two hex digits of the SHA-256 of the key for each level of depth. */
export function bucketOf(keyHash: string, depth: number): number {
  return Number.parseInt(keyHash.slice(depth * 2, depth * 2 + 2), 16);
}

/** The hash that places a key in fan-outs. */
export function hashKey(key: string): string {
  return digestText(key);
}

/** Writes the entries of an object: flat up to `FLAT_MAX_ENTRIES`, else as a fan-out, recursively. */
export function encodeBucket(
  sink: ObjectSink,
  links: ReadonlyMap<string, Link>,
  depth: number,
): ObjectId {
  if (links.size <= FLAT_MAX_ENTRIES) return sink.tree(flatEntries(links));
  const buckets = new Map<number, Map<string, Link>>();
  for (const [key, link] of links) {
    const at = bucketOf(hashKey(key), depth);
    let bucket = buckets.get(at);
    if (bucket === undefined) {
      bucket = new Map();
      buckets.set(at, bucket);
    }
    bucket.set(key, link);
  }
  const entries: TreeEntry[] = [];
  for (const [at, bucket] of buckets) {
    const id = encodeBucket(sink, bucket, depth + 1);
    entries.push({ name: fanName(at, bucket.size), type: "tree", id });
  }
  return sink.tree(entries);
}

export function flatEntries(links: ReadonlyMap<string, Link>): TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (const [key, link] of links) {
    entries.push({ name: escapeKey(key), type: link.type, id: link.id });
  }
  return entries;
}

/** The name of a fan-out's entry: `{`, the bucket as two hex digits, `n`, the number of keys below it. */
export function fanName(at: number, count: number): string {
  return `{${at.toString(16).padStart(2, "0")}n${count}`;
}
