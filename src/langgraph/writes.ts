import {
  type CheckpointPendingWrite,
  compareWritesSortKeys,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
  writesSortKey,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import { hasOwn, isJsonObject, type JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import { normalize } from "../objects/normalize.js";
import { openPending, type RowCipher, sealPending } from "../objects/pending.js";
import type { PendingRow } from "../storage/port.js";
import type { Repository } from "../store/repository.js";
import { component, WRITES_PREFIXES, writesKey, writesPrefix } from "./names.js";
import { Outbox, type Taken } from "./outbox.js";
import { fromStored, toStored } from "./values.js";

/** A write as the value of a pending row, whose key names the task; the row's index is LangGraph's own. */
interface WriteRecord {
  readonly channel: string;
  readonly value: JsonValue;
  /** Left out when it is empty. */
  readonly path?: string;
  /** Only where the key does not hold it as it is. */
  readonly task?: string;
}

/** Of which checkpoint's task. */
export interface WritesPlace {
  readonly namespace: string;
  readonly checkpoint: string;
  readonly task: string;
  readonly path: string;
}

/** A checkpoint of a thread. */
export interface CheckpointPlace {
  readonly namespace: string;
  readonly id: string;
}

/** The writes of a checkpoint that was read of. */
export type WritesOf = (place: CheckpointPlace) => CheckpointPendingWrite[];

/** Writes that are not stored yet. */
interface Adding {
  /** Resolves, when they have become rows, to their entry in the outbox. */
  readonly encoded: Promise<object>;
  readonly landed: Promise<void>;
}

/**
 * What tasks wrote below checkpoints: pending rows, one a write, so that tasks do not wait for each other and the
 * writes of each are one call to the storage at most.
 */
export class PendingWrites {
  private readonly outbox: Outbox;
  /** Writes under way, by checkpoint: a checkpoint that goes on from there waits for them, or takes them along. */
  private readonly adding = new Map<string, Set<Adding>>();

  constructor(
    private readonly repository: Repository,
    private readonly serde: SerializerProtocol,
  ) {
    this.outbox = new Outbox((pending) => repository.refs.apply({ updates: [], pending }));
  }

  /** Adds to a task's writes: of an index that is there already the first write stays, of a special one the last. */
  async add(place: WritesPlace, given: readonly PendingWrite[]): Promise<void> {
    const queued = this.encode(place, given).then((rows) => this.outbox.add(rows));
    const adding: Adding = {
      encoded: queued.then(({ entry }) => entry),
      landed: queued.then(({ landed }) => landed),
    };
    adding.encoded.catch(() => {});
    const key = placeKey(place.namespace, place.checkpoint);
    const others = this.adding.get(key) ?? new Set();
    this.adding.set(key, others.add(adding));
    try {
      await adding.landed;
    } finally {
      others.delete(adding);
      if (others.size === 0) this.adding.delete(key);
    }
  }

  /**
   * Waits for what was written below a checkpoint and is on its way; gives what has not gone out yet, for
   * whoever writes next to take along.
   */
  async along(namespace: string, checkpoint: string | undefined): Promise<Taken> {
    const key = placeKey(namespace, checkpoint ?? "");
    for (;;) {
      const adding = [...(this.adding.get(key) ?? [])];
      const entries = await Promise.all(adding.map(({ encoded }) => encoded));
      const gone = adding.filter((_, i) => !this.outbox.holds(entries[i] as object));
      if (gone.length === 0) return this.outbox.take();
      await Promise.all(gone.map(({ landed }) => landed));
    }
  }

  /**
   * Reads the writes of checkpoints in one call; of each they come in the order in which they are applied.
   *
   * @param wants which of them to answer
   */
  async read(
    places: readonly CheckpointPlace[],
    wants: (place: CheckpointPlace, channel: string) => boolean = () => true,
  ): Promise<WritesOf> {
    const { storage, workflow, keys } = this.repository;
    const byPrefix = new Map(places.map((each) => [writesPrefix(each.namespace, each.id), each]));
    const rows = await storage.readPending(workflow, [...byPrefix.keys()]);
    const keyed = rows.flatMap((row) => {
      const record = recordOf(row, keys.rowCipher);
      const end = row.key.lastIndexOf("/") + 1;
      const prefix = row.key.slice(0, end);
      if (!wants(byPrefix.get(prefix) as CheckpointPlace, record.channel)) return [];
      const { path = "", task = row.key.slice(end) } = record;
      return { prefix, record, task, sortKey: writesSortKey(path, task, row.index) };
    });
    keyed.sort((a, b) => compareWritesSortKeys(a.sortKey, b.sortKey));
    const found = new Map<string, CheckpointPendingWrite[]>();
    for (const { prefix, record, task } of keyed) {
      const of = found.get(prefix) ?? [];
      found.set(prefix, of);
      of.push([task, record.channel, await fromStored(this.serde, record.value)]);
    }
    return ({ namespace, id }) => found.get(writesPrefix(namespace, id)) ?? [];
  }

  /** What the tasks of a checkpoint sent to tasks of the next, as formats before 4 keep it. */
  async sends(place: CheckpointPlace): Promise<unknown[]> {
    const writes = await this.read([place], (_, channel) => channel === TASKS);
    return writes(place).map(([, , value]) => value);
  }

  /** Drops all writes of the thread. */
  async delete(): Promise<void> {
    await this.repository.refs.apply({ updates: [], dropPending: WRITES_PREFIXES });
  }

  private encode(
    { namespace, checkpoint, task, path }: WritesPlace,
    given: readonly PendingWrite[],
  ): Promise<PendingRow[]> {
    const key = writesKey(namespace, checkpoint, task);
    const { stateMaxBytes: maxBytes } = this.repository.context.limits;
    const { rowCipher } = this.repository.keys;
    return Promise.all(
      given.map(async ([channel, value], position) => {
        const record = {
          channel,
          value: await toStored(this.serde, value, ["writes", channel]),
          ...(path !== "" && { path }),
          ...(component(task) !== task && { task }),
        };
        const index = hasOwn(WRITES_IDX_MAP, channel)
          ? (WRITES_IDX_MAP[channel] as number)
          : position;
        const normal = normalize(record, { maxBytes, what: "pending writes" });
        return sealPending(key, index, normal, rowCipher);
      }),
    );
  }
}

function placeKey(namespace: string, checkpoint: string): string {
  return JSON.stringify([namespace, checkpoint]);
}

/** @throws AgstateError `CORRUPT_OBJECT`; `KEY_UNAVAILABLE`, `ERASED` when it is encrypted and cannot be opened */
function recordOf(row: PendingRow, cipher: RowCipher | undefined): WriteRecord {
  const value = openPending(row, cipher);
  if (isJsonObject(value) && typeof value.channel === "string" && hasOwn(value, "value")) {
    return value as unknown as WriteRecord;
  }
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `the pending row ${quoteForMessage(row.key)}, index ${row.index}, should hold what a LangGraph task wrote, but does not`,
    { key: row.key, index: row.index },
  );
}
