import { Annotation, DeltaChannel, END, START, StateGraph } from "@langchain/langgraph";
import { DeltaSnapshot, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";

/**
 * Lets LangGraph run a graph that takes one message a step, with its `DeltaChannel`: the whole list
 * is stored every so many steps only, and in between what each step wrote.
 */
export async function deltaGraph(saver, given, snapshotFrequency) {
  const add = (list, writes) => list.concat(...writes);
  const channel = () => new DeltaChannel(add, { snapshotFrequency, initialValueFactory: () => [] });
  let at = 0;
  const graph = new StateGraph(Annotation.Root({ messages: channel }))
    .addNode("agent", () => ({ messages: [given[at++]] }))
    .addEdge(START, "agent")
    .addConditionalEdges("agent", () => (at < given.length ? "agent" : END))
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: "graph" }, recursionLimit: given.length + 2 };
  await graph.invoke({ messages: [] }, { ...config, durability: "sync" });
  const { values } = await graph.getState(config);
  check(values.messages, given);
}

/**
 * Stores what that graph stores of its list, and nothing of the graph's own course: a checkpoint
 * before each message and one behind the last, every so many of them with the list, and `putWrites`
 * of each message.
 */
export async function deltaThread(saver, given, snapshotFrequency) {
  let config = { configurable: { thread_id: "thread", checkpoint_ns: "" } };
  const put = async (step) => {
    const since = step % snapshotFrequency;
    const whole = since === 0 && step > 0;
    const versions = { messages: step + 1 };
    const checkpoint = {
      ...emptyCheckpoint(),
      id: uuid6(step),
      channel_values: whole ? { messages: new DeltaSnapshot(given.slice(0, step)) } : {},
      channel_versions: versions,
      versions_seen: { __input__: {}, agent: { "branch:to:agent": step } },
    };
    const counters_since_delta_snapshot = { messages: [since, since] };
    const metadata = { source: "loop", step, parents: {}, counters_since_delta_snapshot };
    config = await saver.put(config, checkpoint, metadata, versions);
  };
  for (const [step, message] of given.entries()) {
    await put(step);
    await saver.putWrites(config, [["messages", message]], `task-${step}`);
    if (step === given.length - 2) await checkHistory(saver, config, given.slice(0, -1));
  }
  await put(given.length);
}

/** What is stored must be enough to have the list again: the last one stored whole, and what was written since. */
async function checkHistory(saver, config, given) {
  const { messages } = await saver.getDeltaChannelHistory({ config, channels: ["messages"] });
  const { pendingWrites } = await saver.getTuple(config);
  const written = [...messages.writes, ...pendingWrites].map((write) => write[2]);
  check([...messages.seed.value, ...written], given);
}

function check(list, given) {
  if (JSON.stringify(list) !== JSON.stringify(given)) {
    throw new Error("LangGraph's list of messages is another one");
  }
}
