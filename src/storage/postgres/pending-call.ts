import type { PendingRow, WriteAnswer, WriteBatch } from "../port.js";
import { int4s, type Parameter, texts, uuids } from "./parameters.js";
import type { WorkflowKeys } from "./workflow-keys.js";

/** How many parameters the functions take. */
const PARAMETERS = { append_pending: 7, write_pending: 5 } as const;

/** Puts pending rows of one batch, or of many. */
export function pendingStatement(schema: string, name: keyof typeof PARAMETERS): string {
  const parameters = Array.from({ length: PARAMETERS[name] }, (_, i) => `$${i + 1}`).join(", ");
  return `SELECT ${schema}.${name}(${parameters})`;
}

/** Whether a batch only puts pending rows. */
export function isPending(batch: WriteBatch): boolean {
  const { pending = [], dropPending = [], create, complete, moves } = batch;
  return (
    pending.length > 0 &&
    dropPending.length === 0 &&
    moves.length === 0 &&
    create === undefined &&
    complete === undefined
  );
}

/** What a batch must have to itself of the pending rows: two that put one row go one after the other. */
export function pendingNames({ workflow, pending = [] }: WriteBatch): string[] {
  return pending.map(({ key, index }) => `${workflow}\0${index}\0${key}`);
}

/** A batch's row, and the place of its batch, from 1. */
export interface PlacedRow {
  readonly batch: number;
  readonly workflow: string;
  readonly row: PendingRow;
}

/** The pending rows of batches in the order in which they are locked, each once: of those of one batch the one that stays. */
export function sortedPending(batches: readonly WriteBatch[], keys: WorkflowKeys): PlacedRow[] {
  const placed = new Map<string, PlacedRow>();
  batches.forEach(({ workflow: id, pending = [] }, i) => {
    const workflow = keys.of(id);
    for (const row of pending) {
      const name = `${workflow}${row.key}\0${row.index}`;
      if (row.index < 0 || !placed.has(name)) placed.set(name, { batch: i + 1, workflow, row });
    }
  });
  const sorted = [...placed].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([, row]) => row);
}

/** Packs a batch that {@link isPending} as the arguments of `write_pending`. */
export function encodePending(batch: WriteBatch, keys: WorkflowKeys): Parameter[] {
  const rows = sortedPending([batch], keys).map(({ row }) => row);
  return [
    keys.of(batch.workflow),
    texts(rows.map(({ key }) => key)),
    int4s(rows.map(({ index }) => index)),
    int4s(rows.map(({ body }) => body.length)),
    rows.map(({ body }) => body),
  ];
}

/** Packs batches of which each {@link isPending} as the arguments of `append_pending`. */
export function encodePendings(batches: readonly WriteBatch[], keys: WorkflowKeys): Parameter[] {
  const rows = sortedPending(batches, keys);
  let at = 1;
  const places = rows.map(({ row }) => {
    const place = at;
    at += row.body.length;
    return place;
  });
  return [
    uuids(batches.map(({ workflow }) => keys.of(workflow))),
    uuids(rows.map(({ workflow }) => workflow)),
    texts(rows.map(({ row }) => row.key)),
    int4s(rows.map(({ row }) => row.index)),
    int4s(rows.map(({ row }) => row.body.length)),
    int4s(places),
    rows.map(({ row }) => row.body),
  ];
}

/** Reads the places of the batches whose workflow is there. */
export function decodePending(batches: readonly WriteBatch[], there: string | null): WriteAnswer[] {
  const places = new Set(there?.split("\n"));
  return batches.map((_, i) => ({
    workflow: places.has(`${i + 1}`) ? "ok" : "missing",
    moves: [],
  }));
}
