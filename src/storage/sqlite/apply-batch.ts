import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import { type ReflogEntry, reflogEntryText } from "../../core/reflog-entry.js";
import {
  type BackendOptions,
  BRANCHES,
  type CommitRecord,
  ENCODING,
  type MoveAnswer,
  meets,
  type RefMove,
  type RefRow,
  type WriteAnswer,
  type WriteBatch,
} from "../port.js";
import { checkDistinctRefs } from "../rows/batch.js";
import { packInline, TYPE_NUMBER } from "../rows/inline.js";
import { endOfPrefix, packIds, type RefColumns, rawId, rawOrNull, refOf } from "./rows.js";
import type { Statements } from "./statements.js";
import type { WorkflowNumbers } from "./workflow-numbers.js";

/** What writing a batch needs beside the batch. */
export interface WriteContext {
  readonly statements: Statements;
  readonly numbers: WorkflowNumbers;
  readonly options: BackendOptions;
  /** Rows seen less than half of this ago are not freshened. */
  readonly graceMs: number;
}

/** The answer, and whether there is anything to commit. */
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
  /** Whether it is still open if the move landed before: inserting its only commit will tell. */
  readonly unprobed: boolean;
}

/**
 * Judges a batch and applies what may happen; must run inside a write transaction.
 *
 * All moves are judged before anything is written, so a loser writes nothing;
 * a move may build on commits that an earlier, successful move of the batch
 * brings. The order of tests is: landed, closed, conflict, missing. Deleting a ref
 * that is absent is a conflict, whatever was expected. A workflow that the
 * batch creates stays created when its moves are refused.
 *
 * @param sole whether the transaction has no other batch; it must be rolled back if the
 *   answer is not `changed`
 * @throws AgstateError `INVALID_ARGUMENT` when the batch moves a ref twice
 */
