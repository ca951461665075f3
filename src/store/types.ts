import type { Classification } from "../core/classification.js";
import type { JsonValue } from "../core/json.js";
import type { RetentionPolicy } from "../core/period.js";
import type { Policies } from "../merge/policy.js";
import type { CommitStep, StepAction } from "../objects/commit.js";
import type { Keyed, Phase, PlacedPart } from "../objects/data-policy.js";

export type { Classification, Keyed, Phase, PlacedPart };

/** What a workflow declares before its first step; none of it silently changes later. */
export interface WorkflowDeclaration {
  /** Default `internal`. */
  readonly classification?: Classification;
  /** The region that the workflow's data stays in; must be the store's own region, if that has one. */
  readonly storageRegion?: string;
  /**
   * How long payload and history are kept: an ISO 8601 period of payload, such as `P90D`, `payload=P90D;history=P1Y`,
   * or an object that says the same.
   */
  readonly retentionPolicy?: string | RetentionPolicy;
  /**
   * Paths below the commit's root tree whose values are always objects of their
   * own, such as `/state/user/email` or `/step/output`, with `*` for any key or
   * any list element.
   */
  readonly isolation?: readonly string[];
  /**
   * Paths of what belongs to one person or other subject, such as `/state/users/{subject}`: the key that stands in the place
   * of `{subject}` says whose it is. What stands there is an object of its own, can be erased for one subject, and in an
   * encrypted workflow has a key of its own.
   */
  readonly subjects?: readonly string[];
  /** What of it belongs to another region; only a store that was opened through regions can create and write it. */
  readonly placement?: readonly Placed[];
}

/** A part of a workflow that belongs to another region than the workflow. */
export type Placed = {
  readonly region: string;
  /** Default the workflow's. */
  readonly classification?: Classification;
} & (
  | {
      /** Values below the commit's root tree, such as `/state/customer`, with `*` for any key or list element. */
      readonly path: string;
    }
  | { readonly phase: Phase }
);

export interface CreateWorkflowOptions extends WorkflowDeclaration {
  /** The state of canonical's first commit; default `{}`. */
  readonly state?: unknown;
  /** Merge policies that canonical begins with, by path. */
  readonly policies?: Policies;
  /** Who creates it; default `agstate`. */
  readonly author?: string;
}

export interface WorkflowInfo {
  readonly id: string;
  readonly classification: Classification;
  readonly storageRegion: string | null;
  readonly retentionPolicy: string | null;
  readonly isolation: readonly string[];
  readonly subjects: readonly string[];
  /** What of its data has keys. */
  readonly keyed: Keyed;
  /** What of it belongs to other regions. */
  readonly placement: readonly PlacedPart[];
  readonly createdAt: Date;
  /** Null while it is open. */
  readonly completedAt: Date | null;
}

/** A step as recorded in a commit's headers. */
export type StepInfo = CommitStep;

/** A commit as the API gives it. */
export interface Commit {
  /** The Git commit id: 64 hex digits. */
  readonly id: string;
  readonly tree: string;
  readonly parents: readonly string[];
  readonly author: string;
  readonly committer: string;
  /** When it was written, to the second. */
  readonly date: Date;
  readonly message: string;
  /** The step that the commit records, if it records one. */
  readonly step: StepInfo | null;
  /** The number that the next step on this line of history takes. */
  readonly nextStep: number;
  /** Steps that were started and not sealed. */
  readonly inFlight: readonly number[];
  /** By which version of the state's schema the state is made; null where nobody said one. */
  readonly stateVersion: number | null;
  /** 1 for a root, else one more than the greatest of its parents. */
  readonly generation: number;
  readonly trace: string | null;
  readonly externalId: string | null;
  /**
   * Why it was made, where nobody's work asked for it: `memory-pressure`, `sigterm` or `requested` for checkpoints of guarded
   * branches; null for all others.
   */
  readonly checkpointReason: string | null;
  /** There, and true, where it had parents, and retention dropped the history below it. */
  readonly boundary?: boolean;
}

/** A step that is over, to record with a commit: its headers, and its record as any JSON value. */
export interface StepToRecord {
  readonly action: StepAction;
  /** Default `completed`. */
  readonly status?: "completed" | "failed";
  /** What the step did: name, input, output, tool calls, times and the like. */
  readonly record: unknown;
}

/** What all writing calls take. */
export interface WriteOptions {
  /** What the commit says; default empty. */
  readonly message?: string;
  /** Default: the handle's author. */
  readonly author?: string;
  /** Default: now. Kept to the second. */
  readonly date?: Date;
  readonly step?: StepToRecord;
  /**
   * Whose the step is: kept in its record as digests, which name nobody to whoever cannot guess them. Erasing one of these
   * subjects erases the record.
   */
  readonly subjects?: readonly string[];
  /** Revisions recorded as second and later parents: a merge whose result the caller made. */
  readonly mergeParents?: readonly string[];
  /** W3C traceparent. */
  readonly trace?: string;
  /** A foreign system's id of this commit, found by `workflow.findExternal`. */
  readonly externalId?: string;
  /** What the reflog says; default the first line of the message, or `commit`. */
  readonly reason?: string;
  /** Writes a commit though nothing changed. */
  readonly allowEmpty?: boolean;
}

export interface CommitOptions extends WriteOptions {
  /** The whole new state; left out, the parent's state is carried over. */
  readonly state?: unknown;
}

export interface ReadStateOptions {
  /** Whether a state of an older version is migrated to that of the store's schema; default true. */
  readonly migrate?: boolean;
}

export interface LogOptions {
  readonly limit?: number;
  /** Follows first parents only. */
  readonly firstParent?: boolean;
}

export interface Ref {
  /** Full name, such as `refs/heads/agents/booker/try-1`. */
  readonly name: string;
  /** As people see it: `agents/booker/try-1`, `canonical`, `tags/v1`. */
  readonly shortName: string;
  readonly id: string;
  /** Number of its last log entry. */
  readonly seq: number;
  readonly incarnation: string;
  /** The highest step number ever given on this name. */
  readonly maxStep: number;
}

/** An entry of a ref's log, newest first; `selector` is what addresses it, such as `canonical@{1}`. */
export interface ReflogLine {
  readonly selector: string;
  readonly seq: number;
  /** Null when the ref did not exist before, after. */
  readonly old: string | null;
  readonly new: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly date: Date;
  readonly trace: string | null;
  readonly incarnation: string;
  /** The hash of the entry, which the next entry holds. */
  readonly hash: string;
  readonly previous: string;
}

export type State = JsonValue;
