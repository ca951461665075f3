import { AgstateError } from "../core/errors.js";
import type { Begun, Journal } from "./journal.js";
import type { StepFailure } from "./record.js";

/**
 * How a step failed: its error by name and message, the same live and on replay.
 *
 * So is its stack, which names the step alone: code may put it into what comes next. Where the tool threw is told by the `cause`,
 * which only the process has that called the tool.
 */
export class StepError extends Error {
  override readonly name: string;
  readonly code: string | undefined;

  constructor(
    /** The step's name. */
    readonly step: string,
    failure: StepFailure,
    options: { cause?: unknown } = {},
  ) {
    super(failure.message, options);
    this.name = failure.name;
    this.code = failure.code;
    this.stack = `${failure.name}: ${failure.message}\n    at step ${step}`;
  }
}

/** The error of a step whose effect may have happened. */
export function inDoubt(
  journal: Journal,
  name: string,
  { number, key }: Pick<Begun, "number" | "key">,
  { cause, review }: { cause?: unknown; review?: string } = {},
): AgstateError {
  const remedy =
    review === undefined
      ? "find out, and seal it with branch.sealStep, or give the step an inDoubt policy"
      : `find out, and say so in review ${review} (agstate review approve)`;
  journal.telemetry.count("agstate.steps.in_doubt", 1);
  return new AgstateError(
    "STEP_IN_DOUBT",
    `step ${number} (${name}) of ${journal.branch} was begun and not sealed: whether its effect happened is not known; ${remedy}`,
    {
      branch: journal.branch,
      step: number,
      name,
      key,
      ...(review === undefined ? {} : { review }),
    },
    cause === undefined ? {} : { cause },
  );
}
