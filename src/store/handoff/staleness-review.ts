import type { JsonValue } from "../../core/json.js";
import { canonicalText } from "../../objects/canonical.js";
import type { AskedReview, ReviewRequest } from "../../reviews/desk.js";
import type { FingerprintDrift } from "../../staleness/fingerprints.js";
import type { CheckedResource } from "../../staleness/types.js";
import type { Repository } from "../repository.js";
import { BranchDesk } from "../reviews/desk.js";
import type { StepBranch } from "../steps/handle.js";
import type { Basis } from "./basis.js";
import type { Found } from "./freshness.js";

/** The kind of review that asks whether work may go on though not everything is as it was. */
const STALENESS = "staleness";

/** How many resources, and how many fingerprints, a review lists; it is bound to all. */
const LISTED_MAX = 200;

/** What somebody is asked with. */
export interface AskOptions {
  readonly reviewExpiresAfterMs?: number;
}

/**
 * The review that asks whether work may go on from an envelope, with the versions that were found. One that was asked for
 * another envelope or other versions lapses.
 */
export function askToGoOn(
  repository: Repository,
  branch: StepBranch,
  basis: Basis,
  found: Found,
  { reviewExpiresAfterMs }: AskOptions,
): Promise<AskedReview> {
  const request = requestOf(repository, branch, basis, found);
  return new BranchDesk(repository, branch).ask(
    { ...request, expiresAfterMs: reviewExpiresAfterMs },
    () => false,
  );
}

/** Lets a review lapse that waits for nothing any more, as everything is as it was again. */
export function withdraw(
  repository: Repository,
  branch: StepBranch,
  basis: Basis,
  found: Found,
): Promise<void> {
  return new BranchDesk(repository, branch).withdraw(
    requestOf(repository, branch, basis, found),
    "everything is as it was again",
  );
}

function requestOf(
  { keys }: Repository,
  { name }: StepBranch,
  basis: Basis,
  found: Found,
): ReviewRequest {
  const resources = standing(found.resources).map(boundTo);
  const drift = basis.fingerprintTolerance === "exact" ? found.drift.map(bound) : [];
  const input = {
    handoff: basis.tag,
    boundary: basis.session.boundary?.id ?? null,
    envelope: basis.envelope,
    resources: resources.slice(0, LISTED_MAX),
    drift: drift.slice(0, LISTED_MAX),
    untold: found.untold,
    // What is not listed counts as well.
    all: keys.digest(canonicalText([resources, drift])),
  };
  return {
    kind: STALENESS,
    subject: {
      number: null,
      place: null,
      name: `resume ${basis.tag ?? name}`,
      action: "read",
      input,
      key: null,
      attempt: null,
    },
    paths: [],
    reason: reasonOf(found, resources.length, drift.length),
  };
}

/** What keeps work from going on by itself. */
function standing(resources: readonly CheckedResource[]): CheckedResource[] {
  return resources.filter(({ verdict, tolerated }) => verdict !== "fresh" && !tolerated);
}

function boundTo({ resource, found, now }: CheckedResource): JsonValue {
  const { type, id, version, steps } = resource;
  return { type, id, found, was: version, now, steps };
}

function bound({ kind, name, change, now }: FingerprintDrift): JsonValue {
  return { kind, name, change, ...(now !== undefined && { now }) };
}

function reasonOf({ resources, untold }: Found, standing: number, drift: number): string {
  const all = resources.length;
  const said: string[] = [];
  if (standing > 0) {
    said.push(
      `${standing} of ${all} ${all === 1 ? "resource" : "resources"} not known to be as before`,
    );
  }
  if (drift > 0) said.push(`${drift} of what it was done with not as before`);
  if (untold.length > 0) said.push(`not told is ${untold.join(", ")}`);
  return said.join("; ");
}
