import { openStore } from "../../dist/index.js";
import { counting } from "../../dist/storage/decorators/counting.js";
import { openAgents } from "../lib/agstate.mjs";
import { MESSAGE_BYTES, messages, wholeStatesBytes } from "../lib/conversation.mjs";
import { deltaGraph, deltaThread } from "../lib/postgres-delta.mjs";
import { openPostgresSaver, threadWriter } from "../lib/postgres-saver.mjs";
import { dropSchemas, schemaBytes, schemaUrl } from "../lib/postgres-server.mjs";
import { walPosition } from "../lib/postgres-wal.mjs";
import { median, percentile } from "../lib/stats.mjs";

const BYTES_AT_MOST = 1 / 30;
const DELTA_BYTES_AT_MOST = 1;
/** How many steps LangGraph's DeltaChannel takes between two whole lists. */
const DELTA_FREQUENCY = 50;
const TIME_AT_MOST = 1.5;
const ROUND_TRIPS_AT_MOST = 3;
/** How many steps are compared around the tenth, and at the end. */
const WINDOW = 21;
const [OURS, THEIRS] = ["bench_agstate", "bench_langgraph"];

/**
 * A conversation grows by one message a step: what it takes in PostgreSQL, whether steps get slower,
 * and what it takes to read the state after any step.
 *
 * @param size `steps` of the conversation, `repetitions` of it, and `reads`: how many states are read
 */
export async function conversation(report, server, { steps, repetitions, reads }) {
  report.heading(`Growing conversation: ${steps} steps, one ${MESSAGE_BYTES}-byte message each`);
  const theirs = await saverConversation(server, steps);
  const delta = await deltaBytes(server, steps, deltaThread);
  const graph = await deltaBytes(server, steps, deltaGraph);
  const [early, late, all] = [[], [], []];
  let ours;
  // The first conversation warms up: the compiler must not make late steps look fast.
  for (let repetition = 0; repetition <= repetitions; repetition++) {
    const last = repetition === repetitions;
    ours = await ourConversation(server, messages(steps, repetition + 1), last ? reads : 0);
    await dropSchemas(server, [OURS]);
    if (repetition === 0) continue;
    early.push(...ours.times.slice(...earlyWindow()));
    late.push(...ours.times.slice(-WINDOW));
    for (const time of ours.times) all.push(time);
  }
  const mb = (count) => `${(count / 1e6).toFixed(2)} MB`;
  const ms = (value) => `${value.toFixed(3)} ms`;
  report.note(
    `the whole state, stored each step: ${mb(wholeStatesBytes(messages(steps, 1)))}; PostgresSaver's ` +
      `tables: ${mb(theirs.bytes)}; agstate's: ${mb(ours.bytes)}, ${mb(ours.empty)} of it when empty.`,
  );
  report.note(
    `agstate, median of the ${WINDOW} steps at 10: ${ms(median(early))}, at the end: ` +
      `${ms(median(late))}; PostgresSaver: ${ms(median(theirs.times.slice(...earlyWindow())))} and ` +
      `${ms(median(theirs.times.slice(-WINDOW)))}.`,
  );
  const share = ours.bytes / theirs.bytes;
  report.atMost(
    "conversation: bytes, of PostgresSaver's",
    share,
    "x",
    Number(BYTES_AT_MOST.toFixed(4)),
  );
  report.figure("conversation: PostgresSaver's over ours", 1 / share, "x");
  report.figure("conversation: bytes in PostgreSQL", ours.bytes, "bytes");
  report.figure("conversation: PostgresSaver's bytes", theirs.bytes, "bytes");
  report.figure("conversation: log per step", ours.log, "bytes");
  report.note(
    `DeltaChannel at frequency ${DELTA_FREQUENCY}: ${mb(delta)} for checkpoints and writes of the list ` +
      `alone, ${mb(graph)} when LangGraph runs the graph.`,
  );
  const deltaShare = ours.bytes / delta;
  report.atMost("conversation: bytes, of DeltaChannel's", deltaShare, "x", DELTA_BYTES_AT_MOST);
  report.figure("conversation: of DeltaChannel's, as a graph", ours.bytes / graph, "x");
  report.figure("conversation: DeltaChannel's bytes", delta, "bytes");
  const growth = median(late) / median(early);
  report.atMost(`step time near ${steps} over near 10`, growth, "x", TIME_AT_MOST);
  report.figure("conversation: step, p50", percentile(all, 0.5), "ms");
  report.figure("conversation: step, p99", percentile(all, 0.99), "ms");
  report.figure("conversation: round trips per step", ours.roundTrips, "calls");
  const [most] = ours.readTrips.toSorted((a, b) => b.roundTrips - a.roundTrips);
  const calls = Object.entries(most.calls).flatMap(([name, n]) => (n ? [`${n} ${name}`] : []));
  report.note(
    `${ours.readTrips.length} states read, each by a store that was just opened; ` +
      `median time ${ms(median(ours.readTimes))}; at most ${calls.join(", ")}.`,
  );
  report.atMost(
    "state at a commit: round trips, the most",
    most.roundTrips,
    "calls",
    ROUND_TRIPS_AT_MOST,
  );
  report.figure("state at a commit: time, cold, p50", percentile(ours.readTimes, 0.5), "ms");
}

