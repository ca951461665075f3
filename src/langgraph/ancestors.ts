import type { ObjectId } from "../core/ids.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { decodeValue } from "../objects/decode.js";
import type { ObjectReader } from "../objects/reader.js";
import { LinePages } from "./line-pages.js";
import { headsPrefix, latestRef } from "./names.js";
import { asFrame, type CheckpointFrame, noteOf } from "./record.js";
import type { Thread } from "./thread.js";

/** A checkpoint above another, without its channels' values. */
export interface Ancestor {
  readonly frame: CheckpointFrame;
  readonly commit: LoadedCommit;
  /** Reads what the commit is made of. */
  readonly objects: ObjectReader;
}

/**
 * Goes from a checkpoint to the one that it goes on from, and so on, as reading each by its id would.
 *
 * What a frame names as its parent counts. That is mostly the checkpoint of the first parent's commit, so that
 * commits are read a page at a time; where it is not (the parent was put later, or again) it is looked up by its id.
 * A checkpoint that was put again is found on the line, or where it forks off on top of itself: one that no branch
 * of the thread reaches any more, or that was put again on top of another, does not count. Where the parents go in a circle, each comes once.
 */
export class Ancestors {
  private readonly pages: LinePages;
  private epoch: string | undefined;

  constructor(
    private readonly thread: Thread,
    private readonly namespace: string,
  ) {
    this.pages = new LinePages(thread.repository);
  }

  /**
   * The ancestors, nearest first, in batches that cost a call or two; none of a checkpoint that is not stored.
   *
   * @param id the latest when it is empty
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
   */
  async *above(id: string): AsyncGenerator<readonly Ancestor[], void, undefined> {
    let at = await this.begin(id);
    const met = new Set<string>();
    let batch: Ancestor[] = [];
    while (at !== undefined) {
      met.add(at.commit.externalId as string);
      const { parent } = at.frame.checkpoint;
      if (parent === undefined || met.has(parent)) break;
      let below = await this.parentOn(at.commit, parent, async (of) => this.pages.peek(of));
      if (below === undefined) {
        if (batch.length > 0) yield batch;
        batch = [];
        below =
          (await this.parentOn(at.commit, parent, (of) => this.pages.read(of))) ??
          (await this.locate(await this.find(parent)));
      }
      at = below && (await this.ancestor(below));
      if (at !== undefined) batch.push(at);
    }
    if (batch.length > 0) yield batch;
  }

  private async begin(id: string): Promise<Ancestor | undefined> {
    const { refs } = this.thread.repository;
    const [heads, found] = await Promise.all([
      refs.list(headsPrefix(this.namespace)),
      id === "" ? [] : this.find(id),
    ]);
    const latest = heads.find(({ name }) => name === latestRef(this.namespace))?.id;
    const start = id === "" ? latest : found[0];
    if (!latest || !start) return undefined;
    // Where no branch has the start any more, it forks off there as well.
    if (heads.length > 1) this.pages.tips = [...heads.flatMap((head) => head.id ?? []), start];
    await this.pages.read(start);
    const last = await this.thread.checkpointAt(latest);
    this.epoch = last.note.epoch;
    const commit = await this.locate(id === "" ? [last.commit] : found);
    return commit && this.ancestor(commit);
  }

  /** The commits that have this external id, newest first: one that was put again stands on top of the former. */
  private async find(id: string): Promise<ObjectId[]> {
    const { storage, workflow } = this.thread.repository;
    return (await storage.findExternal(workflow, id)).toReversed();
  }

  /** The first of these that is a checkpoint of the namespace. */
  private async locate(found: readonly ObjectId[]): Promise<LoadedCommit | undefined> {
    for (const id of found) {
      const commit = await this.pages.read(id);
      if (this.isOurs(commit)) return commit;
    }
    return undefined;
  }

  /** The checkpoint below a commit, if it is the parent that the commit's frame names, and not put again since. */
  private async parentOn(
    { parents, externalId }: LoadedCommit,
    parent: string,
    read: (id: ObjectId) => Promise<LoadedCommit | undefined>,
  ): Promise<LoadedCommit | undefined> {
    for (let next = parents[0]; next !== undefined; ) {
      const commit = await read(next);
      if (commit === undefined || !this.isOurs(commit)) return undefined;
      if (commit.externalId !== externalId) {
        const isNewest = commit.externalId === parent && !this.pages.isReplaced(commit);
        return isNewest ? commit : undefined;
      }
      next = commit.parents[0];
    }
    return undefined;
  }

  private async ancestor(commit: LoadedCommit): Promise<Ancestor> {
    const objects = this.pages.objectsOf(commit);
    const { checkpoint } = commit.root;
    const frame = checkpoint && (await decodeValue(objects, checkpoint));
    return { frame: asFrame(frame, commit), commit, objects };
  }

  private isOurs(commit: LoadedCommit): boolean {
    const note = noteOf(commit);
    return note?.namespace === this.namespace && note.epoch === this.epoch;
  }
}
