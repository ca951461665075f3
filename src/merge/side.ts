import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { isWithheld } from "../core/withheld.js";
import { canonicalText } from "../objects/canonical.js";
import { decodeValue } from "../objects/decode.js";
import { type AnyDraft, unfold } from "../objects/draft/draft.js";
import { KeyTable } from "../objects/draft/key-table.js";
import { type Draft, type DraftContext, LeafDraft, StoredDraft } from "../objects/draft/types.js";
import type { Link } from "../objects/encode.js";
import { hashObject } from "../objects/hash.js";
import type { ObjectReader } from "../objects/reader.js";
import { readRun } from "../objects/run-elements.js";
import { PLAIN_SEAL, type Seal } from "../objects/sealing.js";
import { readNode, type SequenceEntry } from "../objects/sequence.js";
import { treeKind } from "../objects/tree-kind.js";

/** A value that takes part in a merge: stored behind a link, or part of a blob that was read. */
export type Side = StoredSide | ValueSide;

interface StoredSide {
  readonly link: Link;
  readonly value?: undefined;
}

interface ValueSide {
  readonly link?: undefined;
  readonly value: JsonValue;
  /** How the value would be sealed, were it an object of its own; left out, not at all. */
  readonly seal?: Seal;
}

/** What stands at a path: a value, or none. */
export type MaybeSide = Side | undefined;

/** What a value is; of one that is withheld nobody knows. */
export type ValueKind = "object" | "list" | "text" | "number" | "boolean" | "null" | "withheld";

export const sideOf = (link: Link | undefined): MaybeSide => link && { link };

const ids = new WeakMap<Side, ObjectId>();

/**
 * What tells two values apart: the id of the object that the value is, or, when
 * it is part of a blob, would be. Sides at one path have equal identities just
 * when their values are equal.
 */
export function identity(side: Side): ObjectId {
  if (side.link !== undefined) return side.link.id;
  let id = ids.get(side);
  if (id === undefined) {
    id = hashObject("blob", (side.seal ?? PLAIN_SEAL).seal(canonicalText(side.value)).body);
    ids.set(side, id);
  }
  return id;
}

export function same(a: MaybeSide, b: MaybeSide): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a === b) return true;
  // What is sealed alike need not be sealed to be compared.
  if (a.link === undefined && b.link === undefined && a.seal === b.seal) {
    return canonicalText(a.value) === canonicalText(b.value);
  }
  return identity(a) === identity(b);
}

/** The draft of a side as it stands; what is behind a link is not sent again. */
export function draftOf(context: DraftContext, side: Side): Draft {
  return side.link === undefined
    ? new LeafDraft(context, side.value)
    : new StoredDraft(context, side.link);
}

/** The draft of a side for editing. */
export async function editable(context: DraftContext, side: Side): Promise<AnyDraft> {
  const draft =
    side.link === undefined ? new LeafDraft(context, side.value) : await context.open(side.link);
  return unfold(context, draft);
}

/** A side's value as a whole. */
export async function readValue(reader: ObjectReader, side: Side): Promise<JsonValue> {
  return side.link === undefined ? side.value : decodeValue(reader, side.link);
}

/** Takes what is in a blob at hand; trees, and what is withheld, stay behind their links. */
export async function opened(reader: ObjectReader, side: Side): Promise<Side> {
  if (side.link?.type !== "blob") return side;
  const object = await reader.read(side.link.id);
  if (object.type !== "blob") return side;
  const { text, seal = reader.seal } = object;
  const open: Side = { value: JSON.parse(text) as JsonValue, seal };
  ids.set(open, side.link.id);
  return open;
}

export async function kindOf(reader: ObjectReader, side: Side): Promise<ValueKind> {
  const open = await opened(reader, side);
  if (open.link !== undefined) {
    const object = await reader.read(open.link.id);
    if (object.type !== "tree") return "withheld";
    const kind = treeKind(object.entries);
    return kind === "fan" ? "object" : kind;
  }
  const { value } = open;
  if (isWithheld(value)) return "withheld";
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (isJsonObject(value)) return "object";
  return typeof value === "string" ? "text" : (typeof value as "number" | "boolean");
}

