/**
 * The store on PostgreSQL against bare statements and LangGraph's PostgresSaver, on the same work and
 * the same server, in one run.
 *
 * Starts a server of its own, prints a table and writes `bench/results/postgres.json`. With `--quick`
 * it does a fraction of the work and writes nothing. `--growth-objects=N` says how many objects the
 * tables hold in the line on growth: 5 million, or 100,000 with `--quick`.
 */
import { parseArgs } from "node:util";
import { startServer } from "./lib/postgres-server.mjs";
import { Report } from "./lib/report.mjs";
import { commits } from "./lines/postgres-commits.mjs";
import { conversation } from "./lines/postgres-conversation.mjs";
import { growth } from "./lines/postgres-growth.mjs";
import { memory } from "./lines/postgres-memory.mjs";

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, "growth-objects": { type: "string" } },
});
const { quick } = values;
const objects = Number(values["growth-objects"] ?? (quick ? 100_000 : 5_000_000));
if (!Number.isSafeInteger(objects) || objects < 1000) {
  throw new Error("--growth-objects takes a whole number of at least 1,000");
}
const size = quick
  ? {
      commits: {
        1: { rounds: 3, steps: 50, warmUp: 300 },
        8: { rounds: 3, steps: 20, warmUp: 1000 },
        64: { rounds: 3, steps: 10, warmUp: 2000 },
      },
      conversation: { steps: 1000, repetitions: 1, reads: 10 },
      growth: {
        1: { rounds: 3, steps: 64, warmUp: 300 },
        64: { rounds: 3, steps: 10, warmUp: 2000 },
      },
      memory: [5000, 20_000],
    }
  : {
      commits: {
        1: { rounds: 9, steps: 100, warmUp: 2000 },
        8: { rounds: 9, steps: 40, warmUp: 3000 },
        64: { rounds: 10, steps: 20, warmUp: 5000 },
      },
      conversation: { steps: 1000, repetitions: 4, reads: 100 },
      growth: {
        1: { rounds: 9, steps: 64, warmUp: 2000 },
        64: { rounds: 10, steps: 20, warmUp: 5000 },
      },
      memory: [20_000, 200_000],
    };

const report = new Report();
report.opening();
const server = await startServer();
try {
  const settings = Object.entries(server.settings).map(([name, value]) => `${name} ${value}`);
  console.log(`PostgreSQL with its default settings: ${settings.join(", ")}`);
  await commits(report, server, size.commits);
  await conversation(report, server, size.conversation);
  await memory(report, server, size.memory);
  await growth(report, server, objects, size.growth);
} finally {
  await server.stop();
}

report.closing("postgres", quick);
