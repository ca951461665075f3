import { hasOwn, isJsonObject, type JsonValue } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import { isWithheld } from "../core/withheld.js";
import { canonicalText } from "../objects/canonical.js";
import { decodeValue } from "../objects/decode.js";
import { KeyTable } from "../objects/draft/key-table.js";
import type { Link } from "../objects/encode.js";
import type { ObjectReader } from "../objects/reader.js";
import { treeKind } from "../objects/tree-kind.js";
import { gaps } from "./align.js";
import { changedElements, type SequenceElement } from "./list-diff.js";

/**
 * One difference between two states.
 *
 * `path` is a JSON Pointer. In a list, an added or changed element is named by
 * its index in the newer state, a removed one by its index in the older.
 */
export type Change =
  | { readonly kind: "added"; readonly path: string; readonly after: JsonValue }
  | { readonly kind: "removed"; readonly path: string; readonly before: JsonValue }
  | {
      readonly kind: "changed";
      readonly path: string;
      readonly before: JsonValue;
      readonly after: JsonValue;
    };

/** A value that is compared: behind a link, or at hand. */
type Side = { readonly link: Link } | { readonly value: JsonValue };
type Path = readonly (string | number)[];

/**
 * Compares two values, descending only where ids differ; undefined stands for
 * a value that is not there.
 */
export async function* diffLinks(
  reader: ObjectReader,
  a: Link | undefined,
  b: Link | undefined,
): AsyncGenerator<Change, void, undefined> {
  yield* new Differ(reader).sides(a && { link: a }, b && { link: b }, []);
}

class Differ {
  constructor(private readonly reader: ObjectReader) {}

  async *sides(
    a: Side | undefined,
    b: Side | undefined,
    path: Path,
  ): AsyncGenerator<Change, void, undefined> {
    if (a === undefined && b === undefined) return;
    if (a === undefined || b === undefined) {
      yield a === undefined
        ? { kind: "added", path: formatPointer(path), after: await this.value(b as Side) }
        : { kind: "removed", path: formatPointer(path), before: await this.value(a) };
      return;
    }
    if ("link" in a && "link" in b && a.link.id === b.link.id) return;
    const left = await this.open(a);
    const right = await this.open(b);
    if (
      "value" in left &&
      "value" in right &&
      !isContainer(left.value) &&
      left.value === right.value
    ) {
      return;
    }
    const kind = await this.kind(left);
    if (kind !== "scalar" && kind === (await this.kind(right))) {
      if (kind === "object") yield* this.objects(left, right, path);
      else yield* this.lists(left, right, path);
      return;
    }
    yield {
      kind: "changed",
      path: formatPointer(path),
      before: await this.value(left),
      after: await this.value(right),
    };
  }

  /** Takes at hand what a blob holds, or what stands for an object that is not told; trees stay behind their links. */
  private async open(side: Side): Promise<Side> {
    if ("value" in side) return side;
    const { id } = side.link;
    const object = await this.reader.read(id);
    if (object.type === "tree") return side;
    if (object.type === "blob") return { value: JSON.parse(object.text) as JsonValue };
    return { value: this.reader.withheld(id, object) as unknown as JsonValue };
  }

  private async value(side: Side): Promise<JsonValue> {
    return "value" in side ? side.value : decodeValue(this.reader, side.link);
  }

  private async kind(side: Side): Promise<"object" | "list" | "scalar"> {
    if ("value" in side) {
      if (Array.isArray(side.value)) return "list";
      if (isWithheld(side.value)) return "scalar";
      return isJsonObject(side.value) ? "object" : "scalar";
    }
    const kind = treeKind(await this.reader.tree(side.link.id));
    if (kind === "text") return "scalar";
    return kind === "list" ? "list" : "object";
  }

  private async *objects(a: Side, b: Side, path: Path): AsyncGenerator<Change, void, undefined> {
    if ("link" in a && "link" in b) {
      const changed = await KeyTable.changed(this.reader, a.link.id, b.link.id);
      for (const [key, [left, right]] of sorted(changed)) {
        yield* this.sides(left && { link: left }, right && { link: right }, [...path, key]);
      }
      return;
    }
    const left = await this.members(a);
    const right = await this.members(b);
    const keys = new Set([...left.keys(), ...right.keys()]);
    for (const key of [...keys].sort())
      yield* this.sides(left.get(key), right.get(key), [...path, key]);
  }

  private async members(side: Side): Promise<Map<string, Side>> {
    const members = new Map<string, Side>();
    if ("value" in side) {
      const object = side.value as { readonly [key: string]: JsonValue };
      for (const key of Object.keys(object)) {
        if (hasOwn(object, key)) members.set(key, { value: object[key] as JsonValue });
      }
    } else {
      const table = await KeyTable.stored(this.reader, side.link.id);
      for (const [key, link] of await table.all()) members.set(key, { link });
    }
    return members;
  }

  private async *lists(a: Side, b: Side, path: Path): AsyncGenerator<Change, void, undefined> {
    if ("link" in a && "link" in b) {
      for await (const region of changedElements(this.reader, a.link.id, b.link.id)) {
        yield* this.elements(region.a, region.b, region.aStart, region.bStart, path);
      }
      return;
    }
    yield* this.elements(await this.elementsOf(a), await this.elementsOf(b), 0, 0, path);
  }

  private async elementsOf(side: Side): Promise<SequenceElement[]> {
    const list = (await this.value(side)) as readonly JsonValue[];
    return list.map((value) => ({ text: canonicalText(value) }));
  }

  /** Aligns two stretches of elements; what stands against each other in a gap counts as changed. */
  private async *elements(
    a: readonly SequenceElement[],
    b: readonly SequenceElement[],
    aStart: number,
    bStart: number,
    path: Path,
  ): AsyncGenerator<Change, void, undefined> {
    const key = (e: SequenceElement) => ("text" in e ? e.text : e.link.id);
    const side = (e: SequenceElement): Side =>
      "text" in e ? { value: JSON.parse(e.text) as JsonValue } : { link: e.link };
    for (const gap of gaps(a.map(key), b.map(key))) {
      const both = Math.min(gap.aTo - gap.aFrom, gap.bTo - gap.bFrom);
      for (let i = 0; i < both; i++) {
        yield* this.sides(
          side(a[gap.aFrom + i] as SequenceElement),
          side(b[gap.bFrom + i] as SequenceElement),
          [...path, bStart + gap.bFrom + i],
        );
      }
      for (let i = gap.aFrom + both; i < gap.aTo; i++) {
        yield* this.sides(side(a[i] as SequenceElement), undefined, [...path, aStart + i]);
      }
      for (let i = gap.bFrom + both; i < gap.bTo; i++) {
        yield* this.sides(undefined, side(b[i] as SequenceElement), [...path, bStart + i]);
      }
    }
  }
}

function isContainer(value: JsonValue): boolean {
  return typeof value === "object" && value !== null;
}

function sorted<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}
