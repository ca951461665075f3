import { ByteColumn } from "../../core/id-numbers.js";
import type { StoredCommits } from "./commits.js";
import { OpenRuns } from "./open-runs.js";
import { Parting } from "./parting.js";

/** Commits, by number, that stand between branches' heads and something that they go on from. */
export interface Between {
  /** Where branches part, and what stands above, up to the heads. */
  readonly bases: readonly number[];
  /** Where runs and steps that are open began, and what stands above. */
  readonly open: readonly number[];
}

/**
 * Finds what stands between branches' heads and where they part, and between heads and where what is open began.
 *
 * @param heads of branches
 * @param more commits that are merged with them some day
 */
export function standBetween(
  commits: StoredCommits,
  heads: readonly number[],
  more: readonly number[],
): Between {
  const rising = [...commits.rising()];
  const parting = new Parting();
  const runs = new OpenRuns();
  /** Steps in flight, by the tips of branches that have some. */
  const flying = new Map<number, ReadonlySet<number>>();
  for (const head of heads) {
    const tip = parting.addTip(head);
    runs.addHead(head);
    const steps = commits.inFlight.get(head);
    if (steps !== undefined) flying.set(tip, steps);
  }
  for (const tip of more) parting.addTip(tip);
  const [isBase, isOpen, isBelow] = [new ByteColumn(), new ByteColumn(), new ByteColumn()];
  for (const n of rising.toReversed()) {
    const { parents } = commits.facts(n);
    const { tips, parts } = parting.take(n, parents);
    if (tips.size > 0) isBelow.set(n, 1);
    if (parts) isBase.set(n, 1);
    const step = commits.started.get(n);
    const begins = runs.take(n, commits.marks.get(n), parents[0]);
    const flies =
      step !== undefined && [...flying].some(([tip, steps]) => tips.has(tip) && steps.has(step));
    if (begins || flies) isOpen.set(n, 1);
  }
  // What stands above one that is marked is marked, up to the heads.
  for (const column of [isBase, isOpen]) {
    for (const n of rising) {
      if (column.get(n) === 1 || isBelow.get(n) === 0) continue;
      if (commits.facts(n).parents.some((parent) => column.get(parent) === 1)) column.set(n, 1);
    }
  }
  const of = (column: ByteColumn) => rising.filter((n) => column.get(n) === 1);
  return { bases: of(isBase), open: of(isOpen) };
}
