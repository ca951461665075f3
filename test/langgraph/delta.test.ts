import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type CheckpointMetadata,
  DeltaSnapshot,
  ERROR,
  emptyCheckpoint,
  INTERRUPT,
  RESUME,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { withReadBelow } from "../support/read-below.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

const META: CheckpointMetadata = { source: "loop", step: 0, parents: {} };
const CHANNELS = ["a", "b", "never", TASKS, ERROR, INTERRUPT];

function config(checkpoint?: string, namespace = ""): RunnableConfig {
  return {
    configurable: { thread_id: "t", checkpoint_ns: namespace, checkpoint_id: checkpoint },
  };
}

let version = 0;

interface Put {
  readonly id: string;
  readonly parent?: string | undefined;
  readonly namespace?: string;
  readonly values?: Readonly<Record<string, unknown>>;
  readonly v?: number;
  readonly metadata?: CheckpointMetadata;
}

/** Puts a checkpoint in which every channel is new; one of the channels named may have no value. */
function put(saver: AgstateSaver, { id, parent, namespace, values = {}, v = 4, metadata }: Put) {
  const versions: ChannelVersions = {};
  for (const channel of ["a", "b", ...Object.keys(values)]) versions[channel] = ++version;
  const checkpoint = {
    ...emptyCheckpoint(),
    v,
    id,
    channel_values: values,
    channel_versions: versions,
  };
  return saver.put(config(parent, namespace), checkpoint, metadata ?? META, versions);
}

/** What LangGraph's own walk finds, which asks for one ancestor after the other. */
function walked(saver: AgstateSaver, of: RunnableConfig, channels: readonly string[]) {
  const { getDeltaChannelHistory: walk } = BaseCheckpointSaver.prototype;
  return walk.call(saver, { config: of, channels: [...channels] });
}

/** A line of checkpoints, the first with the list, each with what a task wrote below it. */
async function line(saver: AgstateSaver, length: number, values: Put["values"] = {}) {
  for (let i = 0; i < length; i++) {
    const parent = i === 0 ? undefined : nameOf(i - 1);
    const list = i === 0 ? { a: new DeltaSnapshot([-1]) } : {};
    const at = await put(saver, { id: nameOf(i), parent, values: { ...values, ...list } });
    await saver.putWrites(at, [["a", [i]]], `task${i}`);
  }
}

function nameOf(index: number): string {
  return `c${String(index).padStart(4, "0")}`;
}

const write = fc.record({
  below: fc.nat(),
  task: fc.constantFrom("one", "two", "\u{1f600}"),
  path: fc.constantFrom("", "path", "\ue000", "~__pregel_pull, one"),
  channels: fc.array(fc.constantFrom("a", "a", "b", "c", TASKS, ERROR, INTERRUPT, RESUME), {
    minLength: 1,
    maxLength: 3,
  }),
});
const value = fc.constantFrom<unknown>(
  [],
  ["x"],
  new DeltaSnapshot(["s"]),
  new Map([["k", 1]]),
  undefined,
  null,
  "long ".repeat(500),
);
const checkpoint = fc.record({
  /** Counted from the last one, so that lines become long; beyond the first: none, or one that is put later or never. */
  parent: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(12)),
  namespace: fc.constantFrom("", "", "", "", "sub"),
  v: fc.constantFrom(4, 4, 4, 3),
  values: fc.dictionary(fc.constantFrom("a", "b", "c", TASKS), value, { maxKeys: 1 }),
  /** The same checkpoint once more, after so many others. */
  again: fc.option(fc.nat(6), { freq: 4, nil: undefined }),
});

