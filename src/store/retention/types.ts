import type { RetentionPolicy } from "../../core/period.js";

export interface RetentionOptions {
  /** Goes before what the workflow declares: both periods are as given here, one that is not given is not applied. */
  readonly policy?: string | RetentionPolicy;
  /** Who applies it; default `agstate`. */
  readonly actor?: string;
  /** Of the collection that removes dropped history, as of `gc`; default the store's `graceMs`. */
  readonly graceMs?: number;
  /** Ends it early; what is done by then stays done, and the next run goes on. */
  readonly signal?: AbortSignal;
}

/** A number of objects, and the bytes of their bodies. */
export interface Tally {
  readonly blobs: number;
  readonly trees: number;
  readonly bytes: number;
}

/**
 * What keeps something whose time is over. Branches: their heads. Bases: where living branches parted, and what
 * stands between there and their heads. Runs: runs and steps that have begun and not ended. Merges: stored ones. Refs: reviews,
 * leases and whatever else has a ref. Undo: what a ref left within the grace period of `gc`.
 */
export const KEEPERS = [
  "branches",
  "bases",
  "runs",
  "merges",
  "refs",
  "undo",
  "tags",
  "holds",
] as const;
export type Keeper = (typeof KEEPERS)[number];

/** What stays though its time is over, by what keeps it, where the ones before in {@link KEEPERS} do not. */
export type Kept<What> = { readonly [By in Keeper]?: What };

/** Payload that is over: states and records that only commits of before the cut-off reach. */
export interface PayloadReport extends Tally {
  /** Commits from before are over. */
  readonly before: Date;
  /** Commits that are over, and stay. */
  readonly commits: number;
  /** Small records in commits' rows; their bytes count. */
  readonly inline: number;
  readonly kept: Kept<Tally>;
}

/** History that is over: commits of before the cut-off, with what nothing else reaches. */
export interface HistoryReport extends Tally {
  readonly before: Date;
  /** Commits that are dropped, and the bytes of their rows. */
  readonly commits: number;
  /** Commits that stay, and whose parents do not. */
  readonly boundaries: number;
  readonly oldest: Date | null;
  readonly newest: Date | null;
  /** Pending rows of commits that are dropped, found by their external ids. */
  readonly pending: number;
  /** Commits that are over and stay. */
  readonly kept: Kept<number>;
  /** What collection has removed by now; what is younger than its grace period goes later. Null of a dry run. */
  readonly removed: (Tally & { readonly commits: number }) | null;
}

/** What applying a policy does, or did. */
export interface RetentionReport {
  readonly workflow: string;
  readonly dryRun: boolean;
  /** What was applied, as its one text. */
  readonly policy: string;
  /** Null where the policy has no such period. */
  readonly payload: PayloadReport | null;
  readonly history: HistoryReport | null;
  /** Names of the holds that there are. */
  readonly holds: readonly string[];
  /** What came into use meanwhile and stays; 0 of a dry run. */
  readonly spared: number;
}
