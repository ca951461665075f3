import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { all, BACKENDS, makeStore } from "../support/stores.js";

/** One node: what it does besides adding its name to the log. */
type Kind = "plain" | "interrupts" | "subgraph" | "subgraph-interrupts" | "map";

/** Layers of nodes; those of one layer run in parallel. */
type Layers = readonly (readonly Kind[])[];

type Action =
  | { readonly do: "invoke" }
  | { readonly do: "resume" }
  | { readonly do: "update"; readonly node: number }
  | { readonly do: "fork"; readonly at: number; readonly run: boolean }
  | { readonly do: "copy"; readonly at: number };

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  count: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
  last: Annotation<Map<string, unknown>>({ reducer: (_, b) => b, default: () => new Map() }),
});

function nodeOf(name: string, kind: Kind) {
  const plain = (log: string) => ({ log: [log], count: 1 });
  const asks = () => plain(`${name}:${String(interrupt({ question: name }))}`);
  switch (kind) {
    case "plain":
      return () => plain(name);
    case "interrupts":
      return asks;
    case "map":
      return ({ count, last }: typeof State.State) => ({
        log: [`${name}:${last.size}`],
        last: new Map([...last, [name, new Set([count])]]),
      });
    default: {
      const inner = new StateGraph(State)
        .addNode("first", () => plain(`${name}/first`))
        .addNode("second", kind === "subgraph" ? () => plain(`${name}/second`) : asks)
        .addEdge(START, "first")
        .addEdge("first", "second")
        .addEdge("second", END);
      return inner.compile();
    }
  }
}

function build(layers: Layers, checkpointer: BaseCheckpointSaver) {
  // biome-ignore lint/suspicious/noExplicitAny: the names of the nodes are made up here
  const graph: any = new StateGraph(State);
  let before: string[] = [START];
  for (const [i, kinds] of layers.entries()) {
    const names = kinds.map((_, j) => `n${i}${j}`);
    for (const [j, kind] of kinds.entries()) graph.addNode(names[j], nodeOf(`n${i}${j}`, kind));
    for (const name of names) for (const from of before) graph.addEdge(from, name);
    before = names;
  }
  for (const name of before) graph.addEdge(name, END);
  return graph.compile({ checkpointer });
}

/** Does the actions; after each, what anybody can see of the thread, without ids and times. */
async function run(layers: Layers, actions: readonly Action[], checkpointer: BaseCheckpointSaver) {
  const graph = build(layers, checkpointer);
  const config = { configurable: { thread_id: "t" } };
  const seen: unknown[] = [];
  const attempt = async (act: () => Promise<unknown>) => {
    try {
      const result = (await act()) as Record<string, unknown> | undefined;
      seen.push({ log: result?.log, count: result?.count });
    } catch (error) {
      seen.push({ error: (error as Error).name });
    }
  };
  for (const [turn, action] of [{ do: "invoke" } as const, ...actions].entries()) {
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const history: any[] = await all(graph.getStateHistory(config));
    const at = (index: number) => history[index % history.length]?.config;
    switch (action.do) {
      case "invoke":
        await attempt(() => graph.invoke({ log: [`input${turn}`] }, config));
        break;
      case "resume":
        await attempt(() => graph.invoke(new Command({ resume: `answer${turn}` }), config));
        break;
      case "update":
        await attempt(() =>
          graph.updateState(
            config,
            { log: [`update${turn}`] },
            `n0${action.node % (layers[0]?.length ?? 1)}`,
          ),
        );
        break;
      case "copy":
        await attempt(() => graph.updateState(at(action.at), null, "__copy__"));
        break;
      case "fork": {
        const from = at(action.at);
        await attempt(async () => {
          const forked = await graph.updateState(from, { log: [`fork${turn}`] }, "n00");
          return action.run ? graph.invoke(null, forked) : undefined;
        });
        break;
      }
    }
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const after: any[] = await all(graph.getStateHistory(config));
    const ids = after.map((snapshot) => snapshot.config.configurable.checkpoint_id);
    seen.push(
      after.map((snapshot) => ({
        values: snapshot.values,
        next: snapshot.next,
        source: snapshot.metadata?.source,
        step: snapshot.metadata?.step,
        parent: ids.indexOf(snapshot.parentConfig?.configurable?.checkpoint_id),
        tasks: snapshot.tasks.map(
          (task: { name: string; interrupts: { value?: unknown }[]; error?: unknown }) => ({
            name: task.name,
            interrupts: task.interrupts.map(({ value }) => value),
            failed: task.error !== undefined,
          }),
        ),
      })),
    );
  }
  return seen;
}

const kind = fc.constantFrom<Kind>(
  "plain",
  "plain",
  "interrupts",
  "subgraph",
  "subgraph-interrupts",
  "map",
);
const layersOf = fc.array(fc.array(kind, { minLength: 1, maxLength: 3 }), {
  minLength: 1,
  maxLength: 3,
});
const index = fc.nat(20);
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.constant<Action>({ do: "invoke" }),
  fc.constant<Action>({ do: "resume" }),
  fc.record({ do: fc.constant("update" as const), node: index }),
  fc.record({ do: fc.constant("fork" as const), at: index, run: fc.boolean() }),
  fc.record({ do: fc.constant("copy" as const), at: index }),
);

it.each(
  BACKENDS.flatMap((backend) =>
    (["fork", "refuse"] as const).map((how) => [backend, how] as const),
  ),
)(
  "gives the same results as MemorySaver in random graphs, on %s, where concurrent puts %s",
  async (backend, concurrentPuts) => {
    const { store } = await makeStore(backend);
    const property = fc.asyncProperty(
      layersOf,
      fc.array(action, { maxLength: 6 }),
      async (layers, actions) => {
        const saver = new AgstateSaver(store, { concurrentPuts });
        await saver.deleteThread("t");
        const expected = await run(layers, actions, new MemorySaver());
        expect(await run(layers, actions, saver)).toEqual(expected);
      },
    );
    await fc.assert(property, {
      numRuns: Number(process.env.AGSTATE_RUNS ?? 15),
      endOnFailure: true,
    });
  },
);
