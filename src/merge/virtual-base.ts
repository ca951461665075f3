import type { ObjectId } from "../core/ids.js";
import type { Source } from "./contests.js";
import { PathMarks } from "./path-marks.js";
import type { MaybeSide } from "./side.js";
import type { ThreeWayMerge } from "./three-way.js";

/** A merge base's value; where merged bases disagree, its paths are marked as unknown. */
export type BaseValue = Pick<Source, "base" | "unknown">;

export interface VirtualBaseOptions {
  /** All best common ancestors of a commit and a merge of others. */
  mergeBases(commit: ObjectId, others: readonly ObjectId[]): Promise<readonly ObjectId[]>;
  /** The value of the merged part in a commit. */
  valueIn(commit: ObjectId): Promise<MaybeSide>;
  /** A merge whose result is not kept. */
  newMerge(): ThreeWayMerge;
}

/**
 * Finds the value that a merge starts from: that of its merge base, or, where
 * there are several, of a merge of these.
 *
 * As in Git's merge-recursive, the bases are merged by their own merge bases,
 * and so on. A path at which they conflict has no base. What was merged once is
 * remembered, so that a long criss-cross history is not merged over and over.
 */
export class VirtualBases {
  private readonly known = new Map<string, Promise<BaseValue>>();

  constructor(private readonly options: VirtualBaseOptions) {}

  of(bases: readonly ObjectId[]): Promise<BaseValue> {
    const sorted = [...bases].sort();
    const key = sorted.join(" ");
    let value = this.known.get(key);
    if (value === undefined) {
      value = this.merge(sorted);
      this.known.set(key, value);
    }
    return value;
  }

  private async merge(bases: readonly ObjectId[]): Promise<BaseValue> {
    const [first, ...others] = bases;
    if (first === undefined) return { base: undefined, unknown: undefined };
    let base = await this.options.valueIn(first);
    if (others.length === 0) return { base, unknown: undefined };
    const merge = this.options.newMerge();
    const merged = [first];
    for (const other of others) {
      const below = await this.of(await this.options.mergeBases(other, merged));
      base = await merge.merge(base, { ...below, theirs: await this.options.valueIn(other) });
      merged.push(other);
    }
    const unknown = new PathMarks<true>();
    let marked = false;
    for (const [path] of merge.contests.entries()) {
      unknown.set(path, true);
      marked = true;
    }
    return { base, unknown: marked ? unknown : undefined };
  }
}
