/**
 * The step log on PostgreSQL against DBOS Transact, on the same work and the same server, in one run.
 *
 * Starts a server of its own, prints a table and writes `bench/results/steps.json`. With `--quick`
 * it does a fraction of the work and writes nothing. `--pool=N` says how many connections each
 * contestant may have.
 */
import { parseArgs } from "node:util";
import { startServer } from "./lib/postgres-server.mjs";
import { Report } from "./lib/report.mjs";
import { runs } from "./lines/steps-runs.mjs";

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, pool: { type: "string", default: "20" } },
});
const { quick } = values;
const pool = Number(values.pool);
if (!Number.isSafeInteger(pool) || pool < 2) throw new Error("--pool takes a number of at least 2");
const size = quick
  ? {
      1: { rounds: 3, steps: 50, warmUp: 300 },
      8: { rounds: 3, steps: 50, warmUp: 1000 },
      64: { rounds: 3, steps: 20, warmUp: 3000 },
    }
  : {
      1: { rounds: 9, steps: 100, warmUp: 2000 },
      8: { rounds: 9, steps: 100, warmUp: 4000 },
      64: { rounds: 9, steps: 100, warmUp: 13_000 },
    };

const report = new Report();
report.opening();
const server = await startServer();
try {
  const settings = Object.entries(server.settings).map(([name, value]) => `${name} ${value}`);
  console.log(`PostgreSQL with its default settings: ${settings.join(", ")}`);
  console.log(`${pool} connections for each contestant`);
  await runs(report, server, pool, size);
} finally {
  await server.stop();
}

report.closing("steps", quick);
