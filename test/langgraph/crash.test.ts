import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CheckpointTuple, emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { resultOf, startChild, startTogether } from "../support/child-processes.js";
import { usually } from "../support/runs.js";
import { scratchFolder } from "../support/sqlite-store.js";
import { all, BACKENDS, makeStore } from "../support/stores.js";

const RUN_GRAPH = new URL("../fault/children/run-graph.mjs", import.meta.url);
const PUT_WRITES = new URL("../fault/children/put-writes.mjs", import.meta.url);

const GRAPHS = usually(1, 30);
const LAYERS = 4;
const WIDTH = 3;
/** How long, at most, a task takes, and its writes until they are at the storage. */
const SLOW_MS = 20;
/** A life ends at one of so many writes to the storage, and at most so long after it has begun. */
const CALLS_MAX = 4;
const KILL_WITHIN_MS = 25;
/** More lives than any graph here needs. */
const LIVES_MAX = 200;

const NODES = Array.from({ length: LAYERS * WIDTH }, (_, i) => {
  return `n${Math.floor(i / WIDTH)}-${i % WIDTH}`;
});

/** What one process did before it was killed, or came to the graph's end. */
interface Life {
  /** Tasks whose effect happened, in order. */
  readonly ran: readonly string[];
  /** Tasks whose writes were acknowledged. */
  readonly durable: readonly string[];
  readonly result: readonly string[] | undefined;
}

/** Runs a graph in one process after the other, each of which is killed at a random moment. */
async function live(url: string, thread: string, durability: "sync" | "async"): Promise<Life[]> {
  const effects = join(scratchFolder(), "effects");
  writeFileSync(effects, "");
  const lives: Life[] = [];
  let seen = 0;
  while (lives.at(-1)?.result === undefined) {
    expect(lives.length).toBeLessThan(LIVES_MAX);
    const plan = { layers: LAYERS, width: WIDTH, slowMs: SLOW_MS, durability };
    const child = startChild(RUN_GRAPH, { url, thread, effects, ...plan });
    const nth = 1 + Math.floor(Math.random() * CALLS_MAX);
    const reached = child.said("inside", nth).then(
      () => true,
      () => false,
    );
    if (await reached) {
      await sleep(Math.random() * KILL_WITHIN_MS);
      child.kill();
    }
    const { code, signal } = await child.ended;
    expect(code === 0 || signal === "SIGKILL", child.errors()).toBe(true);
    const said = (word: string) =>
      child.lines.flatMap((line) =>
        line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : [],
      );
    const ran = readFileSync(effects, "utf8").split("\n").slice(0, -1);
    lives.push({
      ran: ran.slice(seen),
      durable: said("durable").flatMap((names) => names.split(" ")),
      result: said("result").map((text) => JSON.parse(text) as string[])[0],
    });
    seen = ran.length;
  }
  return lives;
}

/** Expects that what a checkpoint took over from its parent's tasks stands among their writes. */
function expectWritesBelow(tuples: readonly CheckpointTuple[]): void {
  const byId = new Map(tuples.map((tuple) => [tuple.checkpoint.id, tuple]));
  const logOf = (tuple: CheckpointTuple) => (tuple.checkpoint.channel_values.log ?? []) as string[];
  let taken = 0;
  for (const tuple of tuples) {
    const parent = byId.get(tuple.parentConfig?.configurable?.checkpoint_id as string);
    if (parent === undefined) continue;
    const written = (parent.pendingWrites ?? []).flatMap(([, channel, value]) =>
      channel === "log" ? (value as string[]) : [],
    );
    for (const name of logOf(tuple).slice(logOf(parent).length)) {
      if (name !== "start") taken++;
      if (name !== "start") expect(written).toContain(name);
    }
  }
  expect(taken).toBeGreaterThanOrEqual(NODES.length);
}

describe.each(BACKENDS.filter((backend) => backend !== "memory"))(
  "a graph whose process is killed, on %s (LG-06)",
  (backend) => {
    it("does no task again whose writes were durable, and goes on to its end", async () => {
      const { url, another } = await makeStore(backend);
      let killed = 0;
      for (let n = 0; n < GRAPHS; n++) {
        const lives = await live(url, `sync-${n}`, "sync");
        killed += lives.length - 1;
        expect([...(lives.at(-1)?.result ?? [])].sort()).toEqual([...NODES, "start"].sort());
        const durable = new Set<string>();
        const happened = new Set<string>();
        for (const life of lives) {
          expect(life.ran.filter((name) => durable.has(name))).toEqual([]);
          expect(new Set(life.ran).size).toBe(life.ran.length);
          for (const name of life.durable) durable.add(name);
          for (const name of life.ran) happened.add(name);
        }
        expect([...happened].sort()).toEqual(NODES);
        const cold = new AgstateSaver(await another());
        expectWritesBelow(await all(cold.list({ configurable: { thread_id: `sync-${n}` } })));
      }
      expect(killed).toBeGreaterThanOrEqual(GRAPHS);
    });

    it("has the writes of tasks stored before the checkpoint that goes on without them, also when LangGraph waits for neither", async () => {
      const { url, another } = await makeStore(backend);
      for (let n = 0; n < GRAPHS; n++) {
        const lives = await live(url, `async-${n}`, "async");
        // What the graph's end says counts each task once, however often its process died.
        expect([...(lives.at(-1)?.result ?? [])].sort()).toEqual([...NODES, "start"].sort());
        const cold = new AgstateSaver(await another());
        expectWritesBelow(await all(cold.list({ configurable: { thread_id: `async-${n}` } })));
      }
    });

    it("keeps all of what two processes write below one checkpoint at once, for tasks of their own and one they share", async () => {
      const { store, url, another } = await makeStore(backend);
      const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
      const at = await new AgstateSaver(store).put(
        config,
        emptyCheckpoint(),
        { source: "loop", step: 0, parents: {} },
        {},
      );
      const shared = [
        ["__error__", "__interrupt__"],
        ["__scheduled__", "__resume__"],
      ];
      const children = await startTogether(
        PUT_WRITES,
        shared.map((names, who) => ({
          url,
          config: at,
          writes: [
            ...Array.from({ length: 20 }, (_, i) => [`task-${who}-${i}`, "c", `${who}-${i}`]),
            ...names.map((name) => ["shared", name, who]),
          ],
        })),
      );
      for (const child of children) expect(await resultOf<number>(child)).toBe(22);
      const tuple = await new AgstateSaver(await another()).getTuple(at);
      const written = (tuple?.pendingWrites ?? []).map((write) => JSON.stringify(write));
      const expected = shared.flatMap((names, who) => [
        ...Array.from({ length: 20 }, (_, i) => [`task-${who}-${i}`, "c", `${who}-${i}`]),
        ...names.map((name) => ["shared", name, who]),
      ]);
      expect(written.sort()).toEqual(expected.map((write) => JSON.stringify(write)).sort());
    });
  },
);
