import type { ObjectId } from "../core/ids.js";
import type { ObjectReader } from "./reader.js";
import {
  buildLevels,
  NodeChunker,
  readNode,
  type SequenceEntry,
  type SequenceMark,
} from "./sequence.js";
import type { ObjectSink } from "./sink.js";

/** A replacement in a stored sequence: the elements `from` (inclusive) to `to` (exclusive) give way. */
export interface SequenceEdit<Item> {
  readonly from: number;
  readonly to: number;
  readonly items: readonly Item[];
}

/** What cuts items into runs: `ListRuns` or `TextRuns`. */
export interface RunChunker<Item> {
  readonly atCut: boolean;
  readonly entries: SequenceEntry[];
  push(item: Item): void;
  close(): void;
}

/** How a list, or a text, makes runs and takes them apart. */
export interface SequenceKind<Item> {
  readonly mark: SequenceMark;
  chunker(sink: ObjectSink): RunChunker<Item>;
  /** The items of a stored entry from element `from` to element `to` of it. */
  items(reader: ObjectReader, entry: SequenceEntry, from: number, to: number): Promise<Item[]>;
}

/** An entry of some level and the elements it covers, `start` (inclusive) to `end` (exclusive). */
interface Located {
  readonly entry: SequenceEntry;
  readonly start: number;
  readonly end: number;
}

/** A replacement on a level of entries, on entry boundaries of the old sequence. */
type LevelEdit = SequenceEdit<SequenceEntry>;

/**
 * A list or text as stored: finds entries by position, and applies edits by
 * re-chunking from the run before each edit until a new cut meets an old one,
 * level by level, so that the result is the tree that the new value has however
 * it came about, at the cost of the edit.
 */
export class StoredSequence {
  private constructor(
    private readonly reader: ObjectReader,
    readonly root: ObjectId,
    /** Levels of nodes; level 0 are the runs and lone elements, the root is of level `height`. */
    private readonly height: number,
    readonly length: number,
  ) {}

  static async open(reader: ObjectReader, root: ObjectId): Promise<StoredSequence> {
    let height = 1;
    let entries = readNode(await reader.tree(root), root);
    let length = 0;
    for (const e of entries) length += e.count;
    while (entries[0]?.kind === "n") {
      // The last path down: an append needs it anyway.
      const last = entries.at(-1) as SequenceEntry;
      entries = readNode(await reader.tree(last.id), last.id);
      height++;
    }
    return new StoredSequence(reader, root, height, length);
  }

  /** The run or lone element that holds the element at `offset`, which is below `length`. */
  entryAt(offset: number): Promise<Located> {
    return this.locate(0, offset);
  }

  /** The entry of a level (0 to height - 1) that covers the element at `offset`. */
  private async locate(level: number, offset: number): Promise<Located> {
    let id = this.root;
    let base = 0;
    for (let at = this.height; ; at--) {
      const entries = readNode(await this.reader.tree(id), id);
      let start = base;
      let found = entries[0] as SequenceEntry;
      for (const entry of entries) {
        found = entry;
        if (offset < start + entry.count) break;
        start += entry.count;
      }
      if (at === level + 1) return { entry: found, start, end: start + found.count };
      id = found.id;
      base = start;
    }
  }

  /**
   * Applies edits, sorted and disjoint, and writes what changes.
   *
   * @returns the new root, or null when no element is left
   */
  async edit<Item>(
    sink: ObjectSink,
    kind: SequenceKind<Item>,
    edits: readonly SequenceEdit<Item>[],
  ): Promise<ObjectId | null> {
    let level = await this.editRuns(sink, kind, edits);
    let newLength = this.length;
    for (const e of level) {
      newLength -= e.to - e.from;
      for (const entry of e.items) newLength += entry.count;
    }
    if (newLength === 0) return null;
    for (let above = 1; above < this.height; above++) {
      level = await this.editNodes(sink, kind.mark, above, level);
      const only = await this.onlyEntry(above, level, newLength);
      if (only !== null) return only;
    }
    return this.editRoot(sink, kind.mark, level);
  }

  /** Edits level 0: elements give way to items, runs are cut anew. */
  private async editRuns<Item>(
    sink: ObjectSink,
    kind: SequenceKind<Item>,
    edits: readonly SequenceEdit<Item>[],
  ): Promise<LevelEdit[]> {
    const result: LevelEdit[] = [];
    let next = 0;
    while (next < edits.length) {
      let edit = edits[next] as SequenceEdit<Item>;
      const from = await this.restart(edit.from);
      const chunker = kind.chunker(sink);
      let pos = from;
      for (;;) {
        pos = await this.feed(sink, kind, chunker, pos, edit.from);
        for (const item of edit.items) chunker.push(item);
        await this.passOver(sink, pos, edit.to);
        pos = edit.to;
        next++;
        const following = edits[next];
        const resume = following === undefined ? this.length : await this.restart(following.from);
        pos = await this.feedToCut(
          sink,
          kind,
          chunker,
          pos,
          following?.from ?? this.length,
          resume,
        );
        if (following === undefined || pos <= resume) break;
        edit = following;
      }
      if (pos === this.length) chunker.close();
      result.push({ from, to: pos, items: chunker.entries });
    }
    return result;
  }

