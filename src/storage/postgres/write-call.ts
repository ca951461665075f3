import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import type {
  Expectation,
  MoveAnswer,
  ObjectRecord,
  RefMove,
  RefRow,
  WriteAnswer,
  WriteBatch,
} from "../port.js";
import { ENCODING } from "../port.js";
import { packInline, TYPE_NUMBER } from "../rows/inline.js";
import { sortedPending } from "./pending-call.js";
import type { WorkflowKeys } from "./workflow-keys.js";

/** A row of the answer of `write_batches`. */
export interface AnswerRow {
  readonly r_batch: number;
  /** 0 in the row about the batch as a whole. */
  readonly r_move: number;
  readonly r_status: number;
  readonly r_id: string | null;
  readonly r_seq: string | null;
  readonly r_log_hash: string | null;
  readonly r_incarnation: string | null;
  readonly r_max_step: string | null;
  readonly r_missing: string | null;
}

/** How many parameters `write_batches` takes. */
const PARAMETERS = 50;

export function writeStatement(schema: string): string {
  const parameters = Array.from({ length: PARAMETERS }, (_, i) => `$${i + 1}`).join(", ");
  return `SELECT * FROM ${schema}.write_batches(${parameters})`;
}

const EXPECT: Readonly<Record<Expectation["kind"], number>> = { any: 0, absent: 1, id: 2 };

/**
 * Packs batches as the arguments of `write_batches`.
 *
 * @param now seconds
 * @param stale rows last seen before this are freshened; seconds
 */
export function encodeBatches(
  batches: readonly WriteBatch[],
  keys: WorkflowKeys,
  now: number,
  stale: number,
): unknown[] {
  const create = { batch: [] as number[], rows: [] as NonNullable<WriteBatch["create"]>[] };
  const workflows: string[] = [];
  const atomic: boolean[] = [];
  const complete: (number | null)[] = [];
  const moves = {
    batch: [] as number[],
    ref: [] as string[],
    expect: [] as number[],
    expectId: [] as string[],
    expectSeq: [] as (number | null)[],
    target: [] as string[],
    incarnation: [] as string[],
    maxStep: [] as number[],
    time: [] as number[],
    actor: [] as string[],
    reason: [] as string[],
    trace: [] as string[],
    commits: [] as number[],
  };
  const commits = {
    id: [] as string[],
    generation: [] as number[],
    time: [] as number[],
    parents: [] as number[],
    parentIds: [] as string[],
    external: [] as (string | null)[],
    inline: [] as number[],
    body: [] as number[],
  };
  const builtOn = { batch: [] as number[], id: [] as string[], needed: [] as boolean[] };
  const objects = {
    batch: [] as number[],
    id: [] as string[],
    type: [] as number[],
    encoding: [] as number[],
    body: [] as number[],
  };
  const drop = { batch: [] as number[], prefix: [] as string[] };
  const toPack: { key: string; number: number; object: ObjectRecord }[] = [];
  const bodies: Uint8Array[] = [];
  const objectBodies: Uint8Array[] = [];
  batches.forEach((batch, i) => {
    const number = i + 1;
    workflows.push(keys.of(batch.workflow));
    atomic.push(batch.atomic);
    complete.push(batch.complete ?? null);
    if (batch.create !== undefined) {
      create.batch.push(number);
      create.rows.push(batch.create);
    }
    for (const move of batch.moves) {
      const { expect } = move;
      moves.batch.push(number);
      moves.ref.push(move.ref);
      moves.expect.push(EXPECT[expect.kind]);
      moves.expectId.push(expect.kind === "id" ? expect.id : ZERO_ID);
      moves.expectSeq.push(expect.kind === "id" ? (expect.seq ?? null) : null);
      moves.target.push(move.target ?? ZERO_ID);
      moves.incarnation.push(move.incarnation);
      moves.maxStep.push(move.maxStep);
      moves.time.push(move.log.time);
      moves.actor.push(move.log.actor);
      moves.reason.push(move.log.reason);
      moves.trace.push(move.log.trace);
      moves.commits.push(move.commits.length);
      for (const commit of move.commits) {
        const inline = packInline(commit.inline);
        commits.id.push(commit.id);
        commits.generation.push(commit.generation);
        commits.time.push(commit.time);
        commits.parents.push(commit.parents.length);
        for (const parent of commit.parents) commits.parentIds.push(parent);
        commits.external.push(commit.externalId);
        commits.inline.push(inline === null ? -1 : inline.length);
        commits.body.push(commit.body.length);
        if (inline !== null) bodies.push(inline);
        bodies.push(commit.body);
      }
    }
    const needs = new Set(batch.needs);
    for (const id of new Set([...batch.moves.flatMap((move) => [...idsBuiltOn(move)]), ...needs])) {
      builtOn.batch.push(number);
      builtOn.id.push(id);
      builtOn.needed.push(needs.has(id));
    }
    const key = workflows[i] as string;
    for (const object of batch.objects) toPack.push({ key, number, object });
    for (const prefix of batch.dropPending ?? []) {
      drop.batch.push(number);
      drop.prefix.push(prefix);
    }
  });
  // Rows are locked in the order of ids everywhere.
  toPack.sort((a, b) => compare(a.key, b.key) || compare(a.object.id, b.object.id));
  for (const { number, object } of toPack) {
    objects.batch.push(number);
    objects.id.push(object.id);
    objects.type.push(TYPE_NUMBER[object.type]);
    objects.encoding.push(object.encoding ?? ENCODING.plain);
    objects.body.push(object.body.length);
    objectBodies.push(object.body);
  }
  const pending = sortedPending(batches, keys);
  const pendingBodies = pending.map(({ row }) => row.body);
  const before = [...bodies, ...objectBodies];
  let at = before.reduce((sum, { length }) => sum + length, 1);
  const pendingAt = pendingBodies.map(({ length }) => {
    at += length;
    return at - length;
  });
  const hex = (parts: readonly string[]) => Buffer.from(parts.join(""), "hex");
  const { rows } = create;
  return [
    workflows[0],
    now,
    stale,
    create.batch,
    rows.map((w) => w.id),
    rows.map((w) => w.createdAt),
    rows.map((w) => w.classification),
    rows.map((w) => w.storageRegion),
    rows.map((w) => w.retentionPolicy),
    rows.map((w) => w.isolation),
    workflows,
    atomic,
    complete,
    moves.batch,
    moves.ref,
    moves.expect,
    hex(moves.expectId),
    moves.expectSeq,
    hex(moves.target),
    hex(moves.incarnation),
    moves.maxStep,
    moves.time,
    moves.actor,
    moves.reason,
    moves.trace,
    moves.commits,
    hex(commits.id),
    commits.generation,
    commits.time,
    commits.parents,
    hex(commits.parentIds),
    commits.external,
    commits.inline,
    commits.body,
    builtOn.batch,
    hex(builtOn.id),
    builtOn.needed,
    objects.batch,
    hex(objects.id),
    objects.type,
    objects.encoding,
    objects.body,
    drop.batch,
    drop.prefix,
    pending.map(({ batch }) => batch),
    pending.map(({ row }) => row.key),
    pending.map(({ row }) => row.index),
    pendingBodies.map(({ length }) => length),
    pendingAt,
    Buffer.concat([...before, ...pendingBodies]),
  ];
}

