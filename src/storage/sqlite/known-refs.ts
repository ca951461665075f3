import type { RefColumns } from "./rows.js";
import type { Statements } from "./statements.js";

/** How many rows are remembered. */
const REMEMBERED_MAX = 4096;

/**
 * Looks up refs for writing, and remembers what this connection wrote last: an
 * agent that commits to its branch over and over need not have its row read
 * each time.
 *
 * SQLite's `data_version` tells inside a transaction whether another connection
 * changed the file since the one before; if so, all is forgotten.
 */
export class KnownRefs {
  readonly #known = new Map<string, RefColumns>();
  #version: number | undefined;

  constructor(readonly statements: Statements) {}

  /** Forgets what may have changed; call first in each write transaction. */
  begin(): void {
    const version = this.statements.dataVersion.get();
    if (version === this.#version) return;
    this.#version = version;
    this.#known.clear();
  }

  get(wf: number, name: string): RefColumns | undefined {
    return this.#known.get(`${wf}:${name}`) ?? this.statements.ref.get(wf, name);
  }

  /** Remembers a row as this transaction leaves it. */
  set(wf: number, row: RefColumns): void {
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear();
    this.#known.set(`${wf}:${row.name}`, row);
  }

  /** Forgets all: the transaction, which may have written one of them, was rolled back. */
  forget(): void {
    this.#known.clear();
  }
}