/** From the fifth step on, so that the tenth is among them. */
function earlyWindow() {
  return [4, 4 + WINDOW];
}

async function ourConversation(server, given, reads) {
  const url = schemaUrl(server, OURS);
  const { wrap, counter } = counted();
  const { store, branches } = await openAgents(url, 1, { wrap });
  try {
    const empty = await schemaBytes(server, OURS);
    counter().reset();
    const logBefore = await walPosition(server);
    const [times, commits] = [[], []];
    for (const [i, value] of given.entries()) {
      const operation = { op: "append", path: "/messages", value };
      const since = performance.now();
      const { id } = await branches[0].update([operation], { message: `message ${i + 1}` });
      times.push(performance.now() - since);
      commits.push(id);
    }
    const roundTrips = counter().counts().roundTrips / given.length;
    const log = ((await walPosition(server)) - logBefore) / given.length;
    const bytes = await schemaBytes(server, OURS);
    return {
      times,
      roundTrips,
      bytes,
      empty,
      log,
      ...(await readStates(url, commits, given, reads)),
    };
  } finally {
    await store.close();
  }
}

/** Reads states spread evenly over the history, the first and the last among them, each with nothing at hand. */
async function readStates(url, commits, given, reads) {
  const [readTrips, readTimes] = [[], []];
  for (let k = 0; k < reads; k++) {
    const at = Math.round((k * (commits.length - 1)) / (reads - 1));
    const { wrap, counter } = counted();
    const store = await openStore(url, { create: false, wrap });
    try {
      const workflow = await store.workflow("bench");
      counter().reset();
      const since = performance.now();
      // By what a user has: the commit's id, or how far it is behind the branch.
      const back = `agent-0/main~${commits.length - 1 - at}`;
      const state = await workflow.stateAt(k % 2 === 0 ? commits[at] : back);
      readTimes.push(performance.now() - since);
      readTrips.push(counter().counts());
      if (JSON.stringify(state.messages) !== JSON.stringify(given.slice(0, at + 1))) {
        throw new Error(`the state after step ${at + 1} is another one`);
      }
    } finally {
      await store.close();
    }
  }
  return { readTrips, readTimes };
}

function counted() {
  let counter;
  const wrap = (storage) => {
    counter = counting(storage);
    return counter.storage;
  };
  return { wrap, counter: () => counter };
}

async function saverConversation(server, steps) {
  const saver = await openPostgresSaver(server.url, THEIRS);
  try {
    const write = threadWriter(saver, "thread-0");
    const state = { messages: [] };
    const times = [];
    for (const message of messages(steps, 1)) {
      state.messages.push(message);
      const since = performance.now();
      await write(state, [["messages", message]]);
      times.push(performance.now() - since);
    }
    return { times, bytes: await schemaBytes(server, THEIRS) };
  } finally {
    await saver.end();
    await dropSchemas(server, [THEIRS]);
  }
}

/** What a conversation takes by LangGraph's DeltaChannel. */
async function deltaBytes(server, steps, converse) {
  const saver = await openPostgresSaver(server.url, THEIRS);
  try {
    await converse(saver, messages(steps, 1), DELTA_FREQUENCY);
    return await schemaBytes(server, THEIRS);
  } finally {
    await saver.end();
    await dropSchemas(server, [THEIRS]);
  }
}
