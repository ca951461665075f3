import { isDeepStrictEqual } from "node:util";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import { hasOwn, type JsonValue, setOwn } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { WorkflowDeclaration } from "../store/types.js";
import type { Store } from "../store.js";
import { deltaHistory } from "./delta.js";
import { listPages } from "./listing.js";
import { type OpenThread, OpenThreads } from "./open-threads.js";
import { type CheckpointFrame, messageOf, type StoredCheckpoint } from "./record.js";
import type { CheckpointOfThread, ConcurrentPuts, PutBase, PutRequest, Thread } from "./thread.js";
import { fromStored, toStored } from "./values.js";
import type { WritesOf } from "./writes.js";

export interface AgstateSaverOptions {
  /**
   * What becomes of a put that goes on from a checkpoint on which somebody else has put another meanwhile, or
   * begins a thread that somebody else has begun: `fork` keeps both side by side, and the last is the latest;
   * `refuse` is `REF_CONFLICT`, and nothing is written. Default `fork`.
   *
   * Time travel is a fork either way: what was read by its id when it was no longer the latest may be gone on
   * from, and a copy stands beside its original.
   */
  readonly concurrentPuts?: ConcurrentPuts;
  /**
   * What the workflow of a thread declares when the thread is begun, or what says so of each: classification,
   * storage region, retention, isolation of channels (`/state/CHANNEL`).
   */
  readonly declaration?: WorkflowDeclaration | ((threadId: string) => WorkflowDeclaration);
  /** What serializes values that are not JSON; default LangGraph's own. */
  readonly serde?: SerializerProtocol;
}

/**
 * A LangGraph checkpointer over any agstate store: a thread is a workflow, a checkpoint a commit.
 *
 * Of each checkpoint namespace the branch `langgraph/latest` (`langgraph.NAME/latest` below the root) is at
 * the checkpoint that was put last; where a fork left another one behind, `langgraph/at-ID` is. Errors are
 * `AgstateError`s.
 */
export class AgstateSaver extends BaseCheckpointSaver {
  protected readonly threads: OpenThreads;

  /**
   * @param store whose it stays: the caller closes it
   * @throws AgstateError `INVALID_ARGUMENT`
   */
  constructor(
    store: Store | { readonly url: string },
    { concurrentPuts = "fork", declaration = {}, serde }: AgstateSaverOptions = {},
  ) {
    super(serde);
    if (concurrentPuts !== "fork" && concurrentPuts !== "refuse") {
      const message = `concurrentPuts is ${quoteForMessage(String(concurrentPuts))}; it must be "fork" or "refuse"`;
      throw new AgstateError("INVALID_ARGUMENT", message, { field: "concurrentPuts" });
    }
    this.threads = new OpenThreads(store, {
      concurrentPuts,
      declarationOf: typeof declaration === "function" ? declaration : () => declaration,
      serde: () => this.serde,
    });
  }

  /** A saver with a store of its own, as `openStore` names them; `end` closes it. */
  static fromConnString(url: string, options: AgstateSaverOptions = {}): AgstateSaver {
    return new AgstateSaver({ url }, options);
  }

  /** Opens the store, and makes it when it is not there; otherwise the first use does. */
  async setup(): Promise<void> {
    await this.threads.open();
  }

