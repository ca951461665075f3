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
  /** Where in a run it is asked for; null outside a run, and where it is not recorded. */
  readonly place: {
    readonly run: string;
    readonly scope: readonly string[];
    readonly index: number;
  } | null;
  /** Whether it is one of the run's own, such as the time, and no tool. */
  readonly internal: boolean;
}

/** What may be said of a step's tool before anything else happens. */
export interface StepClass {
  readonly action: StepCall["action"];
  /** Whether the step is recorded though it is but a read. */
  readonly recorded?: boolean;
}

/** What a hook lets a step run by. */
export interface StepGrant {
  /** The review by which it was approved: kept with the step, and used up by it. */
  readonly approval: string;
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
  /** Says of which class a tool is, whatever the code says; undefined leaves it to the code. */
  readonly classify?: (
    name: string,
    declared: StepCall["action"] | undefined,
  ) => StepClass | undefined;
  readonly before?: (
    call: StepCall,
  ) => void | StepGrant | Promise<void> | Promise<StepGrant | undefined>;
  readonly after?: (call: StepCall, outcome: StepOutcome) => void | Promise<void>;
}
