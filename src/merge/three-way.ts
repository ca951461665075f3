import { formatPointer } from "../core/json-pointer.js";
import { unfold } from "../objects/draft/draft.js";
import type { ListDraft } from "../objects/draft/list-draft.js";
import type { ObjectDraft } from "../objects/draft/object-draft.js";
import type { TextDraft } from "../objects/draft/text-draft.js";
import { type Draft, type DraftContext, LeafDraft } from "../objects/draft/types.js";
import { toLink } from "../objects/encode.js";
import type { Isolation } from "../objects/isolation.js";
import { normalize } from "../objects/normalize.js";
import { type IdentifiedList, identify, mergeOrder } from "./by-id.js";
import type { Claim, ConflictKind, Contest, Settlement } from "./contest.js";
import { childFrame, type Frame } from "./frame.js";
import {
  allElements,
  commonPrefix,
  EMPTY_LIST,
  elementsFrom,
  type ListSide,
  listChange,
  openList,
} from "./list-tail.js";
import { lookUp } from "./look-up.js";
import { PathMarks } from "./path-marks.js";
import type { PolicyScope, Strategy } from "./policy.js";
import { askResolver, type CustomResolvers, type Resolution } from "./resolvers.js";
import { extreme, sum } from "./scalars.js";
import {
  draftOf,
  identity,
  kindOf,
  type MaybeSide,
  Members,
  openDraft,
  readValue,
  type Side,
  same,
  sideOf,
  type ValueKind,
} from "./side.js";

/** Ours stays as it is. */
const KEEP = Symbol("keep");
/** What a place becomes: ours unchanged, a new value, or nothing. */
type Result = typeof KEEP | Draft | null;

/** A value that is merged, and the base that it is merged by. */
export interface Source {
  readonly base: MaybeSide;
  readonly unknown: PathMarks<true> | undefined;
  readonly theirs: MaybeSide;
}

export interface ThreeWayOptions {
  readonly context: DraftContext;
  readonly isolation: Isolation | null;
  readonly policies: PolicyScope;
  readonly resolvers: CustomResolvers;
  /** What contested paths are to hold, as far as that is settled. */
  readonly settlements?: PathMarks<Settlement>;
  readonly maxBytes: number;
}

/**
 * Merges sources into a value, one after another, by three-way merge over JSON values.
 *
 * What one side changed is taken; what both changed merges by the policy for
 * its path, objects by key, lists to which both sides only appended by keeping
 * both runs; anything else is a contest, and ours stays. It descends only where
 * ids say that the source differs from its base.
 */
export class ThreeWayMerge {
  readonly contests = new PathMarks<Contest>();
  private readonly sources: Source[] = [];

  constructor(private readonly options: ThreeWayOptions) {}

  private get context(): DraftContext {
    return this.options.context;
  }

  /** Merges one more source into ours, and gives the result; new objects are in the context's sink. */
  async merge(ours: MaybeSide, source: Source): Promise<MaybeSide> {
    this.sources.push(source);
    const result = await this.value({
      path: [],
      ...source,
      ours,
      policies: this.options.policies,
      contests: this.contests,
    });
    if (result === KEEP) return ours;
    if (result === null) return undefined;
    return sideOf(toLink(this.context.sink, await result.encode(this.options.isolation)));
  }

  private async value(frame: Frame): Promise<Result> {
    const { base, ours, theirs, policies } = frame;
    const noBase = frame.unknown?.mark === true;
    const partlyUnknown = frame.unknown?.marksBelow === true;
    if (!noBase && !partlyUnknown && same(base, theirs)) return KEEP;
    const contest = frame.contests?.mark;
    if (contest !== undefined) return this.claim(contest, frame);
    if (frame.contests?.marksBelow === true) {
      return (await this.byParts(frame)) ?? (await this.lift(frame));
    }
    // Equal sides settle it, unless equal changes count twice; without a base nothing can be counted.
    if (same(ours, theirs) && (noBase || ours === undefined || !policies.accumulates)) return KEEP;
    if (!noBase && !partlyUnknown && same(base, ours)) return this.take(theirs);
    const { strategy } = policies;
    return strategy === undefined ? this.byDefault(frame) : this.byStrategy(frame, strategy);
  }

