import { statSync } from "node:fs";
import { join } from "node:path";
import { counting } from "../../dist/storage/decorators/counting.js";
import { openAgents } from "../lib/agstate.mjs";
import { MESSAGE_BYTES, messages, wholeStatesBytes } from "../lib/conversation.mjs";
import { openSaver, threadWriter } from "../lib/langgraph.mjs";
import { discard, scratch } from "../lib/scratch.mjs";
import { median, percentile } from "../lib/stats.mjs";

const STEPS = 1000;
/** The windows of steps whose times are compared: first (from 0) and behind the last. */
const EARLY = [4, 25];
const LATE = [979, 1000];
const SMALLER_AT_LEAST = 60;
const TIME_AT_MOST = 1.5;

/** A conversation grows by one message a step: what it takes on disk, and whether steps get slower. */
export async function conversation(report, { repetitions }) {
  report.heading(`Growing conversation: ${STEPS} steps, one ${MESSAGE_BYTES}-byte message each`);
  await bytes(report);
  for (const backend of ["sqlite:", "memory:"]) await times(report, backend, repetitions);
}

async function bytes(report) {
  const given = messages(STEPS, 1);
  const whole = wholeStatesBytes(given);
  const saver = await saverBytes(given);
  const ours = await storedBytes(given);
  const mb = (count) => `${(count / 1e6).toFixed(1)} MB`;
  report.note(
    `the whole state, stored each step: ${mb(whole)}; SqliteSaver's file: ${mb(saver)}; ` +
      `store.db: ${mb(ours.file)}, of it object and commit bodies ${mb(ours.bodies)}.`,
  );
  const label = "times smaller on disk than whole states";
  report.atLeast(label, whole / ours.file, "x", SMALLER_AT_LEAST);
  report.figure("times smaller than SqliteSaver's file", saver / ours.file, "x");
  report.figure("whole states", whole, "bytes");
  report.figure("bytes on disk (store.db, closed)", ours.file, "bytes");
  report.figure("bytes of object and commit bodies", ours.bodies, "bytes");
  report.figure("Git objects per step", ours.objects, "objects");
  report.figure("round trips per step", ours.roundTrips, "calls");
}

async function storedBytes(given) {
  const directory = scratch();
  let counter;
  const wrap = (storage) => {
    counter = counting(storage);
    return counter.storage;
  };
  const { store, workflow, branches } = await openAgents(`sqlite:${directory}`, 1, { wrap });
  counter.reset();
  await converse(branches[0], given);
  const { objectsWritten, roundTrips } = counter.counts();
  const usage = await workflow.usage();
  // Closing the last connection moves the whole write-ahead log into the main file.
  await store.close();
  const file = statSync(join(directory, "store.db")).size;
  discard(directory);
  return {
    file,
    bodies: usage.bytes,
    objects: objectsWritten / given.length,
    roundTrips: roundTrips / given.length,
  };
}

async function saverBytes(given) {
  const directory = scratch();
  const saver = openSaver(directory);
  // It keeps every step's whole state; how soon that is on the disk plays no part here.
  saver.db.pragma("synchronous = OFF");
  const write = threadWriter(saver, "thread-0");
  const state = { messages: [] };
  for (const message of given) {
    state.messages.push(message);
    await write(state, [["messages", message]]);
  }
  saver.db.close();
  const file = statSync(join(directory, "langgraph.db")).size;
  discard(directory);
  return file;
}

async function times(report, backend, repetitions) {
  const [early, late, all] = [[], [], []];
  // The first conversation warms up: the compiler must not make late steps look fast.
  for (let repetition = 0; repetition <= repetitions; repetition++) {
    const directory = scratch();
    const url = backend === "memory:" ? backend : `${backend}${directory}`;
    const { store, branches } = await openAgents(url);
    const steps = await converse(branches[0], messages(STEPS, repetition + 1));
    await store.close();
    discard(directory);
    if (repetition === 0) continue;
    early.push(...steps.slice(...EARLY));
    late.push(...steps.slice(...LATE));
    for (const step of steps) all.push(step);
  }
  const ms = (value) => `${value.toFixed(3)} ms`;
  report.note(
    `${backend} median of steps ${EARLY[0] + 1}-${EARLY[1]}: ${ms(median(early))}, of steps ` +
      `${LATE[0] + 1}-${LATE[1]}: ${ms(median(late))}; all: p50 ${ms(percentile(all, 0.5))}, ` +
      `p99 ${ms(percentile(all, 0.99))}.`,
  );
  const label = `${backend} step time near 1,000 over near 10`;
  const growth = median(late) / median(early);
  // Without a disk the whole step is computing: told for the curious, held to nothing.
  if (backend === "memory:") report.figure(label, growth, "x");
  else report.atMost(label, growth, "x", TIME_AT_MOST);
  report.figure(`${backend} step, p50`, percentile(all, 0.5), "ms");
  report.figure(`${backend} step, p99`, percentile(all, 0.99), "ms");
}

/** Appends the messages, one a step; answers what each step took in milliseconds. */
async function converse(branch, given) {
  const taken = [];
  for (const [i, value] of given.entries()) {
    const since = performance.now();
    const operation = { op: "append", path: "/messages", value };
    await branch.update([operation], { message: `message ${i + 1}` });
    taken.push(performance.now() - since);
  }
  return taken;
}
