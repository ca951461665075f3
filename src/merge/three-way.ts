import { formatPointer } from "../core/json-pointer.js";
import { isWithheld } from "../core/withheld.js";
import type { ObjectDraft } from "../objects/draft/object-draft.js";
import { type Draft, type DraftContext, LeafDraft } from "../objects/draft/types.js";
import { toLink } from "../objects/encode.js";
import type { Isolation } from "../objects/isolation.js";
import { normalize } from "../objects/normalize.js";
import { type IdentifiedList, identify, mergeOrder } from "./by-id.js";
import type { Contest, Settlement } from "./contest.js";
import { Contests, type Source } from "./contests.js";
import { childFrame, type Frame, isBaseKnown } from "./frame.js";
import {
  appendLists,
  appendTexts,
  openLists,
  rebuildList,
  type ThreeSides,
  unionLists,
} from "./list-merge.js";
import type { PathMarks } from "./path-marks.js";
import type { PolicyScope, Strategy } from "./policy.js";
import { askResolver, type CustomResolvers, type Resolution } from "./resolvers.js";
import { CONFLICT, KEEP, type Result } from "./result.js";
import { extreme, sum } from "./scalars.js";
import {
  draftOf,
  editable,
  kindsOf,
  type MaybeSide,
  Members,
  readValue,
  type Side,
  same,
  sideOf,
  type ValueKind,
} from "./side.js";

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
  private readonly contested: Contests;

  constructor(private readonly options: ThreeWayOptions) {
    this.contested = new Contests(options.context.reader, options.settlements);
  }

  /** The contests of all sources so far, by their paths. */
  get contests(): PathMarks<Contest> {
    return this.contested.marks;
  }

  private get context(): DraftContext {
    return this.options.context;
  }

  /** Merges one more source into ours, and gives the result; new objects are in the context's sink. */
  async merge(ours: MaybeSide, source: Source): Promise<MaybeSide> {
    this.contested.begin(source);
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
    if (contest !== undefined) {
      await this.contested.join(contest, frame);
      return KEEP;
    }
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
    if (isBaseKnown(frame) && base && ours && theirs) {
      if (await this.areAll("list", base, ours, theirs)) {
        return this.decided(frame, await appendLists(this.context, { base, ours, theirs }, false));
      }
    }
    return this.conflict(frame);
  }

  /** Merges member by member, or element by element; null where the values have no parts to merge. */
  private async byParts(frame: Frame): Promise<Result | null> {
    const { base, ours, theirs, policies } = frame;
    if (ours === undefined || theirs === undefined || frame.unknown?.mark === true) return null;
    if (await this.areObjects(base, ours, theirs)) return this.objects(frame);
    const { strategy } = policies;
    if (strategy?.startsWith("by-id:") && (await this.areAll("list", base, ours, theirs))) {
      return this.byId(frame, strategy.slice("by-id:".length));
    }
    return null;
  }

  private async objects(frame: Frame): Promise<Result> {
    const { reader } = this.context;
    const base = await Members.ofBase(reader, frame.base);
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
    const draft = (await editable(this.context, frame.ours as Side)) as ObjectDraft;
    for (const [key, result] of edits) {
      if (result === null) draft.delete(key);
      else draft.set(key, result);
    }
    return draft;
  }

  private async byId(frame: Frame, key: string): Promise<Result> {
    const { reader } = this.context;
    const sides = await openLists(this.context, frame as Frame & ThreeSides);
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
    return rebuildList(this.context, side, list, order.tokens, (token) => {
      const result = results.get(token) as Result;
      if (result !== KEEP) return result;
      if (order.skeleton === "ours") return null;
      const element = ours.elements.get(token) as Side;
      return same(element, theirs.elements.get(token)) ? null : draftOf(this.context, element);
    });
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
    if (!isBaseKnown(frame) && !strategy.startsWith("by-id:")) return this.conflict(frame);
    const sides: ThreeSides = { base: frame.base, ours, theirs };
    switch (strategy) {
      case "append":
        return this.append(frame, sides);
      case "union":
        if (!(await this.areAll("list", frame.base, ours, theirs))) return this.conflict(frame);
        return unionLists(this.context, sides);
      case "sum":
        return this.scalar(frame, ([b, o, t]) => sum(b, o, t));
      default:
        // `by-id` where there are no three lists.
        return (await this.byParts(frame)) ?? this.conflict(frame);
    }
  }

  private async append(frame: Frame, sides: ThreeSides): Promise<Result> {
    const { base, ours, theirs } = sides;
    if (await this.areAll("text", base, ours, theirs)) {
      return this.decided(frame, await appendTexts(this.context, sides));
    }
    if (!(await this.areAll("list", base, ours, theirs))) return this.conflict(frame);
    return this.decided(frame, await appendLists(this.context, sides, true));
  }

  private decided(frame: Frame, result: Result | typeof CONFLICT): Result | Promise<Result> {
    return result === CONFLICT ? this.conflict(frame) : result;
  }

  /** Whether all values that are there are of a kind. */
  private async areAll(kind: ValueKind, ...sides: MaybeSide[]): Promise<boolean> {
    return (await kindsOf(this.context.reader, ...sides)).every((each) => each === kind);
  }

  /** The same for objects; of a base that is withheld nothing is known, as if there were none. */
  private async areObjects(base: MaybeSide, ours: Side, theirs: Side): Promise<boolean> {
    const [kind, ...kinds] = await kindsOf(this.context.reader, base, ours, theirs);
    const mayBe = base === undefined ? ["object"] : ["object", "withheld"];
    return mayBe.includes(kind!) && kinds.every((each) => each === "object");
  }

  private async scalar(
    frame: Frame,
    merge: (values: [Value | undefined, Value, Value]) => Value | undefined,
  ): Promise<Result> {
    const { reader } = this.context;
    const ours = await readValue(reader, frame.ours as Side);
    const theirs = await readValue(reader, frame.theirs as Side);
    const base =
      frame.base === undefined || !isBaseKnown(frame)
        ? undefined
        : await readValue(reader, frame.base);
    const values: [Value | undefined, Value, Value] = [told(base), ours, theirs];
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
    const known = isBaseKnown(frame) ? frame.base : undefined;
    const base = known && told(await readValue(reader, known));
    const values = {
      path,
      ...(base === undefined ? {} : { base }),
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
    return this.settled(await this.contested.open(frame));
  }

  /** Makes one contest of all that is contested below. */
  private async lift(frame: Frame): Promise<Result> {
    if (same(frame.ours, frame.theirs)) return KEEP;
    return this.settled(await this.contested.lift(frame));
  }

  private settled(settlement: Settlement | undefined): Result {
    return settlement === undefined || "keep" in settlement ? KEEP : this.take(settlement.side);
  }
}

type Value = Awaited<ReturnType<typeof readValue>>;

/** A base's value; none when it is withheld. */
function told(value: Value | undefined): Value | undefined {
  return isWithheld(value) ? undefined : value;
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
