import assert from "node:assert/strict";
import type { CommitRecord, GraphNode, Storage } from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import { ABSENT, begin, chain, commit, move, mustMove, unknownId } from "../fixtures.js";

function nodeOf({ id, parents, generation, time }: CommitRecord): GraphNode {
  return { id, parents, generation, time };
}

const tell = (nodes: readonly GraphNode[]) =>
  nodes.map(({ id, parents, generation, time }) => ({
    id,
    parents: [...parents],
    generation,
    time,
  }));

/** Stores commits, parents before children. */
async function store(storage: Storage, commits: readonly CommitRecord[]): Promise<void> {
  await begin(storage, "w");
  await mustMove(storage, move("refs/heads/all", ABSENT, commits));
}

/** What `readGraph` must answer, the slow and plain way. */
function expected(commits: readonly CommitRecord[], starts: readonly CommitRecord[]): GraphNode[] {
  const byId = new Map(commits.map((c) => [c.id, c]));
  const reached = new Set<CommitRecord>();
  const visit = (c: CommitRecord) => {
    for (const id of c.parents) {
      const parent = byId.get(id)!;
      if (!reached.has(parent)) {
        reached.add(parent);
        visit(parent);
      }
    }
  };
  for (const start of starts) visit(start);
  const rest = [...reached].filter((c) => !starts.includes(c));
  rest.sort((a, b) => b.generation - a.generation || (a.id < b.id ? -1 : 1));
  return [...new Set(starts), ...rest].map(nodeOf);
}

export const graphCases: readonly ConformanceCase[] = [
  {
    name: "the graph is read by falling generation, each commit once, up to the limit",
    async run({ storage }) {
      const trunk = chain(6);
      const left = chain(5, trunk[2]);
      const right = chain(2, trunk[4]);
      const merge = commit({ parents: [left[4]!, right[1]!, trunk[5]!] });
      const lone = commit();
      const all = [...trunk, ...left, ...right, merge, lone];
      await store(storage, all);
      const cases = [[merge], [merge, lone], [trunk[5]!, merge], [left[0]!, left[0]!], [lone], []];
      for (const starts of cases) {
        const ids = starts.map((c) => c.id);
        const whole = expected(all, starts);
        for (const limit of [100, 1, 3, whole.length]) {
          const nodes = await storage.readGraph("w", ids, limit);
          assert.deepEqual(tell(nodes), tell(whole.slice(0, limit)));
        }
      }
      assert.deepEqual(await storage.readGraph("w", [merge.id], 0), []);
    },
  },
  {
    name: "long lines of history are read as short ones are, from wherever they are asked for",
    async run({ storage }) {
      const trunk = chain(80);
      const left = chain(60, trunk[2]);
      const right = chain(3, trunk[50]);
      const merge = commit({ parents: [left[59]!, right[2]!, trunk[79]!] });
      const far = chain(30, merge);
      const all = [...trunk, ...left, ...right, merge, ...far];
      await store(storage, all);
      const cases = [
        [far[29]!],
        [far[29]!, trunk[40]!],
        [left[30]!, far[20]!, trunk[79]!, left[30]!],
        [trunk[79]!, trunk[10]!, trunk[45]!],
      ];
      for (const starts of cases) {
        const ids = starts.map((c) => c.id);
        const whole = expected(all, starts);
        for (const limit of [1, 2, 7, 29, 30, 31, 32, 60, 75, 76, 100, whole.length, 1000]) {
          const nodes = await storage.readGraph("w", ids, limit);
          assert.deepEqual(tell(nodes), tell(whole.slice(0, limit)));
        }
      }
    },
  },
  {
    name: "ids that are not stored are left out of the graph",
    async run({ storage }) {
      const line = chain(3);
      await store(storage, line);
      const ids = [unknownId(), line[2]!.id, unknownId()];
      const nodes = await storage.readGraph("w", ids, 10);
      assert.deepEqual(tell(nodes), tell([...line].reverse().map(nodeOf)));
      assert.deepEqual(await storage.readGraph("none", [line[2]!.id], 10), []);
    },
  },
  {
    name: "a long history with many merges is walked to its root",
    async run({ storage, small }) {
      const line = chain(small ? 2000 : 20_000);
      const merges: CommitRecord[] = [];
      let tip = line.at(-1)!;
      for (let i = 0; i < line.length / 20; i++) {
        tip = commit({ parents: [tip, line[i * 7]!] });
        merges.push(tip);
      }
      await store(storage, [...line, ...merges]);
      const nodes = await storage.readGraph("w", [tip.id], 30_000);
      assert.equal(nodes.length, line.length + merges.length);
      assert.equal(nodes.at(-1)!.id, line[0]!.id);
      assert.ok(nodes.every((n, i) => i === 0 || n.generation <= nodes[i - 1]!.generation));
    },
  },
  {
    name: "commits are found by external id, oldest first",
    async run({ storage }) {
      await begin(storage, "w", "other");
      const root = commit({ externalId: "x" });
      const next = commit({ parents: [root], externalId: "x", time: 5 });
      const twin = commit({ parents: [root], externalId: "x", time: 3 });
      const rest = [commit({ externalId: "X" }), commit({ externalId: "" }), commit()];
      for (const [i, c] of [root, next, twin, ...rest].entries()) {
        await mustMove(storage, move(`refs/heads/b${i}`, ABSENT, [c]));
      }
      const find = (id: string, w = "w") => storage.findExternal(w, id);
      assert.deepEqual(await find("x"), [root.id, twin.id, next.id]);
      assert.deepEqual(await find("X"), [rest[0]!.id]);
      assert.deepEqual(await find(""), [rest[1]!.id]);
      assert.deepEqual(await find("y"), []);
      assert.deepEqual(await find("x", "other"), []);
      assert.deepEqual(await find("x", "none"), []);
    },
  },
];
