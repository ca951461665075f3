import { openStore } from "../../dist/index.js";
import { AgstateSaver } from "../../dist/langgraph/index.js";
import { counting } from "../../dist/storage/decorators/counting.js";
import { crowd } from "../lib/crowd.mjs";
import { openSaver } from "../lib/langgraph.mjs";
import { loopWriter, openPostgresSaver, threadWriter } from "../lib/postgres-saver.mjs";
import { dropSchemas, schemaUrl } from "../lib/postgres-server.mjs";
import { interleave, printRates, ratio } from "../lib/rounds.mjs";
import { discard, scratch } from "../lib/scratch.mjs";

const POSTGRES_AT_LEAST = { 1: 2, 64: 3 };
const SQLITE_AT_LEAST = 2;
const [OURS, THEIRS] = ["bench_agstate", "bench_langgraph"];

/** How the calls of a step are made. */
const MODES = {
  "as LangGraph's loop": loopWriter,
  "each call awaited": threadWriter,
};

/**
 * Threads of one process at the same time, `put` and `putWrites` a step, 1 KiB of state, all of it new:
 * AgstateSaver and PostgresSaver on one server.
 */
export async function postgresSteps(report, server, size) {
  for (const [threads, of] of Object.entries(size)) {
    const counted = await openCounted(schemaUrl(server, OURS));
    const saver = await openPostgresSaver(server.url, THEIRS);
    try {
      const ours = { name: "agstate AgstateSaver", saver: counted.saver };
      const theirs = { name: "LangGraph PostgresSaver", saver };
      const most = POSTGRES_AT_LEAST[threads];
      await compare(report, Number(threads), "PostgresSaver", { ours, theirs, counted, most }, of);
    } finally {
      await counted.store.close();
      await saver.end();
      await dropSchemas(server, [OURS, THEIRS]);
    }
  }
}

/** The same on files: AgstateSaver's store and SqliteSaver, both syncing each transaction. */
export async function sqliteSteps(report, size) {
  for (const [threads, of] of Object.entries(size)) {
    const [ourFolder, theirFolder] = [scratch(), scratch()];
    const counted = await openCounted(`sqlite:${ourFolder}`);
    const saver = openSaver(theirFolder);
    try {
      const ours = { name: "agstate AgstateSaver", saver: counted.saver };
      const theirs = { name: "LangGraph SqliteSaver", saver };
      const most = SQLITE_AT_LEAST;
      await compare(report, Number(threads), "SqliteSaver", { ours, theirs, counted, most }, of);
    } finally {
      await counted.store.close();
      saver.db.close();
      discard(ourFolder);
      discard(theirFolder);
    }
  }
}

async function compare(report, threads, peer, { ours, theirs, counted, most }, size) {
  for (const mode of Object.keys(MODES)) {
    await compareMode(report, mode, threads, peer, { ours, theirs, counted, most }, size);
  }
}

async function compareMode(report, mode, threads, peer, { ours, theirs, counted, most }, size) {
  const { rounds, steps, warmUp } = size;
  const who = `${threads === 1 ? "1 thread" : `${threads} threads`}, ${mode}`;
  report.heading(`${who}: beside ${peer}, put and putWrites each step`);
  const contestants = [ours, theirs].map(({ name, saver }) => {
    const writers = Array.from({ length: threads }, (_, k) => {
      const write = MODES[mode](saver, `${mode} ${k}`);
      return (state) => write(state, [["observation", state.observation]]);
    });
    return crowd(name, writers, steps);
  });
  const results = await interleave(contestants, rounds, warmUp);
  printRates(results);
  counted.counter().reset();
  await contestants[0].round();
  const { roundTrips, objectsWritten, pendingWritten } = counted.counter().counts();
  const [our, their] = results;
  report.atLeast(`${who}: of ${peer}`, ratio(our, their), "x", most);
  report.figure(`${who}, beside ${peer}: rate`, our.rate, "steps/s");
  report.figure(`${who}: ${peer}, rate`, their.rate, "steps/s");
  const done = contestants[0].steps;
  report.figure(`${who}, beside ${peer}: calls per step`, roundTrips / done, "calls");
  report.figure(`${who}, beside ${peer}: objects per step`, objectsWritten / done, "objects");
  report.figure(`${who}, beside ${peer}: pending rows per step`, pendingWritten / done, "rows");
}

/** A saver on a store whose calls are counted. */
export async function openCounted(url) {
  let counter;
  const wrap = (storage) => {
    counter = counting(storage);
    return counter.storage;
  };
  const store = await openStore(url, { wrap });
  return { store, saver: new AgstateSaver(store), counter: () => counter };
}
