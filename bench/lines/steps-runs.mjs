import { dropSchemas, schemaUrl } from "../lib/postgres-server.mjs";
import { interleave, printRates, ratio } from "../lib/rounds.mjs";
import { stepsProcess } from "../lib/steps-process.mjs";

/** Of DBOS, with so many workflows at the same time. */
const AT_LEAST = { 64: { write: 3, read: 5 } };

/** Each has its part of one server to itself. */
const SCHEMAS = { write: "bench_writes", read: "bench_reads", dbos: "bench_dbos" };
const TABLES = {
  write: `${SCHEMAS.write}.commits`,
  read: `${SCHEMAS.read}.commits`,
  dbos: `${SCHEMAS.dbos}.operation_outputs`,
};

/** How many commits the creation of a workflow and of its agent's branch, and the ends of its run, take. */
const AROUND = 2 + 2;

/**
 * Workflows that are started at the same time, in one process, each doing steps one after another
 * whose tools answer at once: what is measured is what it costs to have them on record. The clock runs from before the first
 * workflow is created until the last one's end is on record.
 *
 * agstate records a step that has a side effect twice, before its tool is called and after, with
 * its input; and one that has none, or is an LLM's, once. DBOS records the output of a step, once, after it: a
 * process that dies in between does not know afterwards that the step was begun.
 *
 * @param size for each number of workflows `rounds`, `steps` of a workflow in a round, and `warmUp`
 * @param pool how many connections each contestant has at most
 */
export async function runs(report, server, pool, size) {
  for (const [workflows, of] of Object.entries(size)) {
    await compare(report, server, pool, Number(workflows), of);
  }
}

async function compare(report, server, pool, workflows, { rounds, steps, warmUp }) {
  const who = workflows === 1 ? "1 workflow" : `${workflows} workflows`;
  report.heading(`${who} in one process, ${steps} steps each, 300 bytes in and 300 bytes out`);
  const contestants = [];
  let results;
  try {
    for (const [name, kind] of [
      ["agstate, write", "write"],
      ["agstate, memoized read", "read"],
      ["DBOS runStep", "dbos"],
    ]) {
      contestants.push(await stepsProcess(name, contender(server, pool, kind, workflows, steps)));
    }
    results = await interleave(contestants, rounds, warmUp);
    for (const { check } of contestants) await check();
  } finally {
    for (const { close } of contestants) await close();
  }
  const rows = await countRows(server);
  expectRows(rows, contestants, workflows, steps);
  await dropSchemas(server, Object.values(SCHEMAS));

  printRates(results);
  const [write, read, dbos] = results;
  for (const [result, kind, label] of [
    [write, "write", "write steps"],
    [read, "read", "memoized reads"],
  ]) {
    const line = `${who}: ${label}, of DBOS`;
    const limit = AT_LEAST[workflows]?.[kind];
    if (limit === undefined) report.figure(line, ratio(result, dbos), "x");
    else report.atLeast(line, ratio(result, dbos), "x", limit);
  }
  for (const [result, label] of [
    [write, "write steps"],
    [read, "memoized reads"],
    [dbos, "DBOS"],
  ]) {
    report.figure(`${who}: ${label}, rate`, result.rate, "steps/s");
    report.figure(`${who}: ${label}, p50`, result.p50, "ms");
    report.figure(`${who}: ${label}, p99`, result.p99, "ms");
    report.figure(`${who}: ${label}, CPU of the client`, result.cpu, "ms/step");
  }
}

function contender(server, pool, kind, workflows, steps) {
  const schema = SCHEMAS[kind];
  const peer = kind === "dbos";
  const options = peer
    ? { url: server.url, schema, pool }
    : { url: `${schemaUrl(server, schema)}&pool_max=${pool}`, action: kind };
  return { peer, workflows, steps, options };
}

/** How many rows each contestant's table holds. */
async function countRows({ pool }) {
  const rows = {};
  for (const [kind, table] of Object.entries(TABLES)) {
    const answer = await pool.query(`SELECT count(*)::int AS count FROM ${table}`);
    rows[kind] = answer.rows[0].count;
  }
  return rows;
}

/** Nobody has left a step out, in any round. */
function expectRows(rows, [write, read, dbos], workflows, steps) {
  const expected = {
    write: write.rounds * workflows * (AROUND + 2 * steps),
    read: read.rounds * workflows * (AROUND + steps),
    dbos: dbos.rounds * workflows * steps,
  };
  for (const [kind, count] of Object.entries(expected)) {
    if (rows[kind] === count) continue;
    throw new Error(`${TABLES[kind]} holds ${rows[kind]} rows; the rounds make ${count}`);
  }
}
