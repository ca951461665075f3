import type { Statements } from "./statements.js";

/** How many numbers are remembered. */
const REMEMBERED_MAX = 4096;

/**
 * Looks up the catalogue's number of a workflow, and remembers it: a workflow
 * is never deleted, so that a number, once committed, stays right.
 */
export class WorkflowNumbers {
  readonly #known = new Map<string, number>();

  constructor(readonly statements: Statements) {}

  /** The number of a workflow, undefined when there is none such; call inside a transaction. */
  get(id: string): number | undefined {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const wf = this.statements.wf.get(id);
    if (wf === undefined) return undefined;
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear();
    this.#known.set(id, wf);
    return wf;
  }

  /** Forgets all: the transaction, which may have created one of them, was rolled back. */
  forget(): void {
    this.#known.clear();
  }
}
