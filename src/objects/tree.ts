import { AgstateError } from "../core/errors.js";
import { OBJECT_ID_BYTES, type ObjectId, objectIdAt } from "../core/ids.js";

/** An object as the target of a tree's entry. */
export interface Link {
  readonly type: "blob" | "tree";
  readonly id: ObjectId;
}

/** An entry of a Git tree. agstate writes two modes only: 100644 (blob) and 40000 (tree). */
export interface TreeEntry extends Link {
  readonly name: string;
}

const MODE = { blob: "100644 ", tree: "40000 " } as const;

/**
 * The body of a Git tree, its entries sorted as Git sorts them: by the bytes of
 * their names, a tree's name as if it ended in `/`.
 */
export function encodeTree(entries: TreeEntry[]): Buffer {
  sortEntries(entries);
  let size = 0;
  for (const e of entries) {
    size += MODE[e.type].length + Buffer.byteLength(e.name) + 1 + OBJECT_ID_BYTES;
  }
  const body = Buffer.allocUnsafe(size);
  let at = 0;
  for (const e of entries) {
    at += body.write(MODE[e.type], at, "latin1");
    at += body.write(e.name, at);
    body[at++] = 0;
    at += body.write(e.id, at, "hex");
  }
  return body;
}

// From U+D800 on, the order of UTF-16 units and the order of UTF-8 bytes part ways.
const HIGH = /[\ud800-\uffff]/;

function sortEntries(entries: TreeEntry[]): void {
  if (isSorted(entries)) return;
  const keyed = entries.map((entry) => ({
    entry,
    key: entry.type === "tree" ? `${entry.name}/` : entry.name,
  }));
  if (keyed.some((k) => HIGH.test(k.key))) {
    const bytes = new Map(keyed.map((k) => [k, Buffer.from(k.key)]));
    keyed.sort((a, b) => Buffer.compare(bytes.get(a) as Buffer, bytes.get(b) as Buffer));
  } else {
    keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  }
  for (let i = 0; i < keyed.length; i++) entries[i] = (keyed[i] as { entry: TreeEntry }).entry;
}

/** Whether entries stand in Git's order already, as those of lists and texts do. */
function isSorted(entries: readonly TreeEntry[]): boolean {
  let before = "";
  for (const { name, type } of entries) {
    const key = type === "tree" ? `${name}/` : name;
    if (HIGH.test(name) || key < before) return false;
    before = key;
  }
  return true;
}

/**
 * Reads the body of a Git tree.
 *
 * @throws AgstateError `CORRUPT_OBJECT` when it is not one that agstate could have written
 */
export function decodeTree(body: Buffer, id: ObjectId): TreeEntry[] {
  const entries: TreeEntry[] = [];
  let at = 0;
  while (at < body.length) {
    const isTree = body[at] === 0x34;
    const mode = isTree ? MODE.tree : MODE.blob;
    const nameAt = at + mode.length;
    const end = body.indexOf(0, nameAt);
    const next = end + 1 + OBJECT_ID_BYTES;
    if (end < 0 || next > body.length || body.toString("latin1", at, nameAt) !== mode) {
      throw new AgstateError("CORRUPT_OBJECT", `tree ${id} is malformed at byte ${at}`, { id });
    }
    entries.push({
      name: body.toString("utf8", nameAt, end),
      type: isTree ? "tree" : "blob",
      id: objectIdAt(body, end + 1),
    });
    at = next;
  }
  return entries;
}
