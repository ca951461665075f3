import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { CommitGraph } from "../../src/merge/commit-graph.js";
import type { GraphNode } from "../../src/storage/port.js";
import { chain, commit, digest, move, mustMove, unknownId } from "../../src/testing/fixtures.js";
import { dagArbitrary, dagNodes, fakeId, packGraph } from "../support/dag.js";
import { makeStore } from "../support/stores.js";

function nodesOf(graph: CommitGraph, ids: readonly ObjectId[]): (GraphNode | null)[] {
  return ids.map((id) => {
    const number = graph.number(id);
    return graph.isRead(number) ? graph.node(number) : null;
  });
}

describe("commits in memory", () => {
  it("are given back as they were taken in, one by one or packed, in any order", () => {
    const property = fc.property(
      dagArbitrary({ maxCommits: 400, maxParents: 6 }),
      fc.boolean(),
      fc.boolean(),
      (dag, hashed, reversed) => {
        // Real ids are spread; those of the other tests differ in their last digits only.
        const ids = dag.commits.map((_, i) => (hashed ? digest(`${i}`) : fakeId(i + 1)));
        const nodes = dagNodes(dag, ids);
        const order = reversed ? nodes.toReversed() : nodes;
        const single = new CommitGraph();
        for (const node of order) single.add(node);
        const packed = new CommitGraph();
        expect(packed.addPacked(packGraph(order))).toBe(nodes.length);
        const both = new CommitGraph();
        both.addPacked(packGraph(order.slice(0, 20)));
        for (const node of order) both.add(node);
        both.addPacked(packGraph(order));
        for (const graph of [single, packed, both]) {
          expect(nodesOf(graph, ids)).toEqual(nodes);
          expect(graph.size).toBe(nodes.length);
        }
      },
    );
    fc.assert(property, { numRuns: 100 });
  });

  it("are many, and each is found", () => {
    const graph = new CommitGraph();
    const ids = Array.from({ length: 20_000 }, (_, i) => digest(`${i}`));
    const numbers = ids.map((id) => graph.number(id));
    expect(new Set(numbers).size).toBe(ids.length);
    expect(ids.map((id) => graph.number(id))).toEqual(numbers);
    expect(numbers.map((number) => graph.id(number))).toEqual(ids);
    expect(numbers.some((number) => graph.isRead(number))).toBe(false);
  });

  it("are taken from a packed answer up to where it is damaged, at any alignment", () => {
    const ids = Array.from({ length: 5 }, (_, i) => digest(`${i}`));
    const nodes = ids.map((id, i): GraphNode => {
      return { id, parents: ids.slice(Math.max(0, i - 2), i), generation: i + 1, time: 7 * i };
    });
    const whole = Buffer.from(packGraph(nodes));
    const lengths = nodes.map((node) => packGraph([node]).length);
    const third = lengths[0]! + lengths[1]!;
    const garbled = (at: number, text: string) => {
      const copy = Buffer.from(whole);
      copy.write(text, third + at);
      return copy;
    };
    for (const damaged of [
      whole.subarray(0, third),
      whole.subarray(0, third + 5),
      whole.subarray(0, third + lengths[2]! - 1),
      garbled(0, "-"),
      garbled(3, "x"),
      garbled(21, " "),
      garbled(22, "99"),
    ]) {
      for (const offset of [0, 1, 2, 3]) {
        const graph = new CommitGraph();
        const room = Buffer.alloc(damaged.length + offset);
        damaged.copy(room, offset);
        expect(graph.addPacked(room.subarray(offset))).toBe(2);
        expect(nodesOf(graph, ids)).toEqual([nodes[0], nodes[1], null, null, null]);
      }
    }
  });
});

describe("what SQLite reads near a commit", () => {
  it("is what it reads exactly: the commits asked for, and others of the workflow up to the limit", async () => {
    const { store } = await makeStore("sqlite");
    await store.createWorkflow("w");
    await store.createWorkflow("v");
    const { storage } = (await store.workflow("w")).internals;
    const line = chain(120);
    const side = chain(30, line[40]);
    const merge = commit({ parents: [line.at(-1)!, side.at(-1)!, line[3]!] });
    const any = { kind: "any" } as const;
    for (let i = 0; i < line.length; i += 10) {
      await mustMove(storage, move("refs/heads/line", any, line.slice(i, i + 10)));
      await storage.write({
        ...{ workflow: "v", objects: [], atomic: true },
        moves: [move("refs/heads/x", any, chain(3))],
      });
    }
    await mustMove(storage, move("refs/heads/side", any, side));
    await mustMove(storage, move("refs/heads/merge", any, [merge]));
    // With the two that every workflow begins with.
    const all = (await storage.scanCommits("w", null, 1000)).rows.map(
      ({ id, parents, generation, time }) => ({ id, parents, generation, time }),
    );
    expect(all.length).toBe(line.length + side.length + 3);

    const readNear = async (ids: readonly ObjectId[], limit: number) => {
      const graph = new CommitGraph();
      const count = graph.addPacked(await storage.readGraphNear!("w", ids, limit));
      const found = nodesOf(
        graph,
        all.map((node) => node.id),
      ).filter((node) => node !== null);
      // Nothing of the other workflow: all that came was compared.
      expect(found.length).toBe(count);
      expect(all).toEqual(expect.arrayContaining(found));
      return found.map((node) => node.id);
    };
    expect(new Set(await readNear([merge.id], 1000))).toEqual(new Set(all.map(({ id }) => id)));
    expect(await readNear([line[60]!.id], 0)).toEqual([line[60]!.id]);
    const some = await readNear([line[60]!.id, line[2]!.id, unknownId(), merge.id], 20);
    for (const id of [line[60]!.id, line[59]!.id, line[2]!.id, merge.id])
      expect(some).toContain(id);
    expect(some.length).toBeLessThanOrEqual(20 + 3);
    expect(await readNear([unknownId()], 20)).toEqual([]);
    expect((await storage.readGraphNear!("none", [merge.id], 20)).length).toBe(0);
  });
});
