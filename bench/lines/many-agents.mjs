import { openAgents } from "../lib/agstate.mjs";
import { openSaver, threadWriter } from "../lib/langgraph.mjs";
import { interleave, printRates, ratio } from "../lib/rounds.mjs";
import { discard, scratch } from "../lib/scratch.mjs";
import { stateSource } from "../lib/states.mjs";

const AGENTS = 64;
const SAVER_AT_LEAST = 5;

/** 64 agents of one process commit at the same time, each its own state, 1 KiB of it new. */
export async function manyAgents(report, { rounds, steps, warmUp }) {
  for (const [kind, described] of [
    ["small", "1 KiB state"],
    ["large", "4 KiB state"],
  ]) {
    report.heading(`${AGENTS} agents in one process, ${described}, synchronous=FULL`);
    const directories = [scratch(), scratch()];
    const [ours, theirs] = directories;
    const { store, branches } = await openAgents(`sqlite:${ours}`, AGENTS);
    const saver = openSaver(theirs);
    const contestants = [
      crowd(
        "agstate branch.commit",
        kind,
        steps,
        branches.map((branch, k) => {
          let number = 0;
          return (state) => branch.commit({ state, message: `agent ${k} step ${number++}` });
        }),
      ),
      crowd(
        "LangGraph SqliteSaver (FULL)",
        kind,
        steps,
        branches.map((_, k) => {
          const write = threadWriter(saver, `thread-${k}`);
          return (state) => write(state, [["observation", state.observation]]);
        }),
      ),
    ];
    const results = await interleave(contestants, rounds, warmUp);
    await store.close();
    saver.db.close();
    for (const directory of directories) discard(directory);

    printRates(results);
    const label = `${AGENTS} agents, ${described}: of SqliteSaver`;
    report.atLeast(label, ratio(...results), "x", SAVER_AT_LEAST);
    report.figure(`${AGENTS} agents, ${described}: rate`, results[0].rate, "commits/s");
  }
}

/** A contestant whose writers each do `steps` steps, all of them at the same time. */
function crowd(name, kind, steps, writers) {
  const sources = writers.map((_, k) => stateSource(kind, k + 1));
  return {
    name,
    steps: steps * writers.length,
    async round() {
      const given = sources.map((states) => Array.from({ length: steps }, states));
      const times = [];
      const since = performance.now();
      await Promise.all(
        writers.map(async (write, k) => {
          for (const state of given[k]) {
            const begun = performance.now();
            await write(state);
            times.push(performance.now() - begun);
          }
        }),
      );
      return { times, total: performance.now() - since };
    },
  };
}