  /** Closes the store, if it is the saver's own. */
  async end(): Promise<void> {
    await this.threads.close();
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id: id } = config.configurable ?? {};
    if (id === undefined) return undefined;
    const thread = await this.threads.find(checkThreadId(id));
    if (thread === undefined) return undefined;
    const namespace = namespaceOf(config);
    const wanted = getCheckpointId(config);
    if (wanted === "") {
      const stored = await thread.checkpoints.last(namespace);
      return stored && this.tuple(thread, namespace, stored);
    }
    const [stored, writes] = await Promise.all([
      thread.checkpoints.find(namespace, wanted),
      thread.writes.read([{ namespace, id: wanted }]),
      thread.checkpoints.noteRead(namespace, wanted),
    ]);
    return stored && this.tuple(thread, namespace, stored, writes);
  }

  /**
   * Lists checkpoints, those of a thread by falling id; of one namespace when the config names one.
   *
   * A filter names keys of the metadata and what they must be equal to.
   */
  async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { before, filter } = options;
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    const { checkpoint_ns: namespace, checkpoint_id: only } = config.configurable ?? {};
    const end = before === undefined ? undefined : getCheckpointId(before);
    const isWanted = async ({ metadata }: CheckpointFrame) =>
      matches(await fromStored(this.serde, metadata), filter);
    const which = { namespace, only, before: end, matches: filter && isWanted };
    for await (const thread of this.threadsOf(config)) {
      if (left <= 0) return;
      for await (const page of listPages(thread.checkpoints, { ...which, limit: left })) {
        left -= page.length;
        yield* this.tuples(thread, page);
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const id = checkThreadId(config.configurable?.thread_id);
    const request = await this.request(config, checkpoint, metadata, newVersions);
    await this.threads.use(id, (thread) => thread.checkpoints.put(request(thread)));
    return configOf(id, namespaceOf(config), checkpoint.id);
  }

  private async *threadsOf(config: RunnableConfig): AsyncGenerator<OpenThread> {
    const { thread_id: id } = config.configurable ?? {};
    if (id === undefined) {
      yield* this.threads.all();
      return;
    }
    const thread = await this.threads.find(checkThreadId(id));
    if (thread !== undefined) yield thread;
  }

  /** What a put asks of its thread. */
  protected async request(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<(thread: OpenThread) => PutRequest> {
    const id = checkThreadId(config.configurable?.thread_id);
    const namespace = namespaceOf(config);
    const parent = getCheckpointId(config) || undefined;
    const changed = Object.keys(newVersions).filter((name) =>
      hasOwn(checkpoint.channel_values, name),
    );
    const [channels, metadataStored] = await Promise.all([
      this.encodeAll(checkpoint.channel_values, changed),
      toStored(this.serde, metadata, ["metadata"]),
    ]);
    return ({ checkpoints, writes }) => ({
      namespace,
      id: checkpoint.id,
      parent,
      beside: metadata.source === "fork",
      message: (note) => messageOf(metadata, note),
      // What tasks wrote must be there before a checkpoint that goes without it.
      along: () => writes.along(namespace, parent),
      record: async (base) => ({
        channels: await this.channels(checkpoints, namespace, base, {
          checkpoint,
          newVersions,
          channels,
        }),
        checkpoint: {
          v: checkpoint.v,
          id: checkpoint.id,
          ts: checkpoint.ts,
          versions: checkpoint.channel_versions,
          seen: checkpoint.versions_seen,
          ...(parent !== undefined && { parent }),
        },
        metadata: metadataStored as JsonValue,
        thread: id,
      }),
    });
  }

  async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = "",
  ): Promise<void> {
    const id = checkThreadId(config.configurable?.thread_id);
    const namespace = namespaceOf(config);
    const checkpoint = getCheckpointId(config);
    checkName("checkpoint_id", checkpoint, false);
    const place = { namespace, checkpoint, task: taskId, path: taskPath };
    await this.threads.use(id, (thread) => thread.writes.add(place, writes));
  }

  /**
   * Reads what `DeltaChannel`s are rebuilt from: the writes below a checkpoint's ancestors, and the value from
   * which they go on. It does not count as having read a checkpoint by its id.
   */
  override async getDeltaChannelHistory({
    config,
    channels,
  }: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { thread_id: id } = config.configurable ?? {};
    const thread =
      id === undefined || channels.length === 0
        ? undefined
        : await this.threads.find(checkThreadId(id));
    if (thread === undefined)
      return Object.fromEntries(channels.map((name) => [name, { writes: [] }]));
    const request = { namespace: namespaceOf(config), id: getCheckpointId(config), channels };
    return deltaHistory(thread.checkpoints, thread.writes, this.serde, request);
  }

  /**
   * Deletes all checkpoints and writes of a thread: no ref leads to them any more, and collection removes
   * their bytes. The workflow stays, empty, and the thread can be begun anew.
   */
  async deleteThread(threadId: string): Promise<void> {
    const thread = await this.threads.find(checkThreadId(threadId));
    await thread?.checkpoints.delete();
    await thread?.writes.delete();
  }

  private async encodeAll(
    values: Readonly<Record<string, unknown>>,
    names: readonly string[],
  ): Promise<Record<string, JsonValue>> {
    const encoded: Record<string, JsonValue> = {};
    await Promise.all(
      names.map(async (name) => {
        const stored = await toStored(this.serde, values[name], ["channel_values", name]);
        setOwn(encoded, name, stored as JsonValue);
      }),
    );
    return encoded;
  }

  /** The channels of a new checkpoint: what it changes, and of the others what was recorded at their version. */
  private async channels(
    thread: Thread,
    namespace: string,
    base: PutBase,
    put: {
      readonly checkpoint: Checkpoint;
      readonly newVersions: ChannelVersions;
      readonly channels: Readonly<Record<string, JsonValue>>;
    },
  ): Promise<Record<string, JsonValue>> {
    const { checkpoint, newVersions } = put;
    const channels = { ...put.channels };
    const line = [base.same, base.parent].flatMap((stored) => stored?.record ?? []);
    const elsewhere: string[] = [];
    for (const [name, version] of Object.entries(checkpoint.channel_versions)) {
      if (hasOwn(newVersions, name)) continue;
      const from = line.find((record) => isAt(record, name, version));
      if (from === undefined) {
        if (hasOwn(checkpoint.channel_values, name)) elsewhere.push(name);
      } else if (hasOwn(from.channels, name)) setOwn(channels, name, from.channels[name]);
    }
    // As of a copy of a checkpoint, which stands beside it and says that nothing is new.
    const left = new Set(elsewhere);
    if (left.size > 0) {
      for await (const { at } of thread.checkpoints(namespace)) {
        const frame = await thread.frame(at);
        const found = [...left].filter((name) =>
          isAt(frame, name, checkpoint.channel_versions[name] as number | string),
        );
        if (found.length === 0) continue;
        const { channels: recorded } = (await thread.load(at)).record;
        for (const name of found) if (hasOwn(recorded, name)) left.delete(name);
        if (left.size === 0) break;
      }
      // Forks may have one version of two values; what the caller has is that of the checkpoint it means.
      const recorded = elsewhere.filter((name) => !left.has(name));
      const values = await this.encodeAll(checkpoint.channel_values, recorded);
      for (const name of recorded) setOwn(channels, name, values[name]);
    }
    return channels;
  }

  /** The tuples of checkpoints in the order given: what they are made of is read in one call, where the storage can. */
  protected async *tuples(
    thread: OpenThread,
    page: readonly CheckpointOfThread[],
  ): AsyncGenerator<CheckpointTuple> {
    const [writes] = await Promise.all([
      thread.writes.read(page),
      thread.checkpoints.readAhead(page),
    ]);
    for (const { at, namespace } of page) {
      const stored = await thread.checkpoints.load(at);
      yield this.tuple(thread, namespace, stored, writes);
    }
  }

  private async tuple(
    thread: OpenThread,
    namespace: string,
    { record }: StoredCheckpoint,
    known?: WritesOf,
  ): Promise<CheckpointTuple> {
    const { id, v, ts, versions, seen, parent } = record.checkpoint;
    const [channels, metadata, writes] = await Promise.all([
      Promise.all(
        Object.entries(record.channels).map(
          async ([name, value]) => [name, await fromStored(this.serde, value)] as const,
        ),
      ),
      fromStored(this.serde, record.metadata),
      known ?? thread.writes.read([{ namespace, id }]),
    ]);
    const checkpoint: Checkpoint = {
      v,
      id,
      ts,
      channel_values: {},
      channel_versions: { ...versions },
      versions_seen: structuredClone(seen),
    };
    for (const [name, value] of channels) setOwn(checkpoint.channel_values, name, value);
    if (v < 4 && parent !== undefined) await this.addSends(thread, namespace, checkpoint, parent);
    return {
      config: configOf(thread.id, namespace, id),
      checkpoint,
      metadata: metadata as CheckpointMetadata,
      pendingWrites: writes({ namespace, id }),
      ...(parent !== undefined && { parentConfig: configOf(thread.id, namespace, parent) }),
    };
  }

  /** Checkpoints of formats before 4 have what their parent's tasks sent among the parent's writes. */
  private async addSends(
    thread: OpenThread,
    namespace: string,
    checkpoint: Checkpoint,
    parent: string,
  ): Promise<void> {
    checkpoint.channel_values[TASKS] = await thread.writes.sends({ namespace, id: parent });
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

function checkThreadId(id: unknown): string {
  return checkName("thread_id", id, false);
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function checkName(field: string, name: unknown, mayBeEmpty: boolean): string {
  if (typeof name === "string" && (mayBeEmpty || name !== "") && name.isWellFormed()) return name;
  const what = typeof name === "string" ? quoteForMessage(name) : String(name);
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `config.configurable.${field} is ${what}; it must be a text${mayBeEmpty ? "" : " that is not empty"}, without half characters`,
    { field },
  );
}

function namespaceOf(config: RunnableConfig): string {
  return checkName("checkpoint_ns", config.configurable?.checkpoint_ns ?? "", true);
}

function configOf(thread: string, namespace: string, checkpoint: string): RunnableConfig {
  return {
    configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: checkpoint },
  };
}

function isAt(record: CheckpointFrame, channel: string, version: number | string): boolean {
  const { versions } = record.checkpoint;
  return hasOwn(versions, channel) && versions[channel] === version;
}

function matches(metadata: unknown, filter: Readonly<Record<string, unknown>> = {}): boolean {
  const of = metadata as Readonly<Record<string, unknown>>;
  return Object.entries(filter).every(([key, value]) =>
    isDeepStrictEqual(hasOwn(of, key) ? of[key] : undefined, value),
  );
}
