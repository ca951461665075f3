import { AgstateError } from "../../core/errors.js";
import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import { type ReflogEntry, reflogEntryText } from "../../core/reflog-entry.js";
import {
  type BackendOptions,
  type CommitRecord,
  ENCODING,
  type MoveAnswer,
  type RefMove,
  type RefRow,
  type WriteAnswer,
  type WriteBatch,
} from "../port.js";
import { packInline, TYPE_NUMBER } from "./inline.js";
import { shortenSaid } from "./log-columns.js";
import { packIds, type RefColumns, rawId, rawOrNull, refOf } from "./rows.js";
import type { Statements } from "./statements.js";

/** What writing a batch needs beside the batch. */
export interface WriteContext {
  readonly statements: Statements;
  readonly options: BackendOptions;
  /** Rows seen less than half of this ago are not freshened. */
  readonly graceMs: number;
}

/** Whether the batch changed anything, beside its answer. */
export interface Applied {
  readonly answer: WriteAnswer;
  readonly changed: boolean;
}

/** A move that was judged and may happen, with what judging it read. */
interface Planned {
  readonly move: RefMove;
  readonly before: RefColumns | undefined;
  /** Whether no earlier move of the batch brings its target. */
  readonly first: boolean;
}

/**
 * Judges a batch and applies what may happen; must run inside a write transaction.
 *
 * All moves are judged before anything is written, so a loser writes nothing;
 * a move may build on commits that an earlier, successful move of the batch
 * brings. The order of tests is: landed, conflict, missing. Deleting a ref
 * that is absent is a conflict, whatever was expected. A workflow that the
 * batch creates stays created when its moves are refused.
 *
 * @throws AgstateError `INVALID_ARGUMENT` when the batch moves a ref twice
 */
export function applyBatch(context: WriteContext, batch: WriteBatch): Applied {
  const { statements, options, graceMs } = context;
  const refused = (workflow: "exists" | "missing"): Applied => ({
    answer: { workflow, moves: batch.moves.map(() => ({ outcome: "skipped" })) },
    changed: false,
  });
  checkDistinctRefs(batch);

  let wf = statements.wf.get(batch.workflow);
  if (batch.create !== undefined) {
    const w = batch.create;
    if (statements.wf.get(w.id) !== undefined) return refused("exists");
    const added = statements.insertWorkflow.run(
      w.createdAt,
      w.id,
      w.classification,
      w.storageRegion,
      w.retentionPolicy,
      w.isolation,
    );
    if (w.id === batch.workflow) wf = Number(added.lastInsertRowid);
  }
  if (wf === undefined) return refused("missing");

  const moves = planMoves(statements, wf, batch);
  const now = Math.floor(options.now() / 1000);
  const clock: Clock = { now, stale: now - Math.floor(graceMs / 2000) };
  const answers = moves.map(
    (plan): MoveAnswer =>
      "outcome" in plan
        ? plan
        : { outcome: "moved", row: moveRef(statements, options, wf, plan, clock) },
  );
  const changed = answers.some((answer) => answer.outcome === "moved");
  if (changed) putObjects(statements, wf, batch, clock);
  return {
    answer: { workflow: batch.create === undefined ? "ok" : "created", moves: answers },
    changed: changed || batch.create !== undefined,
  };
}

interface Clock {
  /** Seconds since the Unix epoch. */
  readonly now: number;
  /** Rows last seen before this are freshened. */
  readonly stale: number;
}

function checkDistinctRefs(batch: WriteBatch): void {
  if (batch.moves.length < 2) return;
  const refs = batch.moves.map((move) => move.ref);
  if (new Set(refs).size === refs.length) return;
  throw new AgstateError("INVALID_ARGUMENT", "a batch moves one ref twice; send two batches", {
    refs,
  });
}

function planMoves(
  statements: Statements,
  wf: number,
  batch: WriteBatch,
): (MoveAnswer | Planned)[] {
  const coming = new Set<ObjectId>();
  const plans = batch.moves.map((move) => {
    const before = statements.ref.get(wf, move.ref);
    const refusal = judge(statements, wf, move, before, coming);
    if (refusal !== null) return refusal;
    const first = move.target === null || !coming.has(move.target);
    for (const commit of move.commits) coming.add(commit.id);
    return { move, before, first };
  });
  if (!batch.atomic || !plans.some((plan) => "outcome" in plan)) return plans;

  // An atomic batch of which one move landed has landed as a whole.
  if (plans.some((plan) => "outcome" in plan && plan.outcome === "landed")) {
    return batch.moves.map((move) => landed(statements.ref.get(wf, move.ref)));
  }
  return plans.map((plan) => ("outcome" in plan ? plan : { outcome: "skipped" }));
}

function landed(row: RefColumns | undefined): MoveAnswer {
  return { outcome: "landed", row: row === undefined ? null : refOf(row) };
}

