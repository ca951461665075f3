import type { ListDraft } from "../objects/draft/list-draft.js";
import type { TextDraft } from "../objects/draft/text-draft.js";
import type { Draft, DraftContext } from "../objects/draft/types.js";
import type { IdentifiedList } from "./by-id.js";
import {
  allElements,
  commonPrefix,
  EMPTY_LIST,
  elementsFrom,
  type ListSide,
  listChange,
  openList,
} from "./list-tail.js";
import { CONFLICT, KEEP, type Result } from "./result.js";
import { draftOf, editable, identity, type MaybeSide, readValue, type Side } from "./side.js";

/** Three lists; a missing base counts as empty. */
export interface ThreeSides {
  readonly base: MaybeSide;
  readonly ours: Side;
  readonly theirs: Side;
}

interface ThreeLists {
  readonly base: ListSide;
  readonly ours: ListSide;
  readonly theirs: ListSide;
}

export async function openLists(
  { reader }: DraftContext,
  { base, ours, theirs }: ThreeSides,
): Promise<ThreeLists> {
  return {
    base: base === undefined ? EMPTY_LIST : await openList(reader, base),
    ours: await openList(reader, ours),
    theirs: await openList(reader, theirs),
  };
}

/**
 * Keeps what both sides added to a list's end, ours first, and what was made of the rest.
 *
 * @param innerToo whether the rest may have changed, on one side or alike on both
 */
export async function appendLists(
  context: DraftContext,
  sides: ThreeSides,
  innerToo: boolean,
): Promise<Result | typeof CONFLICT> {
  const { reader } = context;
  const lists = await openLists(context, sides);
  const ours = await listChange(reader, lists.base, lists.ours);
  const theirs = await listChange(reader, lists.base, lists.theirs);
  if ((ours.inner || theirs.inner) && !innerToo) return CONFLICT;
  if (theirs.inner && !ours.inner) {
    return insertRun(context, sides.theirs, lists.theirs, lists.ours, ours.added, theirs.added);
  }
  if (theirs.inner && !(await sameRest(context, lists, ours.added, theirs.added))) return CONFLICT;
  if (theirs.added === 0) return KEEP;
  return insertRun(context, sides.ours, lists.ours, lists.theirs, theirs.added, 0);
}

/** Puts the last `added` elements of `from` into a list before its last `behind` elements. */
async function insertRun(
  context: DraftContext,
  target: Side,
  list: ListSide,
  from: ListSide,
  added: number,
  behind: number,
): Promise<Draft> {
  const run = await elementsFrom(context.reader, from, from.length - added);
  const draft = (await editable(context, target)) as ListDraft;
  const drafts = run.map((element) => draftOf(context, element));
  draft.spliceDrafts(list.length - behind, 0, drafts);
  return draft;
}

/** Whether both sides made the same of what was there before. */
async function sameRest(
  { reader }: DraftContext,
  lists: ThreeLists,
  oursAdded: number,
  theirsAdded: number,
): Promise<boolean> {
  const length = lists.ours.length - oursAdded;
  if (length !== lists.theirs.length - theirsAdded) return false;
  return (await commonPrefix(reader, lists.ours, lists.theirs)) >= length;
}

/** The same for texts, whose values are read as wholes. */
export async function appendTexts(
  context: DraftContext,
  sides: ThreeSides,
): Promise<Result | typeof CONFLICT> {
  const { reader } = context;
  const ours = (await readValue(reader, sides.ours)) as string;
  const theirs = (await readValue(reader, sides.theirs)) as string;
  const base = sides.base === undefined ? "" : ((await readValue(reader, sides.base)) as string);
  // What one side added goes behind what the other made of the text.
  const [text, added] = theirs.startsWith(base)
    ? [sides.ours, theirs.slice(base.length)]
    : [sides.theirs, ours.startsWith(base) ? ours.slice(base.length) : null];
  if (added === null) return CONFLICT;
  const draft = (await editable(context, text)) as TextDraft;
  draft.splice(draft.length, 0, added);
  return draft;
}

/** Merges lists as sets: ours in its order, then what theirs added; each value once. */
export async function unionLists(context: DraftContext, sides: ThreeSides): Promise<Draft> {
  const { reader } = context;
  const lists = await openLists(context, sides);
  const inBase = new Set((await allElements(reader, lists.base)).map(identity));
  const theirs = await allElements(reader, lists.theirs);
  const inTheirs = new Set(theirs.map(identity));
  const draft = (await editable(context, sides.ours)) as ListDraft;
  const placed = new Set<string>();
  let at = 0;
  for (const element of await allElements(reader, lists.ours)) {
    const id = identity(element);
    const stays = !placed.has(id) && (inTheirs.has(id) || !inBase.has(id));
    placed.add(id);
    if (stays) at++;
    else draft.splice(at, 1, []);
  }
  const added: Draft[] = [];
  for (const element of theirs) {
    const id = identity(element);
    if (placed.has(id) || inBase.has(id)) continue;
    placed.add(id);
    added.push(draftOf(context, element));
  }
  draft.spliceDrafts(at, 0, added);
  return draft;
}

/**
 * Edits a list so that it has the elements of `tokens` in their order; those
 * that the list has already come in the order in which it has them.
 *
 * @param draftFor the new value of an element; null when the list's own stays
 */
export async function rebuildList(
  context: DraftContext,
  side: Side,
  list: IdentifiedList,
  tokens: readonly string[],
  draftFor: (token: string) => Draft | null,
): Promise<Draft> {
  const draft = (await editable(context, side)) as ListDraft;
  const wanted = new Set(tokens);
  const old = list.tokens;
  let next = 0;
  let at = 0;
  const dropUnwanted = () => {
    for (; next < old.length && !wanted.has(old[next] as string); next++) draft.splice(at, 1, []);
  };
  for (const token of tokens) {
    dropUnwanted();
    const changed = draftFor(token);
    if (token === old[next]) {
      next++;
      if (changed !== null) draft.replace(at, changed);
    } else {
      draft.spliceDrafts(at, 0, [changed as Draft]);
    }
    at++;
  }
  dropUnwanted();
  return draft;
}
