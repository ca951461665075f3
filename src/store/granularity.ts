import { AgstateError } from "../core/errors.js";

/**
 * How often a branch's commits go to the store.
 *
 * `every-step`: each as it is made. `every`: commits of memoized reads and plain updates are gathered until there
 * are so many, or the first has waited so many milliseconds, or anything that must not be lost
 * lands: an intent, a seal, a model's answer. What is gathered when the process dies is lost:
 * such reads are done again, such updates are not there.
 */
export type Granularity =
  | "every-step"
  | { readonly every: { readonly steps?: number; readonly ms?: number } };

/** The bounds of what is gathered; null when nothing is. */
export interface Gathering {
  readonly maxCommits: number;
  readonly maxMs: number;
}

const DEFAULT_STEPS = 100;
const DEFAULT_MS = 1000;
const STEPS_MAX = 10_000;
const MS_MAX = 3_600_000;
/** What is gathered lands when it is so many bytes, whatever was asked for. */
export const GATHERED_MAX_BYTES = 4 * 1024 * 1024;

/** @throws AgstateError `INVALID_ARGUMENT` */
export function gatheringOf(granularity: Granularity = "every-step"): Gathering | null {
  if (granularity === "every-step") return null;
  const { every } = granularity;
  if (typeof every !== "object" || every === null || (every.steps ?? every.ms) === undefined) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      'granularity is "every-step", or every with steps, ms or both: { every: { steps: 20, ms: 1000 } }',
    );
  }
  const { steps = DEFAULT_STEPS, ms = DEFAULT_MS } = every;
  return {
    maxCommits: whole("every.steps", steps, STEPS_MAX),
    maxMs: whole("every.ms", ms, MS_MAX),
  };
}

function whole(what: string, value: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${what} is ${value}; it is a whole number from 1 to ${max}`,
    { [what]: value, max },
  );
}