function judge(
  statements: Statements,
  wf: number,
  move: RefMove,
  before: RefColumns | undefined,
  coming: ReadonlySet<ObjectId>,
): MoveAnswer | null {
  const { target, expect, commits } = move;
  const stored = (id: ObjectId) => statements.commitStored.get(wf, rawId(id)) !== undefined;

  if (target !== null && commits.some((commit) => commit.id === target) && stored(target)) {
    return landed(before);
  }

  const head = before?.id || null;
  const holds =
    expect.kind === "any" || (expect.kind === "absent" ? head === null : head === expect.id);
  if (!holds || (head === null && target === null)) {
    return { outcome: "conflict", actual: before === undefined ? null : refOf(before) };
  }

  const own = new Set<ObjectId>();
  const missing = new Set<ObjectId>();
  const need = (id: ObjectId) => {
    // The head of a ref is stored: a ref never points to a commit that is not.
    if (id !== head && !own.has(id) && !coming.has(id) && !stored(id)) missing.add(id);
  };
  for (const commit of commits) {
    for (const parent of commit.parents) need(parent);
    own.add(commit.id);
  }
  if (target !== null) need(target);
  return missing.size > 0 ? { outcome: "missing", ids: [...missing] } : null;
}

/** Writes the ref, its log entry and the move's commits; answers the ref as it is then. */
function moveRef(
  statements: Statements,
  options: BackendOptions,
  wf: number,
  { move, before, first }: Planned,
  clock: Clock,
): RefRow {
  const creates = before === undefined || before.id === "";
  const entry: ReflogEntry = {
    ref: move.ref,
    incarnation: creates ? move.incarnation : before.incarnation,
    seq: (before?.seq ?? 0) + 1,
    old: before?.id || ZERO_ID,
    new: move.target ?? ZERO_ID,
    actor: move.log.actor,
    reason: move.log.reason,
    time: move.log.time,
    trace: move.log.trace,
    previous: before?.log_hash ?? ZERO_ID,
  };
  const row: RefRow = {
    name: move.ref,
    id: move.target,
    seq: entry.seq,
    logHash: options.digest(reflogEntryText(entry)),
    incarnation: entry.incarnation,
    maxStep: Math.max(before?.max_step ?? 0, move.maxStep),
  };

  const ref = putRef(statements, wf, before, row);
  const carrier = first ? carrierOf(entry, move) : null;
  for (const commit of move.commits) {
    putCommit(statements, wf, commit, clock, commit === carrier ? { ref, entry } : null);
  }
  if (carrier === null) putEntry(statements, ref, entry);
  return row;
}

function putRef(
  statements: Statements,
  wf: number,
  before: RefColumns | undefined,
  row: RefRow,
): number | bigint {
  const incarnation = Buffer.from(row.incarnation, "hex");
  const hash = rawId(row.logHash);
  const id = row.id === null ? null : rawId(row.id);
  if (before === undefined) {
    return statements.insertRef.run(wf, row.seq, row.maxStep, incarnation, hash, id, row.name)
      .lastInsertRowid;
  }
  statements.updateRef.run(row.seq, row.maxStep, incarnation, hash, id, before.ref);
  return before.ref;
}

/**
 * The commit whose row keeps the log entry as columns: the only one of the
 * move, and on top of what the ref was, so that `old` is its first parent. It
 * must be new: judging found that it is not stored, `first` that no other move
 * of the batch has stored it since.
 */
function carrierOf(entry: ReflogEntry, move: RefMove): CommitRecord | null {
  const [commit] = move.commits;
  if (commit === undefined || move.commits.length > 1 || commit.id !== entry.new) return null;
  return entry.old === (commit.parents[0] ?? ZERO_ID) ? commit : null;
}

function putEntry(statements: Statements, ref: number | bigint, entry: ReflogEntry): void {
  statements.insertReflog.run(
    ref,
    entry.seq,
    entry.time,
    Buffer.from(entry.incarnation, "hex"),
    rawOrNull(entry.old),
    rawOrNull(entry.new),
    rawOrNull(entry.previous),
    entry.actor,
    entry.reason,
    entry.trace,
  );
}

function putCommit(
  statements: Statements,
  wf: number,
  commit: CommitRecord,
  { now, stale }: Clock,
  log: { ref: number | bigint; entry: ReflogEntry } | null,
): void {
  const said = log === null ? null : shortenSaid(log.entry, commit.body);
  statements.putCommit.run(
    wf,
    commit.generation,
    commit.time,
    now,
    log?.ref ?? null,
    log?.entry.seq ?? null,
    log?.entry.time ?? null,
    rawId(commit.id),
    packIds(commit.parents),
    log === null ? null : Buffer.from(log.entry.incarnation, "hex"),
    log === null ? null : rawOrNull(log.entry.previous),
    commit.externalId,
    said?.actor ?? null,
    said?.reason ?? null,
    said?.trace ?? null,
    packInline(commit.inline),
    commit.body,
    stale,
  );
}

function putObjects(
  statements: Statements,
  wf: number,
  batch: WriteBatch,
  { now, stale }: Clock,
): void {
  for (const { id, type, body, encoding } of batch.objects) {
    statements.putObject.run(
      wf,
      TYPE_NUMBER[type],
      encoding ?? ENCODING.plain,
      now,
      rawId(id),
      body,
      stale,
    );
  }
}
