import type { JsonValue } from "../core/json.js";
import { canonicalText } from "../objects/canonical.js";
import { digestText } from "../objects/hash.js";
import type { ReviewSubject } from "./record.js";

const SLOT_HEX_DIGITS = 12;

/** Digests a text, with the workflow's key where its hashes have one, so that no small value can be guessed by it. */
export type Digest = (text: string) => string;

/** What stands at a path, as a review keeps it; null where nothing stands. */
export function digestOfValue(value: JsonValue | undefined, digest: Digest): string | null {
  return value === undefined ? null : digest(canonicalText(value));
}

/**
 * Where reviews of one thing follow each other: the branch as it was made, and the place in a run or,
 * outside a run, the step's number. Whatever else changes, the next review of it is found beside the last.
 */
export function slotOf(
  kind: string,
  { branch, incarnation, place, number }: ReviewSubject,
): string {
  const where = place === null ? number : [place.run, [...place.scope], place.index];
  const text = canonicalText([kind, branch, incarnation, where]);
  return digestText(text).slice(0, SLOT_HEX_DIGITS);
}

/** The id of a review that is bound to just this, for what happens once at most for one binding. */
export function bindingId(kind: string, subject: ReviewSubject, digest: Digest): string {
  const text = canonicalText([kind, subject as unknown as JsonValue]);
  return digest(text).slice(0, SLOT_HEX_DIGITS);
}

/** What a decision is bound to besides the state; the key follows from the number. */
const BOUND_PARTS = [
  "branch",
  "incarnation",
  "place",
  "number",
  "name",
  "action",
  "input",
  "attempt",
] as const;

/** What differs between what a review was asked for and what there is now; empty when it holds. */
export function differences(asked: ReviewSubject, now: ReviewSubject): string[] {
  const differ: string[] = BOUND_PARTS.filter((part) => textOf(asked[part]) !== textOf(now[part]));
  return [...differ, ...changedPaths(asked, now)];
}

/** The bound paths at which something else stands, or that only one of two subjects names. */
export function changedPaths(
  asked: Pick<ReviewSubject, "paths">,
  now: Pick<ReviewSubject, "paths">,
): string[] {
  const before = new Map(asked.paths.map(({ path, digest }) => [path, digest]));
  const after = new Map(now.paths.map(({ path, digest }) => [path, digest]));
  const paths = new Set([...before.keys(), ...after.keys()]);
  // Not there is undefined, nothing stands there is null.
  return [...paths].filter((path) => before.get(path) !== after.get(path));
}

function textOf(value: unknown): string {
  return value === undefined ? "" : canonicalText(value as JsonValue);
}
