import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";

/** A PostgresSaver as its documentation opens one, in a schema of its own. */
export async function openPostgresSaver(url, schema) {
  const saver = PostgresSaver.fromConnString(url, { schema });
  await saver.setup();
  return saver;
}

/**
 * Makes a function that records a step of a thread as LangGraph's loop does: `put` of the
 * checkpoint, told which channels are new so that it stores no other, then `putWrites` of what the
 * step's task wrote to channels.
 */
export function threadWriter(saver, thread) {
  let config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  let step = 0;
  return async (state, writes) => {
    const versions = Object.fromEntries(Object.keys(state).map((key) => [key, step + 1]));
    const checkpoint = {
      ...emptyCheckpoint(),
      id: uuid6(step),
      channel_values: state,
      channel_versions: versions,
      versions_seen: { __input__: {}, agent: { "branch:to:agent": step } },
    };
    const metadata = { source: "loop", step, parents: {} };
    config = await saver.put(config, checkpoint, metadata, versions);
    await saver.putWrites(config, writes, `task-${thread}-${step}`);
    step++;
  };
}
