import { join } from "node:path";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

/** SQLite's number for `synchronous = FULL`. */
const FULL = 2;

/** A SqliteSaver that survives a power loss; its default, NORMAL, loses the last steps in one. */
export function openSaver(directory) {
  const saver = SqliteSaver.fromConnString(join(directory, "langgraph.db"));
  saver.setup();
  saver.db.pragma("synchronous = FULL");
  const [mode, level] = ["journal_mode", "synchronous"].map((p) =>
    saver.db.pragma(p, { simple: true }),
  );
  if (mode !== "wal" || level !== FULL) {
    throw new Error(`SqliteSaver runs with journal mode ${mode} and synchronous ${level}`);
  }
  return saver;
}

/**
 * Makes a function that records a step of a thread as LangGraph's loop does: `put` of the
 * checkpoint with its channel values, then `putWrites` of what the step's task wrote to channels.
 */
export function threadWriter(saver, thread) {
  let config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  let step = 0;
  return async (state, writes) => {
    const version = step + 1;
    const checkpoint = {
      ...emptyCheckpoint(),
      id: uuid6(step),
      channel_values: state,
      channel_versions: Object.fromEntries(Object.keys(state).map((key) => [key, version])),
      versions_seen: { __input__: {}, agent: { "branch:to:agent": step } },
    };
    config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} });
    await saver.putWrites(config, writes, `task-${thread}-${step}`);
    step++;
  };
}

/** A contestant of `interleave`: one thread. */
export function saverContestant(name, directory, states, steps) {
  const saver = openSaver(directory);
  const write = threadWriter(saver, "thread-0");
  return {
    name,
    steps,
    async round() {
      const given = Array.from({ length: steps }, states);
      const times = [];
      for (const state of given) {
        const since = performance.now();
        await write(state, [["observation", state.observation]]);
        times.push(performance.now() - since);
      }
      return { times };
    },
    close: () => saver.db.close(),
  };
}
