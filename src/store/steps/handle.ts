import type { Place } from "../../core/telemetry.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { StateOperation } from "../../objects/draft/operations.js";
import type { Journal } from "../../steps/journal.js";
import type { Commit } from "../types.js";
import type { StepEntry } from "../write-commit.js";

/** A commit of the step log. */
export interface StepAppend {
  readonly step: StepEntry;
  /** Edits of the state that land with it; of the entries of one move only the first to edit may. */
  readonly operations?: readonly StateOperation[] | undefined;
  readonly message: string;
  /** Default: the handle's author. */
  readonly author?: string | undefined;
  readonly trace?: string | undefined;
  /** Where it was asked for. */
  readonly at?: Place | undefined;
  /** The review that must let it happen, to be used up in the same write. */
  readonly approval?: string | undefined;
}

/** What the step log needs of a handle on a branch. */
export interface StepBranch {
  readonly ref: string;
  readonly name: string;
  readonly incarnation: string;
  /** Who writes on the handle. */
  readonly author: string;
  /** The least number that the next step may take. */
  readonly minStep: number;
  /** Aborts when the lease that was acquired on the handle is lost. */
  readonly leaseSignal: AbortSignal | undefined;
  readonly head: Commit;
  readonly loadedHead: LoadedCommit;
  refresh(): Promise<Commit>;
  /** Lands what was gathered. */
  flush(): Promise<Commit>;
  /** @param at the commit that the handle must be at */
  appendSteps(entries: readonly StepAppend[], at: string): Promise<Commit[]>;
  stepJournal(): Journal & { begin(): void };
}
