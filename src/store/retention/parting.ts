/** Some of the branches' heads and bases, by number. Never changed once made, so that commits share them. */
type Tips = ReadonlySet<number>;

const NONE: Tips = new Set();

/**
 * Finds, going from children to parents, where branches part: commits that are a best common ancestor of two heads, or
 * of two such commits, as a virtual merge base asks for these.
 *
 * A commit is one when of two tips that reach it no child is reached by both. Commits of a line share the set of tips
 * that reach them, so that what is held grows with the number of forks, not of commits.
 */
export class Parting {
  readonly #coming = new Map<number, Tips[]>();
  readonly #tips = new Map<number, number[]>();
  #count = 0;

  /** Enters a head, and gives its number as a tip. */
  addTip(commit: number): number {
    const tip = this.#count++;
    this.#tips.set(commit, [...(this.#tips.get(commit) ?? []), tip]);
    return tip;
  }

  /**
   * Takes a commit, after all its children.
   *
   * @returns which tips reach it, and whether branches part there
   */
  take(commit: number, parents: readonly number[]): { tips: Tips; parts: boolean } {
    const from = this.#coming.get(commit) ?? [];
    this.#coming.delete(commit);
    const own = this.#tips.get(commit) ?? [];
    let tips = union(from);
    const parts = own.length > 1 || (own.length > 0 && tips.size > 0) || !coversPairs(from, tips);
    if (own.length > 0 || parts) {
      tips = new Set([...tips, ...own, ...(parts ? [this.#count++] : [])]);
    }
    if (tips.size > 0) {
      for (const parent of parents) {
        const coming = this.#coming.get(parent) ?? [];
        if (!coming.includes(tips)) this.#coming.set(parent, [...coming, tips]);
      }
    }
    return { tips, parts };
  }
}

/** One of the sets where that has all of them. */
function union(sets: readonly Tips[]): Tips {
  const [largest = NONE, ...others] = [...sets].sort((a, b) => b.size - a.size);
  const more = others.flatMap((set) => [...set]).filter((tip) => !largest.has(tip));
  return more.length === 0 ? largest : new Set([...largest, ...more]);
}

/** Whether of each two members of a union one of the sets has both. */
function coversPairs(sets: readonly Tips[], all: Tips): boolean {
  if (sets.some((set) => set.size === all.size)) return true;
  for (const tip of all) {
    const beside = new Set(sets.filter((set) => set.has(tip)).flatMap((set) => [...set]));
    if (beside.size < all.size) return false;
  }
  return true;
}