  private take(side: MaybeSide): Result {
    return side === undefined ? null : draftOf(this.context, side);
  }

  // --- Default rules -------------------------------------------------------

  private async byDefault(frame: Frame): Promise<Result> {
    const parts = await this.byParts(frame);
    if (parts !== null) return parts;
    const { base, ours, theirs } = frame;
    if (same(ours, theirs)) return KEEP;
    if (known(frame) && base && ours && theirs) {
      const kinds = await this.kinds(base, ours, theirs);
      if (kinds.every((kind) => kind === "list")) {
        const lists = await this.lists(base, ours, theirs);
        const [o, t] = await this.changes(lists);
        if (!o.inner && !t.inner) return this.appendTo(ours, lists.ours, lists.theirs, t.added);
      }
    }
    return this.conflict(frame);
  }

  /** Merges member by member, or element by element; null where the values have no parts to merge. */
  private async byParts(frame: Frame): Promise<Result | null> {
    const { base, ours, theirs, policies } = frame;
    if (ours === undefined || theirs === undefined || frame.unknown?.mark === true) return null;
    const kinds = await this.kinds(ours, theirs, ...(base === undefined ? [] : [base]));
    if (kinds.every((kind) => kind === "object")) return this.objects(frame);
    const { strategy } = policies;
    if (strategy?.startsWith("by-id:") && kinds.every((kind) => kind === "list")) {
      return this.byId(frame, strategy.slice("by-id:".length));
    }
    return null;
  }

  private async objects(frame: Frame): Promise<Result> {
    const { reader } = this.context;
    const base = frame.base === undefined ? Members.none : await Members.of(reader, frame.base);
    const ours = await Members.of(reader, frame.ours as Side);
    const theirs = await Members.of(reader, frame.theirs as Side);
    const keys = await Members.changed(reader, base, theirs);
    const seen = new Set(keys.map(([key]) => key));
    for (const key of frame.unknown?.children.keys() ?? []) {
      if (!seen.has(key)) keys.push([key, await base.get(key), await theirs.get(key)]);
    }
    keys.sort(([a], [b]) => (a < b ? -1 : 1));
    const edits: [string, Draft | null][] = [];
    for (const [key, before, after] of keys) {
      const sides = { base: before, ours: await ours.get(key), theirs: after };
      const result = await this.value(childFrame(frame, key, frame.policies.ofKey(key), sides));
      if (result !== KEEP) edits.push([key, result]);
    }
    if (edits.length === 0) return KEEP;
    const draft = (await this.editable(frame.ours as Side)) as ObjectDraft;
    for (const [key, result] of edits) {
      if (result === null) draft.delete(key);
      else draft.set(key, result);
    }
    return draft;
  }

  private async editable(side: Side): Promise<Draft> {
    return unfold(this.context, await openDraft(this.context, side));
  }

  // --- Lists and texts -----------------------------------------------------

  private async lists(base: MaybeSide, ours: Side, theirs: Side) {
    const { reader } = this.context;
    return {
      base: base === undefined ? EMPTY_LIST : await openList(reader, base),
      ours: await openList(reader, ours),
      theirs: await openList(reader, theirs),
    };
  }

  private async changes(lists: { base: ListSide; ours: ListSide; theirs: ListSide }) {
    const { reader } = this.context;
    return [
      await listChange(reader, lists.base, lists.ours),
      await listChange(reader, lists.base, lists.theirs),
    ] as const;
  }

  /** The last `added` elements of `from`, put into `target` before its last `behind` elements. */
  private async appendTo(
    target: Side,
    list: ListSide,
    from: ListSide,
    added: number,
    behind = 0,
  ): Promise<Draft> {
    const run = await elementsFrom(this.context.reader, from, from.length - added);
    const draft = (await this.editable(target)) as ListDraft;
    draft.spliceDrafts(
      list.length - behind,
      0,
      run.map((element) => draftOf(this.context, element)),
    );
    return draft;
  }

