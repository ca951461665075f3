import type { ObjectId } from "../../core/ids.js";
import { type CommitRecord, ENCODING, type WriteAnswer, type WriteBatch } from "../port.js";
import { packInline, TYPE_NUMBER } from "../rows/inline.js";
import { int4s, int8s, type Parameter, texts, uuids } from "./parameters.js";
import { sortedPending } from "./pending-call.js";
import type { WorkflowKeys } from "./workflow-keys.js";

/** How many parameters the functions take. */
const PARAMETERS = { append_commits: 31, append_commit: 25 } as const;

/** Lands one append, or many. */
export function appendStatement(schema: string, name: keyof typeof PARAMETERS): string {
  const parameters = Array.from({ length: PARAMETERS[name] }, (_, i) => `$${i + 1}`).join(", ");
  return `SELECT ${schema}.${name}(${parameters})`;
}

/** Whether a batch only puts one commit on top of the one that its ref is expected to be at, and pending rows. */
export function isAppend(batch: WriteBatch): boolean {
  const { create, complete, moves, needs = [], dropPending = [] } = batch;
  const [move] = moves;
  if (complete !== undefined || dropPending.length > 0) return false;
  if (create !== undefined || needs.length > 0 || move === undefined || moves.length > 1)
    return false;
  const [commit] = move.commits;
  if (commit === undefined || move.commits.length > 1 || move.expect.kind !== "id") return false;
  const { parents } = commit;
  return commit.id === move.target && parents.length === 1 && parents[0] === move.expect.id;
}

/** Characters that UTF-16 and UTF-8 put in different orders. */
const WIDE = /[\ud800-\uffff]/;

/** Batches of one move each in the order in which refs are locked everywhere: of workflows' keys, then of names in UTF-8. */
export function inLockOrder(batches: readonly WriteBatch[], keys: WorkflowKeys): WriteBatch[] {
  const keyed = batches.map((batch) => ({
    batch,
    key: `${keys.of(batch.workflow)}${batch.moves[0]?.ref}`,
  }));
  if (keyed.some(({ key }) => WIDE.test(key))) {
    keyed.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
  } else keyed.sort((a, b) => (a.key < b.key ? -1 : 1));
  return keyed.map(({ batch }) => batch);
}

/** Packs batches of which each {@link isAppend}, {@link inLockOrder}, as the arguments of `append_commits`. */
export function encodeAppends(
  batches: readonly WriteBatch[],
  keys: WorkflowKeys,
  now: number,
  stale: number,
): Parameter[] {
  const workflows = batches.map(({ workflow }) => keys.of(workflow));
  const moves = batches.map(({ moves: [move] }) => move as WriteBatch["moves"][number]);
  const commits = moves.map(({ commits: [commit] }) => commit as CommitRecord);
  const inlines = commits.map(({ inline }) => packInline(inline));
  const bodies: Uint8Array[] = [];
  let at = 1;
  const place = (...parts: (Uint8Array | null)[]) => {
    const start = at;
    for (const part of parts) {
      if (part === null) continue;
      bodies.push(part);
      at += part.length;
    }
    return start;
  };
  const commitsAt = commits.map(({ body }, i) => place(inlines[i] ?? null, body));
  const objects = sortedObjects(batches, workflows);
  const objectsAt = objects.map(({ object }) => place(object.body));
  const pending = sortedPending(batches, keys);
  const pendingAt = pending.map(({ row }) => place(row.body));
  const hex = (ids: readonly string[]) => Buffer.from(ids.join(""), "hex");
  return [
    workflows[0] as string,
    `${now}`,
    `${stale}`,
    uuids(workflows),
    texts(moves.map(({ ref }) => ref)),
    hex(moves.map(({ expect }) => (expect.kind === "id" ? expect.id : ""))),
    int8s(moves.map(({ expect }) => (expect.kind === "id" ? (expect.seq ?? null) : null))),
    int8s(moves.map(({ maxStep }) => maxStep)),
    int8s(moves.map(({ log }) => log.time)),
    texts(moves.map(({ log }) => log.actor)),
    texts(moves.map(({ log }) => log.reason)),
    texts(moves.map(({ log }) => log.trace)),
    hex(commits.map(({ id }) => id)),
    int8s(commits.map(({ generation }) => generation)),
    int8s(commits.map(({ time }) => time)),
    texts(commits.map(({ externalId }) => externalId)),
    int4s(inlines.map((inline) => inline?.length ?? -1)),
    int4s(commits.map(({ body }) => body.length)),
    int4s(commitsAt),
    int4s(objects.map(({ batch }) => batch)),
    hex(objects.map(({ object }) => object.id)),
    int4s(objects.map(({ object }) => TYPE_NUMBER[object.type])),
    int4s(objects.map(({ object }) => object.encoding ?? ENCODING.plain)),
    int4s(objects.map(({ object }) => object.body.length)),
    int4s(objectsAt),
    int4s(pending.map(({ batch }) => batch)),
    texts(pending.map(({ row }) => row.key)),
    int4s(pending.map(({ row }) => row.index)),
    int4s(pending.map(({ row }) => row.body.length)),
    int4s(pendingAt),
    bodies,
  ];
}

