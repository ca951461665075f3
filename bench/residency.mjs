/**
 * What residency costs a commit: routing to a region, keys over payloads, and a part that belongs to another region.
 *
 * The same agent commits the same kind of states on the embedded store, one way after another, in turns. Prints a table and
 * writes `bench/results/residency.json`. With `--quick` it does a fraction of the rounds and writes nothing.
 */
import { join } from "node:path";
import { fileKeys, newKeyFile, openRegions, openStore } from "../dist/index.js";
import { Report } from "./lib/report.mjs";
import { interleave, printRates, ratio } from "./lib/rounds.mjs";
import { discard, scratch } from "./lib/scratch.mjs";
import { stateSource } from "./lib/states.mjs";

const quick = process.argv.includes("--quick");
const STEPS = quick ? 100 : 300;
const ROUNDS = quick ? 3 : 9;
const WARM_UP = quick ? 300 : 3000;

const report = new Report();
report.opening();
const folder = scratch();
const keyFile = join(folder, "key");
await newKeyFile(keyFile);
const keys = { provider: fileKeys(keyFile) };
const SENSITIVE = { classification: "sensitive", storageRegion: "eu" };

for (const [kind, described] of [
  ["small", "1 KiB state"],
  ["large", "4 KiB state"],
]) {
  report.heading(`One agent, 1 KiB changed per step, ${described}, synchronous=FULL`);
  const contestants = [
    await alone(kind, "plain", {}, { storageRegion: "eu" }),
    await routed(kind, "by regions", {}, { storageRegion: "eu" }),
    await routed(kind, "by regions, hashes keyed", {}, SENSITIVE),
    await routed(kind, "by regions, encrypted", { keys }, SENSITIVE),
    await routed(
      kind,
      "by regions, 1 KiB elsewhere",
      {},
      {
        storageRegion: "eu",
        placement: [{ path: "/state/observation", region: "us" }],
      },
    ),
  ];
  const results = await interleave(contestants, ROUNDS, WARM_UP);
  for (const { close } of contestants) await close();
  printRates(results);
  const [plain, ...others] = results;
  for (const other of others) {
    report.figure(`${described}, ${other.name}: of plain`, ratio(other, plain), "x");
    report.figure(`${described}, ${other.name}: CPU more`, other.cpu - plain.cpu, "ms");
  }
}
discard(folder);
report.closing("residency", quick);

/** One store, opened by its URL. */
async function alone(kind, name, options, declaration) {
  const store = await openStore(`sqlite:${scratchIn(kind, name, "eu")}`, {
    region: "eu",
    ...options,
  });
  const workflow = await store.createWorkflow("bench", declaration);
  return contestant(kind, name, workflow, () => store.close());
}

/** Two regions and a catalogue, opened by a file of regions. */
async function routed(kind, name, options, declaration) {
  const all = ["public", "internal", "sensitive", "regulated"];
  const regions = {};
  for (const region of ["eu", "us"]) {
    const url = `sqlite:${scratchIn(kind, name, region)}`;
    await (await openStore(url, { region })).close();
    regions[region] = { store: url, classifications: all };
  }
  const catalogue = `sqlite:${scratchIn(kind, name, "catalogue")}`;
  await (await openStore(catalogue)).close();
  const opened = await openRegions({ catalogue, regions }, options);
  const workflow = await opened.createWorkflow("bench", declaration);
  return contestant(kind, name, workflow, () => opened.close());
}

function scratchIn(kind, name, region) {
  return join(folder, kind, name.replaceAll(/\W+/g, "-"), region);
}

async function contestant(kind, name, workflow, close) {
  const branch = await workflow.branch({ agent: "agent", branch: "main" });
  const states = stateSource(kind, 2);
  let number = 0;
  return {
    name,
    steps: STEPS,
    async round() {
      const given = Array.from({ length: STEPS }, states);
      const times = [];
      for (const state of given) {
        const since = performance.now();
        const input = { question: `of step ${number}` };
        await branch.commit({
          state,
          message: `step ${number++}`,
          step: { action: "inference", record: { name: "answer", input } },
        });
        times.push(performance.now() - since);
      }
      return { times };
    },
    close,
  };
}
