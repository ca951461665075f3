import type { Mark } from "./commits.js";

/** The runs that have ended, on all lines of first parents from heads down to a commit. */
type Ended = ReadonlySet<string>;

const NONE: Ended = new Set();

/**
 * Finds, going from children to parents, where runs begin that some branch has not ended: what is on record of them
 * is what they go on from.
 *
 * A run is open at its beginning when from some head the line of first parents leads there past no end of it. So
 * it is enough to know which runs have ended on *all* lines to a commit.
 */
export class OpenRuns {
  readonly #coming = new Map<number, Ended>();

  /** A head begins a line on which no run has ended. */
  addHead(commit: number): void {
    this.#coming.set(commit, NONE);
  }

  /**
   * Takes a commit, after all its children.
   *
   * @param mark undefined where no run begins or ends; null where that cannot be known
   * @returns whether a run begins there, or may do so, that is open
   */
  take(commit: number, mark: Mark | undefined, firstParent: number | undefined): boolean {
    const ended = this.#coming.get(commit);
    this.#coming.delete(commit);
    if (ended === undefined) return false;
    const open = mark === null || (mark?.mark === "begins" && !ended.has(mark.run));
    if (firstParent !== undefined) {
      const after = mark?.mark === "ends" ? new Set([...ended, mark.run]) : ended;
      const other = this.#coming.get(firstParent);
      this.#coming.set(firstParent, other === undefined ? after : common(other, after));
    }
    return open;
  }
}

function common(a: Ended, b: Ended): Ended {
  if (a === b) return a;
  const both = new Set([...a].filter((run) => b.has(run)));
  return both.size === a.size ? a : both;
}
