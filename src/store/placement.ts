import { type Classification, isClassification } from "../core/classification.js";
import { AgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import { parsePointer } from "../core/json-pointer.js";
import { checkIdentity, quoteForMessage } from "../core/names.js";
import { PHASES, type Phase, type PlacedPart } from "../objects/data-policy.js";
import { compileIsolation } from "../objects/isolation.js";
import type { Elsewhere } from "../objects/pointer.js";
import type { PlacedPhases } from "../steps/phases.js";

/**
 * Checks which parts of a workflow belong to other regions; the answer is sorted, so that one declaration has one text.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_NAME`, `INVALID_PATH`
 */
export function checkPlacement(
  given: readonly unknown[],
  classification: Classification,
  home: string | null,
): readonly PlacedPart[] {
  if (!Array.isArray(given)) throw invalid("is not a list of parts, each with a region");
  if (given.length > 0 && home === null) {
    throw invalid("needs a storage region: what does not belong elsewhere belongs there");
  }
  const parts = given.map((part) => checkPart(part, classification, home));
  const seen: PlacedPart[] = [];
  for (const part of parts) {
    const other = seen.find((one) => overlap(one, part));
    if (other !== undefined) {
      throw invalid(
        `says of ${shown(part)} and of ${shown(other)}, which may be one place, or one inside the other; place each value once`,
      );
    }
    seen.push(part);
  }
  return parts.sort((a, b) => (shown(a) < shown(b) ? -1 : 1));
}

function checkPart(given: unknown, usual: Classification, home: string | null): PlacedPart {
  if (!isJsonObject(given)) throw invalid("is not a list of parts, each with a region");
  const { path, phase, region, classification = usual, ...rest } = given;
  const [other] = Object.keys(rest);
  if (other !== undefined) {
    throw invalid(
      `has a member ${quoteForMessage(other)}; there are path, phase, region and classification`,
    );
  }
  if ((path === undefined) === (phase === undefined)) {
    throw invalid("needs for each part a path or a phase, and not both");
  }
  if (phase !== undefined && !PHASES.includes(phase as Phase)) {
    throw invalid(
      `names a phase ${quoteForMessage(String(phase))}; there are ${PHASES.join(", ")}`,
    );
  }
  if (path !== undefined) compileIsolation([path as string]);
  if (typeof region !== "string") throw invalid("needs a region for each part");
  checkIdentity("region", region);
  if (region === home) {
    throw invalid(`places a part in ${region}, where the workflow lives; leave it out`);
  }
  if (!isClassification(classification)) {
    throw invalid(`has a classification ${quoteForMessage(String(classification))} that is none`);
  }
  const elsewhere = { region, classification };
  return path === undefined
    ? { phase: phase as Phase, ...elsewhere }
    : { path: path as string, ...elsewhere };
}

/** Whether two parts may be of one value, or one of a value inside the other's. */
function overlap(a: PlacedPart, b: PlacedPart): boolean {
  if ("phase" in a && "phase" in b) return a.phase === b.phase;
  if ("phase" in a || "phase" in b) {
    // Which member of a step's record a phase is of depends on the step.
    const path = "path" in a ? a.path : (b as { path: string }).path;
    return parsePointer(path)[0] === "step";
  }
  const [one, other] = [parsePointer(a.path), parsePointer(b.path)];
  const shared = Math.min(one.length, other.length);
  for (let i = 0; i < shared; i++) {
    if (one[i] !== other[i] && one[i] !== "*" && other[i] !== "*") return false;
  }
  return true;
}

function shown(part: PlacedPart): string {
  return "path" in part ? part.path : `phase ${part.phase}`;
}

/** Where the phases of steps belong. */
export function phasesOf(placement: readonly PlacedPart[]): PlacedPhases {
  return new Map(
    placement.flatMap((part) =>
      "phase" in part ? [[part.phase, elsewhereOf(part)] as const] : [],
    ),
  );
}

/** The regions that parts of a workflow belong to. */
export function regionsOf(placement: readonly PlacedPart[]): string[] {
  return [...new Set(placement.map(({ region }) => region))].sort();
}

function elsewhereOf({ region, classification }: PlacedPart): Elsewhere {
  return { region, classification };
}

function invalid(problem: string): AgstateError {
  return new AgstateError("INVALID_ARGUMENT", `the placement ${problem}`, { field: "placement" });
}
