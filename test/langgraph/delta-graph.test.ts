import { Annotation, DeltaChannel, END, START, StateGraph } from "@langchain/langgraph";
import { BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { all, BACKENDS, makeStore } from "../support/stores.js";

const config = { configurable: { thread_id: "t" } };

/** A loop of nodes side by side, each of which adds to a list that is stored by its writes. */
function build(checkpointer: BaseCheckpointSaver, width: number, steps: number, often: number) {
  const add = (list: unknown[], writes: unknown[]) => list.concat(...(writes as unknown[][]));
  const State = Annotation.Root({
    messages: () =>
      new DeltaChannel<unknown[], unknown>(add as never, {
        snapshotFrequency: often,
        initialValueFactory: () => [],
      }),
    step: Annotation<number>({ reducer: (a, b) => Math.max(a, b), default: () => 0 }),
  } as never);
  // biome-ignore lint/suspicious/noExplicitAny: the names of the nodes are made up here
  const graph: any = new StateGraph(State as never);
  graph.addNode("again", ({ step }: { step: number }) => ({ step: step + 1 }));
  graph.addEdge(START, "again");
  for (let i = 0; i < width; i++) {
    const name = `n${i}`;
    graph.addNode(name, ({ step }: { step: number }) => ({ messages: [`${name}:${step}`] }));
    graph.addEdge("again", name);
  }
  graph.addNode("end", () => ({ messages: ["end"] }));
  graph.addEdge(
    Array.from({ length: width }, (_, i) => `n${i}`),
    "end",
  );
  graph.addConditionalEdges("end", ({ step }: { step: number }) =>
    step % steps === 0 ? END : "again",
  );
  return graph.compile({ checkpointer });
}

/** What anybody can see of the thread, and what each checkpoint's list is rebuilt from, without ids. */
async function seen(graph: ReturnType<typeof build>, saver: BaseCheckpointSaver) {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const history: any[] = await all(graph.getStateHistory(config));
  const rebuilt = [];
  for (const each of history) {
    const request = { config: each.config, channels: ["messages", "step"] };
    const found = await saver.getDeltaChannelHistory(request);
    const { getDeltaChannelHistory: walk } = BaseCheckpointSaver.prototype;
    if (saver instanceof AgstateSaver) expect(found).toEqual(await walk.call(saver, request));
    const { seed, writes } = found.messages ?? { writes: [] };
    rebuilt.push({ seed, writes: writes.map(([, , value]) => value) });
  }
  const { values, next } = await graph.getState(config);
  return { values, next, rebuilt, states: history.map((each) => [each.values, each.next]) };
}

it.each(BACKENDS)(
  "gives the same lists as MemorySaver in random graphs, on %s",
  async (backend) => {
    const { store } = await makeStore(backend);
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom(2, 3, 1000),
      fc.option(fc.nat(20)),
      async (width, steps, often, fork) => {
        const saver = new AgstateSaver(store);
        await saver.deleteThread("t");
        const results = [];
        for (const each of [new MemorySaver(), saver]) {
          const graph = build(each, width, steps, often);
          const ends: string[] = [];
          // A fork in the middle of a loop may never come to its end, with either.
          const invoke = async (input: unknown, from: unknown) => {
            const end = graph.invoke(input, from).then(
              () => "the end",
              ({ name }: Error) => name,
            );
            ends.push(await end);
          };
          await invoke({ messages: ["in"] }, config);
          if (fork !== null) {
            // biome-ignore lint/suspicious/noExplicitAny: as above
            const history: any[] = await all(graph.getStateHistory(config));
            const from = history[fork % history.length].config;
            await invoke(null, await graph.updateState(from, { messages: ["fork"] }, "end"));
          }
          await invoke({ messages: ["more"] }, config);
          results.push({ ends, ...(await seen(graph, each)) });
        }
        expect(results[1]).toEqual(results[0]);
      },
    );
    await fc.assert(property, {
      numRuns: Number(process.env.AGSTATE_RUNS ?? 5),
      endOnFailure: true,
    });
  },
);

it.each(BACKENDS.filter((backend) => backend !== "memory"))(
  "reads the state after 300 steps in few calls, on %s",
  async (backend) => {
    let counter: ReturnType<typeof counting> | undefined;
    const { store, another } = await makeStore(backend, {
      wrap: (storage) => {
        counter = counting(storage);
        return counter.storage;
      },
    });
    await build(new AgstateSaver(store), 1, 100, 1000).invoke(
      { messages: ["in"] },
      { ...config, recursionLimit: 400 },
    );
    const cold = new AgstateSaver(await another());
    const graph = build(cold, 1, 100, 1000);
    counter?.reset();
    const { values } = await graph.getState(config);
    expect(values.messages).toHaveLength(201);
    expect(counter?.counts().roundTrips).toBeLessThanOrEqual(40);
  },
);
