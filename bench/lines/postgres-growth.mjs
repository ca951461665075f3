import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { openStore } from "../../dist/index.js";
import { recordCommits } from "../lib/agstate.mjs";
import { rowSizes } from "../lib/bare.mjs";
import { crowd } from "../lib/crowd.mjs";
import { groupWriters, openBare, rowSource } from "../lib/postgres-bare.mjs";
import { fill } from "../lib/postgres-fill.mjs";
import { dropSchemas, schemaBytes, schemaUrl } from "../lib/postgres-server.mjs";
import { walCounted } from "../lib/postgres-wal.mjs";
import { interleave, printRates, ratio } from "../lib/rounds.mjs";
import { discard, scratch } from "../lib/scratch.mjs";
import { stateSource } from "../lib/states.mjs";

const RATE_AT_LEAST = 0.8;
const [FULL, EMPTY, BARE] = ["bench_full", "bench_empty", "bench_bare"];
/** The disk that an object takes with its share of commits and indexes, and the log of writing them. */
const BYTES_PER_OBJECT = 1500;
/** How many commits there are for an object: as many as in a growing conversation. */
const COMMITS_PER_OBJECT = 1 / 4;
/** Each agent has a workflow of its own. */
const AGENTS = 64;
/** What a workflow holds after a conversation of 1,000 steps. */
const ORDINARY_OBJECTS = 4000;

/**
 * Commits into tables that hold millions of objects, and into empty ones beside them, in turns, on a
 * server that was just started.
 *
 * Every key leads with the workflow, so that two cases differ: agents that write into workflows of an
 * ordinary size, among all others, and agents whose own workflows hold nearly all there is, so that
 * each commit touches pages of the indexes that none touched before.
 *
 * @param objects how many are there before
 * @param size for each number of agents at work at the same time `rounds`, `steps` and `warmUp`
 */
export async function growth(report, server, objects, size) {
  report.heading(`Growth: ${objects.toLocaleString("en-US")} objects in the same tables`);
  if (!roomFor(objects)) {
    const why = "there is not enough room on the disk; fewer objects: --growth-objects=N.";
    for (const agents of Object.keys(size)) {
      for (const line of Object.values(lines(agents))) {
        report.skipped(line, "x", `>= ${RATE_AT_LEAST}`, why);
      }
    }
    return;
  }
  try {
    await fillTables(report, server, objects);
    for (const [agents, of] of Object.entries(size)) {
      await compare(report, server, Number(agents), of);
    }
  } finally {
    await dropSchemas(server, [FULL, EMPTY, BARE]);
  }
}

function lines(agents) {
  const who = Number(agents) === 1 ? "1 agent" : `${agents} agents`;
  return {
    ordinary: `growth, ${who}: full over empty tables`,
    large: `growth, ${who}: in large workflows, over empty`,
  };
}

function roomFor(objects) {
  const { bavail, bsize } = statfsSync(tmpdir());
  // Twice: the machine has other uses for its disk.
  return bavail * bsize > 2 * objects * BYTES_PER_OBJECT;
}

async function fillTables(report, server, objects) {
  const since = performance.now();
  const [ordinary, large] = ["ordinary", "large"].map((kind) =>
    Array.from({ length: AGENTS }, (_, k) => `${kind}-${k}`),
  );
  await makeWorkflows(server, FULL, [...ordinary, ...large]);
  await makeWorkflows(server, EMPTY, ordinary);
  const few = Math.min(ORDINARY_OBJECTS, Math.floor(objects / AGENTS / 4)) * AGENTS;
  const rows = (workflows, count) => ({
    workflows,
    objects: count,
    commits: Math.floor(count * COMMITS_PER_OBJECT),
  });
  await fill(server, FULL, [rows(ordinary, few), rows(large, objects - few)]);
  await server.pool.query("VACUUM ANALYZE");
  await server.restart();
  const bytes = await schemaBytes(server, FULL);
  const seconds = (performance.now() - since) / 1000;
  report.note(
    `${AGENTS} workflows of ${few / AGENTS} objects, and ${AGENTS} large ones that hold all others; a ` +
      `commit for every ${1 / COMMITS_PER_OBJECT} objects; ${(bytes / 1e9).toFixed(2)} GB with indexes; ` +
      `${seconds.toFixed(0)} s to fill, to vacuum and analyze, and to restart the server.`,
  );
  report.figure("growth: bytes there before", bytes, "bytes");
}

async function compare(report, server, agents, { rounds, steps, warmUp }) {
  const full = await openStore(schemaUrl(server, FULL), { create: false });
  const empty = await openStore(schemaUrl(server, EMPTY), { create: false });
  const refs = Array.from({ length: agents }, (_, k) => `refs/heads/agents/agent-${k}/main`);
  const bare = await openBare(server, BARE, refs);
  const rows = rowSource(await shapes());
  const counted = [
    crowd("full tables", await writers(full, "ordinary", agents), steps),
    crowd("full, large workflows", await writers(full, "large", agents), steps),
    crowd("empty tables", await writers(empty, "ordinary", agents), steps),
    crowd("bare insert, empty tables", groupWriters(bare, false), steps, () => rows),
  ].map((contestant) => walCounted(server, contestant));
  let results;
  try {
    results = await interleave(
      counted.map(({ contestant }) => contestant),
      rounds,
      warmUp,
    );
  } finally {
    await full.close();
    await empty.close();
    await bare.pool.end();
    await dropSchemas(server, [BARE]);
  }
  printRates(results);
  const [ordinary, large, none, floor] = results;
  const line = lines(agents);
  report.atLeast(line.ordinary, ratio(ordinary, none), "x", RATE_AT_LEAST);
  report.atLeast(line.large, ratio(large, none), "x", RATE_AT_LEAST);
  const names = ["full", "large workflows", "empty"];
  for (const [i, name] of names.entries()) {
    const label = (what) => line.ordinary.replace(/:.*/, `: ${what}, ${name}`);
    report.figure(label("rate"), results[i].rate, "commits/s");
    report.figure(label("log per commit"), counted[i].walPerStep(), "bytes");
  }
  report.figure(line.ordinary.replace(/:.*/, ": bare insert, rate"), floor.rate, "commits/s");
}

async function shapes() {
  const directory = scratch();
  const { writes } = await recordCommits(directory, stateSource("small", 1), 20);
  discard(directory);
  return writes.map(rowSizes);
}

async function makeWorkflows(server, schema, ids) {
  const store = await openStore(schemaUrl(server, schema));
  for (const id of ids) {
    const workflow = await store.createWorkflow(id);
    await workflow.branch({ agent: "agent", branch: "main" });
  }
  await store.close();
}

/** As many writers as there are agents at work; together they go through all workflows in turn. */
async function writers(store, kind, agents) {
  const branches = [];
  for (let k = 0; k < AGENTS; k++) {
    branches.push(await (await store.workflow(`${kind}-${k}`)).branch("agents/agent/main"));
  }
  return Array.from({ length: agents }, (_, k) => {
    let number = 0;
    return (state) => {
      const branch = branches[(k + agents * number++) % AGENTS];
      return branch.commit({ state, message: `step ${number}` });
    };
  });
}
