import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { NodeCut } from "./cut.js";
import type { ObjectSink } from "./sink.js";
import type { TreeEntry } from "./tree.js";

/** The mark that begins the entry names of a list, of a text. */
export type SequenceMark = "[" | '"';

/**
 * An entry of a list's or text's tree.
 *
 * `r`: a run (a blob: a JSON array of elements, or a piece of text); `e`: one
 * element standing alone, mapped like any value; `n`: a node of entries. Its
 * name is the mark, the position in the node as two hex digits, the kind, and
 * the number of elements (UTF-16 units of text) below it in decimal: `[0an340`.
 */
export interface SequenceEntry {
  readonly kind: "r" | "e" | "n";
  readonly count: number;
  readonly type: "blob" | "tree";
  readonly id: ObjectId;
}

const NAME = /^(?:\[|")([0-9a-f]{2})([ren])([1-9][0-9]*)$/;

/** Writes the node that holds the entries. */
function writeNode(
  sink: ObjectSink,
  mark: SequenceMark,
  entries: readonly SequenceEntry[],
): ObjectId {
  const tree: TreeEntry[] = entries.map((e, i) => ({
    name: `${mark}${i.toString(16).padStart(2, "0")}${e.kind}${e.count}`,
    type: e.type,
    id: e.id,
  }));
  return sink.tree(tree);
}

/** Nodes that were read, by the tree that they were read from, which the object cache holds. */
const nodes = new WeakMap<readonly TreeEntry[], readonly SequenceEntry[]>();

/**
 * Reads the entries of a node.
 *
 * @throws AgstateError `CORRUPT_OBJECT`
 */
export function readNode(entries: readonly TreeEntry[], id: ObjectId): readonly SequenceEntry[] {
  let node = nodes.get(entries);
  if (node === undefined) {
    node = parseNode(entries, id);
    nodes.set(entries, node);
  }
  return node;
}

function parseNode(entries: readonly TreeEntry[], id: ObjectId): SequenceEntry[] {
  return entries.map((entry, i) => {
    const match = NAME.exec(entry.name);
    if (match === null || Number.parseInt(match[1] as string, 16) !== i) {
      throw new AgstateError(
        "CORRUPT_OBJECT",
        `tree ${id} is a list or text with a malformed entry at position ${i}`,
        { id },
      );
    }
    return {
      kind: match[2] as "r" | "e" | "n",
      count: Number(match[3]),
      type: entry.type,
      id: entry.id,
    };
  });
}

/** Groups entries into nodes from a fresh cut on; the last node stays open when `tail` is false. */
export class NodeChunker {
  private readonly cut = new NodeCut();
  private open: SequenceEntry[] = [];
  readonly nodes: SequenceEntry[] = [];

  constructor(
    private readonly sink: ObjectSink,
    private readonly mark: SequenceMark,
  ) {}

  get atCut(): boolean {
    return this.cut.empty;
  }

  push(entry: SequenceEntry): void {
    this.open.push(entry);
    if (this.cut.closesAfter(entry.id)) this.close();
  }

  close(): void {
    if (this.open.length === 0) return;
    let count = 0;
    for (const e of this.open) count += e.count;
    this.nodes.push({
      kind: "n",
      count,
      type: "tree",
      id: writeNode(this.sink, this.mark, this.open),
    });
    this.open = [];
  }
}

/** Builds node levels over the entries of a level, up to the first level with one node: the root. */
export function buildLevels(
  sink: ObjectSink,
  mark: SequenceMark,
  entries: readonly SequenceEntry[],
): ObjectId {
  let level = entries;
  for (;;) {
    const chunker = new NodeChunker(sink, mark);
    for (const entry of level) chunker.push(entry);
    chunker.close();
    level = chunker.nodes;
    if (level.length === 1) return (level[0] as SequenceEntry).id;
  }
}
