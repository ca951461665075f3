import type { Contest } from "./contest.js";
import type { PathMarks } from "./path-marks.js";
import type { PolicyScope } from "./policy.js";
import type { MaybeSide } from "./side.js";

/** One place of a three-way merge: the three sides, and what is known about the path. */
export interface Frame {
  readonly path: readonly string[];
  readonly base: MaybeSide;
  /** Marks where the base is not known, because bases that were merged disagree there. */
  readonly unknown: PathMarks<true> | undefined;
  readonly ours: MaybeSide;
  readonly theirs: MaybeSide;
  readonly policies: PolicyScope;
  readonly contests: PathMarks<Contest> | undefined;
}

/** The place of a child: the child's sides, and what is known about its path. */
export function childFrame(
  frame: Frame,
  token: string,
  policies: PolicyScope,
  sides: Pick<Frame, "base" | "ours" | "theirs">,
): Frame {
  return {
    path: [...frame.path, token],
    unknown: frame.unknown?.child(token),
    policies,
    contests: frame.contests?.child(token),
    ...sides,
  };
}

/** Whether the base of a place is known, itself and all below it. */
export function isBaseKnown({ unknown }: Pick<Frame, "unknown">): boolean {
  return unknown === undefined || (!unknown.mark && !unknown.marksBelow);
}
