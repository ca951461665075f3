import type { ObjectId } from "../core/ids.js";
import type { Source } from "./contests.js";
import { PathMarks } from "./path-marks.js";
import { identity, type MaybeSide } from "./side.js";
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

interface ValuedBase {
  readonly id: ObjectId;
  readonly value: MaybeSide;
}

/**
 * Finds the value that a merge starts from: that of its merge base, or, where
 * there are several, of a merge of these.
 *
 * As in Git's merge-recursive, the bases are merged by their own merge bases,
 * and so on. A path at which they conflict has no base. What was merged once is
 * remembered, so that a long criss-cross history is not merged over and over.
 *
 * The order in which bases are merged tells in lists to which both appended and
 * under policies that name a side. It is that of their values: a commit's id
 * holds its nonce, so that by commits' ids chance would decide, and the same
 * history merge differently when it is made again or after its states are migrated.
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

  private async merge(ids: readonly ObjectId[]): Promise<BaseValue> {
    const [first, ...others] = await this.byValue(ids);
    if (first === undefined) return { base: undefined, unknown: undefined };
    let base = first.value;
    if (others.length === 0) return { base, unknown: undefined };
    const merge = this.options.newMerge();
    const merged = [first.id];
    for (const { id, value } of others) {
      const below = await this.of(await this.options.mergeBases(id, merged));
      base = await merge.merge(base, { ...below, theirs: value });
      merged.push(id);
    }
    const unknown = new PathMarks<true>();
    let marked = false;
    for (const [path] of merge.contests.entries()) {
      unknown.set(path, true);
      marked = true;
    }
    return { base, unknown: marked ? unknown : undefined };
  }

  /** Bases in the order of their values' ids, those without a value first; equal ones as given, by their own ids. */
  private async byValue(ids: readonly ObjectId[]): Promise<readonly ValuedBase[]> {
    const bases: (ValuedBase & { readonly order: string })[] = [];
    for (const id of ids) {
      const value = await this.options.valueIn(id);
      bases.push({ id, value, order: value === undefined ? "" : identity(value) });
    }
    return bases.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
  }
}
