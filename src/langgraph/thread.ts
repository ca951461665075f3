import { LRUCache } from "lru-cache";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { quoteForMessage } from "../core/names.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { MoveAnswer, RefRow } from "../storage/port.js";
import { Checkpoint, spansOf, whereOf } from "../store/checkpoint.js";
import { bodyBytes } from "../store/commit-size.js";
import type { Repository } from "../store/repository.js";
import type { PreparedCommit } from "../store/write-commit.js";
import { forkRef, isHeadOf, isThreadHead, latestRef, THREAD_PREFIX } from "./names.js";
import type { Taken } from "./outbox.js";
import { inPages } from "./pages.js";
import { AUTHOR, CheckpointParts } from "./parts.js";
import {
  type CheckpointFrame,
  type CheckpointNote,
  type CheckpointRecord,
  EPOCH_BYTES,
  noteOf,
  type StoredCheckpoint,
} from "./record.js";

/** How often a put is tried while other writers move the namespace on. */
const TRIES = 1000;
const RETRY = { "agstate.operation": "langgraph" };

/** One write takes no further checkpoint along when it has more than so many bytes. */
const LINE_MAX_BYTES = 4 * 1024 * 1024;

/** How many commits the first call of a walk reads, and the most that any reads. */
const COMMITS_FIRST = 16;
const COMMITS_MOST = 1000;

/** How many refs one call deletes. */
const DELETED_AT_ONCE = 500;

/** How many checkpoints are known to be read as ones that others stand on. */
const FORKED_MAX = 1000;

/**
 * What becomes of a put whose parent is no longer the latest: a fork, or the error `REF_CONFLICT`.
 *
 * A checkpoint that was read by its id when it was not the latest may be forked either way.
 */
export type ConcurrentPuts = "fork" | "refuse";

/** Where a namespace is. */
interface Latest extends StoredCheckpoint {
  /** The ref's row; its commit is the checkpoint's, unless somebody committed on top of it. */
  readonly row: RefRow;
  readonly note: CheckpointNote;
}

/** What a put goes on from, for whoever makes its record. */
export interface PutBase {
  /** The checkpoint that the put names as its parent, if it is stored. */
  readonly parent: StoredCheckpoint | undefined;
  /** The checkpoint of the same id that is put once more. */
  readonly same: StoredCheckpoint | undefined;
}

/** A checkpoint as its commit tells of it, without its state. */
export interface CheckpointOfThread {
  readonly id: string;
  readonly namespace: string;
  /** Its commit. */
  readonly at: ObjectId;
}

export interface PutRequest {
  readonly namespace: string;
  readonly id: string;
  readonly parent: string | undefined;
  /** It is meant to stand beside others: the copy of a checkpoint. */
  readonly beside: boolean;
  readonly record: (base: PutBase) => Promise<CheckpointRecord>;
  readonly message: (note: CheckpointNote) => string;
  /** What tasks wrote and is to be there with the checkpoint, asked for just before it is written. */
  readonly along: () => Promise<Taken>;
}

/** Requests of one namespace, at least one. */
type Line = readonly [PutRequest, ...PutRequest[]];

type WrittenById = Map<ObjectId, PreparedCommit["objects"][number]>;

/** Checkpoints each on top of the one before, ready to be written. */
interface PreparedLine {
  readonly updates: RefUpdate[];
  readonly commits: readonly PreparedCommit[];
  readonly objects: WrittenById;
  readonly last: StoredCheckpoint;
  readonly note: CheckpointNote;
}

/**
 * The checkpoints of one thread, as commits of its workflow.
 *
 * Of each namespace one ref is at the checkpoint that was put last. A put that does not go on from there
 * takes that ref along, and in the same write leaves another one where it was.
 */
export class Thread {
  private readonly latest = new LRUCache<string, Latest>({ max: 16 });
  private readonly queues = new Map<string, Promise<unknown>>();
  /** Checkpoints that were not the latest when they were read by their ids: to go on from there is a fork on purpose. */
  private readonly forked = new LRUCache<string, true>({ max: FORKED_MAX });

  private readonly parts: CheckpointParts;

  constructor(
    readonly repository: Repository,
    private readonly concurrentPuts: ConcurrentPuts = "fork",
  ) {
    this.parts = new CheckpointParts(repository);
  }

  /** The checkpoint that was put last into the namespace. */
  async last(namespace: string): Promise<StoredCheckpoint | undefined> {
    return this.readLatest(namespace);
  }

