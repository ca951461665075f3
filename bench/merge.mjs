/**
 * Merging: what it costs, against Git where Git does the same.
 *
 * Prints a table and writes `bench/results/merge.json`. With `--quick` it does a fraction of the
 * work and writes nothing.
 */
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
report.opening();

await mergeBase(report, size.mergeBase);
await mergeState(report, size);
await octopus(report, size);

report.closing("merge", quick);