export function applyBatch(context: WriteContext, batch: WriteBatch, sole: boolean): Applied {
  const { statements, numbers, options, graceMs } = context;
  const refused = (workflow: "exists" | "missing"): Applied => ({
    answer: { workflow, moves: batch.moves.map(() => ({ outcome: "skipped" })) },
    changed: false,
  });
  checkDistinctRefs(batch);

  let wf = numbers.get(batch.workflow);
  if (batch.create !== undefined) {
    const w = batch.create;
    if (numbers.get(w.id) !== undefined) return refused("exists");
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

  const pended = changePending(statements, wf, batch);
  const moves = planMoves(context, wf, batch);
  const now = Math.floor(options.now() / 1000);
  const clock: Clock = { now, stale: now - Math.floor(graceMs / 2000) };
  // Rows are appended, so a small one in front may fill up the last page, and a
  // large one then takes a new page: two are written in place of one. Objects
  // are mostly larger than commits.
  const objectsFirst = sole && moves.some((plan) => !("outcome" in plan));
  if (objectsFirst) putObjects(statements, wf, batch, clock);
  const answers = moves.map(
    (plan): MoveAnswer => ("outcome" in plan ? plan : moveRef(context, wf, plan, clock)),
  );
  const changed = answers.some((answer) => answer.outcome === "moved");
  if (changed) freshenAll(statements, wf, batch.needs ?? [], clock);
  if (changed && !objectsFirst) putObjects(statements, wf, batch, clock);
  if (changed && batch.complete !== undefined) {
    statements.completeWorkflow.run(batch.complete, wf);
  }
  return {
    answer: { workflow: batch.create === undefined ? "ok" : "created", moves: answers },
    changed: changed || pended || batch.create !== undefined,
  };
}

/** Drops and puts pending rows; tells whether there was anything to do. */
function changePending(
  statements: Statements,
  wf: number,
  { dropPending = [], pending = [] }: WriteBatch,
): boolean {
  for (const prefix of dropPending) statements.dropPending.run(wf, prefix, endOfPrefix(prefix));
  for (const { key, index, body } of pending) statements.putPending.run(wf, index, key, body);
  return dropPending.length > 0 || pending.length > 0;
}

interface Clock {
  /** Seconds since the Unix epoch. */
  readonly now: number;
  /** Rows last seen before this are freshened. */
  readonly stale: number;
}

function planMoves(
  { statements }: WriteContext,
  wf: number,
  batch: WriteBatch,
): (MoveAnswer | Planned)[] {
  const coming = new Set<ObjectId>();
  const isClosed = batch.moves.some(movesBranch) && statements.completed.get(wf) !== undefined;
  const plans = batch.moves.map((move) => {
    const before = statements.ref.get(wf, move.ref);
    const unprobed = batch.moves.length === 1 && before !== undefined && bringsOnlyItsTarget(move);
    const stored = (id: ObjectId) => isStored(statements, wf, id);
    const closed = isClosed && movesBranch(move);
    const needs = batch.needs ?? [];
    const refusal = judge({ move, before, coming, unprobed, stored, needs, closed });
    if (refusal !== null) return refusal;
    const first = move.target === null || !coming.has(move.target);
    for (const commit of move.commits) coming.add(commit.id);
    return { move, before, first, unprobed };
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

function movesBranch({ ref, target }: RefMove): boolean {
  return target !== null && ref.startsWith(BRANCHES);
}

function bringsOnlyItsTarget({ target, commits }: RefMove): boolean {
  return commits.length === 1 && commits[0]!.id === target;
}

/** What judging a move looks at. */
interface Case {
  readonly move: RefMove;
  readonly before: RefColumns | undefined;
  readonly coming: ReadonlySet<ObjectId>;
  readonly unprobed: boolean;
  readonly needs: readonly ObjectId[];
  /** Whether it is of a branch of a completed workflow to a commit. */
  readonly closed: boolean;
  readonly stored: (id: ObjectId) => boolean;
}

/**
 * Why a move cannot happen, or null. Of a move that is `unprobed` and could
 * happen otherwise it leaves open whether it landed before, which spares a
 * look at the index with every commit.
 */
function judge(given: Case): MoveAnswer | null {
  const { move, before, unprobed, stored } = given;
  const { target, commits } = move;
  const refusal = unprobed ? refuse(given) : null;
  if (unprobed && refusal === null) return null;
  if (target !== null && commits.some((commit) => commit.id === target) && stored(target)) {
    return landed(before);
  }
  return refusal ?? refuse(given);
}

function isStored(statements: Statements, wf: number, id: ObjectId): boolean {
  return statements.commitStored.get(wf, rawId(id)) !== undefined;
}

/** Closed, conflict or missing, in this order, or null. */
function refuse({ move, before, coming, needs, stored, closed }: Case): MoveAnswer | null {
  if (closed) return { outcome: "closed" };
  const { target, expect, commits } = move;
  const head = before?.id || null;
  if (!meets(expect, head, before?.seq ?? 0) || (head === null && target === null)) {
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
  for (const id of needs) need(id);
  return missing.size > 0 ? { outcome: "missing", ids: [...missing] } : null;
}

/**
 * Writes the move's commits, the ref and its log entry; answers the ref as it
 * is then. An unprobed move that turns out to have landed writes nothing.
 */
function moveRef(
  { statements, options }: WriteContext,
  wf: number,
  { move, before, first, unprobed }: Planned,
  clock: Clock,
): MoveAnswer {
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

  const ref = before?.ref ?? insertRef(statements, wf, row);
  const carrier = first ? carrierOf(entry, move) : null;
  let carried = false;
  for (const commit of move.commits) {
    if (commit === carrier || unprobed) {
      const log = commit === carrier ? { ref, entry } : null;
      const columns = commitColumns(wf, commit, clock.now, log);
      if (statements.addCommit.run(columns).changes > 0) {
        carried = commit === carrier;
        continue;
      }
      if (unprobed && isStored(statements, wf, commit.id)) return landed(before);
      // What has the commit's id and is no commit is damaged: replaced below.
    }
    statements.putCommit.run(commitColumns(wf, commit, clock.now, null), clock.stale);
  }
  if (before !== undefined) updateRef(statements, before.ref, row);
  freshenAll(statements, wf, builtOn(move, before?.id || null), clock);
  if (!carried) putEntry(statements, ref, entry);
  return { outcome: "moved", row };
}

/** The commits that a move refers to and does not bring; its ref's head stays reachable through the log. */
function builtOn({ target, commits }: RefMove, head: ObjectId | null): Set<ObjectId> {
  const ids = new Set(commits.flatMap((commit) => commit.parents));
  if (target !== null) ids.add(target);
  for (const { id } of commits) ids.delete(id);
  if (head !== null) ids.delete(head);
  return ids;
}

/** Takes commits that were not seen lately away from collection. */
function freshenAll(
  statements: Statements,
  wf: number,
  ids: Iterable<ObjectId>,
  { now, stale }: Clock,
): void {
  for (const id of ids) statements.freshenCommit.run(now, wf, rawId(id), stale);
}

function insertRef(statements: Statements, wf: number, row: RefRow): number | bigint {
  const [incarnation, hash, id] = refBytes(row);
  return statements.insertRef.run(wf, row.seq, row.maxStep, incarnation, hash, id, row.name)
    .lastInsertRowid;
}

function updateRef(statements: Statements, ref: number, row: RefRow): void {
  const [incarnation, hash, id] = refBytes(row);
  statements.updateRef.run(row.seq, row.maxStep, incarnation, hash, id, ref);
}

function refBytes(row: RefRow): [incarnation: Buffer, hash: Buffer, id: Buffer | null] {
  const incarnation = Buffer.from(row.incarnation, "hex");
  return [incarnation, rawId(row.logHash), row.id === null ? null : rawId(row.id)];
}

/**
 * The commit whose row keeps the log entry as columns: the only one of the
 * move, and on top of what the ref was, so that `old` is its first parent. Its
 * row must be new, or it would keep the entry of an earlier move.
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

/** The parameters of `addCommit`, and of `putCommit` but for its last. */
function commitColumns(
  wf: number,
  commit: CommitRecord,
  now: number,
  log: { ref: number | bigint; entry: ReflogEntry } | null,
): unknown[] {
  return [
    wf,
    now,
    rawId(commit.id),
    commit.generation,
    commit.time,
    log?.ref ?? null,
    log?.entry.seq ?? null,
    log?.entry.time ?? null,
    packIds(commit.parents),
    log === null ? null : Buffer.from(log.entry.incarnation, "hex"),
    log === null ? null : rawOrNull(log.entry.previous),
    commit.externalId,
    log?.entry.actor ?? null,
    log?.entry.reason ?? null,
    log?.entry.trace || null,
    packInline(commit.inline),
    commit.body,
  ];
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