  private async append(frame: Frame): Promise<Result> {
    const { base, ours, theirs } = frame as Frame & { ours: Side; theirs: Side };
    const kinds = await this.kinds(ours, theirs, ...(base === undefined ? [] : [base]));
    if (kinds.every((kind) => kind === "text")) return this.appendText(frame);
    if (!kinds.every((kind) => kind === "list")) return this.conflict(frame);
    const lists = await this.lists(base, ours, theirs);
    const [o, t] = await this.changes(lists);
    if (t.inner && !o.inner) {
      return this.appendTo(theirs, lists.theirs, lists.ours, o.added, t.added);
    }
    if (t.inner && !(await this.sameInner(lists, o.added, t.added))) {
      return this.conflict(frame);
    }
    if (t.added === 0) return KEEP;
    return this.appendTo(ours, lists.ours, lists.theirs, t.added);
  }

  /** Whether both sides made the same of what was there before. */
  private async sameInner(
    lists: { ours: ListSide; theirs: ListSide },
    oursAdded: number,
    theirsAdded: number,
  ): Promise<boolean> {
    const length = lists.ours.length - oursAdded;
    if (length !== lists.theirs.length - theirsAdded) return false;
    return (await commonPrefix(this.context.reader, lists.ours, lists.theirs)) >= length;
  }

  private async appendText(frame: Frame): Promise<Result> {
    const { reader } = this.context;
    const ours = (await readValue(reader, frame.ours as Side)) as string;
    const theirs = (await readValue(reader, frame.theirs as Side)) as string;
    const base = frame.base === undefined ? "" : ((await readValue(reader, frame.base)) as string);
    // What one side added goes behind what the other made of the text.
    const [text, added] = theirs.startsWith(base)
      ? [frame.ours as Side, theirs.slice(base.length)]
      : [frame.theirs as Side, ours.startsWith(base) ? ours.slice(base.length) : null];
    if (added === null) return this.conflict(frame);
    const draft = (await this.editable(text)) as TextDraft;
    draft.splice(draft.length, 0, added);
    return draft;
  }

  private async union(frame: Frame): Promise<Result> {
    const { base, ours, theirs } = frame as Frame & { ours: Side; theirs: Side };
    const kinds = await this.kinds(ours, theirs, ...(base === undefined ? [] : [base]));
    if (!kinds.every((kind) => kind === "list")) return this.conflict(frame);
    const { reader } = this.context;
    const lists = await this.lists(base, ours, theirs);
    const before = await allElements(reader, lists.base);
    const mine = await allElements(reader, lists.ours);
    const other = await allElements(reader, lists.theirs);
    const inBase = new Set(before.map(identity));
    const inTheirs = new Set(other.map(identity));
    const draft = (await this.editable(ours)) as ListDraft;
    const placed = new Set<string>();
    let at = 0;
    for (const element of mine) {
      const id = identity(element);
      const stays = !placed.has(id) && (inTheirs.has(id) || !inBase.has(id));
      placed.add(id);
      if (stays) at++;
      else draft.splice(at, 1, []);
    }
    const added: Draft[] = [];
    for (const element of other) {
      const id = identity(element);
      if (placed.has(id) || inBase.has(id)) continue;
      placed.add(id);
      added.push(draftOf(this.context, element));
    }
    draft.spliceDrafts(at, 0, added);
    return draft;
  }

  private async byId(frame: Frame, key: string): Promise<Result> {
    const { reader } = this.context;
    const sides = await this.lists(frame.base, frame.ours as Side, frame.theirs as Side);
    const base = await identify(reader, sides.base, key);
    const ours = await identify(reader, sides.ours, key);
    const theirs = await identify(reader, sides.theirs, key);
    if (base === null || ours === null || theirs === null) return this.lift(frame);
    const results = new Map<string, Result>();
    const survives = (token: string): boolean => {
      const result = results.get(token);
      return result === KEEP ? ours.elements.has(token) : result !== null;
    };
    const scope = frame.policies.ofElement();
    for (const token of new Set([...ours.tokens, ...theirs.tokens, ...base.tokens])) {
      const at = (list: IdentifiedList) => list.elements.get(token);
      const child = childFrame(frame, token, scope, {
        base: at(base),
        ours: at(ours),
        theirs: at(theirs),
      });
      results.set(token, await this.value(child));
    }
    const order = mergeOrder(base.tokens, ours.tokens, theirs.tokens, survives);
    if (order === null) return this.lift(frame);
    const [side, list] =
      order.skeleton === "ours" ? [frame.ours as Side, ours] : [frame.theirs as Side, theirs];
    return this.rebuild(side, list, order.tokens, (token) => {
      const result = results.get(token) as Result;
      if (result !== KEEP) return result;
      if (order.skeleton === "ours") return null;
      const element = ours.elements.get(token) as Side;
      return same(element, theirs.elements.get(token)) ? null : draftOf(this.context, element);
    });
  }

