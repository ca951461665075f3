import type { ObjectId } from "../core/ids.js";
import { digestText } from "../objects/hash.js";
import { identity, type MaybeSide } from "./side.js";

/**
 * What a conflict is about.
 *
 * - `edit/edit`: both sides changed a value, differently.
 * - `edit/delete`: one side changed what the other removed.
 * - `add/add`: both sides added a value where there was none, differently.
 * - `list`: both sides changed a list, and not both by adding at its end.
 * - `type`: the sides made values of different types of it.
 */
export type ConflictKind = "edit/edit" | "edit/delete" | "add/add" | "list" | "type";

/** What one merged source wants at a contested path. */
export interface Claim {
  /** Which of the sources, by its place among those that are merged. */
  readonly source: number;
  readonly kind: ConflictKind;
  readonly base: MaybeSide;
  /** False where several merge bases disagree: there is then no base. */
  readonly baseKnown: boolean;
  readonly theirs: MaybeSide;
}

/**
 * A path at which the merge cannot decide: ours stays until somebody settles
 * it. A later source that changed anything at or below the path joins with a
 * claim of its own, so that settling it never drops what nobody looked at.
 */
export interface Contest {
  readonly path: readonly string[];
  /** What stood there when the first claim was made. */
  readonly ours: MaybeSide;
  readonly claims: readonly Claim[];
}

/** What a contested path is to hold: ours as it stands, or another value, or none. */
export type Settlement = { readonly keep: true } | { readonly side: MaybeSide };

/**
 * What a contest is about, as one id: a settlement holds only for the very
 * values that its maker saw.
 */
export function contestId(contest: Contest): ObjectId {
  const shown = (side: MaybeSide) => (side === undefined ? "absent" : identity(side));
  const lines = [JSON.stringify(contest.path), shown(contest.ours)];
  for (const { kind, base, theirs } of contest.claims) {
    lines.push(`${kind} ${shown(base)} ${shown(theirs)}`);
  }
  return digestText(lines.join("\n"));
}
