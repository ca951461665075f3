import { isAgstateError } from "../core/errors.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { parseIndex } from "../core/json-pointer.js";
import { canonicalText } from "../objects/canonical.js";
import { type Place, placeBelow } from "../objects/decode.js";
import { KeyTable } from "../objects/draft/key-table.js";
import type { Link } from "../objects/encode.js";
import type { ObjectReader } from "../objects/reader.js";
import { treeKind } from "../objects/tree-kind.js";
import type { Gap } from "./align.js";
import { Asked } from "./blame-asked.js";
import { listGaps, listLength, olderIndex, splitSpans } from "./blame-lists.js";

/** Up to this many members are looked up one by one; for more, two objects are compared as wholes. */
const LOOK_UP_MAX_KEYS = 16;

/** Up to one in so many members of an object are looked up one by one, too, rather than all read. */
const FEW_ONE_IN = 32;

/** A token that no list has an element for. */
const NO_ELEMENT = "-";

/** A member or element in the child and what stands for it in the parent, with its token there. */
interface Pair {
  readonly token: string;
  readonly parentToken: string;
  readonly child: Place | undefined;
  readonly parent: Place | undefined;
}

/** How two values compare, as far as it is asked. */
interface Comparison {
  readonly same: boolean;
  /** Null unless both are lists. */
  readonly gaps: readonly Gap[] | null;
  /** The members and elements that may differ, or have another token in the parent. */
  readonly pairs: readonly Pair[];
}

type Kind = "object" | "list" | "scalar";

/**
 * Finds which questions a commit can hand on to a parent, because what they ask
 * about is the same there.
 *
 * Ids decide; only what differs is read. A value that is part of a blob has no
 * id, so its canonical text decides. Absent on both sides is the same. In a list
 * elements are followed by alignment, not by index.
 */
export class Passing {
  /** Questions that could not be compared, because an object is erased or not stored. */
  readonly lost = new Set<number>();

  constructor(private readonly reader: ObjectReader) {}

  /**
   * Leaves in `asked` what the parent has as well, at its place there.
   *
   * @returns the rest, which differs; null when there is none
   */
  async pass(
    child: Place | undefined,
    parent: Place | undefined,
    asked: Asked,
  ): Promise<Asked | null> {
    if (sameId(child, parent)) return null;
    const kept = new Asked();
    let comparison: Comparison;
    try {
      comparison = await this.compare(child, parent, asked);
    } catch (error) {
      if (!isAgstateError(error, "MISSING_OBJECT", "ERASED", "WITHHELD")) throw error;
      for (const { questions, spans } of asked.all()) {
        for (const question of questions) this.lost.add(question);
        for (const { question } of spans) this.lost.add(question);
      }
      kept.absorb(asked);
      asked.questions = [];
      asked.spans = [];
      asked.children.clear();
      return kept;
    }
    if (!comparison.same) {
      kept.questions = asked.questions;
      asked.questions = [];
    }
    if (asked.spans.length > 0) {
      const { same, changed } =
        comparison.gaps === null
          ? { same: [], changed: asked.spans }
          : splitSpans(asked.spans, comparison.gaps);
      asked.spans = same;
      kept.spans = changed;
    }
    await this.passBelow(comparison.pairs, asked, kept);
    return kept.empty ? null : kept;
  }

  private async passBelow(pairs: readonly Pair[], asked: Asked, kept: Asked): Promise<void> {
    const moved: [string, Asked][] = [];
    for (const { token, parentToken, child, parent } of pairs) {
      const below = asked.children.get(token);
      if (below === undefined) continue;
      const rest = await this.pass(child, parent, below);
      if (rest !== null) kept.put(token, rest);
      if (below.empty || parentToken !== token) asked.children.delete(token);
      if (!below.empty && parentToken !== token) moved.push([parentToken, below]);
    }
    // Only now, or a token of the parent would be taken for one of the child.
    for (const [token, below] of moved) asked.put(token, below);
  }

