import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import type { Limits } from "../core/limits.js";
import type { StepHooks } from "../core/step-hooks.js";
import type { Telemetry } from "../core/telemetry.js";
import type { Governance } from "../governance/policy.js";
import type { WorkflowKeys } from "../keys/workflow-keys.js";
import { type GraphSource, HistoryReader } from "../merge/history.js";
import type { CustomResolvers } from "../merge/resolvers.js";
import type { StepAction } from "../objects/commit.js";
import {
  CommitReader,
  createCommitCache,
  type LoadedCommit,
  type RootPart,
} from "../objects/commit-reader.js";
import { encodeValue } from "../objects/encode.js";
import { elsewhereAt, type Isolation, isolationOfKey } from "../objects/isolation.js";
import type { Elsewhere } from "../objects/pointer.js";
import {
  BELOW_MAX_BYTES,
  BELOW_MAX_OBJECTS,
  createObjectCache,
  ObjectReader,
  type ObjectsAtHand,
} from "../objects/reader.js";
import type { Opener, Seal } from "../objects/sealing.js";
import { ObjectSink, type PointedTo } from "../objects/sink.js";
import { registry } from "../pressure/guards.js";
import { EVENTS_REF } from "../refs/names.js";
import { RefStore, type UpdateBatch } from "../refs/ref-store.js";
import { RevisionResolver } from "../refs/revisions.js";
import type { ForeignRegions } from "../residency/foreign.js";
import type { Checkers } from "../staleness/types.js";
import { policyOfStep } from "../steps/phases.js";
import type { Storage } from "../storage/port.js";
import type { KeyChain } from "./keys/chain.js";
import type { PlacedParts } from "./placed.js";
import { mustBePrimary } from "./primary.js";
import type { CheckedSchema } from "./schema/schema.js";
import type { MigratedValues } from "./schema/values.js";

/** What all workflows of an open store share. */
export interface StoreContext {
  readonly storage: Storage;
  readonly limits: Limits;
  readonly now: () => number;
  readonly randomHex: (bytes: number) => string;
  /** What `custom:<name>` merge policies stand for. */
  readonly resolvers: CustomResolvers;
  /** The schema of a workflow's state, checked; undefined where it has none. */
  readonly schemaOf: (workflow: string) => CheckedSchema | undefined;
  /** What takes part in every step. */
  readonly hooks: readonly StepHooks[];
  /** What tools may do; undefined when there are no rules. */
  readonly governance: Governance | undefined;
  /** Tells of what is done. */
  readonly telemetry: Telemetry;
  /** What can be done with values of other regions; undefined where the store was not opened through regions. */
  readonly foreign?: ForeignRegions | undefined;
  /** The keys of its workflows. */
  readonly keys: KeyChain;
  /** What is asked about resources where a call names no others. */
  readonly checkers?: Checkers | undefined;
  /** Puts into the audit what was refused because of where data belongs; never throws. */
  readonly refused?: (repository: Repository, error: unknown) => Promise<void>;
  /** Lands what handles of the store have gathered; each is here while it has something. */
  readonly gathering: Set<() => Promise<unknown>>;
  readonly objectCache: ReturnType<typeof createObjectCache>;
  readonly commitCache: ReturnType<typeof createCommitCache>;
  /** States that were migrated to be read; undefined before the first. */
  migratedValues?: MigratedValues;
  /** Forgets what was read, as it may not be told any more. */
  readonly forget: () => void;
}

export function createStoreContext(
  base: Omit<StoreContext, "gathering" | "objectCache" | "commitCache" | "forget">,
): StoreContext {
  const objectCache = createObjectCache(base.limits.cacheMaxBytes);
  const commitCache = createCommitCache();
  const context: StoreContext = {
    ...base,
    gathering: new GatheringHandles(),
    objectCache,
    commitCache,
    forget: () => {
      objectCache.clear();
      commitCache.clear();
      context.migratedValues?.clear();
    },
  };
  return context;
}

/** What handles have gathered, kept where a watch of the process's memory finds it as well. */
class GatheringHandles extends Set<() => Promise<unknown>> {
  override add(land: () => Promise<unknown>): this {
    registry.landers.add(land);
    return super.add(land);
  }

  override delete(land: () => Promise<unknown>): boolean {
    registry.landers.delete(land);
    return super.delete(land);
  }
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
  readonly envelopePolicy: Isolation | null;
  /** Envelopes that say that a branch was taken up, by their objects' ids: steps on top of them may run. */
  readonly takenUp = new Set<ObjectId>();
  /** What the workflow's state is, and how older ones become it; null where nobody said. */
  readonly schema: CheckedSchema | null;

  constructor(
    readonly context: StoreContext,
    readonly workflow: string,
    isolation: Isolation | null,
    readonly keys: WorkflowKeys,
    /** The parts that belong to other regions; null when all belongs here. */
    readonly placed: PlacedParts | null = null,
  ) {
    const { storage } = context;
    const { sealing } = keys;
    this.storage = storage;
    this.objects = new ObjectReader(
      storage,
      workflow,
      context.objectCache,
      undefined,
      undefined,
      placed === null ? sealing : { ...sealing, resolver: placed },
    );
    this.commits = new CommitReader(storage, workflow, context.commitCache, sealing.opener);
    this.refs = new RefStore(storage, workflow, context, {
      before: (batch) => {
        if (!isAudit(batch)) placed?.refuseUnlessWritable();
      },
      failed: async (batch, error) => {
        if (!isAudit(batch)) await context.refused?.(this, error);
      },
    });
    this.revisions = new RevisionResolver(storage, workflow, async (id) => {
      if ((await this.commits.read(id)).cut === undefined) return undefined;
      const { explainBoundary } = await import("./retention/records.js");
      return explainBoundary(this, id);
    });
    const near = storage.readGraphNear?.bind(storage);
    this.graph = {
      read: (ids, limit) => storage.readGraph(workflow, ids, limit),
      ...(near && { readNear: (ids, limit) => near(workflow, ids, limit) }),
      ...(this.objects.readsAhead && { aheadMinNodes: REMOTE_AHEAD_NODES }),
    };
    this.history = new HistoryReader(this.graph);
    this.statePolicy = isolationOfKey(isolation, "state");
    this.stepPolicy = isolationOfKey(isolation, "step");
    this.envelopePolicy = isolationOfKey(isolation, "envelope");
    this.schema = context.schemaOf(workflow) ?? null;
  }