  /**
   * Where re-chunking begins for an edit at `offset`: the run that holds it; the
   * one before when the edit is at its very start, since a lone element there
   * may be all that closed the run before; the last run for an append.
   */
  private async restart(offset: number): Promise<number> {
    const here = await this.locate(0, Math.min(offset, this.length - 1));
    if (offset > here.start || here.start === 0) return here.start;
    return (await this.locate(0, here.start - 1)).start;
  }

  /** Feeds the old elements from `pos` to `to`. */
  private async feed<Item>(
    sink: ObjectSink,
    kind: SequenceKind<Item>,
    chunker: RunChunker<Item>,
    pos: number,
    to: number,
  ): Promise<number> {
    let at = pos;
    while (at < to) {
      const { entry, start, end } = await this.locate(0, at);
      sink.know(entry.id);
      const until = Math.min(end, to);
      for (const item of await kind.items(this.reader, entry, at - start, until - start)) {
        chunker.push(item);
      }
      at = until;
    }
    return at;
  }

  /**
   * Feeds old elements until a new cut meets an old one, up to `to` (where the
   * next edit is). A cut counts only up to `resume`, where the next edit would
   * begin to re-chunk.
   */
  private async feedToCut<Item>(
    sink: ObjectSink,
    kind: SequenceKind<Item>,
    chunker: RunChunker<Item>,
    pos: number,
    to: number,
    resume: number,
  ): Promise<number> {
    let at = pos;
    while (at < to) {
      const { start, end } = await this.locate(0, at);
      if (at === start && at <= resume && chunker.atCut) return at;
      at = await this.feed(sink, kind, chunker, at, Math.min(end, to));
    }
    return at;
  }

  /** Remembers the old runs that an edit removes: some may come back as they were. */
  private async passOver(sink: ObjectSink, from: number, to: number): Promise<void> {
    if (to <= from) return;
    sink.know((await this.locate(0, from)).entry.id);
    sink.know((await this.locate(0, to - 1)).entry.id);
  }

  /** Edits a level of nodes, given the edits of the entries below. */
  private async editNodes(
    sink: ObjectSink,
    mark: SequenceMark,
    level: number,
    edits: readonly LevelEdit[],
  ): Promise<LevelEdit[]> {
    const result: LevelEdit[] = [];
    let next = 0;
    while (next < edits.length) {
      const first = edits[next] as LevelEdit;
      const from = (await this.locate(level, Math.min(first.from, this.length - 1))).start;
      const chunker = new NodeChunker(sink, mark);
      let pos = from;
      for (;;) {
        const edit = edits[next];
        const until = edit?.from ?? this.length;
        // Old entries up to the next edit, or until a new cut meets an old one.
        let met = false;
        while (pos < until) {
          const node = await this.locate(level, pos);
          if (pos === node.start && pos > from && chunker.atCut && until >= node.end) {
            met = true;
            break;
          }
          sink.know(node.entry.id);
          pos = await this.feedEntries(node, chunker, pos, Math.min(node.end, until));
        }
        if (met || edit === undefined) break;
        for (const entry of edit.items) chunker.push(entry);
        pos = edit.to;
        next++;
      }
      if (pos === this.length) chunker.close();
      result.push({ from, to: pos, items: chunker.nodes });
    }
    return result;
  }

  private async feedEntries(
    node: Located,
    chunker: NodeChunker,
    from: number,
    to: number,
  ): Promise<number> {
    let start = node.start;
    for (const entry of readNode(await this.reader.tree(node.entry.id), node.entry.id)) {
      if (start >= from && start < to) chunker.push(entry);
      start += entry.count;
    }
    return to;
  }

  /** The root, when the edited level has come down to one node. */
  private async onlyEntry(
    level: number,
    edits: readonly LevelEdit[],
    newLength: number,
  ): Promise<ObjectId | null> {
    let offset = 0;
    let entry: SequenceEntry | undefined;
    for (const edit of edits) {
      if (edit.from !== offset) break;
      entry = edit.items[0];
      if (entry !== undefined) break;
      offset = edit.to;
    }
    if (entry === undefined) {
      if (offset >= this.length) return null;
      entry = (await this.locate(level, offset)).entry;
    }
    return entry.count === newLength ? entry.id : null;
  }

  /** Applies the edits of the level below the root, and builds levels up to one node. */
  private async editRoot(
    sink: ObjectSink,
    mark: SequenceMark,
    edits: readonly LevelEdit[],
  ): Promise<ObjectId> {
    sink.know(this.root);
    const old = readNode(await this.reader.tree(this.root), this.root);
    const entries: SequenceEntry[] = [];
    let start = 0;
    let at = 0;
    const advance = (to: number, keep: boolean): void => {
      while (at < old.length && start < to) {
        const entry = old[at++] as SequenceEntry;
        if (keep) entries.push(entry);
        start += entry.count;
      }
    };
    for (const edit of edits) {
      advance(edit.from, true);
      for (const entry of edit.items) entries.push(entry);
      advance(edit.to, false);
    }
    advance(this.length, true);
    return buildLevels(sink, mark, entries);
  }
}
