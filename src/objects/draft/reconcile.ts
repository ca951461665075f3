import { hasOwn, type JsonValue } from "../../core/json.js";
import { unfold } from "./draft.js";
import type { MaybePromise } from "./key-table.js";
import type { ListDraft } from "./list-draft.js";
import type { ObjectDraft } from "./object-draft.js";
import type { TextDraft } from "./text-draft.js";
import { type Draft, type DraftContext, LeafDraft } from "./types.js";

/**
 * Turns the draft of a value into that of another, touching only what differs.
 *
 * Both values come from `normalize`, the second with the first as `previous`,
 * so that `===` says what is unchanged.
 *
 * @returns the draft that stands in the place of the given one
 */
export async function reconcile(
  context: DraftContext,
  draft: Draft,
  before: JsonValue,
  after: JsonValue,
): Promise<Draft> {
  if (before === after) return draft;
  if (draft.kind === "leaf") return new LeafDraft(context, after);
  const open = unfold(context, draft);
  if (open.kind === "text" && typeof after === "string") {
    reconcileText(open, before as string, after);
    return open;
  }
  if (open.kind === "list" && Array.isArray(after)) {
    await reconcileList(context, open, before as readonly JsonValue[], after);
    return open;
  }
  if (open.kind === "object" && isObject(after)) {
    await reconcileObject(context, open, before as Members, after);
    return open;
  }
  return new LeafDraft(context, after);
}

type Members = { readonly [key: string]: JsonValue };

function isObject(value: JsonValue): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function reconcileObject(
  context: DraftContext,
  draft: ObjectDraft,
  before: Members,
  after: Members,
): Promise<void> {
  for (const key of Object.keys(before)) if (!hasOwn(after, key)) draft.delete(key);
  for (const key of Object.keys(after)) {
    const now = after[key] as JsonValue;
    if (!hasOwn(before, key)) {
      draft.set(key, new LeafDraft(context, now));
    } else if (before[key] !== now) {
      const member = reconcileMember(context, () => draft.open(key), before[key], now);
      draft.set(key, member instanceof Promise ? await member : member);
    }
  }
}

/** A changed member: opened only when there is something below it to keep. */
function reconcileMember(
  context: DraftContext,
  open: () => Promise<Draft | undefined>,
  before: JsonValue | undefined,
  now: JsonValue,
): MaybePromise<Draft> {
  if (typeof now === "string" ? now.length < TEXT_WORTH_EDITING : typeof now !== "object") {
    return new LeafDraft(context, now);
  }
  return reconcileBelow(context, open, before, now);
}

async function reconcileBelow(
  context: DraftContext,
  open: () => Promise<Draft | undefined>,
  before: JsonValue | undefined,
  now: JsonValue,
): Promise<Draft> {
  const draft = await open();
  return draft === undefined
    ? new LeafDraft(context, now)
    : reconcile(context, draft, before as JsonValue, now);
}

/** Strings below this length are never more than one blob. */
const TEXT_WORTH_EDITING = 512;

async function reconcileList(
  context: DraftContext,
  draft: ListDraft,
  before: readonly JsonValue[],
  after: readonly JsonValue[],
): Promise<void> {
  if (before.length === after.length) {
    for (let i = 0; i < after.length; i++) {
      const now = after[i] as JsonValue;
      if (before[i] === now) continue;
      draft.replace(i, await reconcileMember(context, () => draft.open(i), before[i], now));
    }
    return;
  }
  const { front, back } = commonEnds(before.length, after.length, (i, j) => before[i] === after[j]);
  draft.splice(front, before.length - front - back, after.slice(front, after.length - back));
}

function reconcileText(draft: TextDraft, before: string, after: string): void {
  const { front, back } = commonEnds(
    before.length,
    after.length,
    (i, j) => before.charCodeAt(i) === after.charCodeAt(j),
  );
  draft.splice(front, before.length - front - back, after.slice(front, after.length - back));
}

/** How many items two sequences share at the front, and at the back of what is left. */
function commonEnds(
  a: number,
  b: number,
  equal: (i: number, j: number) => boolean,
): { front: number; back: number } {
  const shorter = Math.min(a, b);
  let front = 0;
  while (front < shorter && equal(front, front)) front++;
  let back = 0;
  while (back < shorter - front && equal(a - 1 - back, b - 1 - back)) back++;
  return { front, back };
}
