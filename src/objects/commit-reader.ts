import { LRUCache } from "lru-cache";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { CommitRecord, Storage } from "../storage/port.js";
import { type CommitFields, decodeCommit } from "./commit.js";
import type { Link } from "./encode.js";
import { type DecodedObject, decodeRecord } from "./reader.js";
import { CLOSED, type Opener } from "./sealing.js";

/** The parts of a commit's root tree; each is there only when the commit has it. */
export const ROOT_PARTS = ["state", "step", "envelope", "policy", "merge", "checkpoint"] as const;
export type RootPart = (typeof ROOT_PARTS)[number];
export type RootLinks = { readonly [Part in RootPart]?: Link | undefined };

/** A commit as loaded: its fields, its place in the graph, and what its row carried. */
export interface LoadedCommit extends CommitFields {
  readonly id: ObjectId;
  readonly generation: number;
  /** Parents that its body names and its row does not any more: the history below them was dropped. Absent: none. */
  readonly cut?: readonly ObjectId[] | undefined;
  readonly root: RootLinks;
  /** The objects that live in the commit's row. */
  readonly inline: ReadonlyMap<ObjectId, DecodedObject>;
}

export type CommitCache = LRUCache<string, LoadedCommit>;

const CACHED_COMMITS = 5000;

export function createCommitCache(): CommitCache {
  return new LRUCache({ max: CACHED_COMMITS });
}

/**
 * Makes a loaded commit of a stored one. Its parents are those of its row: where history was thinned these are fewer than its
 * body names.
 */
export function loadCommit(record: CommitRecord, opener: Opener = CLOSED): LoadedCommit {
  const fields = decodeCommit(record.body, record.id);
  const inline = new Map(record.inline.map((o) => [o.id, decodeRecord(o, opener)]));
  const tree = inline.get(fields.tree);
  if (tree?.type !== "tree") {
    throw new AgstateError(
      "CORRUPT_OBJECT",
      `commit ${record.id} has no root tree ${fields.tree} in its row`,
      { id: record.id, tree: fields.tree },
    );
  }
  const root: Partial<Record<RootPart, Link>> = {};
  for (const entry of tree.entries) {
    if ((ROOT_PARTS as readonly string[]).includes(entry.name))
      root[entry.name as RootPart] = entry;
  }
  const { id, generation, parents } = record;
  const cut = parentsCut(fields, record);
  return { ...fields, id, generation, parents, ...(cut.length > 0 && { cut }), root, inline };
}

/** Parents that a commit's body names and its row does not. */
function parentsCut(
  body: Pick<CommitFields, "parents">,
  row: Pick<CommitRecord, "parents">,
): ObjectId[] {
  if (body.parents.length === row.parents.length) return [];
  return body.parents.filter((parent) => !row.parents.includes(parent));
}

/** Reads the commits of one workflow, through a cache. */
export class CommitReader {
  constructor(
    private readonly storage: Pick<Storage, "readCommits">,
    private readonly workflow: string,
    private readonly cache: CommitCache,
    private readonly opener: Opener = CLOSED,
  ) {}

  /** @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT` */
  async read(id: ObjectId): Promise<LoadedCommit> {
    return (await this.readAll([id]))[0] as LoadedCommit;
  }

  /** Reads commits in one call to the storage, the answer in the order of `ids`. */
  async readAll(ids: readonly ObjectId[]): Promise<LoadedCommit[]> {
    const missing = ids.filter((id) => !this.has(id));
    const loaded = new Map<ObjectId, LoadedCommit>();
    if (missing.length > 0) {
      const rows = await this.storage.readCommits(this.workflow, missing);
      for (let i = 0; i < missing.length; i++) {
        const record = rows[i];
        const id = missing[i] as ObjectId;
        if (record === undefined) {
          throw new AgstateError(
            "MISSING_OBJECT",
            `commit ${id} is not in the store; run agstate fsck to see what refers to it`,
            { id },
          );
        }
        loaded.set(id, this.prime(record));
      }
    }
    return ids.map((id) => loaded.get(id) ?? (this.cache.get(id + this.workflow) as LoadedCommit));
  }

  /** Whether a commit is at hand. */
  has(id: ObjectId): boolean {
    return this.cache.has(id + this.workflow);
  }

  /** Makes a loaded commit of one that was read, and leaves the cache as it is. */
  load(record: CommitRecord): LoadedCommit {
    return loadCommit(record, this.opener);
  }

  /** Takes a commit that was just written or read into the cache. */
  prime(record: CommitRecord): LoadedCommit {
    const commit = this.load(record);
    this.keep(commit);
    return commit;
  }

  /** The same for one that is loaded. */
  keep(commit: LoadedCommit): void {
    this.cache.set(commit.id + this.workflow, commit);
  }
}
