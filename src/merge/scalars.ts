import type { JsonValue } from "../core/json.js";

/**
 * Adds up what both sides added to a whole number; a missing base is 0.
 *
 * @returns undefined when a value is no safe integer, or the result would be none
 */
export function sum(
  base: JsonValue | undefined,
  ours: JsonValue,
  theirs: JsonValue,
): number | undefined {
  const from = base === undefined ? 0 : base;
  if (!isWhole(from) || !isWhole(ours) || !isWhole(theirs)) return undefined;
  // Exact at this size, unlike numbers.
  const result = BigInt(ours) + BigInt(theirs) - BigInt(from);
  const exact = Number(result);
  return Number.isSafeInteger(exact) && BigInt(exact) === result ? exact : undefined;
}

function isWhole(value: JsonValue): value is number {
  return Number.isSafeInteger(value);
}

/**
 * The greater or lesser of two numbers, or of two strings by code points.
 *
 * @returns undefined when the values cannot be compared
 */
export function extreme(
  which: "max" | "min",
  ours: JsonValue,
  theirs: JsonValue,
): JsonValue | undefined {
  let order: number;
  if (typeof ours === "number" && typeof theirs === "number") order = ours - theirs;
  else if (typeof ours === "string" && typeof theirs === "string") {
    order = Buffer.compare(Buffer.from(ours), Buffer.from(theirs));
  } else return undefined;
  return order > 0 === (which === "max") ? ours : theirs;
}