/** The commits that a move refers to and does not bring; the head that it expects is locked with its ref. */
function idsBuiltOn({ target, commits, expect }: RefMove): Set<ObjectId> {
  const ids = new Set(commits.flatMap((commit) => commit.parents));
  if (target !== null) ids.add(target);
  for (const { id } of commits) ids.delete(id);
  if (expect.kind === "id") ids.delete(expect.id);
  return ids;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const WORKFLOW_STATUS = ["ok", "created", "exists", "missing"] as const;

/** Reads the answer for each batch from the rows of `write_batches`. */
export function decodeAnswers(
  batches: readonly WriteBatch[],
  rows: readonly AnswerRow[],
): WriteAnswer[] {
  const answers: { workflow: WriteAnswer["workflow"]; moves: MoveAnswer[] }[] = [];
  for (const row of rows) {
    if (row.r_move === 0) {
      answers.push({ workflow: WORKFLOW_STATUS[row.r_status] ?? "missing", moves: [] });
      continue;
    }
    const answer = answers.at(-1);
    const batch = batches[row.r_batch - 1];
    const move = answer && batch?.moves[answer.moves.length];
    if (answer === undefined || move === undefined) throw new Error("an answer too many");
    answer.moves.push(moveAnswer(row, move.ref));
  }
  return answers;
}

function moveAnswer(row: AnswerRow, ref: string): MoveAnswer {
  switch (row.r_status) {
    case 0:
      return { outcome: "moved", row: refRow(row, ref) as RefRow };
    case 1:
      return { outcome: "landed", row: refRow(row, ref) };
    case 2:
      return { outcome: "conflict", actual: refRow(row, ref) };
    case 3:
      return { outcome: "missing", ids: (row.r_missing ?? "").split(",") as ObjectId[] };
    case 5:
      return { outcome: "closed" };
    default:
      return { outcome: "skipped" };
  }
}

function refRow(row: AnswerRow, name: string): RefRow | null {
  if (row.r_seq === null) return null;
  return {
    name,
    id: row.r_id as ObjectId | null,
    seq: Number(row.r_seq),
    logHash: row.r_log_hash as ObjectId,
    incarnation: row.r_incarnation ?? "",
    maxStep: Number(row.r_max_step),
  };
}
