import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";

/** A PostgresSaver as its documentation opens one, in a schema of its own. */
export async function openPostgresSaver(url, schema) {
  const saver = PostgresSaver.fromConnString(url, { schema });
  await saver.setup();
  return saver;
}

/**
 * Makes a function that records a step of a thread: `put` of the checkpoint, told which channels are new so that
 * it stores no other, then `putWrites` of what the step's task wrote to channels, each awaited.
 */
export function threadWriter(saver, thread) {
  const next = checkpoints();
  let config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  return async (state, writes) => {
    const { checkpoint, metadata, versions } = next(state);
    config = await saver.put(config, checkpoint, metadata, versions);
    await saver.putWrites(config, writes, `task-${thread}-${metadata.step}`);
  };
}

/**
 * The same in the order of LangGraph's loop: what the tasks below a checkpoint wrote goes out when they are done,
 * and the checkpoint that goes on from there in the same turn; then both are waited for, as with
 * `durability: "sync"`.
 */
export function loopWriter(saver, thread) {
  const next = checkpoints();
  let config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  return async (state, writes) => {
    const { checkpoint, metadata, versions } = next(state);
    const begun = [saver.put.bind(saver, config, checkpoint, metadata, versions)];
    if (metadata.step > 0) {
      const task = `task-${thread}-${metadata.step}`;
      begun.unshift(saver.putWrites.bind(saver, config, writes, task));
    }
    config = (await Promise.all(begun.map((begin) => begin()))).at(-1);
  };
}

/** Makes checkpoints as LangGraph's loop does, each with all channels new. */
function checkpoints() {
  let step = -1;
  return (state) => {
    step++;
    const versions = Object.fromEntries(Object.keys(state).map((key) => [key, step + 1]));
    const checkpoint = {
      ...emptyCheckpoint(),
      id: uuid6(step),
      channel_values: state,
      channel_versions: versions,
      versions_seen: { __input__: {}, agent: { "branch:to:agent": step } },
    };
    return { checkpoint, metadata: { source: "loop", step, parents: {} }, versions };
  };
}
