import type { JsonValue } from "../core/json.js";
import type { StepHooks } from "../core/step-hooks.js";
import type { StepAction } from "../objects/commit.js";
import type { StateOperation } from "../objects/draft/operations.js";

/** What a tool is given when it is called. */
export interface ToolCall {
  /** To be sent with the side effect, so that the outside world does it once; null for reads and inference. */
  readonly key: string | null;
  /** The step's number; null for reads and inference, which get one when they are recorded. */
  readonly number: number | null;
  /** 1 at first. */
  readonly attempt: number;
  /** Aborts when the step's time is over or the caller gives up. */
  readonly signal: AbortSignal;
  /**
   * Records that the step's result rests on something outside, such as a page or a file: `type`, `id`, and, where it is at
   * hand, the `version` that was read; else the type's checker is asked for it. Whoever takes the work up later learns
   * whether it has changed.
   *
   * @throws AgstateError `INVALID_VALUE`, `INVALID_ARGUMENT`, `LIMIT_EXCEEDED`
   */
  readonly relyOn: RelyOn;
}

/** Something outside that work relies on. */
export interface ReliedOn {
  /** Which checker knows it: `http`, `git`, `file`, `confluence`, `jira`, `github-pr`, or one of the caller's. */
  readonly type: string;
  readonly id: string;
  /** What it was when it was read; left out, its checker is asked. */
  readonly version?: string | null;
  /** What may become of it: `exact`, `ignore`, or a greatest age; left out, whoever hands the work off says it. */
  readonly tolerance?: "exact" | "ignore" | { readonly maxAgeMs: number };
  /** When it was read, in milliseconds since the Unix epoch; default now. */
  readonly observedAt?: number;
}

/** Answers the version that is on record then; null when it is not known. */
export type RelyOn = (resource: ReliedOn) => Promise<string | null>;

/** What became of a step whose intent is on record and whose seal is not. */
export type Probed<Output> =
  | { readonly happened: true; readonly output: Output }
  | { readonly happened: false }
  /** The outside world does not say. */
  | "unknown";

/**
 * What to do with a step that was begun and not sealed when the process died: its effect may have happened.
 *
 * `retry`: call the tool again with the same key and input, for tools that honour keys. `ask`: open a
 * review, once, and `STEP_IN_DOUBT` until a person has found out. `fail`: `STEP_IN_DOUBT`, until somebody
 * seals the step. A function asks the outside world.
 */
export type InDoubt<Output> =
  | "retry"
  | "ask"
  | "fail"
  | ((step: {
      readonly number: number;
      readonly key: string;
      readonly input: JsonValue | undefined;
      readonly attempt: number;
    }) => Promise<Probed<Output>> | Probed<Output>);

/** How a step is to be done. */
export interface StepSpec<Output> {
  readonly name: string;
  /**
   * `write` and `execute` land an intent before the tool runs, and a seal after; `inference` lands
   * one commit after; `read` none, unless it is to be memoized. Default `execute`, the strictest.
   */
  readonly action?: StepAction;
  /** What the tool is called with, for the record: any JSON value. */
  readonly input?: unknown;
  /** Paths of the input whose values are replaced before anything is hashed or stored. */
  readonly secrets?: readonly string[];
  /** Whether a `read` is recorded, and not done again on replay. */
  readonly memoize?: boolean;
  /**
   * Further attempts after an error: how many, and the first pause, which doubles, in milliseconds. A
   * side effect whose time was over is tried again only where `inDoubt` is `retry`.
   */
  readonly retry?: { readonly attempts: number; readonly pauseMs?: number };
  /** How long an attempt may take, in milliseconds. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Default `fail`. */
  readonly inDoubt?: InDoubt<Output>;
  /** Edits of the state that land together with the seal. */
  readonly update?: (output: Output) => readonly StateOperation[];
  /** What is kept beside the output: of a model's call, its whole response and the tool calls in it. */
  readonly describe?: (output: Output) => StepDescription;
  /** W3C traceparent of the commits. */
  readonly trace?: string;
}

/** Parts of a step's record that only its code can tell: any JSON values. */
export interface StepDescription {
  readonly toolCalls?: unknown;
  readonly llmResponse?: unknown;
}

export type Tool<Output> = (call: ToolCall) => Promise<Output> | Output;

/** A step as the hooks class its tool. */
export function classified<Output>(
  hooks: readonly StepHooks[],
  spec: StepSpec<Output>,
): StepSpec<Output> {
  let classed = spec;
  for (const { classify } of hooks) {
    const said = classify?.(spec.name, spec.action);
    if (said === undefined) continue;
    const memoize = classed.memoize === true || said.recorded === true;
    classed = { ...classed, action: said.action, memoize };
  }
  return classed;
}
