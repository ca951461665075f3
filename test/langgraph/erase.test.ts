import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { stored } from "../support/stored-text.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const EMAIL = "marker.person@example.org";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  user: Annotation<Record<string, unknown>>({ reducer: (_, b) => b, default: () => ({}) }),
});

describe.each(BACKENDS)("erasing from a thread of LangGraph on %s", (backend) => {
  it("leaves the thread to go on from its latest checkpoint", async () => {
    const { store } = await makeStore(backend);
    const graph = new StateGraph(State)
      .addNode("one", ({ log }) => ({ log: [`one ${log.length}`] }))
      .addNode("two", ({ user }) => ({ log: [`mail to ${String(user.email)}`] }))
      .addEdge(START, "one")
      .addEdge("one", "two")
      .addEdge("two", END)
      .compile({ checkpointer: new AgstateSaver(store) });
    const config = { configurable: { thread_id: "t" } };
    await graph.invoke({ user: { email: EMAIL, plan: "pro" } }, config);
    const workflow = await store.workflow("t");
    expect(await stored(workflow, EMAIL)).not.toEqual([]);
    const before = await graph.getState(config);

    const report = await workflow.erase({
      paths: ["/state/user/email"],
      by: "dpo",
      reason: "request 17",
    });
    expect(report).toMatchObject({ status: "done", residue: [] });
    expect(await stored(workflow, EMAIL)).toEqual([]);
    const after = await graph.getState(config);
    expect(after.config.configurable?.checkpoint_id).toBe(
      before.config.configurable?.checkpoint_id,
    );
    expect(after.values).toEqual({ user: { plan: "pro" }, log: ["one 0", "[erased]"] });
    const next = await graph.invoke({ log: ["again"] }, config);
    expect(next.log).toEqual(["one 0", "[erased]", "again", "one 3", "mail to undefined"]);
    const restarted = await new AgstateSaver(store).getTuple(config);
    expect(restarted?.checkpoint.channel_values.user).toEqual({ plan: "pro" });
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});
