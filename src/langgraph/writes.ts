import {
  type CheckpointPendingWrite,
  compareWritesSortKeys,
  type PendingWrite,
  type SerializerProtocol,
  WRITES_IDX_MAP,
  writesSortKey,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { hasOwn, type JsonValue } from "../core/json.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { decodeValue } from "../objects/decode.js";
import { encodeValue, toLink } from "../objects/encode.js";
import { normalize } from "../objects/normalize.js";
import type { ObjectsAtHand } from "../objects/reader.js";
import { ObjectSink } from "../objects/sink.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { ObjectRecord, RefRow } from "../storage/port.js";
import type { Repository } from "../store/repository.js";
import { prepareCommit } from "../store/write-commit.js";
import { writesPrefix, writesRef } from "./names.js";
import { fromStored, toStored } from "./values.js";

/** What a task wrote below a checkpoint, as the state of a commit. */
interface WritesRecord {
  readonly checkpoint: string;
  readonly task: string;
  readonly path: string;
  /** In the order of their indexes; those below 0 are LangGraph's special ones. */
  readonly writes: readonly {
    readonly index: number;
    readonly channel: string;
    readonly value: JsonValue;
  }[];
}

/** Of which checkpoint's task. */
export interface WritesPlace {
  readonly namespace: string;
  readonly checkpoint: string;
  readonly task: string;
  readonly path: string;
}

/** How often writes are tried while others write for the same task. */
const TRIES = 100;

/**
 * What tasks wrote and no checkpoint holds yet: a ref for each task of a checkpoint, at a commit of its own
 * line, so that tasks do not wait for each other and the first write of each is one call to the storage.
 */
export class PendingWrites {
  constructor(
    private readonly repository: Repository,
    private readonly serde: SerializerProtocol,
  ) {}

  /** Adds to a task's writes: of an index that is there already the first write stays, of a special one the last. */
  async add(place: WritesPlace, given: readonly PendingWrite[]): Promise<void> {
    const { namespace, checkpoint, task } = place;
    const ref = writesRef(namespace, checkpoint, task);
    const indexed = await Promise.all(
      given.map(async ([channel, value], position) => ({
        index: hasOwn(WRITES_IDX_MAP, channel) ? (WRITES_IDX_MAP[channel] as number) : position,
        channel,
        value: await toStored(this.serde, value, ["writes", channel]),
      })),
    );
    let row: RefRow | undefined;
    for (let tries = 1; ; tries++) {
      const stored = row?.id ? await this.read(row.id) : undefined;
      const writes = new Map<number, unknown>(stored?.writes.map((write) => [write.index, write]));
      for (const write of indexed) {
        if (write.index < 0 || !writes.has(write.index)) writes.set(write.index, write);
      }
      const { update, objects } = this.prepare(place, ref, row, [...writes].sort(byIndex));
      const [answer] = await this.repository.refs.apply({ updates: [update], objects });
      if (answer?.outcome !== "conflict" || tries === TRIES) {
        movedRow(update, answer);
        return;
      }
      row = answer.actual ?? undefined;
    }
  }

  /** The writes of each checkpoint of the namespace, or of one, in the order in which they are applied. */
  async byCheckpoint(
    namespace: string,
    checkpoint?: string,
  ): Promise<Map<string, CheckpointPendingWrite[]>> {
    const { repository, serde } = this;
    const rows = await repository.refs.list(writesPrefix(namespace, checkpoint));
    const ids = rows.flatMap(({ id }) => id ?? []);
    if (ids.length === 0) return new Map();
    const ahead = await repository.loadAhead(ids, ["state"], true);
    const commits = await repository.commits.readAll(ids);
    const records = await Promise.all(commits.map((commit) => this.decode(commit, ahead)));
    const keyed = records
      .flatMap((record) => record.writes.map((write) => ({ record, write })))
      .map((each) => ({
        ...each,
        key: writesSortKey(each.record.path, each.record.task, each.write.index),
      }))
      .sort((a, b) => compareWritesSortKeys(a.key, b.key));
    const found = new Map<string, CheckpointPendingWrite[]>();
    for (const { record, write } of keyed) {
      const of = found.get(record.checkpoint) ?? [];
      found.set(record.checkpoint, of);
      of.push([record.task, write.channel, await fromStored(serde, write.value)]);
    }
    return found;
  }

  private prepare(
    { checkpoint, task, path }: WritesPlace,
    ref: string,
    row: RefRow | undefined,
    writes: readonly (readonly [number, unknown])[],
  ): { update: RefUpdate; objects: readonly ObjectRecord[] } {
    const { repository } = this;
    const sink = new ObjectSink();
    const record = { checkpoint, task, path, writes: writes.map(([, write]) => write) };
    const { stateMaxBytes: maxBytes } = repository.context.limits;
    const state = normalize(record, { maxBytes, what: "pending writes" });
    const commit = prepareCommit(repository, {
      sink,
      parents: [],
      root: { state: toLink(sink, encodeValue(sink, state, null)) },
      author: "langgraph",
      minStep: 1,
      options: { message: "Pending writes" },
    });
    const update: RefUpdate = {
      ref,
      expect: row?.id ? { kind: "id", id: row.id, seq: row.seq } : { kind: "absent" },
      target: commit.record.id,
      commits: [commit.record],
      note: { actor: "langgraph", reason: "langgraph: putWrites" },
    };
    return { update, objects: commit.objects.map((object) => object.record) };
  }

  private async read(id: ObjectId): Promise<WritesRecord> {
    return this.decode(await this.repository.commits.read(id), new Map());
  }

  private async decode(commit: LoadedCommit, ahead: ObjectsAtHand): Promise<WritesRecord> {
    const { state } = commit.root;
    const get = (each: ObjectId) => commit.inline.get(each) ?? ahead.get(each);
    const objects = this.repository.objects.with({ get });
    const value = state === undefined ? undefined : await decodeValue(objects, state);
    const record = value as unknown as WritesRecord | undefined;
    if (typeof record?.checkpoint === "string" && Array.isArray(record.writes)) return record;
    throw new AgstateError(
      "CORRUPT_OBJECT",
      `commit ${commit.id} should hold what a LangGraph task wrote, but does not`,
      { id: commit.id },
    );
  }
}

function byIndex(a: readonly [number, unknown], b: readonly [number, unknown]): number {
  return a[0] - b[0];
}
