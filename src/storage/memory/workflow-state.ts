import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import { reflogEntryText } from "../../core/reflog-entry.js";
import { compareUtf8 } from "../../core/utf8.js";
import {
  type BackendOptions,
  BRANCHES,
  type CommitRecord,
  type MoveAnswer,
  meets,
  type PendingRow,
  type RefMove,
  type RefRow,
  type StoredObject,
  type StoredReflogEntry,
  type WorkflowRecord,
  type WriteBatch,
} from "../port.js";

/** One workflow of the model: plain maps, changed only by {@link applyBatch} and by collection. */
export class WorkflowState {
  readonly objects = new Map<ObjectId, StoredObject>();
  readonly commits = new Map<ObjectId, CommitRecord>();
  readonly refs = new Map<string, RefRow>();
  /** Entries of a ref in the order of their `seq`, from 1. */
  readonly logs = new Map<string, StoredReflogEntry[]>();
  /** When an object or commit was last written or freshened, in seconds; minus the collection when it is condemned. */
  readonly seen = new Map<ObjectId, number>();

  /** Rows by key, then by index. */
  readonly pending = new Map<string, Map<number, PendingRow>>();

  constructor(public record: WorkflowRecord) {}
}

/** Drops and puts the pending rows of a batch. */
export function putPending(state: WorkflowState, { dropPending = [], pending = [] }: WriteBatch) {
  for (const key of [...state.pending.keys()]) {
    if (dropPending.some((prefix) => key.startsWith(prefix))) state.pending.delete(key);
  }
  for (const row of pending) {
    const rows = state.pending.get(row.key) ?? new Map<number, PendingRow>();
    state.pending.set(row.key, rows);
    if (row.index < 0 || !rows.has(row.index)) rows.set(row.index, { ...row, ...copyBody(row) });
  }
}

export function readPending(state: WorkflowState, prefixes: readonly string[]): PendingRow[] {
  const keys = [...state.pending.keys()].filter((key) => prefixes.some((p) => key.startsWith(p)));
  return keys
    .sort(compareUtf8)
    .flatMap((key) =>
      [...(state.pending.get(key)?.values() ?? [])].sort((a, b) => a.index - b.index),
    )
    .map((row) => ({ ...row, ...copyBody(row) }));
}

/**
 * Judges the moves of a batch and applies those that may happen.
 *
 * All moves are judged against the state before the batch, except that a move
 * may build on commits which an earlier, successful move of the batch brings.
 * The order of tests is: landed, closed, conflict, missing. Deleting a ref that is
 * absent is a conflict, whatever was expected.
 */
export function applyBatch(
  state: WorkflowState,
  batch: WriteBatch,
  options: BackendOptions,
): MoveAnswer[] {
  const coming = new Set<ObjectId>();
  const refusals = batch.moves.map((move) => {
    const refusal = judge(state, move, coming, batch.needs ?? []);
    if (refusal === null) for (const commit of move.commits) coming.add(commit.id);
    return refusal;
  });

  if (batch.atomic && refusals.some((refusal) => refusal !== null)) {
    const landed = refusals.some((refusal) => refusal?.outcome === "landed");
    return batch.moves.map((move, i) =>
      landed
        ? { outcome: "landed", row: state.refs.get(move.ref) ?? null }
        : (refusals[i] ?? { outcome: "skipped" }),
    );
  }

  if (refusals.includes(null)) {
    const now = Math.floor(options.now() / 1000);
    for (const object of batch.objects) {
      state.objects.set(object.id, copyObject(object));
      state.seen.set(object.id, now);
    }
    for (const id of batch.needs ?? []) state.seen.set(id, now);
  }
  if (batch.complete !== undefined) {
    state.record = { ...state.record, completedAt: state.record.completedAt ?? batch.complete };
  }
  return batch.moves.map(
    (move, i) => refusals[i] ?? { outcome: "moved", row: happen(state, move, options) },
  );
}

function judge(
  state: WorkflowState,
  move: RefMove,
  coming: ReadonlySet<ObjectId>,
  needs: readonly ObjectId[],
): MoveAnswer | null {
  const row = state.refs.get(move.ref) ?? null;
  const head = row?.id ?? null;

  const { target } = move;
  if (target !== null && state.commits.has(target) && move.commits.some((c) => c.id === target)) {
    return { outcome: "landed", row };
  }

  const closed = state.record.completedAt !== null && move.ref.startsWith(BRANCHES);
  if (closed && target !== null) return { outcome: "closed" };

  if (!meets(move.expect, head, row?.seq ?? 0) || (head === null && target === null))
    return { outcome: "conflict", actual: row };

  const known = (id: ObjectId) => state.commits.has(id) || coming.has(id) || own.has(id);
  const own = new Set<ObjectId>();
  const missing = new Set<ObjectId>();
  for (const commit of move.commits) {
    for (const parent of commit.parents) if (!known(parent)) missing.add(parent);
    own.add(commit.id);
  }
  if (target !== null && !known(target)) missing.add(target);
  for (const id of needs) if (!state.commits.has(id)) missing.add(id);
  return missing.size > 0 ? { outcome: "missing", ids: [...missing] } : null;
}

function happen(state: WorkflowState, move: RefMove, options: BackendOptions): RefRow {
  const now = Math.floor(options.now() / 1000);
  if (move.target !== null) state.seen.set(move.target, now);
  for (const commit of move.commits) {
    state.commits.set(commit.id, { ...commit, ...copyBody(commit), inline: copyAll(commit) });
    for (const id of [commit.id, ...commit.parents]) state.seen.set(id, now);
  }

  const before = state.refs.get(move.ref);
  const creates = (before?.id ?? null) === null;
  const entry = {
    ref: move.ref,
    incarnation: creates ? move.incarnation : before!.incarnation,
    seq: (before?.seq ?? 0) + 1,
    old: before?.id ?? ZERO_ID,
    new: move.target ?? ZERO_ID,
    ...move.log,
    previous: before?.logHash ?? ZERO_ID,
  };
  const hash = options.digest(reflogEntryText(entry));
  const row: RefRow = {
    name: move.ref,
    id: move.target,
    seq: entry.seq,
    logHash: hash,
    incarnation: entry.incarnation,
    maxStep: Math.max(before?.maxStep ?? 0, move.maxStep),
  };
  const log = state.logs.get(move.ref) ?? [];
  log.push({ ...entry, hash });
  state.logs.set(move.ref, log);
  state.refs.set(move.ref, row);
  return row;
}

/** A copy, so that bytes which the caller changes later, or was handed, are never the store's. */
export function copyObject(object: StoredObject): StoredObject {
  return "tombstone" in object
    ? { ...object, tombstone: new Uint8Array(object.tombstone) }
    : { ...object, ...copyBody(object) };
}

function copyBody(holder: { body: Uint8Array }): { body: Uint8Array } {
  return { body: new Uint8Array(holder.body) };
}

function copyAll(commit: CommitRecord): StoredObject[] {
  return commit.inline.map(copyObject);
}

/** The copy of a commit that a reader gets. */
export function copyCommit(commit: CommitRecord): CommitRecord {
  return { ...commit, ...copyBody(commit), inline: copyAll(commit) };
}
