import type { JsonValue } from "../core/json.js";
import type { Attributes, Telemetry } from "../core/telemetry.js";
import type { StepAction, StepStatus } from "../objects/commit.js";
import type { StateOperation } from "../objects/draft/operations.js";
import type { Reliance, StepPlace, StepRecord } from "./record.js";
import type { Probed } from "./spec.js";

/** What the step log writes of a step. */
export interface JournalEntry {
  readonly action: StepAction;
  readonly status: StepStatus;
  readonly record: StepRecord;
  /** Of a step that has one. */
  readonly number?: number | undefined;
  /** Who says so; default the branch's author. */
  readonly author?: string | undefined;
  /** Whether it goes out with an idempotency key. */
  readonly keyed: boolean;
  /** Its key, where that does not follow from the number alone. */
  readonly key?: string | undefined;
  readonly operations?: readonly StateOperation[] | undefined;
  readonly trace?: string | undefined;
  /** An approval that must hold when it lands, and is used up by it. */
  readonly approval?: string | undefined;
}

/** What is asked of a person about a step in doubt. */
export interface StepQuestion {
  readonly number: number;
  /** With which its effect may have happened. */
  readonly key: string;
  readonly attempt: number;
  readonly name: string;
  readonly action: StepAction;
  readonly input: JsonValue | undefined;
  readonly place: StepPlace | undefined;
}

/** What became of an entry. */
export interface Landed {
  readonly number: number;
  /** The commit that holds it; absent where what somebody else has sealed counts. */
  readonly commit?: string;
  /** Of a seal that came too late: what somebody else who had begun the step, or a person, sealed it with. */
  readonly sealed?: StepRecord;
}

/** Where steps are recorded: a branch. */
export interface Journal {
  readonly workflow: string;
  /** Short name of the branch. */
  readonly branch: string;
  readonly maxBytes: number;
  readonly now: () => number;
  readonly telemetry: Telemetry;
  /** What spans say of where the steps are. */
  readonly where: Attributes;
  /** The commit up to which the branch's steps are known. */
  readonly known: string;
  /** @param origin of a step that is gone on with: as of `continuedKey` */
  keyOf(number: number, origin?: string): string;
  /** @throws AgstateError `STEP_FENCED` when somebody else goes on with the branch */
  land(entry: JournalEntry): Promise<Landed>;
  /**
   * Lets a step begin; undefined where nothing has to be looked at.
   *
   * @throws AgstateError `HANDED_OFF` while nobody has taken the branch up, `STEPS_STOPPED` while memory is short
   */
  mayBegin(): Promise<void> | undefined;
  /**
   * Makes what is kept of a resource that a step relied on; where no version is given, its checker is asked.
   *
   * @throws AgstateError `INVALID_VALUE`, `INVALID_ARGUMENT`, `LIMIT_EXCEEDED`
   */
  relianceOf(given: unknown, signal: AbortSignal | undefined): Promise<Reliance>;
  /** Keeps what was relied on by work that records nothing, for what is recorded next. */
  carry(reliances: readonly Reliance[]): void;
  /** Whether inputs of steps of an action belong to another region, so that no message may tell of them. */
  hidesInputs(action: StepAction): boolean;
  /** What a person found out of a step in doubt; the open review's id when nobody has yet. */
  ask(question: StepQuestion): Promise<Probed<JsonValue | undefined> | { readonly review: string }>;
}

/** A step that was begun before, to go on with. */
export interface Begun {
  readonly number: number;
  readonly attempt: number;
  /** With which its effect may have happened. */
  readonly key: string;
}
