/**
 * The embedded store against bare SQLite and LangGraph's SqliteSaver, on the same work, in one run.
 *
 * Prints a table and writes `bench/results/embedded.json`. With `--quick` it does a fraction of
 * the rounds and writes nothing.
 */
import { Report } from "./lib/report.mjs";
import { coldStart } from "./lines/cold-start.mjs";
import { conversation } from "./lines/conversation.mjs";
import { manyAgents } from "./lines/many-agents.mjs";
import { oneAgent } from "./lines/one-agent.mjs";

const quick = process.argv.includes("--quick");
const size = quick
  ? {
      one: { rounds: 3, steps: 200, warmUp: 1000 },
      many: { rounds: 2, steps: 5, warmUp: 1000 },
      repetitions: 2,
      pairs: 20,
    }
  : {
      one: { rounds: 9, steps: 300, warmUp: 3000 },
      many: { rounds: 7, steps: 20, warmUp: 3000 },
      repetitions: 5,
      pairs: 30,
    };

const report = new Report();
report.opening();

await oneAgent(report, size.one);
await manyAgents(report, size.many);
await conversation(report, size);
await coldStart(report, size);

report.closing("embedded", quick);
