import { AgstateError } from "../../core/errors.js";
import { ByteColumn, IdNumbers } from "../../core/id-numbers.js";
import type { ObjectId } from "../../core/ids.js";
import { type LoadedCommit, loadCommit, type RootPart } from "../../objects/commit-reader.js";
import type { Link } from "../../objects/encode.js";
import { decodeRecord } from "../../objects/reader.js";
import type { ObjectType, StoredObject } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { KEEPERS, type Tally } from "./types.js";

/** How many commits, and how many trees, one call reads. */
const COMMITS_PAGE = 1000;
const TREES_PAGE = 500;

/**
 * What reaches an object, in the order of how much that counts: the audit and commits whose time is not over, then what
 * keeps others, then commits whose payload is over, and those that are dropped.
 */
export const LAYERS = ["young", ...KEEPERS, "expired", "dropped"] as const;
export type Layer = (typeof LAYERS)[number];

const NUMBER = Object.fromEntries(LAYERS.map((layer, i) => [layer, i + 1])) as Record<
  Layer,
  number
>;

/** A small record in a commit's row. */
export interface Inlined {
  readonly id: ObjectId;
  readonly type: ObjectType;
  readonly bytes: number;
}

/**
 * Objects by the first layer that reaches them: commits are given layer by layer, and whatever an earlier one has
 * reached is passed over, with all below it.
 *
 * It reads commits and trees, never blobs, and holds some 60 bytes an object.
 */
export class ObjectLayers {
  readonly ids = new IdNumbers();
  readonly #layer = new ByteColumn();
  readonly #isTree = new ByteColumn();
  /** What the rows of commits of the layer `expired` hold that is payload. */
  readonly inline = new Map<ObjectId, readonly Inlined[]>();

  constructor(
    private readonly repository: Repository,
    private readonly signal: AbortSignal | undefined,
  ) {}

  layerOf(id: ObjectId): Layer | undefined {
    const number = this.ids.find(id);
    return number < 0 ? undefined : this.layerAt(number);
  }

  layerAt(number: number): Layer | undefined {
    return LAYERS[this.#layer.get(number) - 1];
  }

  typeAt(number: number): ObjectType {
    return this.#isTree.get(number) === 1 ? "tree" : "blob";
  }

  /**
   * Marks what entries of commits' root trees lead to. The root tree itself stays in any case: ids cannot be verified
   * without it.
   *
   * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`: what is below a damaged object is not known
   */
  async mark(
    commits: readonly ObjectId[],
    layer: Layer,
    parts: readonly RootPart[],
  ): Promise<void> {
    const { storage, workflow, opener } = this.repository;
    for (let at = 0; at < commits.length; at += COMMITS_PAGE) {
      this.signal?.throwIfAborted();
      const page = commits.slice(at, at + COMMITS_PAGE);
      const trees: ObjectId[] = [];
      for (const record of await storage.readCommits(workflow, page)) {
        // Collected meanwhile: it reaches nothing.
        if (record === undefined) continue;
        const commit = loadCommit(record, opener);
        const own = this.#markRow(commit, layer, parts, trees);
        if (layer === "expired") this.#noteInline(record.id, record.inline, own);
      }
      await this.#markTrees(trees, layer);
    }
  }

  /** The objects of a layer in the order in which they were met: each after one that links to it, or a commit. */
  numbersOf(layer: Layer): number[] {
    const number = NUMBER[layer];
    const numbers: number[] = [];
    for (let n = 0; n < this.ids.size; n++) if (this.#layer.get(n) === number) numbers.push(n);
    return numbers;
  }

  /** Counts what is stored of each layer, and is not a tombstone yet. */
  async tally(): Promise<Map<Layer, Tally>> {
    const { storage, workflow } = this.repository;
    const counts = new Map<Layer, { blobs: number; trees: number; bytes: number }>();
    for (const type of ["tree", "blob"] as const) {
      for (let after: string | null = null; ; ) {
        this.signal?.throwIfAborted();
        const ever = Number.MAX_SAFE_INTEGER;
        const page = await storage.scanSeen(workflow, type, ever, after, 5000);
        for (const { id, bytes, erased } of page.rows) {
          const layer = this.layerOf(id);
          if (layer === undefined || erased) continue;
          const count = counts.get(layer) ?? { blobs: 0, trees: 0, bytes: 0 };
          count[type === "tree" ? "trees" : "blobs"]++;
          count.bytes += bytes;
          counts.set(layer, count);
        }
        after = page.next;
        if (after === null) break;
      }
    }
    return counts;
  }

  /** Marks what is in a commit's row, and collects the stored trees that it links to. */
  #markRow(
    { root, inline }: LoadedCommit,
    layer: Layer,
    parts: readonly RootPart[],
    trees: ObjectId[],
  ): ReadonlySet<ObjectId> {
    const own = new Set<ObjectId>();
    const waiting = parts.map((part) => root[part]).filter((link) => link !== undefined);
    for (let link = waiting.pop(); link !== undefined; link = waiting.pop()) {
      const object = inline.get(link.id);
      if (object === undefined) {
        this.#meet(link, layer, trees);
        continue;
      }
      if (object.type === "tree") {
        waiting.push(...object.entries);
        continue;
      }
      own.add(link.id);
      this.#meet(link, layer, trees);
    }
    return own;
  }

  #noteInline(
    commit: ObjectId,
    inline: readonly StoredObject[],
    payload: ReadonlySet<ObjectId>,
  ): void {
    const own = inline.flatMap((object) =>
      "body" in object && payload.has(object.id)
        ? [{ id: object.id, type: object.type, bytes: object.body.length }]
        : [],
    );
    if (own.length > 0) this.inline.set(commit, own);
  }

  #meet({ id, type }: Link, layer: Layer, trees: ObjectId[]): void {
    const number = this.ids.number(id);
    const known = this.#layer.get(number);
    if (known !== 0 && known <= NUMBER[layer]) return;
    this.#layer.set(number, NUMBER[layer]);
    if (type === "tree") {
      this.#isTree.set(number, 1);
      trees.push(id);
    }
  }

  async #markTrees(trees: ObjectId[], layer: Layer): Promise<void> {
    const { storage, workflow } = this.repository;
    while (trees.length > 0) {
      this.signal?.throwIfAborted();
      const page = trees.splice(-TREES_PAGE);
      const objects = await storage.readObjects(workflow, page);
      objects.forEach((object, i) => {
        if (object === undefined) throw missing(workflow, page[i] as ObjectId);
        const decoded = decodeRecord(object);
        if (decoded.type !== "tree") return;
        for (const entry of decoded.entries) this.#meet(entry, layer, trees);
      });
    }
  }
}

function missing(workflow: string, id: ObjectId): AgstateError {
  return new AgstateError(
    "MISSING_OBJECT",
    `nothing of workflow ${workflow} is taken away: tree ${id} is in use and not in the store; run agstate fsck, and restore it`,
    { workflow, id },
  );
}