  /** The checkpoint of this id. */
  async find(namespace: string, id: string): Promise<StoredCheckpoint | undefined> {
    const { repository } = this;
    const [ids, epoch] = await Promise.all([
      repository.storage.findExternal(repository.workflow, id),
      this.epoch(namespace),
    ]);
    if (ids.length === 0 || epoch === undefined) return undefined;
    // One that was put again stands on top of the former.
    for (const each of [...ids].reverse()) {
      const opened = await this.parts.open(each);
      const note = noteOf(opened.commit);
      if (note?.namespace === namespace && note.epoch === epoch) return this.parts.load(opened);
    }
    return undefined;
  }

  /** Remembers of a checkpoint that somebody reads by its id whether it may be forked. */
  async noteRead(namespace: string, id: string): Promise<void> {
    if (this.concurrentPuts === "fork") return;
    const key = JSON.stringify([namespace, id]);
    const latest = await this.readLatest(namespace);
    if (latest === undefined || latest.record.checkpoint.id === id) this.forked.delete(key);
    else this.forked.set(key, true);
  }

  /** The ids of the namespace's checkpoints and of their commits; all namespaces when none is named. */
  async *checkpoints(
    namespace: string | undefined,
  ): AsyncGenerator<CheckpointOfThread, void, undefined> {
    const { repository } = this;
    const refs = (await repository.refs.list(THREAD_PREFIX)).filter(({ name }) =>
      namespace === undefined ? isThreadHead(name) : isHeadOf(name, namespace),
    );
    const tips = refs.flatMap(({ id }) => id ?? []);
    const nodes = repository.history.topoWalk(tips);
    for await (const page of inPages(nodes, COMMITS_FIRST, COMMITS_MOST)) {
      for (const commit of await repository.commits.readAll(page.map(({ id }) => id))) {
        const note = noteOf(commit);
        if (note === undefined || (namespace ?? note.namespace) !== note.namespace) continue;
        yield { id: commit.externalId as string, namespace: note.namespace, at: commit.id };
      }
    }
  }

  async load(id: ObjectId): Promise<StoredCheckpoint> {
    return this.parts.load(await this.parts.open(id));
  }

  /** All of a checkpoint but its channels' values: of most it is in the commit's row. */
  frame(id: ObjectId): Promise<CheckpointFrame> {
    return this.parts.frame(id);
  }

  /** Reads the commits of checkpoints, and of their frames what is not in them, a call each at most. */
  readFramesAhead(page: readonly CheckpointOfThread[]): Promise<void> {
    const ids = page.map(({ at }) => at);
    return this.parts.readAhead(ids, ["checkpoint"]);
  }

  /** Reads what checkpoints are made of in one call, where the storage can read ahead. */
  readAhead(page: readonly CheckpointOfThread[]): Promise<void> {
    return this.parts.readAhead(page.map(({ at }) => at));
  }

  /** Puts a checkpoint; those of one namespace go one after the other. */
  async put(request: PutRequest): Promise<void> {
    await this.putAll(request.namespace, [request]);
  }

  /**
   * Puts checkpoints of one namespace in the order given; those that go on each from the one before land in one
   * write. Answers their commits.
   */
  putAll(namespace: string, requests: readonly PutRequest[]): Promise<ObjectId[]> {
    const before = this.queues.get(namespace) ?? Promise.resolve();
    const put = before.catch(() => {}).then(() => this.putInOrder(requests));
    this.queues.set(namespace, put);
    return put.finally(() => {
      if (this.queues.get(namespace) === put) this.queues.delete(namespace);
    });
  }

  /** Deletes all refs of the thread; collection removes what they led to. */
  async delete(): Promise<void> {
    const { refs } = this.repository;
    const gone = (await refs.list(THREAD_PREFIX)).map(({ name }) => name).filter(isThreadHead);
    for (let i = 0; i < gone.length; i += DELETED_AT_ONCE) {
      const updates = gone.slice(i, i + DELETED_AT_ONCE).map(
        (ref): RefUpdate => ({
          ref,
          expect: { kind: "any" },
          target: null,
          note: { actor: AUTHOR, reason: "langgraph: thread deleted" },
        }),
      );
      await refs.apply({ updates });
    }
    this.latest.clear();
  }

