/** A step as those see it who are asked before it runs and told after it. */
export interface StepCall {
  readonly workflow: string;
  /** Short name of the branch. */
  readonly branch: string;
  readonly name: string;
  readonly action: "read" | "inference" | "write" | "execute";
  /** Null where none is given before the step runs. */
  readonly number: number | null;
  readonly key: string | null;
  /** 1 at first. */
  readonly attempt: number;
  /** As recorded: secrets are replaced. */
  readonly input: unknown;
}

/** How an attempt ended. */
export type StepOutcome =
  | { readonly status: "completed"; readonly output: unknown }
  | { readonly status: "failed"; readonly error: unknown };

/**
 * What takes part in every step of a store, without being asked by name: rules, tracing, memory
 * pressure. `before` may refuse a step by throwing, and then nothing of it is recorded or run.
 */
export interface StepHooks {
  readonly before?: (call: StepCall) => void | Promise<void>;
  readonly after?: (call: StepCall, outcome: StepOutcome) => void | Promise<void>;
}
