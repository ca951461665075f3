import { AgstateError, isAgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";

/** What a conflict becomes: one side's value, a new value, or nothing. */
export type Resolution =
  | { readonly take: "ours" | "theirs" }
  | { readonly value: unknown }
  | { readonly delete: true };

/** The three values at a path; a member is missing where there is no value. */
export interface ThreeValues {
  readonly path: string;
  readonly base?: JsonValue;
  readonly ours?: JsonValue;
  readonly theirs?: JsonValue;
}

/**
 * A resolver that merge policies name as `custom:<name>`. It must give the same
 * answer for the same values; undefined leaves the conflict open.
 */
export interface CustomResolver {
  /** Recorded in each merge commit that it may have acted in. */
  readonly version: string;
  resolve(values: ThreeValues): Resolution | undefined | Promise<Resolution | undefined>;
}

export type CustomResolvers = Readonly<Record<string, CustomResolver>>;

/**
 * Asks a resolver, and tells whose answer was wrong when it throws.
 *
 * @throws AgstateError `RESOLVER_FAILED`
 */
export async function askResolver<Given extends { readonly path: string }>(
  who: string,
  given: Given,
  resolve: (given: Given) => Resolution | undefined | Promise<Resolution | undefined>,
): Promise<Resolution | undefined> {
  let answer: Resolution | undefined;
  try {
    answer = await resolve(given);
  } catch (error) {
    if (isAgstateError(error) || (error as Error | undefined)?.name === "AbortError") throw error;
    // Its message may hold the values that it was given; the cause has it.
    const name = error instanceof Error ? error.name : "a value that is no Error";
    throw new AgstateError(
      "RESOLVER_FAILED",
      `${who} failed at ${quoteForMessage(given.path)} with ${name}, which is this error's cause`,
      { path: given.path, resolver: who },
      { cause: error },
    );
  }
  if (answer === undefined || answer === null) return undefined;
  const known =
    typeof answer === "object" &&
    (("take" in answer && ["ours", "theirs"].includes(answer.take)) ||
      "value" in answer ||
      ("delete" in answer && answer.delete === true));
  if (!known) {
    throw new AgstateError(
      "RESOLVER_FAILED",
      `${who} gave no resolution at ${quoteForMessage(given.path)}; it gives { take: "ours" | "theirs" }, { value }, { delete: true } or undefined`,
      { path: given.path, resolver: who },
    );
  }
  return answer;
}
