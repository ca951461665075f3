import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointTuple,
  emptyCheckpoint,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { forkRef } from "../../src/langgraph/names.js";
import { counting } from "../../src/storage/decorators/counting.js";
import type { Storage } from "../../src/storage/port.js";
import { withReadBelow } from "../support/read-below.js";
import { all, BACKENDS, makeStore } from "../support/stores.js";

const LARGE = "word ".repeat(1000);

function at(namespace: string, id?: string): RunnableConfig {
  return { configurable: { thread_id: "t", checkpoint_ns: namespace, checkpoint_id: id } };
}

/** Puts a checkpoint of this id, with one pending write of its own. */
async function put(
  saver: AgstateSaver,
  from: RunnableConfig,
  id: string,
  metadata: Record<string, unknown>,
): Promise<RunnableConfig> {
  const checkpoint: Checkpoint = {
    ...emptyCheckpoint(),
    id,
    channel_values: { text: `${id} ${LARGE}` },
    channel_versions: { text: id },
  };
  const given = { source: "loop", step: 0, parents: {}, ...metadata } as CheckpointMetadata;
  const config = await saver.put(from, checkpoint, given, checkpoint.channel_versions);
  await saver.putWrites(config, [["text", id]], "task");
  return config;
}

function idOf({ checkpoint, config }: CheckpointTuple): string {
  return `${config.configurable?.checkpoint_ns}|${checkpoint.id}`;
}

