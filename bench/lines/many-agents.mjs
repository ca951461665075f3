import { openAgents } from "../lib/agstate.mjs";
import { crowd } from "../lib/crowd.mjs";
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
    const states = (k) => stateSource(kind, k);
    const contestants = [
      crowd(
        "agstate branch.commit",
        branches.map((branch, k) => {
          let number = 0;
          return (state) => branch.commit({ state, message: `agent ${k} step ${number++}` });
        }),
        steps,
        states,
      ),
      crowd(
        "LangGraph SqliteSaver (FULL)",
        branches.map((_, k) => {
          const write = threadWriter(saver, `thread-${k}`);
          return (state) => write(state, [["observation", state.observation]]);
        }),
        steps,
        states,
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
