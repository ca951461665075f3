/**
 * What it costs to ask what has become of 200 resources: a server on loopback that answers each request after 50 ms, asked by
 * the checker of HTTP resources, within the usual bounds.
 *
 * Prints a table and writes `bench/results/staleness.json`. With `--quick` it does a fraction of the rounds and writes nothing.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { checkResources } from "../dist/staleness/check.js";
import { createCheckers } from "../dist/staleness/config.js";
import { Report } from "./lib/report.mjs";
import { median } from "./lib/stats.mjs";

const quick = process.argv.includes("--quick");
const RESOURCES = 200;
const LATENCY_MS = 50;
const ROUNDS = quick ? 3 : 15;
const MOST_ROUND_TRIPS = 8;

const report = new Report();
report.opening();
const server = fork(new URL("./lib/latency-server.mjs", import.meta.url), [String(LATENCY_MS)]);
const [{ port }] = await once(server, "message");
const host = `127.0.0.1:${port}`;

report.heading(`${RESOURCES} resources of HTTP, each ${LATENCY_MS} ms away`);
const alone = [];
const together = [];
// Once, so that neither is measured while code is loaded.
await timeOf(1);
for (let round = 0; round < ROUNDS; round++) {
  alone.push(await timeOf(1));
  together.push(await timeOf(RESOURCES));
}
report.figure("one resource", median(alone), "ms");
report.figure(`${RESOURCES} resources`, median(together), "ms");
server.send("done");
const [{ most }] = await once(server, "message");
report.figure("most requests at once", most, "requests");
report.atMost("as round trips", median(together) / median(alone), "x", MOST_ROUND_TRIPS);
report.closing("staleness", quick);

/** How long a check of so many takes, in milliseconds, with connections of its own. */
async function timeOf(count) {
  const checkers = createCheckers({ allow: [host] });
  const resources = Array.from({ length: count }, (_, i) => ({
    type: "http",
    id: `http://${host}/${i}`,
    version: 'etag:"1"',
    tolerance: "exact",
    observedAt: Date.now(),
    steps: [],
  }));
  const since = performance.now();
  const checked = await checkResources(resources, { checkers });
  const took = performance.now() - since;
  if (!checked.every(({ verdict }) => verdict === "fresh")) throw new Error("not all are fresh");
  return took;
}
