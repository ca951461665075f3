import type { PendingRow, ScanPage } from "../port.js";

/** Where a scan of pending rows goes on. */
export interface PendingCursor {
  readonly key: string;
  readonly index: number;
}

/** Reads what a page of pending rows gave as its `next`; null at the beginning. */
export function pendingCursor(after: string | null): PendingCursor | null {
  return after === null ? null : (JSON.parse(after) as PendingCursor);
}

/** A page of the rows found, which may be one more than its size. */
export function pendingPage(found: readonly PendingRow[], size: number): ScanPage<PendingRow> {
  const rows = found.slice(0, size);
  const last = rows.at(-1);
  if (found.length <= size || last === undefined) return { rows, next: null };
  return { rows, next: JSON.stringify({ key: last.key, index: last.index }) };
}
