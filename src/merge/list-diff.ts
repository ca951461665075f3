import type { ObjectId } from "../core/ids.js";
import type { Link } from "../objects/encode.js";
import type { ObjectReader } from "../objects/reader.js";
import { runElements } from "../objects/run-elements.js";
import { readNode, type SequenceEntry } from "../objects/sequence.js";
import { gaps } from "./align.js";

/** A list element: its canonical text, or a link when it stands alone. */
export type SequenceElement = { readonly text: string } | { readonly link: Link };

/** A stretch of elements in which two lists may differ; everything outside is equal. */
export interface Region {
  readonly a: readonly SequenceElement[];
  readonly b: readonly SequenceElement[];
  /** Index of the first element of `a` in the older list, of `b` in the newer. */
  readonly aStart: number;
  readonly bStart: number;
}

interface Placed {
  readonly entry: SequenceEntry;
  readonly start: number;
}

/** A stretch of entries of both lists that is still to be compared. */
interface Stretch {
  readonly a: readonly Placed[];
  readonly b: readonly Placed[];
  readonly aStart: number;
  readonly bStart: number;
}

/**
 * Finds where two stored lists differ, in order, reading only nodes and runs
 * whose ids differ: entries are aligned by id, level by level, so that the cost
 * follows the change and not the list.
 */
export async function* changedElements(
  reader: ObjectReader,
  a: ObjectId,
  b: ObjectId,
): AsyncGenerator<Region, void, undefined> {
  let [left, right] = [await expand(reader, a, 0), await expand(reader, b, 0)];
  // A deeper list is opened down to the other's height first, so that like is held against like.
  let deeper = (await height(reader, a)) - (await height(reader, b));
  for (; deeper > 0; deeper--) left = await open(reader, left);
  for (; deeper < 0; deeper++) right = await open(reader, right);
  const work: Stretch[] = [{ a: left, b: right, aStart: 0, bStart: 0 }];
  while (work.length > 0) {
    const next = work.pop() as Stretch;
    const found = gaps(next.a.map(keyOf), next.b.map(keyOf)).map((gap): Stretch => {
      const a = next.a.slice(gap.aFrom, gap.aTo);
      const b = next.b.slice(gap.bFrom, gap.bTo);
      return {
        a,
        b,
        aStart: a[0]?.start ?? endOf(next.a, gap.aFrom, next.aStart),
        bStart: b[0]?.start ?? endOf(next.b, gap.bFrom, next.bStart),
      };
    });
    if (next.a.some(isNode) || next.b.some(isNode)) {
      for (const gap of found.reverse()) {
        work.push({ ...gap, a: await open(reader, gap.a), b: await open(reader, gap.b) });
      }
    } else {
      for (const gap of found) {
        yield { ...gap, a: await elements(reader, gap.a), b: await elements(reader, gap.b) };
      }
    }
  }
}

/** How many levels of nodes a list has. */
async function height(reader: ObjectReader, root: ObjectId): Promise<number> {
  let levels = 1;
  for (let id = root; ; levels++) {
    const first = readNode(await reader.tree(id), id)[0];
    if (first?.kind !== "n") return levels;
    id = first.id;
  }
}

const keyOf = (placed: Placed): string => placed.entry.kind + placed.entry.id;
const isNode = (placed: Placed): boolean => placed.entry.kind === "n";

function endOf(list: readonly Placed[], index: number, otherwise: number): number {
  const before = list[index - 1];
  return before === undefined ? otherwise : before.start + before.entry.count;
}

async function expand(reader: ObjectReader, id: ObjectId, start: number): Promise<Placed[]> {
  let at = start;
  return readNode(await reader.tree(id), id).map((entry) => {
    const placed = { entry, start: at };
    at += entry.count;
    return placed;
  });
}

/** Opens the nodes of a stretch; what is no node (the other list is deeper) stays. */
async function open(reader: ObjectReader, list: readonly Placed[]): Promise<Placed[]> {
  await reader.readAll(list.filter(isNode).map((placed) => placed.entry.id));
  const opened: Placed[] = [];
  for (const placed of list) {
    if (!isNode(placed)) opened.push(placed);
    else for (const p of await expand(reader, placed.entry.id, placed.start)) opened.push(p);
  }
  return opened;
}

async function elements(reader: ObjectReader, list: readonly Placed[]): Promise<SequenceElement[]> {
  const runs = list.filter((placed) => placed.entry.kind === "r");
  await reader.readAll(runs.map((placed) => placed.entry.id));
  const found: SequenceElement[] = [];
  for (const { entry } of list) {
    for (const element of await runElements(reader, entry)) {
      found.push("id" in element ? { link: element } : element);
    }
  }
  return found;
}
