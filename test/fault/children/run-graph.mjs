/**
 * Goes on with a thread of LangGraph until its graph ends; each task's effect is a line in a file.
 *
 * Said are `inside` with what is on its way to the storage, `durable` with each effect whose task's writes
 * were acknowledged, and last `result`. Writes of tasks take a while to get to the storage, as over a slow line.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { openStore } from "../../../dist/index.js";
import { AgstateSaver } from "../../../dist/langgraph/index.js";
import { args, say } from "./lines.mjs";

const { url, thread, effects, layers, width, durability, slowMs } = args;
const PUT = "refs/heads/agents/langgraph/latest";

const wrap = (storage) =>
  new Proxy(storage, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (name !== "write") return typeof member === "function" ? member.bind(target) : member;
      return async (batch) => {
        if (batch.pending?.length > 0) {
          say("inside writes");
          await sleep(Math.random() * slowMs);
        } else if (batch.moves.some(({ ref }) => ref === PUT)) say("inside put");
        return target.write(batch);
      };
    },
  });

class TellingSaver extends AgstateSaver {
  async putWrites(config, writes, taskId, taskPath) {
    await super.putWrites(config, writes, taskId, taskPath);
    const done = writes.flatMap(([channel, value]) => (channel === "log" ? value : []));
    if (done.length > 0) say(`durable ${done.join(" ")}`);
  }
}

const State = Annotation.Root({
  log: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const graph = new StateGraph(State);
for (let layer = 0; layer < layers; layer++) {
  for (let i = 0; i < width; i++) {
    const name = `n${layer}-${i}`;
    graph.addNode(name, async () => {
      await sleep(Math.random() * slowMs);
      appendFileSync(effects, `${name}\n`);
      return { log: [name] };
    });
    // Joined, so that a node runs when the whole layer before it is done.
    const before = Array.from({ length: width }, (_, j) => `n${layer - 1}-${j}`);
    graph.addEdge(layer === 0 ? START : before, name);
    if (layer === layers - 1) graph.addEdge(name, END);
  }
}

const store = await openStore(url, { create: false, wrap });
const app = graph.compile({ checkpointer: new TellingSaver(store) });
const config = { configurable: { thread_id: thread } };
const { config: at } = await app.getState(config);
const begun = at.configurable.checkpoint_id !== undefined;
const { log } = await app.invoke(begun ? null : { log: ["start"] }, { ...config, durability });
say(`result ${JSON.stringify(log)}`);
await store.close();
