import {
  CLASSIFICATIONS,
  type Classification,
  DEFAULT_CLASSIFICATION,
  isClassification,
} from "../core/classification.js";
import { AgstateError } from "../core/errors.js";
import { checkIdentity, quoteForMessage } from "../core/names.js";
import { parseRetention, retentionText } from "../core/period.js";
import type { PlacedPart } from "../objects/data-policy.js";
import { checkPlacement } from "./placement.js";
import type { WorkflowDeclaration } from "./types.js";

/** A declaration with its defaults filled in. */
export interface CheckedDeclaration {
  readonly classification: Classification;
  readonly storageRegion: string | null;
  readonly retentionPolicy: string | null;
  readonly isolation: readonly string[];
  readonly subjects: readonly string[];
  readonly placement: readonly PlacedPart[];
}

/**
 * Checks what a workflow declares, before anything is written.
 *
 * A region that the store does not stand in is refused, and so is sensitive or
 * regulated data without a region: there is no default region.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_NAME`, `STORE_MISMATCH`
 */
export function checkDeclaration(
  given: WorkflowDeclaration,
  storeRegion: string | null,
): CheckedDeclaration {
  const classification = given.classification ?? DEFAULT_CLASSIFICATION;
  if (!isClassification(classification)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `classification ${quoteForMessage(String(classification))} is unknown; there are ${CLASSIFICATIONS.join(", ")}`,
      { classification },
    );
  }
  const storageRegion = given.storageRegion ?? null;
  if (storageRegion !== null) checkIdentity("storage region", storageRegion);
  if (storageRegion !== null && storageRegion !== storeRegion) {
    throw new AgstateError(
      "STORE_MISMATCH",
      `the workflow belongs to region ${quoteForMessage(storageRegion)}, but this store ${
        storeRegion === null
          ? "has no region; create one with agstate init --region"
          : `stands in ${quoteForMessage(storeRegion)}`
      }`,
      { storageRegion, storeRegion },
    );
  }
  if (storageRegion === null && ["sensitive", "regulated"].includes(classification)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `a ${classification} workflow needs a storage region; name the region that its data stays in`,
      { classification },
    );
  }
  const retention = given.retentionPolicy ?? null;
  const retentionPolicy = retention === null ? null : retentionText(parseRetention(retention));
  const isolation = [...new Set(given.isolation ?? [])].sort();
  const subjects = [...new Set(given.subjects ?? [])].sort();
  const placement = checkPlacement(given.placement ?? [], classification, storageRegion);
  return { classification, storageRegion, retentionPolicy, isolation, subjects, placement };
}