  /** Reads bodies that are not plain, as far as keys are at hand. */
  get opener(): Opener {
    return this.keys.sealing.opener;
  }

  /**
   * Refuses what must not be decided by what a replica says; whatever decides or writes calls this before it does anything.
   *
   * @param what such as `merge`
   * @throws AgstateError `STORE_READONLY`
   */
  mustBePrimary(what: string): Promise<void> {
    return mustBePrimary(this.storage, what);
  }

  /** The version of a state that is written anew on top of a commit: the schema's; without one, that of what stands there. */
  versionAfter(commit: Pick<LoadedCommit, "stateVersion">): number | undefined {
    return this.schema === null ? commit.stateVersion : this.schema.version;
  }

  /** A sink for objects that are going to be written. */
  newSink(): ObjectSink {
    const { workflow, keys, placed, context } = this;
    return new ObjectSink({
      workflow,
      seal: keys.sealing.seal,
      clear: context.foreign !== undefined,
      ...(placed !== null && {
        point: (elsewhere, text, seal) => this.point(placed, elsewhere, text, seal),
      }),
    });
  }

  /** Makes the pointer to a value of another region, or has it recorded that it may not be written. */
  private point(placed: PlacedParts, elsewhere: Elsewhere, text: string, seal: Seal): PointedTo {
    try {
      return placed.pointTo(elsewhere, text, seal);
    } catch (error) {
      void this.context.refused?.(this, error);
      throw error;
    }
  }

  /**
   * Learns what of a step belongs to another region before its record lands, as whoever did it has that, whether it lands or
   * not; nothing where all belongs here.
   */
  foresee(action: StepAction, record: JsonValue): void {
    if (this.placed?.foreign === undefined) return;
    try {
      encodeValue(this.newSink(), record, this.policyOfStep(action, record));
    } catch {
      // Whatever is wrong is told when it is written.
    }
  }

  /** The isolation policy of a step's record, by what the step was. */
  policyOfStep(action: StepAction, record: JsonValue): Isolation | null {
    const { placed, stepPolicy } = this;
    if (placed === null) return stepPolicy;
    return policyOfStep(stepPolicy, placed.phases, action, record, (path) =>
      elsewhereAt(this.statePolicy, path),
    );
  }

  commitAt(revision: string): Promise<LoadedCommit> {
    return this.revisions.using([revision], ([resolved]) => this.commits.read(resolved!.id));
  }

  /**
   * Reads a commit, and in the same call, where the storage can, what its state is made of.
   *
   * @param whole whether all of the state is wanted, or some path in it: then little comes along
   * @param parts what to read along
   */
  async withState(
    id: ObjectId,
    whole: boolean,
    parts: readonly RootPart[] = ["state"],
  ): Promise<CommitWithState> {
    const read = await this.loadAhead([id], parts, whole);
    const commit = await this.commits.read(id);
    const get = (each: ObjectId) => commit.inline.get(each) ?? read.get(each);
    return { commit, objects: this.objects.with({ get }) };
  }

  /**
   * Reads commits that are not at hand, and in the same call, where the storage can, what entries of
   * their root trees lead to; answers the objects that came, which the cache need not keep.
   *
   * @param whole whether all of it is wanted, or some path in it: then little comes along
   */
  async loadAhead(
    ids: readonly ObjectId[],
    entries: readonly RootPart[],
    whole: boolean,
  ): Promise<ObjectsAtHand> {
    const absent = [...new Set(ids)].filter((id) => !this.commits.has(id));
    if (absent.length === 0 || !this.objects.readsAhead) return NOTHING;
    const times = whole ? Number.POSITIVE_INFINITY : ids.length;
    const read = await this.objects.readAhead({
      commits: absent,
      entries,
      maxObjects: Math.min(times * PART_MAX_OBJECTS, BELOW_MAX_OBJECTS),
      maxBytes: Math.min(times * PART_MAX_BYTES, BELOW_MAX_BYTES),
    });
    for (const record of read.commits) this.commits.prime(record);
    return read.objects;
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

/** The audit's own record, which tells of refusals and must not be one. */
function isAudit({ updates }: UpdateBatch): boolean {
  return updates.length > 0 && updates.every(({ ref }) => ref === EVENTS_REF);
}

export interface CommitWithState {
  readonly commit: LoadedCommit;
  /** Also knows the objects in the commit's row. */
  readonly objects: ObjectReader;
}

/** How much is read along with a commit of which some path is wanted: the whole of a small state. */
const PART_MAX_OBJECTS = 256;
const PART_MAX_BYTES = 64 * 1024;

const NOTHING: ObjectsAtHand = new Map();

/** How many ancestors come along with commits where a call costs more than they do. */
const REMOTE_AHEAD_NODES = 256;

/** How many commits one call reads while listing. */
const PAGE = 100;
