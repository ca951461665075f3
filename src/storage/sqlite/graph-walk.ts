import type { ObjectId } from "../../core/ids.js";
import type { GraphNode } from "../port.js";

/**
 * Walks from the given commits to their ancestors: first the given ones that
 * are stored, then ancestors by falling generation, equal ones by id.
 *
 * A parent's generation is below its child's, so a heap of what was met and not
 * yet answered gives that order without looking ahead, whatever the length of
 * the history.
 */
export function walkGraph(
  starts: readonly ObjectId[],
  limit: number,
  read: (id: ObjectId) => GraphNode | undefined,
): GraphNode[] {
  const seen = new Set<ObjectId>();
  const meet = (id: ObjectId): GraphNode | undefined => {
    if (seen.has(id)) return undefined;
    seen.add(id);
    return read(id);
  };

  const answer: GraphNode[] = [];
  for (const id of starts) {
    if (answer.length >= limit) return answer;
    const node = meet(id);
    if (node !== undefined) answer.push(node);
  }

  const heap = new GraphHeap();
  const meetParents = (node: GraphNode) => {
    for (const parent of node.parents) {
      const met = meet(parent);
      if (met !== undefined) heap.push(met);
    }
  };
  if (answer.length < limit) for (const node of [...answer]) meetParents(node);
  while (answer.length < limit) {
    const node = heap.pop();
    if (node === undefined) break;
    answer.push(node);
    if (answer.length < limit) meetParents(node);
  }
  return answer;
}

function comesBefore(a: GraphNode, b: GraphNode): boolean {
  return a.generation > b.generation || (a.generation === b.generation && a.id < b.id);
}

/** A binary heap, next node first. */
class GraphHeap {
  readonly #nodes: GraphNode[] = [];

  push(node: GraphNode): void {
    const nodes = this.#nodes;
    let at = nodes.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!comesBefore(node, nodes[above]!)) break;
      nodes[at] = nodes[above]!;
      at = above;
    }
    nodes[at] = node;
  }

  pop(): GraphNode | undefined {
    const nodes = this.#nodes;
    const top = nodes[0];
    const last = nodes.pop();
    if (top === undefined || last === undefined || nodes.length === 0) return top;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= nodes.length) break;
      if (below + 1 < nodes.length && comesBefore(nodes[below + 1]!, nodes[below]!)) below++;
      if (!comesBefore(nodes[below]!, last)) break;
      nodes[at] = nodes[below]!;
      at = below;
    }
    nodes[at] = last;
    return top;
  }
}