  /**
   * Edits a list so that it has the elements of `tokens` in their order; those
   * that the list has already come in the order in which it has them.
   *
   * @param draftFor the new value of an element; null when the list's own stays
   */
  private async rebuild(
    side: Side,
    list: IdentifiedList,
    tokens: readonly string[],
    draftFor: (token: string) => Draft | null,
  ): Promise<Draft> {
    const draft = (await this.editable(side)) as ListDraft;
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

  // --- Policies ------------------------------------------------------------

  private async byStrategy(frame: Frame, strategy: Strategy): Promise<Result> {
    const { ours, theirs } = frame;
    if (strategy === "ours") return KEEP;
    if (strategy === "theirs") return same(ours, theirs) ? KEEP : this.take(theirs);
    const counts = strategy === "sum" || strategy === "append" || strategy.startsWith("by-id:");
    if (same(ours, theirs) && !counts) return KEEP;
    if (strategy === "manual") return this.conflict(frame);
    if (strategy.startsWith("custom:")) return this.custom(frame, strategy.slice(7));
    if (ours === undefined || theirs === undefined) return this.conflict(frame);
    if (strategy === "max" || strategy === "min") {
      return this.scalar(frame, ([, o, t]) => extreme(strategy, o, t));
    }
    if (!known(frame) && !strategy.startsWith("by-id:")) return this.conflict(frame);
    switch (strategy) {
      case "append":
        return this.append(frame);
      case "union":
        return this.union(frame);
      case "sum":
        return this.scalar(frame, ([b, o, t]) => sum(b, o, t));
      default:
        // `by-id` where there are no three lists.
        return (await this.byParts(frame)) ?? this.conflict(frame);
    }
  }

  private async scalar(
    frame: Frame,
    merge: (values: [Value | undefined, Value, Value]) => Value | undefined,
  ): Promise<Result> {
    const { reader } = this.context;
    const ours = await readValue(reader, frame.ours as Side);
    const theirs = await readValue(reader, frame.theirs as Side);
    const base =
      frame.base === undefined || !known(frame) ? undefined : await readValue(reader, frame.base);
    const values: [Value | undefined, Value, Value] = [base, ours, theirs];
    const result = merge(values);
    if (result === undefined) {
      return this.conflict(
        frame,
        values.every((value) => value === undefined || typeof value === "number"),
      );
    }
    return result === ours ? KEEP : new LeafDraft(this.context, result);
  }

  private async custom(frame: Frame, name: string): Promise<Result> {
    const { reader } = this.context;
    const { resolvers } = this.options;
    const resolver = Object.hasOwn(resolvers, name) ? resolvers[name] : undefined;
    if (resolver === undefined) return this.conflict(frame);
    const path = formatPointer(frame.path);
    const base = known(frame) ? frame.base : undefined;
    const values = {
      path,
      ...(base === undefined ? {} : { base: await readValue(reader, base) }),
      ...(frame.ours === undefined ? {} : { ours: await readValue(reader, frame.ours) }),
      ...(frame.theirs === undefined ? {} : { theirs: await readValue(reader, frame.theirs) }),
    };
    const answer = await askResolver(`resolver ${JSON.stringify(name)}`, values, (given) =>
      resolver.resolve(given),
    );
    if (answer === undefined) return this.conflict(frame);
    const side = resolvedSide(answer, frame, this.options.maxBytes);
    return same(side, frame.ours) ? KEEP : this.take(side);
  }

  // --- Contests ------------------------------------------------------------

  /** @param counts whether equal sides are two changes, which could not be added up */
  private async conflict(frame: Frame, counts = false): Promise<Result> {
    if (!counts && same(frame.ours, frame.theirs)) return KEEP;
    const claim = await this.claimOf(this.sources.length - 1, frame, frame.ours);
    return this.open({ path: frame.path, ours: frame.ours, claims: [claim] });
  }

  private async claimOf(
    source: number,
    frame: Pick<Frame, "base" | "theirs" | "unknown">,
    ours: MaybeSide,
  ): Promise<Claim> {
    const { theirs } = frame;
    const baseKnown = known(frame);
    const base = baseKnown ? frame.base : undefined;
    return {
      source,
      kind: await this.kindOfConflict(base, baseKnown, ours, theirs),
      base,
      baseKnown,
      theirs,
    };
  }

  private open(contest: Contest): Result {
    this.contests.set(contest.path, contest);
    const settled = this.options.settlements?.at(contest.path);
    return settled === undefined || "keep" in settled ? KEEP : this.take(settled.side);
  }

  /** A further source at a contested path: it joins the contest when it brings anything new. */
  private async claim(contest: Contest, frame: Frame): Promise<Result> {
    if (same(contest.ours, frame.theirs)) return KEEP;
    const claim = await this.claimOf(this.sources.length - 1, frame, contest.ours);
    this.contests.set(contest.path, { ...contest, claims: [...contest.claims, claim] });
    return KEEP;
  }

  /**
   * Makes one contest of all below a path, where a source replaces or removes
   * the whole of it: the parts cannot be settled one by one any more.
   */
  private async lift(frame: Frame): Promise<Result> {
    if (same(frame.ours, frame.theirs)) return KEEP;
    const { reader } = this.context;
    const current = this.sources.length - 1;
    const below = this.contests.node(frame.path);
    const earlier = new Set<number>();
    for (const [, contest] of below?.entries() ?? []) {
      for (const { source } of contest.claims) if (source !== current) earlier.add(source);
    }
    const claims: Claim[] = [];
    for (const source of [...earlier].sort((a, b) => a - b)) {
      const { base, unknown, theirs } = this.sources[source] as Source;
      const place = {
        base: await lookUp(reader, base, frame.path),
        unknown: unknown?.node(frame.path),
        theirs: await lookUp(reader, theirs, frame.path),
      };
      claims.push(await this.claimOf(source, place, frame.ours));
    }
    claims.push(await this.claimOf(current, frame, frame.ours));
    below?.clearBelow();
    return this.open({ path: frame.path, ours: frame.ours, claims });
  }

  private async kindOfConflict(
    base: MaybeSide,
    baseKnown: boolean,
    ours: MaybeSide,
    theirs: MaybeSide,
  ): Promise<ConflictKind> {
    if (ours === undefined || theirs === undefined) return "edit/delete";
    if (base === undefined && baseKnown) return "add/add";
    const [o, t, b] = await this.kinds(ours, theirs, ...(base === undefined ? [] : [base]));
    if (o !== t) return "type";
    return o === "list" && b === "list" ? "list" : "edit/edit";
  }

  private async kinds(...sides: Side[]): Promise<ValueKind[]> {
    const kinds: ValueKind[] = [];
    for (const side of sides) kinds.push(await kindOf(this.context.reader, side));
    return kinds;
  }
}

type Value = Awaited<ReturnType<typeof readValue>>;

/** Whether the base of a place is known, itself and all below it. */
function known(frame: Pick<Frame, "unknown">): boolean {
  return frame.unknown === undefined || (!frame.unknown.mark && !frame.unknown.marksBelow);
}

/**
 * What a resolution puts in the place of a conflict.
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function resolvedSide(
  resolution: Resolution,
  sides: { readonly path: readonly string[]; readonly ours: MaybeSide; readonly theirs: MaybeSide },
  maxBytes: number,
): MaybeSide {
  if ("take" in resolution) return sides[resolution.take];
  if ("delete" in resolution) return undefined;
  return { value: normalize(resolution.value, { maxBytes, at: sides.path }) };
}
