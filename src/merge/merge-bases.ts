import type { ObjectId } from "../core/ids.js";
import { DescendingWalk } from "./descending-walk.js";
import type { GraphReader } from "./graph-reader.js";

/** Marks of the walk: which side reaches a node, and whether a common ancestor above it does. */
const LEFT = 1;
const RIGHT = 2;
const COMMON = LEFT | RIGHT;
const STALE = 4;

/**
 * Finds all best common ancestors of a commit and a hypothetical merge of others, by falling
 * generation, equal ones by id: the set that `git merge-base --all a others...` answers.
 *
 * A node comes after all its descendants in the walk, with all their marks. So what is common
 * when it comes and not stale is a best common ancestor; there is nothing to take back, as Git
 * must, which walks by dates where it has no generations. The walk ends as soon as one side has
 * no open node, one that is not stale, on the frontier: below, everything of the other side
 * stays its own or is stale.
 *
 * @throws AgstateError `MISSING_OBJECT`
 */
export async function mergeBases(
  reader: GraphReader,
  a: ObjectId,
  others: readonly ObjectId[],
): Promise<ObjectId[]> {
  const [left, ...rights] = await reader.read([a, ...others]);
  const walk = new DescendingWalk(reader);
  walk.add(left!, LEFT);
  for (const right of rights) walk.add(right, RIGHT);

  const bases: { readonly id: ObjectId; readonly generation: number }[] = [];
  while (walk.waiting(COMMON) > 0 || (walk.waiting(LEFT) > 0 && walk.waiting(RIGHT) > 0)) {
    const node = walk.pop()!;
    let marks = walk.marks(node);
    if (marks === COMMON) {
      bases.push({ id: reader.graph.id(node), generation: reader.graph.generation(node) });
      marks |= STALE;
    }
    const reading = walk.expand(node, marks);
    if (reading !== undefined) await reading;
  }
  return bases
    .sort((x, y) => y.generation - x.generation || (x.id < y.id ? -1 : 1))
    .map(({ id }) => id);
}