  /** Reads what it takes to compare two values; changes nothing. */
  private async compare(
    child: Place | undefined,
    parent: Place | undefined,
    asked: Asked,
  ): Promise<Comparison> {
    const same = asked.questions.length === 0 || (await this.same(child, parent));
    if (asked.children.size === 0 && asked.spans.length === 0) {
      return { same, gaps: null, pairs: [] };
    }
    const [newer, older] = [await this.open(child), await this.open(parent)];
    const [kind, olderKind] = [await this.kind(newer), await this.kind(older)];
    if (kind === "list" && olderKind === "list") {
      const gaps = await listGaps(this.reader, older as Place, newer as Place);
      const pairs = await this.elementPairs(newer as Place, older as Place, gaps, asked);
      return { same, gaps, pairs };
    }
    if (
      kind === "object" &&
      olderKind === "object" &&
      asked.children.size > LOOK_UP_MAX_KEYS &&
      isStored(newer) &&
      isStored(older)
    ) {
      return { same, gaps: null, pairs: await this.changedPairs(newer.link, older.link) };
    }
    const tokens = [...asked.children.keys()];
    const children = await this.members(newer, kind, tokens);
    const parents = await this.members(older, olderKind, tokens);
    const pairs = tokens.map((token, i) => ({
      token,
      parentToken: token,
      child: children[i],
      parent: parents[i],
    }));
    return { same, gaps: null, pairs };
  }

  private async same(a: Place | undefined, b: Place | undefined): Promise<boolean> {
    if (a === undefined || b === undefined) return a === b;
    if ("link" in a && "link" in b) return a.link.id === b.link.id;
    const text = await this.text(a);
    return text !== null && text === (await this.text(b));
  }

  /** A value's canonical text; null for a tree, which no part of a blob equals. */
  private async text(place: Place): Promise<string | null> {
    if ("value" in place) return canonicalText(place.value);
    return place.link.type === "tree" ? null : this.reader.text(place.link.id);
  }

  /** Takes a blob's value at hand; trees stay behind their links. */
  private async open(place: Place | undefined): Promise<Place | undefined> {
    if (place === undefined || "value" in place || place.link.type === "tree") return place;
    return { value: JSON.parse(await this.reader.text(place.link.id)) as JsonValue };
  }

  private async kind(place: Place | undefined): Promise<Kind> {
    if (place === undefined) return "scalar";
    if ("value" in place) {
      if (Array.isArray(place.value)) return "list";
      return isJsonObject(place.value) ? "object" : "scalar";
    }
    const kind = treeKind(await this.reader.tree(place.link.id));
    if (kind === "text") return "scalar";
    return kind === "list" ? "list" : "object";
  }

  private async elementPairs(
    child: Place,
    parent: Place,
    gaps: readonly Gap[],
    asked: Asked,
  ): Promise<Pair[]> {
    const length = await listLength(this.reader, child);
    const pairs: Pair[] = [];
    for (const token of asked.children.keys()) {
      const index = parseIndex(token);
      if (index === undefined || index >= length) {
        // No element of the child, so there is none to follow: compared with what the parent has there.
        const before = await placeBelow(this.reader, parent, token);
        pairs.push({ token, parentToken: token, child: undefined, parent: before });
        continue;
      }
      const older = olderIndex(gaps, index);
      const parentToken = older.kind === "new" ? NO_ELEMENT : String(older.index);
      if (older.kind !== "same") {
        const element = await placeBelow(this.reader, child, token);
        const before = await placeBelow(this.reader, parent, parentToken);
        pairs.push({ token, parentToken, child: element, parent: before });
      } else if (parentToken !== token) {
        pairs.push({ token, parentToken, child: undefined, parent: undefined });
      }
    }
    return pairs;
  }

  /** All members that differ between two stored objects; equal parts of them are not read. */
  private async changedPairs(child: Link, parent: Link): Promise<Pair[]> {
    const changed = await KeyTable.changed(this.reader, parent.id, child.id);
    return [...changed].map(([token, [before, after]]) => ({
      token,
      parentToken: token,
      child: after && { link: after },
      parent: before && { link: before },
    }));
  }

  private async members(
    place: Place | undefined,
    kind: Kind,
    tokens: readonly string[],
  ): Promise<(Place | undefined)[]> {
    if (place === undefined || kind === "scalar") return [];
    if ("link" in place && kind === "object") {
      const table = await KeyTable.stored(this.reader, place.link.id);
      const many = tokens.length > LOOK_UP_MAX_KEYS && tokens.length * FEW_ONE_IN > table.count;
      const all = many ? await table.all() : null;
      const found: (Place | undefined)[] = [];
      for (const token of tokens) {
        const link = all === null ? await table.get(token) : all.get(token);
        found.push(link && { link });
      }
      return found;
    }
    const found: (Place | undefined)[] = [];
    for (const token of tokens) found.push(await placeBelow(this.reader, place, token));
    return found;
  }
}

function isStored(place: Place | undefined): place is { readonly link: Link } {
  return place !== undefined && "link" in place;
}

function sameId(a: Place | undefined, b: Place | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return "link" in a && "link" in b && a.link.id === b.link.id;
}
