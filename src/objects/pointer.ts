import { type Classification, isClassification } from "../core/classification.js";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { canonicalText } from "./canonical.js";

/** Where the values at a path belong, if not to the workflow's own region. */
export interface Elsewhere {
  readonly region: string;
  readonly classification: Classification;
}

/** What stands in a workflow for a value that belongs to another region. */
export interface Pointer extends Elsewhere {
  /** Keyed hash of the value's canonical text: equal values have equal pointers, and nobody else can tell which. */
  readonly hash: string;
  /** The beginnings of keyed hashes of the value's longer strings, sorted, by which copies of them are known. */
  readonly strings: readonly string[];
}

const HASH = /^[0-9a-f]{64}$/;

/** The body of a pointer's blob: canonical JSON, so that it is one object however often the value is written. */
export function pointerText({ region, classification, hash, strings }: Pointer): string {
  return canonicalText({ agstate: "pointer", region, classification, hash, strings });
}

/** @throws AgstateError `CORRUPT_OBJECT` when the blob is no pointer */
export function readPointer(text: string, id: ObjectId): Pointer {
  let value: JsonValue = null;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    // Told below.
  }
  if (isJsonObject(value) && value.agstate === "pointer") {
    const { region, classification, hash, strings } = value;
    if (
      typeof region === "string" &&
      isClassification(classification) &&
      typeof hash === "string" &&
      HASH.test(hash) &&
      Array.isArray(strings)
    ) {
      return { region, classification, hash, strings: strings.map(String) };
    }
  }
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `object ${id} is stored as a pointer to another region, and is none that this version can read; use the version that wrote it`,
    { id },
  );
}
