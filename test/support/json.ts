import fc from "fast-check";
import type { JsonValue } from "../../src/index.js";

/** Any JSON value as JSON text has it: without a zero that has a sign, which JSON does not keep. */
export function jsonValues(constraints: fc.JsonSharedConstraints = {}): fc.Arbitrary<JsonValue> {
  return fc.jsonValue(constraints).map((value) => JSON.parse(JSON.stringify(value)) as JsonValue);
}
