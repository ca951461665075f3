import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { sharingDecoder } from "../objects/decode.js";
import { createDraftContext } from "../objects/draft/draft.js";
import { reconcile } from "../objects/draft/reconcile.js";
import { type Encoded, encodeValue, toLink } from "../objects/encode.js";
import { normalize } from "../objects/normalize.js";
import {
  BELOW_MAX_BYTES,
  BELOW_MAX_OBJECTS,
  type ObjectReader,
  type ObjectsAtHand,
} from "../objects/reader.js";
import type { ObjectSink } from "../objects/sink.js";
import type { Checkpoint } from "../store/checkpoint.js";
import type { CommitWithState, Repository } from "../store/repository.js";
import { type PreparedCommit, prepareCommit } from "../store/write-commit.js";
import {
  asFrame,
  asRecord,
  type CheckpointFrame,
  type CheckpointRecord,
  type StoredCheckpoint,
  storedFrame,
} from "./record.js";

/** Who writes the commits of checkpoints. */
export const AUTHOR = "langgraph";

/** The parts of a commit that a checkpoint is made of: its channels' values, and its frame. */
const PARTS = ["state", "checkpoint"] as const;
type Part = (typeof PARTS)[number];

/** A part of a checkpoint, normalised, and what the checkpoint below has there. */
interface Change {
  readonly before: JsonValue | undefined;
  readonly after: JsonValue;
}

/** Reads checkpoints of one workflow from their commits, and prepares commits of them. */
export class CheckpointParts {
  /** Checkpoints that follow each other have nearly all in common. */
  private readonly decode = sharingDecoder();

  constructor(private readonly repository: Repository) {}

  /** Reads a commit, and in the same call, where the storage can, what it has of a checkpoint. */
  open(id: ObjectId): Promise<CommitWithState> {
    return this.repository.withState(id, true, PARTS);
  }

  /** @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED` */
  async load({ commit, objects }: CommitWithState): Promise<StoredCheckpoint> {
    const absent = absentParts(commit, objects);
    // One alone is read ahead by decoding it.
    if (absent.length > 1) await this.readBelow(absent);
    // The state last: it is what the next checkpoint's state has nearly all of.
    const frame = await this.decodeFrame(commit, objects);
    const { state } = commit.root;
    const channels = state && (await this.decode(objects, state));
    return { commit, record: asRecord(channels, frame, commit) };
  }

  /** All of a checkpoint but its channels' values: of most it is in the commit's row. */
  async frame(id: ObjectId): Promise<CheckpointFrame> {
    const commit = await this.repository.commits.read(id);
    return this.decodeFrame(commit, this.repository.objectsOf(commit));
  }

  /** Reads commits, and what parts of their checkpoints are made of, in one call each, where the storage can read ahead. */
  async readAhead(ids: readonly ObjectId[], parts: readonly Part[] = PARTS): Promise<void> {
    const { commits, objects } = this.repository;
    const read = await commits.readAll(ids);
    if (!objects.readsAhead) return;
    const absent = read.flatMap((each) => absentParts(each, objects, parts));
    if (absent.length > 0) await this.readBelow(absent);
  }

  /**
   * Prepares the commit of a checkpoint; writes nothing.
   *
   * @param below the checkpoint that it stands on: what is the same there is not stored again
   * @param fresh objects below it that are not stored yet
   * @param told what tells of it
   * @returns also the record as it will be read
   * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`; `KEY_UNAVAILABLE`, `ERASED` when it is to be encrypted and cannot be
   */
  prepare(
    given: CheckpointRecord,
    below: StoredCheckpoint | undefined,
    options: { readonly message: string; readonly externalId: string },
    fresh: ObjectsAtHand = new Map(),
    told?: Checkpoint,
  ): Promise<{ record: CheckpointRecord; commit: PreparedCommit }> {
    return this.repository.keys.encoding(() =>
      this.prepareOnce(given, below, options, fresh, told),
    );
  }

  private async prepareOnce(
    given: CheckpointRecord,
    below: StoredCheckpoint | undefined,
    options: { readonly message: string; readonly externalId: string },
    fresh: ObjectsAtHand,
    told: Checkpoint | undefined,
  ): Promise<{ record: CheckpointRecord; commit: PreparedCommit }> {
    const { repository } = this;
    const sink = repository.newSink();
    const channels = this.change(given.channels, below?.record.channels);
    const frame = this.change(storedFrame(given), below && storedFrame(below.record));
    const same = channels.after === channels.before ? below?.commit.root.state : undefined;
    const commit = prepareCommit(repository, {
      sink,
      parents: below === undefined ? [] : [below.commit],
      root: {
        state: same ?? toLink(sink, await this.encode(sink, below, "state", channels, fresh)),
      },
      checkpoint: await this.encode(sink, below, "checkpoint", frame, fresh),
      author: AUTHOR,
      minStep: 1,
      options,
      ...(told && { told }),
    });
    const { loaded } = commit;
    return { record: asRecord(channels.after, asFrame(frame.after, loaded), loaded), commit };
  }

  private change(value: unknown, previous: unknown): Change {
    const { stateMaxBytes: maxBytes } = this.repository.context.limits;
    const before = previous as JsonValue | undefined;
    const after = normalize(value, { previous: before, maxBytes, what: "checkpoint" });
    return { before, after };
  }

  /** Encodes a part; where it is large, by what differs from the checkpoint below. */
  private async encode(
    sink: ObjectSink,
    below: StoredCheckpoint | undefined,
    part: Part,
    { before, after }: Change,
    fresh: ObjectsAtHand,
  ): Promise<Encoded> {
    const { repository } = this;
    const policy = part === "state" ? repository.statePolicy : null;
    const stored = below?.commit.root[part];
    if (below === undefined || before === undefined || stored?.type !== "tree")
      return encodeValue(sink, after, policy);
    const get = (id: ObjectId) => below.commit.inline.get(id) ?? fresh.get(id);
    const context = createDraftContext(repository.objects.with({ get }), sink);
    const draft = await reconcile(context, await context.open(stored), before, after);
    return draft.encode(policy);
  }

  private async decodeFrame(commit: LoadedCommit, objects: ObjectReader): Promise<CheckpointFrame> {
    const { checkpoint } = commit.root;
    const value = checkpoint && (await this.decode(objects, checkpoint));
    return asFrame(value, commit);
  }

  private async readBelow(ids: readonly ObjectId[]): Promise<void> {
    const { objects } = this.repository;
    const limits = { maxObjects: BELOW_MAX_OBJECTS, maxBytes: BELOW_MAX_BYTES };
    if (objects.readsAhead) await objects.readAhead({ ids, ...limits });
  }
}

/** The objects at which a checkpoint's parts begin, without those that are at hand. */
function absentParts(
  { root, inline }: LoadedCommit,
  objects: ObjectReader,
  parts: readonly Part[] = PARTS,
): ObjectId[] {
  const ids = parts.flatMap((part) => root[part]?.id ?? []);
  return ids.filter((id) => !inline.has(id) && !objects.has(id));
}
