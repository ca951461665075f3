import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { EmergencyReason } from "../../pressure/guards.js";
import type { RefRow } from "../../storage/port.js";
import type { Commit } from "../types.js";

/** A commit that nobody's work asked for. */
export interface UnaskedFor {
  readonly reason: EmergencyReason;
  readonly message: string;
}

/** What a guard does with a branch. */
export interface GuardedBranch {
  readonly ref: string;
  readonly name: string;
  readonly author: string;
  readonly gathered: number;
  readonly loadedHead: LoadedCommit;
  putUnasked(made: UnaskedFor, state?: { readonly value: unknown }): Promise<Commit>;
  /** Another handle, on a branch that was just made at a commit. */
  onto(row: RefRow, head: LoadedCommit): Pick<GuardedBranch, "putUnasked">;
}
