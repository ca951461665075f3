import type { Classification } from "../core/classification.js";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { CheckedRegion, CheckedRegions } from "./config.js";
import { nearNames } from "./near.js";

/**
 * The region of a name, exactly as it is written.
 *
 * @param whose what names it, for the message
 * @throws AgstateError `REGION_UNKNOWN`, with `details.near` for a person to choose from
 */
export function regionNamed(
  { regions, what }: CheckedRegions,
  name: unknown,
  whose: string,
): CheckedRegion {
  const found = typeof name === "string" ? regions.get(name) : undefined;
  if (found !== undefined) return found;
  const known = [...regions.keys()];
  const list = `the ${what} has ${known.slice(0, 20).join(", ")}${known.length > 20 ? ", ..." : ""}`;
  if (name === undefined || name === null || name === "") {
    throw new AgstateError(
      "REGION_UNKNOWN",
      `${whose} names no region, and there is no default; name the one where its data stays: ${list}`,
      { region: name ?? null, known, near: [] },
    );
  }
  const near = nearNames(String(name), known);
  const meant = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
  throw new AgstateError(
    "REGION_UNKNOWN",
    `${whose} names region ${quoteForMessage(String(name))}, which is not known: ${list}${meant}`,
    { region: String(name), known, near },
  );
}

/** @throws AgstateError `REGION_REFUSED` */
export function refuseClassification(
  { name, classifications }: CheckedRegion,
  classification: Classification,
  { what, regions }: CheckedRegions,
): void {
  if (classifications.includes(classification)) return;
  const others = [...regions.values()]
    .filter((region) => region.classifications.includes(classification))
    .map((region) => region.name);
  const remedy =
    others.length === 0 ? "no region may" : `these may: ${others.slice(0, 20).join(", ")}`;
  throw new AgstateError(
    "REGION_REFUSED",
    `region ${name} may not hold ${classification} data, only ${classifications.join(", ")} (${what}); ${remedy}`,
    { region: name, classification, allowed: classifications, others },
  );
}

/**
 * An error of a region's store that says which region it is, and holds no secret of its URL.
 *
 * @param whose such as `region eu`
 */
export function inRegion(
  error: unknown,
  whose: string,
  details: Readonly<Record<string, unknown>>,
  secrets: readonly string[],
): unknown {
  if (!isAgstateError(error)) return error;
  const clean = (text: string) => {
    let hidden = text;
    for (const secret of secrets) hidden = hidden.replaceAll(secret, "***");
    return hidden;
  };
  const leaks = clean(String(error.cause)) !== String(error.cause);
  const cleaned = Object.fromEntries(
    Object.entries(error.details).map(([key, value]) => [
      key,
      typeof value === "string" ? clean(value) : value,
    ]),
  );
  return new AgstateError(
    error.code,
    `${whose}: ${clean(error.message)}`,
    { ...cleaned, ...details },
    leaks ? {} : { cause: error.cause },
  );
}
