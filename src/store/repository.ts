import type { ObjectId } from "../core/ids.js";
import type { Limits } from "../core/limits.js";
import { type GraphSource, HistoryReader } from "../merge/history.js";
import type { CustomResolvers } from "../merge/resolvers.js";
import { CommitReader, createCommitCache, type LoadedCommit } from "../objects/commit-reader.js";
import { type Isolation, isolationOfKey } from "../objects/isolation.js";
import { createObjectCache, ObjectReader } from "../objects/reader.js";
import { RefStore } from "../refs/ref-store.js";
import { RevisionResolver } from "../refs/revisions.js";
import type { Storage } from "../storage/port.js";

/** What all workflows of an open store share. */
export interface StoreContext {
  readonly storage: Storage;
  readonly limits: Limits;
  readonly now: () => number;
  readonly randomHex: (bytes: number) => string;
  /** What `custom:<name>` merge policies stand for. */
  readonly resolvers: CustomResolvers;
  readonly objectCache: ReturnType<typeof createObjectCache>;
  readonly commitCache: ReturnType<typeof createCommitCache>;
}

export function createStoreContext(
  base: Omit<StoreContext, "objectCache" | "commitCache">,
): StoreContext {
  return {
    ...base,
    objectCache: createObjectCache(base.limits.cacheMaxBytes),
    commitCache: createCommitCache(),
  };
}

/** One workflow's objects, commits, refs and history, put together over the storage. */
export class Repository {
  readonly storage: Storage;
  readonly objects: ObjectReader;
  readonly commits: CommitReader;
  readonly refs: RefStore;
  readonly revisions: RevisionResolver;
  readonly graph: GraphSource;
  readonly history: HistoryReader;
  readonly statePolicy: Isolation | null;
  readonly stepPolicy: Isolation | null;

  constructor(
    readonly context: StoreContext,
    readonly workflow: string,
    isolation: Isolation | null,
  ) {
    const { storage } = context;
    this.storage = storage;
    this.objects = new ObjectReader(storage, workflow, context.objectCache);
    this.commits = new CommitReader(storage, workflow, context.commitCache);
    this.refs = new RefStore(storage, workflow, context);
    this.revisions = new RevisionResolver(storage, workflow);
    const near = storage.readGraphNear?.bind(storage);
    this.graph = {
      read: (ids, limit) => storage.readGraph(workflow, ids, limit),
      ...(near && { readNear: (ids, limit) => near(workflow, ids, limit) }),
    };
    this.history = new HistoryReader(this.graph);
    this.statePolicy = isolationOfKey(isolation, "state");
    this.stepPolicy = isolationOfKey(isolation, "step");
  }

  async commitAt(revision: string): Promise<LoadedCommit> {
    return this.commits.read((await this.revisions.resolve(revision)).id);
  }

  /** A reader that also knows the objects in a commit's row. */
  objectsOf(commit: LoadedCommit): ObjectReader {
    return this.objects.with(commit.inline);
  }

  /** Commits of a walk, read in pages. */
  async *load(
    nodes: AsyncIterable<{ readonly id: ObjectId }>,
    limit: number,
  ): AsyncGenerator<LoadedCommit, void, undefined> {
    let page: ObjectId[] = [];
    let left = limit;
    if (left <= 0) return;
    for await (const node of nodes) {
      page.push(node.id);
      if (page.length >= Math.min(left, PAGE)) {
        yield* await this.commits.readAll(page);
        left -= page.length;
        page = [];
        if (left <= 0) return;
      }
    }
    yield* await this.commits.readAll(page);
  }
}

/** How many commits one call reads while listing. */
const PAGE = 100;