/**
 * The objects of batches in the order in which their rows are locked. One that comes again has the
 * place of its batch negative.
 */
function sortedObjects(batches: readonly WriteBatch[], workflows: readonly string[]) {
  const objects = batches.flatMap(({ objects: list }, i) =>
    list.map((object) => ({ batch: i + 1, key: `${workflows[i]}${object.id}`, object })),
  );
  objects.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.batch - b.batch));
  let last = "";
  for (const each of objects) {
    if (each.key === last) each.batch = -each.batch;
    last = each.key;
  }
  return objects;
}

/** Up to so many objects and pending rows a batch goes alone by `append_commit`, which has a statement for each. */
const ALONE_MAX_ROWS = 8;

export function fitsAlone({ objects, pending = [] }: WriteBatch): boolean {
  return objects.length + pending.length <= ALONE_MAX_ROWS;
}

/** Packs a batch that {@link isAppend} as the arguments of `append_commit`. */
export function encodeAppend(
  batch: WriteBatch,
  keys: WorkflowKeys,
  now: number,
  stale: number,
): Parameter[] {
  const move = batch.moves[0] as WriteBatch["moves"][number];
  const commit = move.commits[0] as CommitRecord;
  const { expect, log } = move;
  // Rows are locked in the order of ids everywhere.
  const objects = [...batch.objects].sort((a, b) => (a.id < b.id ? -1 : 1));
  const pending = sortedPending([batch], keys);
  return [
    keys.of(batch.workflow),
    `${now}`,
    `${stale}`,
    move.ref,
    expect.kind === "id" ? Buffer.from(expect.id, "hex") : null,
    expect.kind === "id" && expect.seq !== undefined ? `${expect.seq}` : null,
    `${move.maxStep}`,
    `${log.time}`,
    log.actor,
    log.reason,
    log.trace,
    Buffer.from(commit.id, "hex"),
    `${commit.generation}`,
    `${commit.time}`,
    commit.externalId,
    packInline(commit.inline),
    commit.body,
    Buffer.from(objects.map(({ id }) => id).join(""), "hex"),
    int4s(objects.map(({ type }) => TYPE_NUMBER[type])),
    int4s(objects.map(({ encoding }) => encoding ?? ENCODING.plain)),
    int4s(objects.map(({ body }) => body.length)),
    texts(pending.map(({ row }) => row.key)),
    int4s(pending.map(({ row }) => row.index)),
    int4s(pending.map(({ row }) => row.body.length)),
    [...objects.map(({ body }) => body), ...pending.map(({ row }) => row.body)],
  ];
}

/**
 * Reads what the functions for appends answer, a line for each batch that landed; the others must be
 * asked about.
 */
export function decodeAppends(
  batches: readonly WriteBatch[],
  landed: string | null,
): Map<WriteBatch, WriteAnswer> {
  const answers = new Map<WriteBatch, WriteAnswer>();
  if (landed === null) return answers;
  for (const line of landed.split("\n")) {
    const [place, seq, maxStep, incarnation, logHash] = line.split(" ") as AppendedLine;
    const batch = batches[Number(place) - 1];
    const move = batch?.moves[0];
    if (move === undefined) continue;
    const row = {
      name: move.ref,
      id: move.target,
      seq: Number(seq),
      logHash: logHash as ObjectId,
      incarnation,
      maxStep: Number(maxStep),
    };
    answers.set(batch as WriteBatch, { workflow: "ok", moves: [{ outcome: "moved", row }] });
  }
  return answers;
}

type AppendedLine = [
  place: string,
  seq: string,
  maxStep: string,
  incarnation: string,
  logHash: string,
];
