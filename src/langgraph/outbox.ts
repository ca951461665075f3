import { isAgstateError } from "../core/errors.js";
import type { PendingRow } from "../storage/port.js";

/** What is wrong with the store, not with any row. */
const NOBODY_AT_FAULT = [
  "STORE_UNAVAILABLE",
  "STORE_BUSY",
  "STORE_FULL",
  "STORE_READONLY",
] as const;

/** Rows that somebody waits for. */
interface Entry {
  readonly rows: readonly PendingRow[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Rows that somebody else takes along, who tells what became of them. */
export interface Taken {
  readonly rows: readonly PendingRow[];
  /** They are stored. */
  landed(): void;
  /** They are not: they go out on their own. */
  returned(): void;
}

/**
 * Pending rows of a thread on their way out: what one turn of the event loop brings goes in one call, and a
 * checkpoint that is put in the same turn takes it along.
 */
export class Outbox {
  private queued: Entry[] = [];
  private armed = false;

  constructor(private readonly send: (rows: readonly PendingRow[]) => Promise<unknown>) {}

  /** Resolves when the rows are stored. The entry tells whether they are still here. */
  add(rows: readonly PendingRow[]): { readonly entry: object; readonly landed: Promise<void> } {
    let entry: Entry | undefined;
    const landed = new Promise<void>((resolve, reject) => {
      entry = { rows, resolve, reject };
      this.queued.push(entry);
    });
    this.arm();
    return { entry: entry as unknown as object, landed };
  }

  holds(entry: object): boolean {
    return this.queued.includes(entry as Entry);
  }

  take(): Taken {
    const entries = this.queued;
    this.queued = [];
    return {
      rows: entries.flatMap(({ rows }) => rows),
      landed: () => {
        for (const { resolve } of entries) resolve();
      },
      returned: () => {
        this.queued.unshift(...entries);
        this.arm();
      },
    };
  }

  private arm(): void {
    if (this.armed || this.queued.length === 0) return;
    this.armed = true;
    setImmediate(() => {
      this.armed = false;
      const entries = this.queued;
      this.queued = [];
      if (entries.length > 0) void this.land(entries);
    });
  }

  private async land(entries: readonly Entry[]): Promise<void> {
    try {
      await this.send(entries.flatMap(({ rows }) => rows));
    } catch (error) {
      if (entries.length === 1 || isAgstateError(error, ...NOBODY_AT_FAULT)) {
        for (const { reject } of entries) reject(error);
      } else for (const entry of entries) await this.land([entry]);
      return;
    }
    for (const { resolve } of entries) resolve();
  }
}
