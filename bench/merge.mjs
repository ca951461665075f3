/**
 * Merging: what it costs, against Git where Git does the same.
 *
 * Prints a table and writes `bench/results/merge.json`. With `--quick` it does a fraction of the
 * work and writes nothing.
 */
import { machine } from "./lib/machine.mjs";
import { Report } from "./lib/report.mjs";
import { mergeBase } from "./lines/merge-base.mjs";
import { mergeState } from "./lines/merge-state.mjs";
import { octopus } from "./lines/octopus.mjs";

const quick = process.argv.includes("--quick");
const size = quick
  ? {
      mergeBase: {
        commits: 10_000,
        merges: 100,
        forks: {
          "500 commits back": 500,
          "5,000 commits back": 5000,
          "all the way back": Number.MAX_SAFE_INTEGER,
        },
        rounds: 3,
      },
      repetitions: 1,
    }
  : {
      mergeBase: {
        commits: 100_000,
        merges: 1000,
        forks: {
          "500 commits back": 500,
          "50,000 commits back": 50_000,
          "all the way back": Number.MAX_SAFE_INTEGER,
        },
        rounds: 15,
      },
      repetitions: 7,
    };

const report = new Report();
const { cpu, cores, node, platform, filesystem } = machine();
console.log(`${cpu}, ${cores} cores, Node.js ${node}, ${platform}, ${filesystem ?? "unknown"}`);

await mergeBase(report, size.mergeBase);
await mergeState(report, size);
await octopus(report, size);

const missed = report.rows.filter((row) => row.met === false);
const judged = report.rows.filter((row) => row.met !== null);
console.log(`\n${judged.length - missed.length} of ${judged.length} targets met`);
for (const { line, value, unit, target } of missed) {
  console.log(`  not met: ${line}: ${value} ${unit}, target ${target}`);
}
if (!quick) {
  report.write("merge");
  console.log("written to bench/results/merge.json");
}
