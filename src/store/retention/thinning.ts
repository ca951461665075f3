import { ByteColumn } from "../../core/id-numbers.js";
import type { ObjectId } from "../../core/ids.js";
import type { Between } from "./between.js";
import type { StoredCommits } from "./commits.js";
import type { MergeNeeds } from "./merge-needs.js";
import type { Roots } from "./roots.js";
import { KEEPERS, type Keeper, type Kept } from "./types.js";

/** What becomes of a commit: 0 stays as it is; 1 is dropped; else the keeper at this place, plus 2, keeps it. */
const DROPPED = 1;
const KEEPER_BASE = 2;
const codeOf = (keeper: Keeper) => KEEPER_BASE + KEEPERS.indexOf(keeper);

/** Commits whose time is over, what keeps some of them, and where history ends then. */
export interface Thinning {
  /** Those that refs reach, or what refs left; what else is over waits for a collection already. */
  readonly dropped: readonly number[];
  /** Commits that stay, and none of whose parents does. */
  readonly boundaries: readonly number[];
  readonly kept: Kept<number>;
  isDropped(commit: number): boolean;
}

/** What keeps commits. */
export interface ThinningNeeds {
  readonly roots: Roots;
  /** Commits that refs left within the grace period. */
  readonly left: readonly ObjectId[];
  readonly needs: MergeNeeds;
  readonly between: Between;
}

/** Nothing is over. */
export const NO_THINNING: Thinning = {
  dropped: [],
  boundaries: [],
  kept: {},
  isDropped: () => false,
};

/**
 * Finds what history is over: commits from before a moment all of whose ancestors are, too, so that it goes as a prefix
 * whatever clocks said. Of these stay:
 *
 * - what a ref is at, and what a ref left within the grace period: without its history;
 * - all that a hold reaches;
 * - where living branches part, and all from there to their heads, so that they can be merged as before;
 * - the beginnings of runs and steps that are open, and all from there to the heads;
 * - what a stored merge goes on from.
 *
 * A commit keeps all of its parents or none, as in Git's shallow repositories: so first parents stay what they are. Where
 * one of them stays, the others do.
 *
 * @param before in seconds
 */
export function planThinning(
  commits: StoredCommits,
  { roots, left, needs, between }: ThinningNeeds,
  before: number,
): Thinning {
  const fate = new ByteColumn();
  const rising = [...commits.rising()];
  const stored = (ids: readonly ObjectId[]) => commits.stored(ids);

  // As a prefix, but for what the audit is in.
  const audit = commits.reached(stored(roots.audit));
  for (const n of rising) {
    const { time, parents } = commits.facts(n);
    const old = time < before && parents.every((parent) => fate.get(parent) === DROPPED);
    if (old && audit.get(n) === 0) fate.set(n, DROPPED);
  }
  const keep = (keeper: Keeper, numbers: Iterable<number>) => {
    for (const n of numbers) if (fate.get(n) === DROPPED) fate.set(n, codeOf(keeper));
  };
  keep("branches", stored(roots.branches));
  keep("bases", between.bases);
  keep("runs", between.open);
  keep("merges", stored(needs.commits));
  keep("refs", stored(roots.others));
  keep("undo", stored(left));
  keep("tags", stored(roots.tags));
  const held = commits.reached(stored(roots.holds));
  keep(
    "holds",
    rising.filter((n) => held.get(n) === 1),
  );

  const boundaries: number[] = [];
  for (const n of rising.toReversed()) {
    if (fate.get(n) === DROPPED) continue;
    const { parents } = commits.facts(n);
    const going = parents.filter((parent) => fate.get(parent) === DROPPED);
    if (going.length === 0) continue;
    if (going.length === parents.length) boundaries.push(n);
    else for (const parent of going) fate.set(parent, Math.max(fate.get(n), codeOf("bases")));
  }
  const kept: { [By in Keeper]?: number } = {};
  // A hold's own commit is not what it holds.
  const placed = new Set(stored(roots.holds));
  for (const n of rising) {
    const keeper = KEEPERS[fate.get(n) - KEEPER_BASE];
    if (keeper !== undefined && !(keeper === "holds" && placed.has(n)))
      kept[keeper] = (kept[keeper] ?? 0) + 1;
  }
  const { audit: _, holdNames: __, ...refs } = roots;
  const inReach = commits.reached(stored([...Object.values(refs).flat(), ...left]));
  return {
    dropped: rising.filter((n) => fate.get(n) === DROPPED && inReach.get(n) === 1),
    boundaries: boundaries.reverse(),
    kept,
    isDropped: (n) => fate.get(n) === DROPPED,
  };
}
