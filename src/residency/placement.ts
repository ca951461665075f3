import { type Classification, isClassification } from "../core/classification.js";
import { isJsonObject, type JsonValue } from "../core/json.js";

/** Where a workflow lives, for life: all that the catalogue holds of it. */
export interface Placement {
  /** The workflow's id. */
  readonly workflow: string;
  readonly region: string;
  readonly classification: Classification;
  /** The id of the region's store as it was when the workflow was placed. */
  readonly storeId: string;
}

/** Which store a region led to when the first workflow was placed in it. */
export interface RegionRecord {
  readonly region: string;
  readonly storeId: string;
}

/** Reads a placement; null when it is none, or of a later version. */
export function parsePlacement(value: JsonValue): Placement | null {
  if (!isJsonObject(value)) return null;
  const { workflow, region, classification, storeId } = value;
  return typeof workflow === "string" &&
    typeof region === "string" &&
    isClassification(classification) &&
    typeof storeId === "string"
    ? { workflow, region, classification, storeId }
    : null;
}

/** Reads a region's record; null when it is none, or of a later version. */
export function parseRegionRecord(value: JsonValue): RegionRecord | null {
  if (!isJsonObject(value)) return null;
  const { region, storeId } = value;
  return typeof region === "string" && typeof storeId === "string" ? { region, storeId } : null;
}
