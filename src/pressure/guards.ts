import type { PressureLevel } from "./reasons.js";

/** Why a checkpoint was made that nobody's work asked for; what its commit's `agstate-reason` says. */
export type EmergencyReason = "memory-pressure" | "sigterm" | "requested";

/** How the checkpoint of one guarded branch came out. */
export interface Checkpointed {
  readonly workflow: string;
  /** Short name, such as `agents/booker/try-1`. */
  readonly branch: string;
  /**
   * `committed`: what was not in the store is. `unchanged`: all of it was. `rescued`: the branch was moved by somebody else, so that it
   * stands on a branch of its own. `failed`: it is not in the store.
   */
  readonly outcome: "committed" | "unchanged" | "rescued" | "failed";
  /** The commit that holds the state, read back from the store; null when it failed. */
  readonly commit: string | null;
  /** The branch that holds what was rescued. */
  readonly rescue?: string;
  readonly error?: Error;
  readonly ms: number;
}

/** Something that can bring into the store what only memory holds. */
export interface Guarded {
  readonly workflow: string;
  readonly branch: string;
  /** Checkpoints of one lane run one after another, those of different lanes side by side: a store that hangs holds up no other. */
  readonly lane: object;
  /** Does not throw. */
  checkpoint(reason: EmergencyReason, message: string): Promise<Checkpointed>;
}

/** That no new steps are taken: why, and whether they wait until they may, or are refused. */
export interface StepsStopped {
  readonly reason: "memory-pressure" | "sigterm";
  readonly how: "refuse" | "wait";
}

/** What is watched in this process: branches that are guarded, and what lands gathered commits. */
export interface Registry {
  readonly guards: Set<Guarded>;
  /** Lands what the handles of a store have gathered, of which nobody made a guard. */
  readonly landers: Set<() => Promise<unknown>>;
  /** The watch that runs; undefined while none does. */
  watch: RunningWatch | undefined;
}

/** What guards ask of a watch. */
export interface RunningWatch {
  readonly level: PressureLevel;
  /** Null while steps may begin. */
  readonly stepsStopped: StepsStopped | null;
  /** Started for a guard, not by a call of the caller's: it ends with the last guard. */
  readonly isImplicit: boolean;
  /** Resolves when something has changed by which steps may begin again, or are refused. */
  changed(): Promise<void>;
  close(): Promise<void>;
}

/** Memory is the process's, and so is this. */
export const registry: Registry = { guards: new Set(), landers: new Set(), watch: undefined };
