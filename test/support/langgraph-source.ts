import { HumanMessage } from "@langchain/core/messages";
import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { expect } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { Thread } from "../../src/langgraph/thread.js";
import type { Store } from "../../src/store.js";
import { all } from "./stores.js";

const State = Annotation.Root({
  log: Annotation<unknown[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  last: Annotation<unknown>(),
});

/** Threads with an odd name, messages, values that JSON lacks, a subgraph, interrupts, a fork, and one left waiting. */
export async function fillWithThreads(checkpointer: BaseCheckpointSaver): Promise<void> {
  const inner = new StateGraph(State)
    .addNode("asks", () => ({ log: [String(interrupt("inner?"))] }))
    .addEdge(START, "asks")
    .addEdge("asks", END)
    .compile();
  const graph = new StateGraph(State)
    .addNode("one", () => ({ log: [new HumanMessage("hello")], last: new Map([["a", 1]]) }))
    .addNode("two", () => ({ log: [new Date(5).toISOString()], last: undefined }))
    .addNode("sub", inner)
    .addEdge(START, "one")
    .addEdge("one", "sub")
    .addEdge("sub", "two")
    .addEdge("two", END)
    .compile({ checkpointer });
  for (const thread_id of ["a/b:c%", "plain", " é\t"]) {
    const config = { configurable: { thread_id } };
    await graph.invoke({ log: ["in"] }, config);
    if (thread_id === "plain") continue;
    await graph.invoke(new Command({ resume: "yes" }), config);
    const history = await all(graph.getStateHistory(config));
    const forked = await graph.updateState(history[2]?.config as never, { log: ["fork"] }, "one");
    await graph.invoke(null, forked);
  }
}

function inOrder(tuples: readonly CheckpointTuple[]) {
  const key = ({ config }: CheckpointTuple) =>
    JSON.stringify([config.configurable?.checkpoint_id, config.configurable?.thread_id]);
  return [...tuples]
    .sort((a, b) => (key(a) < key(b) ? -1 : 1))
    .map(({ parentConfig, ...tuple }) => ({ ...tuple, parentConfig }));
}

/** Which checkpoint each one's commit stands on, in all threads of a store. */
async function parentsIn(store: Store): Promise<Map<string, string | undefined>> {
  const parents = new Map<string, string | undefined>();
  for await (const { id: workflow } of store.workflows()) {
    const { internals } = await store.workflow(workflow);
    const thread = new Thread(internals);
    for await (const { id, namespace, at } of thread.checkpoints(undefined)) {
      const [below] = (await internals.commits.read(at)).parents;
      const parent = below && (await internals.commits.read(below)).externalId;
      const key = JSON.stringify([(await thread.frame(at)).thread, namespace, id]);
      parents.set(key, parent);
    }
  }
  return parents;
}

/** Expects that a store has what the source has, by `list`, by `getTuple`, and as the latest; gives how much. */
export async function expectSame(source: BaseCheckpointSaver, store: Store): Promise<number> {
  const saver = new AgstateSaver(store);
  const [from, to] = [await all(source.list({})), await all(saver.list({}))];
  expect(inOrder(to)).toEqual(inOrder(from));
  expect(await parentsIn(store)).toEqual(
    new Map(
      from.map(({ config: { configurable: at }, parentConfig }) => [
        JSON.stringify([at?.thread_id, at?.checkpoint_ns, at?.checkpoint_id]),
        parentConfig?.configurable?.checkpoint_id,
      ]),
    ),
  );
  for (const { config } of from) {
    const { thread_id, checkpoint_ns } = config.configurable ?? {};
    for (const each of [config, { configurable: { thread_id, checkpoint_ns } }]) {
      const [a, b] = [await source.getTuple(each), await saver.getTuple(each)];
      expect(inOrder([b as CheckpointTuple])).toEqual(inOrder([a as CheckpointTuple]));
    }
  }
  return from.length;
}
