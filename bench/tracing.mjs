/**
 * What telling OpenTelemetry costs a commit: CPU of commits to `memory:`, where nothing hides it, one way after another in turns, each in a
 * process of its own.
 *
 * Prints a table and writes `bench/results/tracing.json`. With `--quick` it does a fraction of the rounds and writes nothing.
 */
import { createServer } from "node:http";
import { contestantProcess } from "./lib/contestant-process.mjs";
import { Report } from "./lib/report.mjs";
import { cpuRatio, interleave, printRates } from "./lib/rounds.mjs";

const quick = process.argv.includes("--quick");
const STEPS = 1000;
const ROUNDS = quick ? 5 : 61;
const WARM_UP = quick ? 2000 : 10_000;
const CHILD = new URL("./lib/tracing-child.mjs", import.meta.url);

const report = new Report();
report.opening();
// A collector that takes all and keeps nothing.
const collector = createServer((request, response) => {
  request.resume().on("end", () => response.end("{}"));
});
await new Promise((resolve) => collector.listen(0, "127.0.0.1", resolve));
const endpoint = `http://127.0.0.1:${collector.address().port}`;

const BATCH = "batch processor, 100 %";
const WAYS = [
  ["tracing: false", { way: "off" }],
  ["no SDK registered", { way: "none" }],
  ["tracing: false, SDK at work", { way: "apart" }],
  [BATCH, { way: "batch" }],
  ["the same, sent by OTLP/HTTP", { way: "otlp" }],
  ["the same, and metrics", { way: "otlp", measures: true }],
];
/** What OpenTelemetry's own hooks around promises cost any program that traces something. */
const APART = 2;
const MOST = { "no SDK registered": 1.03, [BATCH]: 1.2 };

for (const [kind, described] of [
  ["small", "1 KiB state"],
  ["large", "4 KiB state"],
]) {
  report.heading(`Commits to memory:, 1 KiB changed per commit, ${described}`);
  const contestants = [];
  for (const [name, what] of WAYS) {
    const told = { kind, steps: STEPS, endpoint, ...what };
    contestants.push(await contestantProcess(CHILD, name, STEPS, told));
  }
  const results = await interleave(contestants, ROUNDS, WARM_UP);
  for (const { close } of contestants) await close();
  printRates(results);
  const [off, ...others] = results;
  for (const other of others) {
    const line = `${described}, ${other.name}: CPU`;
    const value = cpuRatio(other, off);
    const most = MOST[other.name];
    if (most === undefined) report.figure(line, value, "x");
    else report.atMost(line, value, "x", most);
  }
  const batch = results.find(({ name }) => name === BATCH);
  report.figure(`${described}, spans alone: CPU`, cpuRatio(batch, results[APART]), "x");
}
collector.close();
collector.closeAllConnections();
report.closing("tracing", quick);
