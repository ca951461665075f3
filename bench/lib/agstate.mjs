import { openStore } from "../../dist/index.js";
import { counting } from "../../dist/storage/decorators/counting.js";

/**
 * Opens a store with one workflow and a branch for each of some agents.
 *
 * @param options what `openStore` takes
 */
export async function openAgents(url, agents = 1, options = {}) {
  const store = await openStore(url, options);
  const workflow = await store.createWorkflow("bench");
  const branches = [];
  for (let k = 0; k < agents; k++) {
    branches.push(await workflow.branch({ agent: `agent-${k}`, branch: "main" }));
  }
  return { store, workflow, branches };
}

/** A contestant of `interleave`: one agent that commits whole states. */
export async function agstateContestant(name, directory, states, steps) {
  const { store, branches } = await openAgents(`sqlite:${directory}`);
  const [branch] = branches;
  let number = 0;
  return {
    name,
    steps,
    async round() {
      const given = Array.from({ length: steps }, states);
      const times = [];
      for (const state of given) {
        const since = performance.now();
        await branch.commit({ state, message: `step ${number++}` });
        times.push(performance.now() - since);
      }
      return { times };
    },
    close: () => store.close(),
  };
}

/**
 * Commits once more what a contestant commits, untimed, and tells what reached the storage:
 * each write as `{ objects, commit }`, and the number of calls a commit.
 */
export async function recordCommits(directory, states, steps) {
  const writes = [];
  let counter;
  const wrap = (storage) => {
    counter = counting({
      ...storage,
      write(batch) {
        writes.push(batch);
        return storage.write(batch);
      },
    });
    return counter.storage;
  };
  const { store, branches } = await openAgents(`sqlite:${directory}`, 1, { wrap });
  await branches[0].commit({ state: states(), message: "first" });
  writes.length = 0;
  counter.reset();
  for (let i = 0; i < steps; i++) {
    await branches[0].commit({ state: states(), message: `step ${i}` });
  }
  const counts = counter.counts();
  await store.close();
  return {
    roundTrips: counts.roundTrips / steps,
    writes: writes.map(({ objects, moves }) => ({ objects, commit: moves[0].commits[0] })),
  };
}