  private async putInOrder(requests: readonly PutRequest[]): Promise<ObjectId[]> {
    const ids: ObjectId[] = [];
    while (ids.length < requests.length)
      ids.push(...(await this.putLine(requests.slice(ids.length) as unknown as Line)));
    return ids;
  }

  /** Puts the first of the requests, and those after it that can go along. */
  private async putLine(requests: Line): Promise<ObjectId[]> {
    const [{ namespace, parent }] = requests;
    let latest = this.latest.get(namespace);
    const known = latest?.record.checkpoint.id;
    // What is refused is refused by what is stored now, not by what was seen last.
    if (known === undefined || (this.concurrentPuts === "refuse" && known !== parent))
      latest = await this.readLatest(namespace);
    for (let tries = 1; ; tries++) {
      const told: Checkpoint[] = [];
      let answers: readonly MoveAnswer[] = [];
      try {
        const put = await this.prepare(requests, latest, told);
        const along: Taken[] = [];
        for (const request of requests.slice(0, put.commits.length))
          along.push(await request.along());
        answers = await this.write(put, along);
        const rows = put.updates.map((update, i) => movedRow(update, answers[i]));
        this.repository.objects.prime(put.objects.values());
        for (const { loaded } of put.commits) this.repository.commits.keep(loaded);
        const { last, note } = put;
        this.latest.set(namespace, { row: rows[0] as RefRow, note, ...last });
        for (const one of told) one.landed();
        return put.commits.map(({ record }) => record.id);
      } catch (error) {
        for (const one of told) one.failed(error);
        // Nothing was asked of the store, or it did not answer: what is known of it stays.
        if (answers.length === 0) throw error;
        this.latest.delete(namespace);
        const lost = answers.some(({ outcome }) => outcome === "conflict");
        if (!lost || tries === TRIES) throw error;
        this.repository.context.telemetry.count("agstate.cas.retries", 1, RETRY);
      }
      latest = await this.readLatest(namespace);
    }
  }

  /** What tasks wrote is stored whether or not the refs move. */
  private async write(put: PreparedLine, along: readonly Taken[]): Promise<readonly MoveAnswer[]> {
    try {
      const answers = await this.repository.refs.apply({
        updates: put.updates,
        objects: [...put.objects.values()].map(({ record }) => record),
        pending: along.flatMap(({ rows }) => rows),
        spans: spansOf(put.commits),
      });
      for (const taken of along) taken.landed();
      return answers;
    } catch (error) {
      for (const taken of along) taken.returned();
      throw error;
    }
  }

  /** @param told gets what tells of each commit */
  private async prepare(
    requests: Line,
    latest: Latest | undefined,
    told: Checkpoint[],
  ): Promise<PreparedLine> {
    const [request, ...others] = requests;
    const { namespace } = request;
    const base = await this.base(request, latest);
    if (this.concurrentPuts === "refuse" && latest !== undefined)
      this.refuseConcurrent(request, base, latest);
    const below = base.same ?? base.parent;
    const note = latest?.note ?? {
      namespace,
      epoch: this.repository.context.randomHex(EPOCH_BYTES),
    };
    const objects: WrittenById = new Map();
    const commits: PreparedCommit[] = [];
    const fresh = { get: (object: ObjectId) => objects.get(object)?.decoded };
    const add = async (each: PutRequest, on: PutBase, under: StoredCheckpoint | undefined) => {
      const options = { message: each.message(note), externalId: each.id };
      const given = await each.record(on);
      const checkpoint = this.checkpoint(namespace, latest);
      told.push(checkpoint);
      const { record, commit } = await this.parts.prepare(given, under, options, fresh, checkpoint);
      for (const object of commit.objects) objects.set(object.record.id, object);
      commits.push(commit);
      return { commit: commit.loaded, record };
    };
    let last: StoredCheckpoint = await add(request, base, below);
    let bytes = bodyBytes(commits[0] as PreparedCommit);
    for (const next of others) {
      const parent = last.record.checkpoint.id;
      if (next.parent !== parent || next.id === parent || bytes > LINE_MAX_BYTES) break;
      last = await add(next, { parent: last, same: undefined }, last);
      bytes += bodyBytes(commits.at(-1) as PreparedCommit);
    }
    const target = last.commit.id;
    const { trace } = last.commit;
    const because = { actor: AUTHOR, reason: "langgraph: put", trace };
    const ref = latestRef(namespace);
    const row = latest?.row;
    const updates: RefUpdate[] = [
      {
        ref,
        expect: row?.id ? { kind: "id", id: row.id, seq: row.seq } : { kind: "absent" },
        target,
        commits: commits.map(({ record }) => record),
        note: because,
      },
    ];
    if (latest !== undefined && row?.id && below?.commit.id !== row.id) {
      const left = row.id === latest.commit.id ? latest.record.checkpoint.id : row.id;
      updates.push({
        ref: forkRef(namespace, left),
        expect: { kind: "any" },
        target: row.id,
        note: because,
      });
    }
    return { updates, commits, objects, last, note };
  }

