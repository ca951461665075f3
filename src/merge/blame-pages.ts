import type { ObjectId } from "../core/ids.js";
import type { CommitReader, LoadedCommit } from "../objects/commit-reader.js";
import type { ObjectReader } from "../objects/reader.js";
import type { GraphNode } from "../storage/port.js";

/** Where commits and values come from. */
export interface BlameSource {
  /** As `Storage.readGraph`, bound to a workflow. */
  readonly graph: { read(ids: readonly ObjectId[], limit: number): Promise<GraphNode[]> };
  readonly commits: Pick<CommitReader, "readAll">;
  readonly objects: ObjectReader;
}

/** How many ancestors the first page brings along; doubled at each page after it. */
const PAGE_FIRST_COMMITS = 16;
/** The most ancestors that a page brings along. */
const PAGE_MAX_COMMITS = 256;

/**
 * Reads the commits of one walk down a history, ancestors ahead in growing
 * pages: a walk of n commits makes O(n / PAGE_MAX_COMMITS) round trips.
 */
export class CommitPages {
  readonly #source: BlameSource;
  readonly #onPage: (commits: readonly LoadedCommit[]) => Promise<void>;
  readonly #read = new Map<ObjectId, LoadedCommit>();
  #ahead = PAGE_FIRST_COMMITS;

  /** @param onPage called with each page before anything of it is given out */
  constructor(source: BlameSource, onPage: (commits: readonly LoadedCommit[]) => Promise<void>) {
    this.#source = source;
    this.#onPage = onPage;
  }

  /**
   * Reads a commit; undefined when it is not stored.
   *
   * @param below the walk asks for nothing of this generation or above any more
   * @param soon names what else the walk may ask for, which is no ancestor of `id`
   */
  async get(
    id: ObjectId,
    below: number,
    soon: () => Iterable<ObjectId>,
  ): Promise<LoadedCommit | undefined> {
    const known = this.#read.get(id);
    if (known !== undefined) return known;
    for (const [old, { generation }] of this.#read) {
      if (generation >= below) this.#read.delete(old);
    }
    const wanted = new Set([id]);
    for (const other of soon()) {
      if (wanted.size >= PAGE_MAX_COMMITS) break;
      if (!this.#read.has(other)) wanted.add(other);
    }
    await this.#page([...wanted]);
    return this.#read.get(id);
  }

  async #page(wanted: readonly ObjectId[]): Promise<void> {
    const nodes = await this.#source.graph.read(wanted, wanted.length + this.#ahead);
    this.#ahead = Math.min(2 * this.#ahead, PAGE_MAX_COMMITS);
    const fresh = nodes.map(({ id }) => id).filter((id) => !this.#read.has(id));
    const commits = await this.#source.commits.readAll(fresh);
    for (const commit of commits) this.#read.set(commit.id, commit);
    await this.#onPage(commits);
    // A long walk over a store that answers at once leaves others their turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
