import type { JsonValue } from "../../core/json.js";
import type { StepAction, StepStatus } from "../../objects/commit.js";
import type { Move } from "../watch.js";

/**
 * What a move of a ref was, as far as the ref, its log and the commit tell.
 *
 * Of the workflow: `workflow` (declared), `completed`. Of branches: `branch` (made), `commit`, `step` (with steps), `merge`,
 * `reset`, `delete`. Of tags: `tag`, `delete`. Of holds: `hold`, `release`. Of leases: `lease` (acquired or
 * renewed), `lease-ended`. Of stored merges: `merge-stored`, `merge-settled`. Of reviews: `review-requested`, `approved`,
 * `approval-used`, `discarded`, `expired`, `lapsed`. `refused`: a rule, a person or a review that does not hold kept something
 * from happening. `collected`: a collection removed something. `key-rotated`: the workflow's key was wrapped anew; `key-destroyed`:
 * it, or a subject's, is about to go, and what it encrypted with it. `exported`: a copy was written outside
 * of the store. `erasure`: something was asked to be erased, and, later, what became of it. `retention`: what is over begins to
 * be taken away, or is. `moved`: any other.
 */
export const AUDIT_KINDS = [
  "workflow",
  "completed",
  "redeclared",
  "branch",
  "commit",
  "step",
  "merge",
  "reset",
  "delete",
  "tag",
  "hold",
  "release",
  "lease",
  "lease-ended",
  "merge-stored",
  "merge-settled",
  "review-requested",
  "approved",
  "approval-used",
  "discarded",
  "expired",
  "lapsed",
  "refused",
  "collected",
  "key-rotated",
  "key-destroyed",
  "exported",
  "erasure",
  "retention",
  "moved",
] as const;

export type AuditKind = (typeof AUDIT_KINDS)[number];

/** A step that a ref has since a move: what it was, and nothing of what went in or came out. */
export interface AuditStep {
  readonly number: number;
  /** The tool, or whatever the step is called; null where its record has no name or is not readable. */
  readonly name: string | null;
  readonly action: StepAction;
  /** `started`: begun, and not over with this commit. */
  readonly status: StepStatus;
  /** The commit that says so. */
  readonly commit: string;
}

/** One thing that happened to a workflow: an entry of a ref's log, and what its commit tells. */
export interface AuditEvent extends Move {
  readonly workflow: string;
  readonly kind: AuditKind;
  /**
   * The steps that the ref has since this move, the earliest first; empty where there are none, null
   * where the commits are not in the store any more, or damaged.
   */
  readonly steps: readonly AuditStep[] | null;
  /** Facts of a review, a refusal, a collection, an export or an erasure: names, ids and counts; null where there are none. */
  readonly facts: { readonly [name: string]: JsonValue } | null;
}

export interface AuditOptions {
  /** Goes on after this, a `cursor` of a trail of the same workflow; default: from the first event. */
  readonly from?: string;
  /** Entries that were told after the cursor, as a file of events has them whose last lines have none. */
  readonly seen?: readonly Pick<AuditEvent, "ref" | "seq">[];
  /** Ends after so many events. */
  readonly limit?: number;
  /** Tells of refs that match only: a name, or a pattern as of `watch`; default all. */
  readonly refs?: string;
  /** Waits for more at the end, as `watch` does, until `signal` or `return()` ends it; default false. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal;
}