/** The kinds of some values; a missing one has none. */
export async function kindsOf(reader: ObjectReader, ...sides: MaybeSide[]): Promise<ValueKind[]> {
  const kinds: ValueKind[] = [];
  for (const side of sides) if (side !== undefined) kinds.push(await kindOf(reader, side));
  return kinds;
}

/** An object's members, looked up one by one, without reading the others. */
export class Members {
  private constructor(
    private readonly object: { readonly [key: string]: JsonValue } | null,
    private readonly table: KeyTable | null,
    private readonly link: Link | null,
    private readonly seal: Seal = PLAIN_SEAL,
  ) {}

  static readonly none = new Members({}, null, null);

  static async of(reader: ObjectReader, side: Side): Promise<Members> {
    const open = await opened(reader, side);
    return open.link === undefined
      ? new Members(
          open.value as { readonly [key: string]: JsonValue },
          null,
          null,
          open.seal ?? reader.seal,
        )
      : new Members(null, await KeyTable.stored(reader, open.link.id), open.link);
  }

  /** The members of a base: none, where there is none or nothing is known of it. */
  static async ofBase(reader: ObjectReader, side: MaybeSide): Promise<Members> {
    if (side === undefined) return Members.none;
    try {
      return await Members.of(reader, side);
    } catch (error) {
      if (isAgstateError(error, "ERASED", "WITHHELD")) return Members.none;
      throw error;
    }
  }

  async get(key: string): Promise<MaybeSide> {
    if (this.table !== null) return sideOf(await this.table.get(key));
    const object = this.object as { readonly [key: string]: JsonValue };
    if (!Object.hasOwn(object, key)) return undefined;
    return { value: object[key] as JsonValue, seal: this.seal };
  }

  private async all(): Promise<Map<string, Side>> {
    const all = new Map<string, Side>();
    if (this.table !== null) {
      for (const [key, link] of await this.table.all()) all.set(key, { link });
    } else {
      const { seal } = this;
      for (const [key, value] of Object.entries(this.object ?? {})) all.set(key, { value, seal });
    }
    return all;
  }

  /** The members that differ between two objects, sorted by key (UTF-16); equal parts are not read. */
  static async changed(
    reader: ObjectReader,
    a: Members,
    b: Members,
  ): Promise<[string, MaybeSide, MaybeSide][]> {
    const changed: [string, MaybeSide, MaybeSide][] = [];
    if (a.link !== null && b.link !== null) {
      for (const [key, [x, y]] of await KeyTable.changed(reader, a.link.id, b.link.id)) {
        changed.push([key, sideOf(x), sideOf(y)]);
      }
    } else {
      const [left, right] = [await a.all(), await b.all()];
      for (const key of new Set([...left.keys(), ...right.keys()])) {
        const [x, y] = [left.get(key), right.get(key)];
        if (!same(x, y)) changed.push([key, x, y]);
      }
    }
    return changed.sort(([x], [y]) => (x < y ? -1 : 1));
  }
}

/** All elements of a list, in order. */
export async function elementsOf(reader: ObjectReader, side: Side): Promise<Side[]> {
  const open = await opened(reader, side);
  if (open.link === undefined) {
    const { seal = reader.seal } = open;
    return (open.value as readonly JsonValue[]).map((value) => ({ value, seal }));
  }
  let level = [...readNode(await reader.tree(open.link.id), open.link.id)];
  // A level at a time, so that each costs one call.
  while (level.some((entry) => entry.kind === "n")) {
    await reader.readAll(level.filter(({ kind }) => kind === "n").map(({ id }) => id));
    const below: typeof level = [];
    for (const entry of level) {
      if (entry.kind !== "n") below.push(entry);
      else for (const e of readNode(await reader.tree(entry.id), entry.id)) below.push(e);
    }
    level = below;
  }
  await reader.readAll(level.filter(({ kind }) => kind === "r").map(({ id }) => id));
  const elements: Side[] = [];
  for (const entry of level) {
    for (const side of await sidesOf(reader, entry)) elements.push(side);
  }
  return elements;
}

/** The elements of an entry of a list that is no node. */
export async function sidesOf(reader: ObjectReader, entry: SequenceEntry): Promise<Side[]> {
  const { elements, seal } = await readRun(reader, entry);
  return elements.map((element) =>
    "id" in element
      ? { link: { type: element.type, id: element.id } }
      : { value: JSON.parse(element.text) as JsonValue, seal },
  );
}