describe.each(BACKENDS)("the history of delta channels, on %s", (backend) => {
  async function begin(wrap?: (storage: Storage) => Storage, cacheMaxBytes = 16 << 20) {
    const made = await makeStore(backend, {
      ...(wrap && { wrap }),
      limits: { cacheMaxBytes },
    });
    const cold = async () => new AgstateSaver(await made.another());
    return { ...made, saver: new AgstateSaver(made.store), cold };
  }

  /** Each of a backend's ways to read ahead, or not to. */
  const ways: (((storage: Storage) => Storage) | undefined)[] =
    backend === "postgres" ? [undefined] : [undefined, withReadBelow];

  it.each(ways)("is what LangGraph's own walk finds (%s)", async (wrap) => {
    const { saver, cold } = await begin(wrap, 4096);
    const other = await cold();
    const property = fc.asyncProperty(
      fc.array(checkpoint, { minLength: 1, maxLength: 24 }),
      fc.array(write, { maxLength: 30 }),
      fc.nat(),
      async (checkpoints, writes, seed) => {
        await saver.deleteThread("t");
        const due: (Put & { at: number })[] = checkpoints.flatMap(
          ({ parent, again, ...each }, i) => {
            // What is put out of order has a parent that comes later.
            const at = (seed + i) % 7 === 0 ? i + 2.5 : i;
            const base = { ...each, id: nameOf(i), parent: parentOf(i, parent) };
            const more = { ...base, parent: parentOf(i, parent + 1), values: { b: i } };
            return again === undefined
              ? [{ ...base, at }]
              : [
                  { ...base, at },
                  { ...more, at: at + again + 0.1 },
                ];
          },
        );
        const last = new Map<string | undefined, string>();
        const known = new Set<string>();
        for (const each of due.sort((a, b) => a.at - b.at)) {
          // A checkpoint of a higher id than the latest, on top of it, is taken for a new one.
          const latest = last.get(each.namespace) ?? "";
          if (known.has(each.id) && each.parent === latest && each.id > latest) continue;
          await put(saver, each);
          known.add(each.id);
          last.set(each.namespace, each.id);
        }
        for (const { below, task, path, channels } of writes) {
          const index = below % checkpoints.length;
          const at = config(nameOf(index), checkpoints[index]?.namespace);
          const values = channels.map((channel, i): [string, unknown] => [channel, `${task}${i}`]);
          await saver.putWrites(at, values, task, path);
        }
        for (const namespace of ["", "sub"]) {
          for (const id of [undefined, "unknown", ...checkpoints.keys()]) {
            const of = config(typeof id === "number" ? nameOf(id) : id, namespace);
            const expected = await walked(saver, of, CHANNELS);
            for (const each of [saver, other]) {
              const found = await each.getDeltaChannelHistory({ config: of, channels: CHANNELS });
              expect(found, String(each === saver) + JSON.stringify(of)).toStrictEqual(expected);
            }
          }
        }
      },
    );
    await fc.assert(property, {
      numRuns: Number(process.env.AGSTATE_RUNS ?? 12),
      endOnFailure: true,
    });
  });

  it("is empty of channels that nobody wrote, of what is not there, and of no channels", async () => {
    const { saver } = await begin();
    const empty = { a: { writes: [] }, __proto__: { writes: [] } };
    const channels = ["a", "__proto__"];
    const none = Object.fromEntries(channels.map((name) => [name, { writes: [] }]));
    expect(Object.keys(empty)).toEqual(["a"]);
    for (const stored of [false, true]) {
      if (stored) await put(saver, { id: "root" });
      for (const of of [config(), config("x"), config("x", "other"), { configurable: {} }, {}]) {
        const found = await saver.getDeltaChannelHistory({ config: of, channels });
        expect(Object.entries(found)).toStrictEqual(Object.entries(none));
      }
    }
    expect(await saver.getDeltaChannelHistory({ config: config(), channels: [] })).toEqual({});
    const bad = { config: { configurable: { thread_id: 7 } }, channels };
    await expect(saver.getDeltaChannelHistory(bad)).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { field: "thread_id" }),
    );
  });

  it("has each checkpoint once where the parents go in a circle", async () => {
    const { saver } = await begin();
    await put(saver, { id: "one" });
    await saver.putWrites(config("one"), [["a", 1]], "task");
    await put(saver, { id: "two", parent: "one" });
    await saver.putWrites(config("two"), [["a", 2]], "task");
    await put(saver, { id: "one", parent: "two" });
    const found = await saver.getDeltaChannelHistory({ config: config("one"), channels: ["a"] });
    expect(found.a?.writes.map(([, , each]) => each)).toEqual([2]);
  });

  it("does not count as having read a checkpoint by its id, which would make a fork of a lost race", async () => {
    const { store } = await begin();
    const saver = new AgstateSaver(store, { concurrentPuts: "refuse" });
    await put(saver, { id: "one" });
    await put(saver, { id: "two", parent: "one" });
    await put(saver, { id: "three", parent: "two" });
    await saver.getDeltaChannelHistory({ config: config("two"), channels: ["a"] });
    for (const parent of ["one", "two"]) {
      await expect(put(saver, { id: "late", parent })).rejects.toEqual(
        agstateError("REF_CONFLICT", { actual: "three" }),
      );
    }
  });

  describe.each(ways)("of a long line (%s)", (way) => {
    /** Counts from outside what a newcomer's calls are. */
    async function counted(cacheMaxBytes?: number) {
      let counter = counting({} as Storage);
      const made = await begin((storage) => {
        counter = counting(way?.(storage) ?? storage);
        return counter.storage;
      }, cacheMaxBytes);
      const cost = async <T>(act: (saver: AgstateSaver) => Promise<T>) => {
        const cold = await made.cold();
        counter.reset();
        return { found: await act(cold), counts: counter.counts() };
      };
      return { ...made, cost };
    }

    it.runIf(backend !== "memory").each([
      ["small frames", META, 2],
      ["frames of 10 KB", { ...META, large: "x ".repeat(5000) }, 4],
    ] as const)("costs few calls a page, with %s", async (_, metadata, most) => {
      const { saver, cost } = await counted();
      await line(saver, 1);
      for (let i = 1; i <= 200; i++) {
        const at = await put(saver, {
          id: nameOf(i),
          parent: nameOf(i - 1),
          metadata: { ...metadata, step: i },
          values: { c: i },
        });
        await saver.putWrites(at, [["a", [i]]], `task${i}`);
      }
      // Pages of 20, 40, 80 and 100 commits.
      const pages = 4;
      const below = backend === "postgres" || way !== undefined;
      for (const of of [config(), config(nameOf(200))]) {
        const { found, counts } = await cost((cold) =>
          cold.getDeltaChannelHistory({ config: of, channels: ["a"] }),
        );
        expect(found.a?.writes.map(([, , each]) => each)).toEqual(
          Array.from({ length: 200 }, (_, i) => [i]),
        );
        expect(found.a?.seed).toEqual(new DeltaSnapshot([-1]));
        expect(counts.calls.readPending).toBe(pages);
        // The thread, its branches, and what has the id.
        const first = of.configurable?.checkpoint_id === undefined ? 2 : 3;
        expect(counts.roundTrips).toBeLessThanOrEqual(first + pages * (below ? most : 4 + most));
      }
    });

    it.runIf(backend !== "memory")("reads of each ancestor only what is asked for", async () => {
      const { saver, cost } = await counted();
      for (let i = 0; i < 30; i++) {
        const values = i === 3 ? { a: [words(0)] } : {};
        const other = { c: words(i + 1) };
        const parent = i === 0 ? undefined : nameOf(i - 1);
        const at = await put(saver, { id: nameOf(i), parent, values: { ...values, ...other } });
        await saver.putWrites(at, [["a", i]], "task");
      }
      const { found, counts } = await cost((cold) =>
        cold.getDeltaChannelHistory({ config: config(), channels: ["a"] }),
      );
      expect(found.a?.seed).toEqual([words(0)]);
      expect(found.a?.writes).toHaveLength(26);
      expect(counts.bytesRead).toBeGreaterThan(50_000);
      // The values of the other channel are 1.8 MB together.
      expect(counts.bytesRead).toBeLessThan(600_000);
    });

    it("is not hindered by damage below the value from which it goes on", async () => {
      const lost = new Set<string>();
      const hide = (storage: Storage): Storage => ({
        ...forward(storage),
        readCommits: async (w, ids) =>
          (await storage.readCommits(w, ids)).map((each) =>
            each !== undefined && lost.has(each.id) ? undefined : each,
          ),
        readGraph: async (w, ids, limit) =>
          (await storage.readGraph(w, ids, limit)).filter(({ id }) => !lost.has(id)),
      });
      const { saver, store, cold } = await begin((storage) => {
        const hidden = hide(storage);
        delete hidden.readBelow;
        delete hidden.readGraphNear;
        return way?.(hidden) ?? hidden;
      });
      await line(saver, 3);
      const values = { a: ["whole"] };
      await put(saver, { id: nameOf(3), parent: nameOf(2), values });
      await put(saver, { id: nameOf(4), parent: nameOf(3) });
      const workflow = await store.workflow("t");
      const [root] = await workflow.internals.storage.findExternal("t", nameOf(0));
      lost.add(root as string);
      if (backend === "memory") return;
      const damaged = await cold();
      const request = { config: config(), channels: ["a"] };
      expect(await damaged.getDeltaChannelHistory(request)).toEqual({
        a: { writes: [], seed: ["whole"] },
      });
      await expect(
        damaged.getDeltaChannelHistory({ config: config(nameOf(3)), channels: ["a"] }),
      ).rejects.toEqual(agstateError("MISSING_OBJECT", { id: root }));
    });
  });
});

/** Some 60 KB of text, of which two have nothing in common. */
function words(seed: number): string {
  return Array.from({ length: 6000 }, (_, i) => `${seed}:${i * 7919}`).join(" ");
}

/** The parent of a checkpoint, so many before the one that it would follow. */
function parentOf(index: number, before: number): string | undefined {
  const parent = index - 1 - before;
  if (parent >= 0) return nameOf(parent);
  return before % 3 === 0 ? "missing" : undefined;
}
