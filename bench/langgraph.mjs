/**
 * AgstateSaver against LangGraph's own checkpointers, on the same calls, in one run: PostgresSaver and its
 * DeltaChannel on one PostgreSQL, SqliteSaver on files that are synced as often.
 *
 * Starts a server of its own, prints a table and writes `bench/results/langgraph.json`. With `--quick` it
 * does a fraction of the work and writes nothing.
 */
import { parseArgs } from "node:util";
import { startServer } from "./lib/postgres-server.mjs";
import { Report } from "./lib/report.mjs";
import { conversation } from "./lines/langgraph-conversation.mjs";
import { postgresSteps, sqliteSteps } from "./lines/langgraph-steps.mjs";

const { quick } = parseArgs({ options: { quick: { type: "boolean", default: false } } }).values;
const size = quick
  ? {
      1: { rounds: 3, steps: 50, warmUp: 200 },
      64: { rounds: 3, steps: 5, warmUp: 640 },
      conversation: { steps: 200, reads: 3, lists: 2 },
    }
  : {
      1: { rounds: 9, steps: 100, warmUp: 4000 },
      64: { rounds: 9, steps: 15, warmUp: 4000 },
      conversation: { steps: 1000, reads: 15, lists: 5 },
    };
const { conversation: ofConversation, ...steps } = size;

const report = new Report();
report.opening();
await sqliteSteps(report, steps);
const server = await startServer();
try {
  const settings = Object.entries(server.settings).map(([name, value]) => `${name} ${value}`);
  report.note(`PostgreSQL with its default settings: ${settings.join(", ")}`);
  await postgresSteps(report, server, steps);
  await conversation(report, server, ofConversation);
} finally {
  await server.stop();
}
report.closing("langgraph", quick);
