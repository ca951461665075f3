/**
 * The store on PostgreSQL against bare statements and LangGraph's PostgresSaver, on the same work and
 * the same server, in one run.
 *
 * Starts a server of its own, prints a table and writes `bench/results/postgres.json`. With `--quick`
 * it does a fraction of the work and writes nothing.
 */
import { startServer } from "./lib/postgres-server.mjs";
import { Report } from "./lib/report.mjs";
import { commits } from "./lines/postgres-commits.mjs";
import { conversation } from "./lines/postgres-conversation.mjs";

const quick = process.argv.includes("--quick");
const size = quick
  ? {
      commits: {
        1: { rounds: 3, steps: 50, warmUp: 300 },
        8: { rounds: 3, steps: 20, warmUp: 1000 },
        64: { rounds: 3, steps: 10, warmUp: 2000 },
      },
      conversation: { steps: 1000, repetitions: 1, reads: 10 },
    }
  : {
      commits: {
        1: { rounds: 9, steps: 100, warmUp: 2000 },
        8: { rounds: 9, steps: 40, warmUp: 3000 },
        64: { rounds: 10, steps: 20, warmUp: 5000 },
      },
      conversation: { steps: 1000, repetitions: 4, reads: 100 },
    };

const report = new Report();
report.opening();
const server = await startServer();
try {
  const settings = Object.entries(server.settings).map(([name, value]) => `${name} ${value}`);
  console.log(`PostgreSQL with its default settings: ${settings.join(", ")}`);
  await commits(report, server, size.commits);
  await conversation(report, server, size.conversation);
} finally {
  await server.stop();
}

report.closing("postgres", quick);
