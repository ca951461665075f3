import type { ObjectId } from "../../core/ids.js";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import { formatPointer } from "../../core/json-pointer.js";
import { type CommitFields, decodeCommit } from "../../objects/commit.js";
import { unescapeKey } from "../../objects/keys.js";
import { openPending } from "../../objects/pending.js";
import { decodeTree, type TreeEntry } from "../../objects/tree.js";
import { treeKind } from "../../objects/tree-kind.js";
import {
  ENCODING,
  type ObjectRecord,
  type RefMove,
  type StoredObject,
  type WriteBatch,
} from "../../storage/port.js";

/** A text that a write would bring into a region. */
export interface WrittenText {
  /** A JSON Pointer below the commit's root tree, or the name of a field; never more of it than was looked at before. */
  readonly where: string;
  readonly text: string;
  /** The region that it goes to; null for the workflow's own. */
  readonly into: string | null;
  /** The commits on which the one that holds it stands. */
  readonly parents: readonly ObjectId[];
}

/**
 * Goes through all that a write holds as text: names and logs of refs, headers and messages of commits, keys and strings
 * of values, payloads that go to other regions, and pending rows. What is in front of a text on its path comes before it.
 */
export function* textsOfBatch(batch: WriteBatch): Generator<WrittenText, void, undefined> {
  const objects = new Map(batch.objects.map((object) => [object.id, object]));
  const seen = new Set<ObjectId>();
  for (const move of batch.moves) {
    yield* textsOfMove(move);
    for (const commit of move.commits) {
      const fields = decodeCommit(commit.body, commit.id);
      const inline = new Map(commit.inline.map((object) => [object.id, object]));
      const get = (id: ObjectId) => inline.get(id) ?? objects.get(id);
      const { parents } = commit;
      for (const [where, text] of textsOfCommit(fields)) yield { where, text, into: null, parents };
      for (const each of textsBelow({ id: fields.tree, type: "tree" }, [], get, seen)) {
        yield { ...each, parents };
      }
    }
  }
  // What no commit of the write leads to is stored as well.
  for (const { id, type } of batch.objects) {
    for (const each of textsBelow({ id, type }, [], (other) => objects.get(other), seen)) {
      yield { ...each, parents: [] };
    }
  }
  for (const row of batch.pending ?? []) {
    yield { where: "key of a pending row", text: row.key, into: null, parents: [] };
    // A sealed one was looked at before it was sealed.
    if (row.body[0] !== 1) continue;
    for (const text of stringsAt(openPending(row), [])) {
      yield { ...text, where: "pending row", into: null, parents: [] };
    }
  }
}

function* textsOfMove({ ref, expect, target, log }: RefMove): Generator<WrittenText> {
  const is = (where: string, text: string) => ({ where, text, into: null, parents: [] });
  // A ref that is there already has its name.
  if (target !== null && expect.kind !== "id") {
    for (const part of ref.split("/").slice(2)) yield is("name of a ref", part);
  }
  if (!ref.split("/").includes(log.actor)) yield is("actor", log.actor);
  yield is("reason", log.reason);
  yield is("trace", log.trace);
}

function* textsOfCommit(commit: CommitFields): Generator<readonly [string, string]> {
  yield ["author", commit.author];
  if (commit.committer !== commit.author) yield ["committer", commit.committer];
  if (commit.trace !== undefined) yield ["trace", commit.trace];
  if (commit.externalId !== undefined) yield ["externalId", commit.externalId];
  if (commit.step?.input !== undefined) yield ["hash of an input", commit.step.input];
  if (commit.step?.key !== undefined) yield ["idempotency key", commit.step.key];
  if (commit.reason !== undefined) yield ["reason of a commit", commit.reason];
  yield ["message", commit.message];
}

type Found = Omit<WrittenText, "parents">;
type Get = (id: ObjectId) => StoredObject | undefined;

interface Link {
  readonly id: ObjectId;
  readonly type: "blob" | "tree";
}

/** The texts of an object and of what it leads to, as far as the write holds them, each object once. */
function* textsBelow(
  link: Link,
  path: readonly string[],
  get: Get,
  seen: Set<ObjectId>,
): Generator<Found> {
  const object = get(link.id);
  if (object === undefined || "tombstone" in object || seen.has(link.id)) return;
  seen.add(link.id);
  if (object.foreign !== undefined) {
    const { region, text } = object.foreign;
    for (const each of stringsAt(JSON.parse(text) as JsonValue, path)) {
      yield { ...each, into: region };
    }
  }
  const text = object.type === "tree" ? null : textOf(object);
  if (object.type === "tree") yield* textsOfTree(entriesOf(object), path, get, seen);
  else if (text !== null) {
    for (const each of stringsAt(jsonOrText(text), path)) yield { ...each, into: null };
  }
}

function* textsOfTree(
  entries: readonly TreeEntry[],
  path: readonly string[],
  get: Get,
  seen: Set<ObjectId>,
): Generator<Found> {
  const kind = treeKind(entries);
  if (kind === "text") {
    const where = formatPointer(path);
    let text = "";
    for (const piece of piecesOf(entries, get, seen)) {
      if (piece !== null) text += piece;
      else if (text !== "") {
        yield { where, text, into: null };
        text = "";
      }
    }
    yield { where, text, into: null };
    return;
  }
  for (const entry of entries) {
    let below = path;
    if (kind === "object") {
      const key = unescapeKey(entry.name);
      yield { where: `a key in ${formatPointer(path)}`, text: key, into: null };
      below = [...path, key];
    }
    yield* textsBelow(entry, below, get, seen);
  }
}

/** The pieces of a text in their order; null where the write does not hold one. */
function* piecesOf(
  entries: readonly TreeEntry[],
  get: Get,
  seen: Set<ObjectId>,
): Generator<string | null> {
  for (const entry of entries) {
    const object = get(entry.id);
    if (object === undefined || "tombstone" in object) yield null;
    else {
      seen.add(entry.id);
      if (object.type === "tree") yield* piecesOf(entriesOf(object), get, seen);
      else yield textOf(object);
    }
  }
}

function entriesOf({ body, id }: ObjectRecord): TreeEntry[] {
  return decodeTree(Buffer.from(body.buffer, body.byteOffset, body.byteLength), id);
}

/** A blob's text, sealed or not; null of one that is none, or whose text is not at hand. */
function textOf({ body, encoding = ENCODING.plain, clear }: ObjectRecord): string | null {
  if (encoding !== ENCODING.plain) return clear ?? null;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
}

/** A blob that no tree of the write tells of may be a piece of a text, which is kept as it is: what is no JSON is text. */
function jsonOrText(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

function* stringsAt(
  value: JsonValue,
  path: readonly string[],
): Generator<Pick<Found, "where" | "text">> {
  if (typeof value === "string") yield { where: formatPointer(path), text: value };
  else if (Array.isArray(value)) for (const element of value) yield* stringsAt(element, path);
  else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      yield { where: `a key in ${formatPointer(path)}`, text: key };
      yield* stringsAt(value[key] as JsonValue, [...path, key]);
    }
  }
}
