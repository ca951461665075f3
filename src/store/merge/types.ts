import type { JsonValue } from "../../core/json.js";
import type { ConflictKind } from "../../merge/contest.js";
import type { Change } from "../../merge/diff.js";
import type { MergedPart } from "../../merge/merge-commits.js";
import type { Policies } from "../../merge/policy.js";
import type { CustomResolvers, Resolution } from "../../merge/resolvers.js";
import type { Commit, State } from "../types.js";

/** A value of a conflict; `ambiguous` where several merge bases disagree, so that there is no base. */
export type ConflictValue =
  | { readonly exists: true; readonly value: JsonValue }
  | { readonly exists: false; readonly ambiguous?: true };

/** A side of a conflict, and the commit that last wrote the value there, or removed it. */
export type ConflictSide = ConflictValue & {
  /** The branch that the side comes from, as people see it; of ours the target's or an earlier source's. */
  readonly branch: string;
  readonly writer: Commit | null;
};

/** A path that a merge cannot decide: three values, and who wrote them. */
export interface Conflict {
  /** `state`, or `policy` when the merge policies themselves conflict. */
  readonly part: MergedPart;
  /** JSON Pointer; an element of a list that merges `by-id` is named like `id="a7"`. */
  readonly path: string;
  readonly kind: ConflictKind;
  readonly base: ConflictValue;
  readonly ours: ConflictSide;
  readonly theirs: ConflictSide;
}

/** Decides conflicts as they come; undefined leaves one open. */
export type ResolveFunction = (
  conflict: Conflict,
) => Resolution | undefined | Promise<Resolution | undefined>;

/** What one of the merged branches brought. */
export interface Contribution {
  /** As people see it, such as `agents/booker/try-1`; a revision where it was no branch. */
  readonly branch: string;
  readonly head: string;
  /** `contained`: the target, or another of the branches, has it already. */
  readonly status: "merged" | "fast-forward" | "contained" | "conflict";
  /** Commits that the target did not have. */
  readonly commits: number;
  /** Paths at which it conflicts. */
  readonly conflicts: number;
}

export interface MergePolicyOptions {
  /** For this call alone, before those that the target's commits hold. */
  readonly policies?: Policies;
  /** What `custom:<name>` policies stand for, besides those given to `openStore`. */
  readonly resolvers?: CustomResolvers;
  readonly resolve?: ResolveFunction;
}

export interface MergeOptions extends MergePolicyOptions {
  /** The branch that is merged into; default `canonical`. */
  readonly into?: string;
  readonly message?: string;
  /** Default `supervisor`. */
  readonly author?: string;
  readonly date?: Date;
  /** W3C traceparent. */
  readonly trace?: string;
  /** `never` makes a merge commit even where moving the target would do; `only` refuses to make one. Default `auto`. */
  readonly fastForward?: "auto" | "never" | "only";
  /** Merges histories without a common commit. */
  readonly allowUnrelated?: boolean;
  /** Merges branches that have steps which were started and not sealed. */
  readonly allowOpenIntents?: boolean;
  /** What becomes of a merge with open conflicts: told of (default), or stored, to be finished later. */
  readonly onConflict?: "report" | "store";
  /** How often the merge is made anew when others move the target meanwhile; default 100. */
  readonly maxAttempts?: number;
  readonly signal?: AbortSignal;
}

export interface MergeResult {
  readonly status: "up-to-date" | "fast-forward" | "merged" | "conflict";
  /** Where the target is now; null when conflicts kept it from moving. */
  readonly commit: Commit | null;
  /** The head of the target that was merged into: where it was before. */
  readonly target: Commit;
  /** Those that are open; those that were resolved stand in the merge commit. */
  readonly conflicts: readonly Conflict[];
  /** How often the merge was made: 1 when nobody else moved the target meanwhile. */
  readonly attempts: number;
  readonly contributions: readonly Contribution[];
  /** The name of the stored merge, when there is one. */
  readonly stored: string | null;
}

/** What a merge would do. */
export interface MergePreview extends Omit<MergeResult, "commit" | "attempts" | "stored"> {
  /** Where the target would be, when that is a commit that exists; null for a merge still to be made. */
  readonly commit: Commit | null;
  /** What would change in the target's state, by the store's schema; ours stays where conflicts are open. */
  readonly changes: readonly Change[];
  /**
   * The state that the merge would give, read when asked for, by the store's schema.
   *
   * @throws AgstateError `PATH_NOT_FOUND` when it would leave none
   */
  state(): Promise<State>;
}

export interface PickOptions extends MergePolicyOptions {
  /** The branch that gets the change; default `canonical`. */
  readonly onto?: string;
  readonly message?: string;
  /** Who does it; default `supervisor`. */
  readonly author?: string;
  readonly date?: Date;
  readonly trace?: string;
  /** Which parent of a merge its change is counted from, from 1. */
  readonly mainline?: number;
  readonly onConflict?: "report" | "store";
  readonly maxAttempts?: number;
  readonly signal?: AbortSignal;
}

export interface PickResult {
  /** `up-to-date`: the branch has the change already. */
  readonly status: "up-to-date" | "applied" | "conflict";
  readonly commit: Commit | null;
  readonly conflicts: readonly Conflict[];
  readonly attempts: number;
  readonly stored: string | null;
}

/** What is kept with a merge commit: everything that decided how it came out. */
export interface MergeRecord {
  readonly operation: "merge" | "cherry-pick" | "revert";
  readonly into: string;
  readonly sources: readonly {
    readonly branch: string;
    readonly head: string;
    readonly bases: readonly string[];
    /** The version of its state, where that was migrated to be merged. */
    readonly migratedFrom?: number;
  }[];
  /** The version of the states that were merged, and of what came out; left out where nobody said one. */
  readonly stateVersion?: number;
  /** The version of the target's state, where that was migrated to be merged into. */
  readonly migratedFrom?: number;
  /** In force: the target's and the call's. */
  readonly policies: Policies;
  /** Those of `policies` that the call gave. */
  readonly callPolicies?: Policies;
  /** Versions of the custom resolvers that the policies name. */
  readonly resolvers?: Readonly<Record<string, string>>;
  /** How each conflict was resolved. */
  readonly resolved?: readonly {
    readonly part: MergedPart;
    readonly path: string;
    readonly kinds: readonly ConflictKind[];
    readonly how: "ours" | "theirs" | "value" | "delete";
    /** Whose value was taken. */
    readonly branch?: string;
    readonly by: string;
  }[];
}

/** A stored merge, as it is listed. */
export interface StoredMergeInfo {
  readonly name: string;
  readonly operation: MergeRecord["operation"];
  readonly into: string;
  readonly sources: readonly { readonly branch: string; readonly head: string }[];
  /** Who began it. */
  readonly author: string;
  readonly resolved: readonly {
    readonly part: MergedPart;
    readonly path: string;
    readonly how: "ours" | "theirs" | "value" | "delete";
    /** Whose value was taken. */
    readonly branch?: string;
    readonly by: string;
  }[];
  /** When it was last changed. */
  readonly date: Date;
  /** The commit that holds it, at `merges/<name>`; its state is what is merged so far. */
  readonly head: string;
}
