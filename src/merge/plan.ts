import type { ObjectId } from "../core/ids.js";
import type { HistoryReader } from "./history.js";

/** A source that a merge takes in, and its best common ancestors with all that was merged before it. */
export interface PlannedSource {
  /** Its place among the sources that were given. */
  readonly index: number;
  readonly id: ObjectId;
  readonly bases: readonly ObjectId[];
}

/** Which sources bring something, as the graph alone tells. */
export interface MergePlan {
  readonly kind: "up-to-date" | "fast-forward" | "merge";
  /** In the order given; of a fast-forward the one that the target moves to. */
  readonly sources: readonly PlannedSource[];
}

/**
 * Looks at the histories of a target and its sources.
 *
 * A source that the target, or another source, contains brings nothing of its
 * own and is left out. When one source is left and contains the target, no
 * merge is needed.
 */
export async function planMerge(
  history: Pick<HistoryReader, "mergeBases" | "isAncestor">,
  target: ObjectId,
  sources: readonly ObjectId[],
  signal?: AbortSignal,
): Promise<MergePlan> {
  let left = sources.map((id, index) => ({ id, index }));
  for (;;) {
    const merged: ObjectId[] = [target];
    const planned: PlannedSource[] = [];
    const contained = new Set<ObjectId>();
    for (const { id, index } of left) {
      signal?.throwIfAborted();
      if (merged.includes(id)) continue;
      const bases = await history.mergeBases(id, merged);
      if (bases.includes(id)) continue;
      // A source that is a common ancestor itself is contained in this one.
      for (const base of bases) if (base !== target && merged.includes(base)) contained.add(base);
      planned.push({ index, id, bases });
      merged.push(id);
    }
    if (contained.size > 0) {
      // Once more without them: the bases of the others change.
      left = planned.filter(({ id }) => !contained.has(id));
      continue;
    }
    const [first] = planned;
    if (first === undefined) return { kind: "up-to-date", sources: [] };
    const forward = planned.length === 1 && (await history.isAncestor(target, first.id));
    return { kind: forward ? "fast-forward" : "merge", sources: planned };
  }
}
