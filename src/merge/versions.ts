import type { ObjectId } from "../core/ids.js";
import { BELOW_MAX_BYTES, BELOW_MAX_OBJECTS, type ObjectReader } from "../objects/reader.js";
import type { TreeEntry } from "../objects/tree.js";
import { treeKind } from "../objects/tree-kind.js";

/**
 * The different versions of one place: each the object that its value is, or those nodes and runs of
 * a list that not all versions have; nothing where there is no value.
 */
type Place = readonly (readonly ObjectId[])[];

/** Two versions differ: where a diff looks, and where buckets of keys are compared. */
export const COMPARED = 2;
/** Fewer versions are nothing to merge: one side has what the base has, or both made the same of it. */
export const MERGED = 3;

/**
 * Reads ahead what a comparison or a merge of versions of a value will look at: a level of all their
 * trees in each call to the storage, and only where versions differ.
 *
 * @param roots for each value its versions: of the bases, of ours and of all sources
 * @param least how many different versions of a place there must be for it to be looked at
 */
export async function readVersions(
  reader: ObjectReader,
  roots: readonly (readonly (ObjectId | undefined)[])[],
  least: typeof COMPARED | typeof MERGED,
): Promise<void> {
  let places = roots
    .map((ids): Place => [...new Set(ids)].map((id) => (id === undefined ? [] : [id])))
    .filter((place) => place.length >= least);
  while (places.length > 0) {
    const ids = [...new Set(places.flat(2))];
    const absent = ids.filter((id) => !reader.has(id));
    // Too much to be held until it is asked for.
    if (absent.length > BELOW_MAX_OBJECTS) return;
    const limits = { maxObjects: absent.length, maxBytes: BELOW_MAX_BYTES };
    const read = absent.length > 0 ? await reader.readAhead({ ids: absent, ...limits }) : null;
    const entriesOf = (id: ObjectId): readonly TreeEntry[] => {
      const object = read?.objects.get(id) ?? reader.peek(id);
      return object?.type === "tree" ? object.entries : [];
    };
    places = places.flatMap((place) =>
      below(
        place.map((version) => version.map(entriesOf)),
        least,
      ),
    );
  }
}

/** The places below one, as far as a merge goes down there; each version as the trees that it is made of. */
function below(versions: readonly (readonly (readonly TreeEntry[])[])[], least: number): Place[] {
  const kinds = new Set(
    versions
      .flat()
      .filter((entries) => entries.length > 0)
      .map(treeKind),
  );
  if (kinds.size !== 1) return [];
  const flat = versions.map((trees) => trees.flat());
  const [kind] = kinds;
  switch (kind) {
    case "text":
      return [];
    case "list":
      return [partsOfLists(flat)];
    default:
      return kind === "fan" ? membersOf(flat, COMPARED, 3) : membersOf(flat, least);
  }
}

/** Of each list the nodes and runs that the others do not all have, and its last node, from which its length is told. */
function partsOfLists(lists: readonly (readonly TreeEntry[])[]): Place {
  const holders = new Map<ObjectId, number>();
  for (const list of lists) {
    for (const id of new Set(list.map((entry) => entry.id))) {
      holders.set(id, (holders.get(id) ?? 0) + 1);
    }
  }
  return lists.map((list) =>
    list
      .filter(({ id, name, type }, i) => {
        const kind = name[3];
        if (kind === "n" && type === "tree" && i === list.length - 1) return true;
        return kind !== "e" && holders.get(id) !== lists.length;
      })
      .map(({ id }) => id),
  );
}

/**
 * Members of objects, or buckets of their fan-outs, of which there are enough versions.
 *
 * @param nameLength how much of a name tells: that of a bucket goes on with the number of its keys
 */
function membersOf(
  objects: readonly (readonly TreeEntry[])[],
  least: number,
  nameLength?: number,
): Place[] {
  const members = new Map<string, { readonly ids: Set<ObjectId>; holders: number }>();
  for (const entries of objects) {
    for (const { name, id } of entries) {
      const key = name.slice(0, nameLength);
      const member = members.get(key) ?? { ids: new Set(), holders: 0 };
      member.ids.add(id);
      member.holders++;
      members.set(key, member);
    }
  }
  const places: Place[] = [];
  for (const { ids, holders } of members.values()) {
    const count = ids.size + (holders < objects.length ? 1 : 0);
    if (count >= least) places.push([...ids].map((id) => [id]));
  }
  return places;
}
