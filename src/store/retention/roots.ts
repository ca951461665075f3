import type { ObjectId } from "../../core/ids.js";
import { GENESIS_REF, HOLDS } from "../../refs/names.js";
import { BRANCHES, type RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";

const MERGES = "refs/merges/";
const TAGS = "refs/tags/";
/** What is on record for an audit; neither its payload nor its history is ever over. */
const AUDIT = GENESIS_REF.slice(0, GENESIS_REF.lastIndexOf("/") + 1);

/** What refs are at, by what kind of ref it is. */
export interface Roots {
  readonly audit: readonly ObjectId[];
  readonly branches: readonly ObjectId[];
  readonly merges: readonly ObjectId[];
  readonly tags: readonly ObjectId[];
  readonly holds: readonly ObjectId[];
  /** All others, such as reviews. */
  readonly others: readonly ObjectId[];
  readonly holdNames: readonly string[];
}

export async function readRoots({ storage, workflow }: Repository): Promise<Roots> {
  const rows = await storage.readRefs(workflow, { prefix: "refs/" });
  const below = (prefix: string) => rows.filter(({ name }) => name.startsWith(prefix)).map(idOf);
  const named = [AUDIT, BRANCHES, MERGES, TAGS, HOLDS];
  return {
    audit: below(AUDIT),
    branches: below(BRANCHES),
    merges: below(MERGES),
    tags: below(TAGS),
    holds: below(HOLDS),
    others: rows.filter(({ name }) => !named.some((one) => name.startsWith(one))).map(idOf),
    holdNames: rows
      .filter(({ name }) => name.startsWith(HOLDS))
      .map(({ name }) => name.slice(HOLDS.length)),
  };
}

/** Rows without `deleted` have an id. */
function idOf(row: RefRow): ObjectId {
  return row.id as ObjectId;
}
