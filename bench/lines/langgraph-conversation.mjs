import { HumanMessage } from "@langchain/core/messages";
import { MESSAGE_BYTES, messages } from "../lib/conversation.mjs";
import { deltaGraph } from "../lib/postgres-delta.mjs";
import { openPostgresSaver, threadWriter } from "../lib/postgres-saver.mjs";
import { dropSchemas, schemaBytes, schemaUrl } from "../lib/postgres-server.mjs";
import { median, sum } from "../lib/stats.mjs";
import { openCounted } from "./langgraph-steps.mjs";

const BYTES_AT_MOST = 1 / 20;
const LIST_AT_LEAST = 50;
const TUPLE_AT_LEAST = 5;
/** LangGraph's DeltaChannel, by how many steps lie between two whole lists: how much faster `getTuple` is to be. */
const DELTA_TUPLE_AT_LEAST = { 1000: 20, 50: 3 };
const DELTA_OF_BYTES = 50;
const [OURS, THEIRS] = ["bench_agstate", "bench_langgraph"];
const THREAD = "thread-0";
const config = { configurable: { thread_id: THREAD, checkpoint_ns: "" } };

/**
 * A conversation that grows by one message a step: what it takes in PostgreSQL, and how long it takes a saver
 * that was just opened to list all its checkpoints, every message of each, and to get the last.
 */
export async function conversation(report, server, { steps, reads, lists }) {
  report.heading(`Growing conversation: ${steps} steps, one ${MESSAGE_BYTES}-byte message each`);
  const given = messages(steps, 1).map(
    ({ content }, i) => new HumanMessage({ content, id: `message-${i}` }),
  );
  const ours = await measure(() => openOurs(server), given, { server, schema: OURS, reads, lists });
  const theirs = await measure(() => openTheirs(server), given, {
    server,
    schema: THEIRS,
    reads,
    lists: 1,
  });
  const delta = {};
  for (const frequency of Object.keys(DELTA_TUPLE_AT_LEAST)) {
    delta[frequency] = await measureDelta(server, given, Number(frequency), reads);
  }
  const mb = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
  const lines = { AgstateSaver: ours, PostgresSaver: theirs };
  for (const [name, { bytes, put, list, tuple }] of Object.entries(lines)) {
    report.note(
      `${name}: ${mb(bytes)}, all steps in ${(put / 1000).toFixed(1)} s, listed in ${list.toFixed(0)} ms, ` +
        `last tuple in ${tuple.toFixed(1)} ms.`,
    );
  }
  for (const [frequency, { bytes, tuple }] of Object.entries(delta)) {
    report.note(
      `DeltaChannel, frequency ${frequency}: ${mb(bytes)}, the list again in ${tuple.toFixed(1)} ms.`,
    );
  }
  const share = Number(BYTES_AT_MOST.toFixed(4));
  report.atMost("conversation: bytes, of PostgresSaver's", ours.bytes / theirs.bytes, "x", share);
  report.atLeast("conversation: listing", theirs.list / ours.list, "x", LIST_AT_LEAST);
  report.atLeast("conversation: getTuple", theirs.tuple / ours.tuple, "x", TUPLE_AT_LEAST);
  report.figure("conversation: all steps", theirs.put / ours.put, "x");
  for (const [frequency, least] of Object.entries(DELTA_TUPLE_AT_LEAST)) {
    const faster = delta[frequency].tuple / ours.tuple;
    report.atLeast(`getTuple, of DeltaChannel's at ${frequency}`, faster, "x", least);
  }
  const deltaShare = ours.bytes / delta[DELTA_OF_BYTES].bytes;
  report.atMost(`bytes, of DeltaChannel's at ${DELTA_OF_BYTES}`, deltaShare, "x", 1);
  report.figure("conversation: calls to list", ours.calls.list, "calls");
  report.figure("conversation: calls of a cold getTuple", ours.calls.tuple, "calls");
}

async function openOurs(server) {
  const { store, saver, counter } = await openCounted(schemaUrl(server, OURS));
  const calls = () => counter().counts().roundTrips;
  return { saver, calls, close: () => store.close() };
}

async function openTheirs(server) {
  const saver = await openPostgresSaver(server.url, THEIRS);
  return { saver, calls: () => 0, close: () => saver.end() };
}

async function measure(open, given, { server, schema, reads, lists }) {
  const writer = await open();
  const write = threadWriter(writer.saver, THREAD);
  const state = { messages: [] };
  const since = performance.now();
  await write(state, []);
  for (const message of given) {
    state.messages = [...state.messages, message];
    await write(state, [["messages", message]]);
  }
  const put = performance.now() - since;
  const bytes = await schemaBytes(server, schema);
  await writer.close();
  const calls = {};
  const tuple = await timed(open, reads, async ({ saver, calls: counted }) => {
    const { checkpoint } = await saver.getTuple(config);
    check(checkpoint.channel_values.messages, given);
    calls.tuple = counted();
  });
  const list = await timed(open, lists, async ({ saver, calls: counted }) => {
    let left = given.length;
    for await (const { checkpoint } of saver.list(config)) {
      check(checkpoint.channel_values.messages, given.slice(0, left--));
    }
    if (left !== -1) throw new Error(`${left + 1} checkpoints were not listed`);
    calls.list = counted();
  });
  await dropSchemas(server, [schema]);
  return { put, bytes, list, tuple, calls };
}

async function timed(open, times, act) {
  const taken = [];
  for (let i = 0; i < times; i++) {
    const opened = await open();
    const since = performance.now();
    await act(opened);
    taken.push(performance.now() - since);
    await opened.close();
  }
  return median(taken);
}

/** Lets a graph converse; what is timed is what LangGraph needs of the saver to have the list again. */
async function measureDelta(server, given, frequency, reads) {
  const writer = await openTheirs(server);
  await deltaGraph(writer.saver, given, frequency);
  await writer.close();
  const bytes = await schemaBytes(server, THEIRS);
  const graph = { configurable: { thread_id: "graph" } };
  const tuple = await timed(
    () => openTheirs(server),
    reads,
    async ({ saver }) => {
      const [{ messages: history }, last] = await Promise.all([
        saver.getDeltaChannelHistory({ config: graph, channels: ["messages"] }),
        saver.getTuple(graph),
      ]);
      const seed = history.seed?.value ?? [];
      const writes = [...history.writes, ...(last.pendingWrites ?? [])].map((write) => write[2]);
      const whole = last.checkpoint.channel_values.messages?.value;
      if (whole === undefined && seed.length + sum(writes.map(count)) < given.length) {
        throw new Error(`DeltaChannel's list has ${seed.length} and ${writes.length} messages`);
      }
    },
  );
  await dropSchemas(server, [THEIRS]);
  return { bytes, tuple };
}

function count(write) {
  return Array.isArray(write) ? write.length : 1;
}

function check(list, given) {
  const same =
    list.length === given.length &&
    list.every((message, i) => message.content === given[i].content && message.type === "human");
  if (!same) throw new Error("the conversation that was read is another one");
}
