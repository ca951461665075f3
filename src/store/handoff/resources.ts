import { AgstateError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";
import { checkResources } from "../../staleness/check.js";
import { checkResource, RESOURCES_MAX } from "../../staleness/resource.js";
import type { Checkers, Resource, ResourceName, Tolerance } from "../../staleness/types.js";
import type { Reliance } from "../../steps/record.js";
import type { ReliedOn } from "../../steps/spec.js";
import type { StepReliance } from "./session.js";

/** A resource that may not say yet what its tolerance is. */
type Gathered = Omit<Resource, "tolerance"> & { readonly tolerance: Tolerance | undefined };

/** What resources are looked up with. */
export interface Looking {
  readonly checkers: Checkers | undefined;
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Checks resources as a caller names them, and asks the checkers for the versions of those that come without.
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export async function observed(
  given: readonly ReliedOn[],
  { checkers, now, signal }: Looking,
): Promise<Gathered[]> {
  const at = now();
  const resources = given.map((one) => ({ one, resource: checkResource(one, { now: at }) }));
  for (const { resource } of resources) refusePassword(resource);
  const unknown = resources.filter(({ one, resource: { type, version } }) => {
    const isTold = isJsonObject(one) && Object.hasOwn(one, "version");
    return version === null && !isTold && checkers !== undefined && Object.hasOwn(checkers, type);
  });
  const found = new Map<Resource, string | null>();
  if (unknown.length > 0) {
    const asked = unknown.map(({ resource }) => ({ ...resource, tolerance: "exact" as const }));
    const checked = await checkResources(asked, {
      checkers: checkers as Checkers,
      now,
      ...(signal && { signal }),
    });
    for (const [i, { resource }] of unknown.entries()) found.set(resource, checked[i]?.now ?? null);
  }
  return resources.map(({ one, resource }) => ({
    ...resource,
    version: found.get(resource) ?? resource.version,
    tolerance: one.tolerance === undefined ? undefined : resource.tolerance,
  }));
}

/** Resources that a caller gives, as a list. */
export function listOf(given: readonly ReliedOn[] | undefined): readonly ReliedOn[] {
  if (given === undefined || Array.isArray(given)) return given ?? [];
  throw new AgstateError("INVALID_VALUE", "resources is not a list of resources", {
    field: "resources",
  });
}

/** The user, and perhaps the password, of a URL. */
const USER_INFO = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*@/i;

/** What is on record is read by many, and asked without it anyway. */
function refusePassword({ type, id }: Resource): void {
  if (!USER_INFO.test(id)) return;
  throw new AgstateError(
    "INVALID_VALUE",
    `the id of a resource of type ${type} holds a user or password; leave it out, and give credentials to the checkers`,
    { field: "id", type },
  );
}

/** What is kept of a resource with the step that relied on it. */
export async function relianceOf(given: unknown, looking: Looking): Promise<Reliance> {
  const [one] = await observed([given as ReliedOn], looking);
  const { type, id, version, observedAt, tolerance } = one as Gathered;
  return { type, id, version, observedAt, ...(tolerance !== undefined && { tolerance }) };
}

/** Where the resources of an envelope come from. */
export interface Sources {
  /** Those of the envelope before. */
  readonly before: readonly Resource[];
  /** Of the steps since. */
  readonly reliances: readonly StepReliance[];
  readonly given?: readonly Gathered[];
  /** Those that nobody relies on any more. */
  readonly forget?: readonly ResourceName[];
  /** For those of which nobody has said it. */
  readonly tolerance?: Tolerance;
}

/**
 * Puts together what work relies on, each resource once: what was read last counts, as whoever read it again has seen that.
 *
 * @throws AgstateError `LIMIT_EXCEEDED`; `INVALID_VALUE` for one that a step's record holds in a form that is none
 */
export function gatherResources(sources: Sources): Resource[] {
  const { before, reliances, given = [], forget = [], tolerance = "exact" } = sources;
  const found = new Map<string, Gathered>(before.map((one) => [keyOf(one), one]));
  const put = (one: Gathered) => {
    const known = found.get(keyOf(one));
    found.set(keyOf(one), {
      ...one,
      tolerance: one.tolerance ?? known?.tolerance,
      steps: rising([...(known?.steps ?? []), ...one.steps]),
    });
  };
  for (const { step, reliance } of reliances) {
    const { tolerance: told } = reliance;
    const one = checkResource({ ...reliance, steps: [step] }, { now: reliance.observedAt });
    put({ ...one, tolerance: told === undefined ? undefined : one.tolerance });
  }
  for (const one of given) put(one);
  for (const one of forget) found.delete(keyOf(one));
  if (found.size > RESOURCES_MAX) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `the work relies on ${found.size} resources; an envelope holds ${RESOURCES_MAX}: forget those that do not count any more`,
      { count: found.size, limit: RESOURCES_MAX },
    );
  }
  return [...found.values()].map((one) => ({ ...one, tolerance: one.tolerance ?? tolerance }));
}

/** What tells one resource from another. */
function keyOf({ type, id }: ResourceName): string {
  return JSON.stringify([type, id]);
}

/** Names of resources that a caller gives, checked. */
export function namesOf(given: readonly ResourceName[]): readonly ResourceName[] {
  const isName = (one: unknown) =>
    isJsonObject(one) && typeof one.type === "string" && typeof one.id === "string";
  if (Array.isArray(given) && given.every(isName)) return given;
  throw new AgstateError("INVALID_VALUE", "forget is not a list of resources by type and id", {
    field: "forget",
  });
}

function rising(steps: readonly number[]): number[] {
  return [...new Set(steps)].sort((a, b) => a - b);
}
