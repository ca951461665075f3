import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Reliance } from "../../steps/record.js";
import type { Beside } from "../branch-head.js";
import type { StepBranch } from "../steps/handle.js";
import type { Commit } from "../types.js";
import type { Envelope } from "./envelope.js";

/** An envelope that is going to be a branch's, and what lands with it or not at all. */
export interface EnvelopeWrite {
  readonly envelope: Envelope;
  readonly message: string;
  readonly author: string;
  readonly trace?: string | undefined;
  /** Moves of other refs, once the commit is made. */
  readonly beside?: (commit: LoadedCommit) => readonly Beside[];
}

/** What a hand-off and its taking up need of a handle on a branch. */
export interface SessionBranch extends StepBranch {
  stepJournal(): ReturnType<StepBranch["stepJournal"]> & {
    /** What was relied on by reads that are not recorded, and is on record nowhere yet. */
    carried: readonly Reliance[];
  };
  /** The number of the last log entry that the handle read or wrote. */
  readonly seq: number;
  /**
   * Puts a commit with an envelope on top of the head, after what was gathered has landed.
   *
   * @param make is given that head, and may read as long as it likes: nothing else is written on the handle meanwhile
   * @throws AgstateError `REF_CONFLICT`, what `make` throws, and what `beside` has lost by
   */
  putEnvelope(make: (head: LoadedCommit) => Promise<EnvelopeWrite>): Promise<Commit>;
}