describe.each(BACKENDS)("AgstateSaver.list, on %s", (backend) => {
  /** A saver, and one that counts what it reads, cold. */
  async function begin() {
    let counter: ReturnType<typeof counting> | undefined;
    const wrap = (storage: Storage) => {
      counter = counting(backend === "sqlite" ? withReadBelow(storage) : storage);
      return counter.storage;
    };
    const made = await makeStore(backend, { wrap });
    const cold = async () => {
      const saver = new AgstateSaver(await made.another());
      // Without what opening the thread costs.
      await saver.getTuple(at("nothing is here"));
      counter?.reset();
      return saver;
    };
    const counts = () => (counter as ReturnType<typeof counting>).counts();
    return { ...made, saver: new AgstateSaver(made.store), cold, counts };
  }

  async function fill(saver: AgstateSaver, length: number, metadata: object = {}) {
    let from = at("");
    for (let step = 0; step < length; step++)
      from = await put(saver, from, `c-${step + 1000}`, { ...metadata, step });
  }

  it("gives what a list of all, filtered and cut by the caller, has", async () => {
    const { saver, cold } = await begin();
    const name = fc.constantFrom("", "a", "a|b");
    const puts = fc.array(
      fc.record({ name, id: fc.integer({ min: 0, max: 30 }), from: fc.nat(40), kind: fc.nat(2) }),
      { minLength: 30, maxLength: 40 },
    );
    const [history] = fc.sample(puts, { numRuns: 1, seed: 7 });
    const made: RunnableConfig[] = [];
    for (const { name, id, from, kind } of history ?? []) {
      const parents = made.filter(({ configurable }) => configurable?.checkpoint_ns === name);
      const parent = parents[from % (parents.length + 1)] ?? at(name);
      // Some frames are larger than a row.
      const metadata = { kind, ...(kind === 2 && { note: LARGE }) };
      made.push(await put(saver, parent, `c-${id}`, metadata));
    }
    const reader = await cold();
    const everything = await all(reader.list(at(undefined as unknown as string)));
    expect(everything.length).toBeGreaterThan(25);
    const option = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
    const requests = fc.record({
      namespace: option(name),
      limit: option(fc.nat(everything.length + 1)),
      before: option(fc.integer({ min: 0, max: 30 }).map((id) => `c-${id}`)),
      kind: option(fc.nat(3)),
    });
    await fc.assert(
      fc.asyncProperty(requests, async ({ namespace, limit, before, kind }) => {
        const expected = everything.filter(
          ({ config: { configurable }, checkpoint, metadata }) =>
            (namespace === undefined || configurable?.checkpoint_ns === namespace) &&
            (before === undefined || checkpoint.id < before) &&
            (kind === undefined || (metadata as { kind?: number }).kind === kind),
        );
        const listed = await all(
          reader.list(at(namespace as string), {
            ...(limit !== undefined && { limit }),
            ...(before !== undefined && { before: at("", before) }),
            ...(kind !== undefined && { filter: { kind } }),
          }),
        );
        // Of equal ids in several namespaces any may come first.
        expect(listed.map(({ checkpoint }) => checkpoint.id)).toEqual(
          expected.slice(0, limit).map(({ checkpoint }) => checkpoint.id),
        );
        const known = new Map(expected.map((tuple) => [idOf(tuple), tuple]));
        expect(new Set(listed.map(idOf)).size).toBe(listed.length);
        for (const tuple of listed) expect(tuple).toEqual(known.get(idOf(tuple)));
      }),
      { numRuns: backend === "postgres" ? 25 : 60 },
    );
  });

  it.runIf(backend !== "memory")(
    "reads of what does not match neither state nor writes",
    async () => {
      const { saver, cold, counts } = await begin();
      const length = 150;
      await fill(saver, length);
      for (const [step, found] of [
        [5, 1],
        [-1, 0],
      ] as const) {
        const reader = await cold();
        const tuples = await all(reader.list(at(""), { filter: { step } }));
        expect(tuples.map(({ checkpoint }) => checkpoint.id)).toEqual(found ? ["c-1005"] : []);
        expect(tuples.flatMap(({ pendingWrites }) => pendingWrites)).toHaveLength(found);
        const { bytesRead, pendingRead } = counts();
        expect(pendingRead).toBe(found);
        // All commits, of which each takes less than a kilobyte, and one state.
        expect(bytesRead).toBeLessThan(1500 * length);
      }
    },
  );

  it.runIf(backend !== "memory")("makes few calls, with and without a filter", async () => {
    const { saver, cold, counts } = await begin();
    await fill(saver, 300);
    const calls: Record<string, number> = {};
    for (const [name, options] of Object.entries({
      one: { limit: 1 },
      ten: { limit: 10 },
      few: { filter: { step: 5 }, limit: 1 },
      none: { filter: { step: -1 } },
      all: {},
    })) {
      const reader = await cold();
      await all(reader.list(at(""), options));
      const { readCommits, readPending, readBelow, readObjects } = counts().calls;
      calls[name] = readCommits + readPending + readBelow + readObjects;
    }
    // 5 pages of commits; a page of writes and states each, if any are wanted.
    expect(calls).toEqual({ one: 7, ten: 7, few: 7, none: 5, all: 11 });
  });

  it.runIf(backend !== "memory")("reads large frames a page at a time", async () => {
    const { saver, cold, counts } = await begin();
    await fill(saver, 120, { note: LARGE });
    const reader = await cold();
    expect(await all(reader.list(at(""), { filter: { step: 5 } }))).toHaveLength(1);
    const { readBelow, readObjects, readPending } = counts().calls;
    expect([readBelow + readObjects, readPending]).toEqual([5, 1]);
  });

  it("leaves out what no branch leads to any more", async () => {
    const { saver, store, cold } = await begin();
    const root = await put(saver, at(""), "c-1", {});
    const left = await put(saver, root, "c-3", { kind: 1 });
    await put(saver, root, "c-2", { kind: 1 });
    const listed = async (options = {}) =>
      (await all((await cold()).list(at(""), options))).map(({ checkpoint }) => checkpoint.id);
    expect(await listed()).toEqual(["c-3", "c-2", "c-1"]);
    const workflow = await store.workflow("t");
    const ref = forkRef("", left.configurable?.checkpoint_id as string);
    await workflow.internals.refs.apply({
      updates: [
        { ref, expect: { kind: "any" }, target: null, note: { actor: "eve", reason: "gone" } },
      ],
    });
    expect(await listed()).toEqual(["c-2", "c-1"]);
    expect(await listed({ limit: 1 })).toEqual(["c-2"]);
    expect(await listed({ filter: { kind: 1 } })).toEqual(["c-2"]);
  });
});