  private checkpoint(namespace: string, latest: Latest | undefined): Checkpoint {
    const { context, workflow } = this.repository;
    const at = { ref: latestRef(namespace), incarnation: latest?.row.incarnation };
    return new Checkpoint(context.telemetry, whereOf(workflow, at, AUTHOR));
  }

  /** @throws AgstateError `REF_CONFLICT` */
  private refuseConcurrent(
    { namespace, id, parent, beside }: PutRequest,
    base: PutBase,
    { record }: Latest,
  ): void {
    const { thread } = record;
    const latest = record.checkpoint.id;
    if (beside || base.same !== undefined || parent === latest) return;
    // Nobody goes on from a checkpoint that is not stored.
    if (parent !== undefined && base.parent === undefined) return;
    if (parent !== undefined && this.forked.has(JSON.stringify([namespace, parent]))) return;
    const [t, ns, own, other] = [thread, namespace, id, latest].map(quoteForMessage);
    const from = parent === undefined ? "begins anew" : `goes on from ${quoteForMessage(parent)}`;
    throw new AgstateError(
      "REF_CONFLICT",
      `thread ${t}, namespace ${ns}: checkpoint ${own} ${from}, but meanwhile ${other} was put; nothing was written. Read the latest and go on from there, read the older checkpoint by its id to fork it, or let the saver fork (concurrentPuts: "fork")`,
      { thread, namespace, checkpoint: id, expected: parent ?? null, actual: latest },
    );
  }

  private async base(
    { namespace, id, parent }: PutRequest,
    latest: Latest | undefined,
  ): Promise<PutBase> {
    if (latest === undefined) return { parent: undefined, same: undefined };
    const at = async (wanted: string) =>
      latest.record.checkpoint.id === wanted ? latest : this.find(namespace, wanted);
    const newest = latest.record.checkpoint.id;
    // LangGraph's ids rise, so that only one that does not can be that of a checkpoint which is put again.
    if (parent === newest && id > newest) return { parent: latest, same: undefined };
    const [found, same] = await Promise.all([
      parent === undefined ? undefined : at(parent),
      at(id),
    ]);
    return { parent: found, same };
  }

  private async epoch(namespace: string): Promise<string | undefined> {
    const head = await this.repository.refs.head(latestRef(namespace));
    if (head === undefined || head.row.id === null) return undefined;
    return (await this.checkpointAt(head.row.id)).note.epoch;
  }

  private async readLatest(namespace: string): Promise<Latest | undefined> {
    const head = await this.repository.refs.head(latestRef(namespace));
    if (head === undefined || head.row.id === null) return undefined;
    if (head.commit !== undefined) this.repository.commits.prime(head.commit);
    const known = this.latest.get(namespace);
    if (known?.row.id === head.row.id) {
      const latest = { ...known, row: head.row };
      this.latest.set(namespace, latest);
      return latest;
    }
    const at = await this.checkpointAt(head.row.id);
    const latest = { row: head.row, note: at.note, ...(await this.load(at.commit)) };
    this.latest.set(namespace, latest);
    return latest;
  }

  /** The checkpoint that a commit is, or, when somebody committed on top of it, its nearest ancestor that is one. */
  async checkpointAt(id: ObjectId): Promise<{ commit: ObjectId; note: CheckpointNote }> {
    for (let at: ObjectId | undefined = id; at !== undefined; ) {
      const commit: Awaited<ReturnType<typeof this.repository.commits.read>> =
        await this.repository.commits.read(at);
      const note = noteOf(commit);
      if (note !== undefined) return { commit: at, note };
      at = commit.parents[0];
    }
    throw new AgstateError(
      "CORRUPT_OBJECT",
      `commit ${id}, where a LangGraph namespace is, stands on no checkpoint; reset the branch to one`,
      { id },
    );
  }
}
