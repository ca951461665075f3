import { openAgents, recordCommits } from "../lib/agstate.mjs";
import { rowSizes } from "../lib/bare.mjs";
import { crowd } from "../lib/crowd.mjs";
import { groupWriters, openBare, rowSource, singleWriters } from "../lib/postgres-bare.mjs";
import { openPostgresSaver, threadWriter } from "../lib/postgres-saver.mjs";
import { dropSchemas, schemaBytes, schemaUrl } from "../lib/postgres-server.mjs";
import { interleave, printRates, ratio } from "../lib/rounds.mjs";
import { discard, scratch } from "../lib/scratch.mjs";
import { stateSource } from "../lib/states.mjs";
import { sum } from "../lib/stats.mjs";

const RECORDED = 50;
const SAVER_AT_LEAST = { 1: 3, 8: 4, 64: 6 };
/** Of the bare grouped insert, where a group is large. */
const BARE_AT_LEAST = { 64: 0.6 };
const P50_AT_MOST = 1.5;

const [OURS, THEIRS, BARE, BARE_REFS] = [
  "bench_agstate",
  "bench_langgraph",
  "bench_bare",
  "bench_bare_refs",
];

/**
 * Agents of one process commit at the same time, each its own state, 1 KiB of it new: agstate,
 * PostgresSaver, and bare statements that write rows of the same sizes.
 *
 * @param size for each number of agents `rounds`, `steps` of an agent in a round, and `warmUp`
 */
export async function commits(report, server, size) {
  const directory = scratch();
  // What a commit consists of is the same on every backend.
  const { writes } = await recordCommits(directory, stateSource("small", 1), RECORDED);
  discard(directory);
  const shapes = writes.map(rowSizes);
  for (const [agents, of] of Object.entries(size)) {
    await compare(report, server, Number(agents), shapes, of);
  }
  report.figure("rows per commit", shapes[0].length + 1, "rows");
  report.figure("bytes per commit", sum(shapes.map(sum)) / shapes.length, "bytes");
}

async function compare(report, server, agents, shapes, { rounds, steps, warmUp }) {
  const who = agents === 1 ? "1 agent" : `${agents} agents`;
  report.heading(`${who} in one process, 1 KiB state, new each step`);
  const { store, branches } = await openAgents(schemaUrl(server, OURS), agents);
  const saver = await openPostgresSaver(server.url, THEIRS);
  const refs = branches.map(({ name }) => `refs/heads/agents/${name}`);
  const bare = await openBare(server, BARE, refs);
  const bareRefs = await openBare(server, BARE_REFS, refs);
  const contestants = [
    crowd("agstate branch.commit", branches.map(committer), steps),
    crowd(
      "LangGraph PostgresSaver",
      branches.map((_, k) => saving(saver, k)),
      steps,
    ),
    ...bareContestants(agents, bare, bareRefs, shapes, steps),
  ];
  let results;
  try {
    results = await interleave(contestants, rounds, warmUp);
  } finally {
    await store.close();
    await saver.end();
    await bare.pool.end();
    await bareRefs.pool.end();
  }
  const stored = await storedPerCommit(server);
  await dropSchemas(server, [OURS, THEIRS, BARE, BARE_REFS]);

  printRates(results);
  const [ours, theirs, floor, moving] = results;
  const sizes = `${shapes[0].join(" and ")} bytes`;
  report.note(
    agents === 1
      ? `bare statement: moves a ref by compare-and-swap and inserts one row of ${sum(shapes[0])} bytes.`
      : `bare insert: rows of ${sizes} a commit, all that wait in one statement of many rows, the ` +
          "last is what agstate's commit row holds; the other moves each commit's ref as well.",
  );
  report.atLeast(`${who}: of PostgresSaver`, ratio(ours, theirs), "x", SAVER_AT_LEAST[agents]);
  if (agents === 1) {
    report.atMost("1 agent: p50 over the bare statement's", ours.p50 / floor.p50, "x", P50_AT_MOST);
  } else {
    const label = `${who}: of the bare grouped insert`;
    const limit = BARE_AT_LEAST[agents];
    if (limit === undefined) report.figure(label, ratio(ours, floor), "x");
    else report.atLeast(label, ratio(ours, floor), "x", limit);
    report.figure(`${who}: of one that moves refs too`, ratio(ours, moving), "x");
  }
  // How far ahead anything could be that writes the same rows.
  report.figure(`${who}: ${floor.name}, of PostgresSaver`, ratio(floor, theirs), "x");
  report.figure(`${who}: rate`, ours.rate, "commits/s");
  report.figure(`${who}: commit, p50`, ours.p50, "ms");
  report.figure(`${who}: commit, p99`, ours.p99, "ms");
  report.figure(`${who}: bytes on disk per commit`, stored, "bytes");
  report.figure(`${who}: PostgresSaver, rate`, theirs.rate, "steps/s");
  report.figure(`${who}: PostgresSaver, p50`, theirs.p50, "ms");
  report.figure(`${who}: PostgresSaver, p99`, theirs.p99, "ms");
  report.figure(`${who}: ${floor.name}, rate`, floor.rate, "commits/s");
  report.figure(`${who}: ${floor.name}, p50`, floor.p50, "ms");
}

async function storedPerCommit(server) {
  const { rows } = await server.pool.query(`SELECT count(*)::int AS commits FROM ${OURS}.commits`);
  return (await schemaBytes(server, OURS)) / rows[0].commits;
}

function committer(branch) {
  let number = 0;
  return (state) => branch.commit({ state, message: `step ${number++}` });
}

function saving(saver, k) {
  const write = threadWriter(saver, `thread-${k}`);
  return (state) => write(state, [["observation", state.observation]]);
}

function bareContestants(agents, bare, bareRefs, shapes, steps) {
  if (agents === 1) {
    const rows = rowSource(shapes.map((shape) => [sum(shape)]));
    return [crowd("bare statement", singleWriters(bare), steps, () => rows)];
  }
  const rows = rowSource(shapes);
  return [
    crowd("bare insert", groupWriters(bare, false), steps, () => rows),
    crowd("bare insert, moving refs", groupWriters(bareRefs, true), steps, () => rows),
  ];
}
