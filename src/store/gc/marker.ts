import { AgstateError } from "../../core/errors.js";
import { IdSet } from "../../core/id-set.js";
import type { ObjectId } from "../../core/ids.js";
import { type LoadedCommit, loadCommit, ROOT_PARTS } from "../../objects/commit-reader.js";
import type { Link } from "../../objects/encode.js";
import { decodeRecord } from "../../objects/reader.js";
import type { Storage } from "../../storage/port.js";

/** How many commits, and how many trees, one call reads. */
const COMMITS_PAGE = 1000;
const TREES_PAGE = 500;

/** Marks what commits reach, each commit and object once, however often it is asked to. */
export class Marker {
  readonly #commits = new IdSet();
  readonly #objects = new IdSet();
  /** Optional commits that are not stored. */
  readonly #lacking = new Set<ObjectId>();

  constructor(
    private readonly storage: Storage,
    private readonly workflow: string,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** How many commits are marked and stored. */
  get commits(): number {
    return this.#commits.size - this.#lacking.size;
  }

  has(id: ObjectId): boolean {
    return this.#commits.has(id) || this.#objects.has(id);
  }

  /**
   * Marks all that commits reach.
   *
   * Reads commits and trees, never blobs; holds the ids and a page of bodies.
   *
   * @param optional ids that need not be stored (any more): they are passed over
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`: what is below a damaged object is not
   *   known, so nothing may be collected
   */
  async mark(roots: Iterable<ObjectId>, optional: Iterable<ObjectId> = []): Promise<void> {
    const mayLack = new Set(optional);
    const waiting: ObjectId[] = [];
    const meet = (id: ObjectId) => {
      if (this.#commits.add(id)) waiting.push(id);
    };
    const require = (id: ObjectId) => {
      mayLack.delete(id);
      if (this.#lacking.has(id)) throw missing(this.workflow, "commit", id);
      meet(id);
    };
    for (const id of roots) require(id);
    for (const id of mayLack) meet(id);
    while (waiting.length > 0) {
      this.signal?.throwIfAborted();
      const page = waiting.splice(-COMMITS_PAGE);
      const records = await this.storage.readCommits(this.workflow, page);
      const trees: ObjectId[] = [];
      records.forEach((record, i) => {
        const id = page[i] as ObjectId;
        if (record === undefined) {
          if (!mayLack.has(id)) throw missing(this.workflow, "commit", id);
          this.#lacking.add(id);
          return;
        }
        const commit = loadCommit(record);
        for (const parent of commit.parents) require(parent);
        this.#meetRoot(commit, trees);
      });
      await this.#markTrees(trees);
    }
  }

  /** Marks what a commit's row holds, and collects the stored trees that it links to. */
  #meetRoot({ root, inline }: LoadedCommit, trees: ObjectId[]): void {
    for (const id of inline.keys()) this.#objects.add(id);
    const waiting = ROOT_PARTS.map((part) => root[part]);
    for (let link = waiting.pop(); link !== undefined || waiting.length > 0; link = waiting.pop()) {
      if (link === undefined) continue;
      const own = inline.get(link.id);
      if (own?.type === "tree") waiting.push(...own.entries);
      else if (own === undefined) this.#meetLink(link, trees);
    }
  }

  #meetLink({ id, type }: Link, trees: ObjectId[]): void {
    if (this.#objects.add(id) && type === "tree") trees.push(id);
  }

  async #markTrees(trees: ObjectId[]): Promise<void> {
    while (trees.length > 0) {
      this.signal?.throwIfAborted();
      const page = trees.splice(-TREES_PAGE);
      const objects = await this.storage.readObjects(this.workflow, page);
      objects.forEach((object, i) => {
        if (object === undefined) throw missing(this.workflow, "tree", page[i] as ObjectId);
        if ("tombstone" in object) return;
        const decoded = decodeRecord(object);
        if (decoded.type !== "tree") return;
        for (const entry of decoded.entries) this.#meetLink(entry, trees);
      });
    }
  }
}

function missing(workflow: string, what: "commit" | "tree", id: ObjectId): AgstateError {
  return new AgstateError(
    "MISSING_OBJECT",
    `nothing of workflow ${workflow} is collected: ${what} ${id} is in use and not in the store; run agstate fsck, and restore it`,
    { workflow, id },
  );
}
