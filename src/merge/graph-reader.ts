import type { LRUCache } from "lru-cache";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { GraphNode } from "../storage/port.js";

/**
 * Where the history comes from: `Storage.readGraph`, bound to a workflow.
 *
 * `read` answers each of `ids` that is stored, and may go on with their
 * ancestors until `limit` nodes are read. A source that reads no ancestors is
 * correct, only slower.
 */
export interface GraphSource {
  read(ids: readonly ObjectId[], limit: number): Promise<GraphNode[]>;
}

/** How many ancestors the first read of a walk brings along; doubled at each read after it. */
const READ_AHEAD_FIRST_NODES = 64;
/** The most ancestors that one read brings along. */
export const READ_AHEAD_MAX_NODES = 1024;

/**
 * Reads nodes for one walk, a batch a round trip.
 *
 * The read-ahead grows as the walk goes on, so that a short walk reads little
 * and a long one of n nodes makes O(n / READ_AHEAD_MAX_NODES) round trips. The
 * cache is shared between walks and may forget; no walk relies on it.
 */
export class GraphReader {
  readonly #source: GraphSource;
  readonly #cache: LRUCache<ObjectId, GraphNode>;
  #ahead = READ_AHEAD_FIRST_NODES;

  constructor(source: GraphSource, cache: LRUCache<ObjectId, GraphNode>) {
    this.#source = source;
    this.#cache = cache;
  }

  /**
   * Reads nodes, in the order of `ids`.
   *
   * @param soon names what else the walk will ask for; read in the same round trip when there is one
   * @throws AgstateError `MISSING_OBJECT` when one of `ids` is not stored
   */
  async read(ids: readonly ObjectId[], soon?: () => Iterable<ObjectId>): Promise<GraphNode[]> {
    const found = ids.map((id) => this.#cache.get(id));
    if (!found.includes(undefined)) return found as GraphNode[];

    const wanted = new Set(ids.filter((_, i) => found[i] === undefined));
    for (const id of soon?.() ?? []) {
      if (wanted.size >= ids.length + READ_AHEAD_MAX_NODES) break;
      if (!this.#cache.has(id)) wanted.add(id);
    }
    const rows = await this.#source.read([...wanted], wanted.size + this.#ahead);
    this.#ahead = Math.min(2 * this.#ahead, READ_AHEAD_MAX_NODES);

    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const row of rows) this.#cache.set(row.id, row);
    return ids.map((id, i) => found[i] ?? byId.get(id) ?? missing(id));
  }
}

function missing(id: ObjectId): never {
  throw new AgstateError(
    "MISSING_OBJECT",
    `commit ${id} is not in the store; the history is damaged here, run fsck to see how far`,
    { id, type: "commit" },
  );
}
