import type { AgstateError } from "../../core/errors.js";
import type { Change } from "../../merge/diff.js";

export interface MigrateStateOptions {
  /** Tells what would be done; writes nothing. */
  readonly dryRun?: boolean;
  /** Branches by their names; default canonical and all agents' branches. */
  readonly branches?: readonly string[];
  /** Who migrates; default `agstate`. */
  readonly author?: string;
}

/** A place at which migrating changes a state. */
export type MigratedPath = Pick<Change, "kind" | "path">;

/** What migrating a branch's state comes to. */
export interface BranchMigration {
  /** As people see it. */
  readonly branch: string;
  /** `current`: the state is of the schema's version, or there is none; `pending`: a dry run found it older. */
  readonly status: "current" | "pending" | "migrated" | "failed";
  /** The version that the state has, or had; null where there is no state. */
  readonly from: number | null;
  readonly to: number;
  /** The head that it was read at. */
  readonly head: string;
  /** The commit that was put on top of it; null where there is none. */
  readonly commit: string | null;
  /** At how many paths the state changes, and the first 20 of them. */
  readonly changes: number;
  readonly paths: readonly MigratedPath[];
  /** Why it failed; null when it did not. */
  readonly error: AgstateError | null;
}

/** What migrating the states of a workflow's branches comes to. */
export interface StateMigrationReport {
  readonly workflow: string;
  /** The schema's. */
  readonly version: number;
  readonly dryRun: boolean;
  /** Sorted by name. */
  readonly branches: readonly BranchMigration[];
}
