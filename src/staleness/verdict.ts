import { oneLine } from "./one-line.js";
import { lineProblem, RESOURCE_VERSION_MAX_BYTES } from "./resource.js";
import type {
  CheckedResource,
  Checker,
  CheckFunction,
  CompareContext,
  Compared,
  Observation,
  Resource,
  Verdict,
} from "./types.js";

/** By how much clocks may differ, in milliseconds, where a caller does not say otherwise. */
export const DEFAULT_SKEW_MS = 5 * 60 * 1000;

/** What a verdict is found with. */
export interface Judging {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** By how much clocks may differ, in milliseconds. */
  readonly skewMs?: number;
}

type Found = Pick<CheckedResource, "found" | "now" | "shown" | "why">;

/**
 * Says what was found of a resource, and whether its tolerance lets work go on in spite of that; the table is in
 * docs/staleness.md. What is fresh because it is the same is not tolerated: there is nothing to tolerate.
 *
 * @param checker whoever observed it, as it may compare versions in a way of its own
 */
export function judge(
  resource: Resource,
  observation: Observation,
  checker: Checker | CheckFunction | undefined,
  { now, skewMs = DEFAULT_SKEW_MS }: Judging,
): CheckedResource {
  if (resource.tolerance === "ignore") {
    const why = "not asked: its tolerance is ignore";
    return { resource, found: "ignored", verdict: "fresh", tolerated: true, now: null, why };
  }
  const context = { now, observedAt: resource.observedAt, skewMs };
  const { found, shown, why, now: version } = foundOf(resource, observation, checker, context);
  const verdict = verdictOfFound(found);
  return {
    resource,
    found,
    verdict,
    tolerated: verdict !== "fresh" && isYoung(resource, now, skewMs),
    now: version,
    ...(shown === undefined ? {} : { shown: oneLine(shown) }),
    why: oneLine(why),
  };
}

/** The verdict on all of them: of those that are not tolerated, the worst; stale is worse than unknown. */
export function verdictOf(checked: readonly CheckedResource[]): Verdict {
  const verdicts = new Set(checked.filter((one) => !one.tolerated).map((one) => one.verdict));
  if (verdicts.has("stale")) return "stale";
  return verdicts.has("unknown") ? "unknown" : "fresh";
}

function verdictOfFound(found: CheckedResource["found"]): Verdict {
  if (found === "changed" || found === "gone") return "stale";
  return found === "unknown" ? "unknown" : "fresh";
}

function foundOf(
  { version: then }: Resource,
  observation: Observation,
  checker: Checker | CheckFunction | undefined,
  context: CompareContext,
): Found {
  const { kind } = observation;
  if (kind === "unknown") return { found: "unknown", now: null, why: observation.why };
  // What is gone has changed, whatever it was.
  if (kind === "gone") return { found: "gone", now: null, why: observation.why };
  if (kind === "same") {
    if (then === null) return unknown(null, "said to be as it was, and no version is on record");
    return { found: "same", now: then, why: "unchanged, as its source says" };
  }
  const { version, shown } = observation;
  const problem = lineProblem(version, RESOURCE_VERSION_MAX_BYTES);
  if (problem !== null) return unknown(null, `the version that was found ${problem}`);
  const about = { now: version, ...(shown === undefined ? {} : { shown }) };
  if (then === null) return { ...unknown(version, "no version is on record"), ...about };
  const compared = compare(then, version, checker, context);
  if (typeof compared === "object") return { found: "unknown", ...about, why: compared.unknown };
  return compared === "same"
    ? { found: "same", ...about, why: "unchanged" }
    : { found: "changed", ...about, why: "has another version than on record" };
}

function unknown(now: string | null, why: string): Found {
  return { found: "unknown", now, why };
}

function compare(
  then: string,
  found: string,
  checker: Checker | CheckFunction | undefined,
  context: CompareContext,
): Compared {
  if (typeof checker !== "object" || checker.compare === undefined) {
    return then === found ? "same" : "changed";
  }
  try {
    return checker.compare(then, found, context);
  } catch {
    return { unknown: "its checker failed to compare the versions" };
  }
}

/** Whether a change is tolerated by the age of what was read; of an observation in the future nobody knows how old it is. */
function isYoung({ tolerance, observedAt }: Resource, now: number, skewMs: number): boolean {
  if (typeof tolerance === "string") return false;
  const age = now - observedAt;
  return age >= -skewMs && age <= tolerance.maxAgeMs;
}
