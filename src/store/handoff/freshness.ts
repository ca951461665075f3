import { spanning } from "../../core/telemetry.js";
import { type CheckBounds, checkResources } from "../../staleness/check.js";
import {
  driftBetween,
  type FingerprintDrift,
  type FingerprintRecord,
  type Fingerprints,
  recordFingerprints,
} from "../../staleness/fingerprints.js";
import type { CheckedResource, Checkers, Verdict } from "../../staleness/types.js";
import { verdictOf } from "../../staleness/verdict.js";
import type { Repository } from "../repository.js";
import type { Basis } from "./basis.js";

export interface FreshnessOptions extends CheckBounds {
  /** Default those that the store was opened with. */
  readonly checkers?: Checkers;
  /** What work would go on with, to be compared with what it was done with. */
  readonly fingerprints?: Fingerprints;
  readonly signal?: AbortSignal;
}

/** What was found of everything that work relies on. */
export interface Found {
  readonly verdict: Verdict;
  readonly resources: readonly CheckedResource[];
  readonly drift: readonly FingerprintDrift[];
  /** What of it is not told, in words; then the verdict is not `fresh`. */
  readonly untold: readonly string[];
  /** What work would go on with; null where it was not given. */
  readonly fingerprints: FingerprintRecord | null;
}

/**
 * Asks the checkers for every resource, all side by side, and compares the fingerprints. Nothing is written.
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED` for fingerprints that are none; what the signal was aborted with
 */
export function findOut(
  repository: Repository,
  basis: Basis,
  branch: { readonly name: string },
  options: FreshnessOptions,
): Promise<Found> {
  const { context, workflow } = repository;
  const { checkers = context.checkers ?? {}, fingerprints: given, ...limits } = options;
  const now = given === undefined ? null : recordFingerprints(given);
  const attributes = {
    "workflow.id": workflow,
    branch: branch.name,
    "agstate.freshness.resources": basis.resources.length,
    ...(basis.session.boundary !== null && {
      "agstate.freshness.boundary": basis.session.boundary.id,
    }),
  };
  return spanning(context.telemetry, "validate_freshness", { attributes }, async (span) => {
    const resources = await checkResources(basis.resources, {
      ...limits,
      checkers,
      now: context.now,
    });
    const drift = driftBetween(basis.fingerprints, now);
    const verdict = worst([
      verdictOf(resources),
      basis.fingerprintTolerance === "exact" ? verdictOfDrift(drift) : "fresh",
      basis.untold.length > 0 ? "unknown" : "fresh",
    ]);
    span.set({
      "agstate.freshness.verdict": verdict,
      "agstate.freshness.stale": resources.filter((one) => one.verdict === "stale").length,
      "agstate.freshness.unknown": resources.filter((one) => one.verdict === "unknown").length,
      "agstate.freshness.drift": drift.length,
    });
    return { verdict, resources, drift, untold: basis.untold, fingerprints: now };
  });
}

function verdictOfDrift(drift: readonly FingerprintDrift[]): Verdict {
  if (drift.some(({ change }) => change !== "untold")) return "stale";
  return drift.length > 0 ? "unknown" : "fresh";
}

function worst(verdicts: readonly Verdict[]): Verdict {
  if (verdicts.includes("stale")) return "stale";
  return verdicts.includes("unknown") ? "unknown" : "fresh";
}
