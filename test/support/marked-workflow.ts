import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import type { GovernancePolicy, Store, Workflow } from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { marker } from "./keys.js";

/** The rules that the store must be opened with. */
export const MARKED_RULES: GovernancePolicy = {
  rules: [{ tool: "transfer", decision: "approve", paths: ["/small"] }],
  default: "allow",
};

/** Where in a workflow each marker stands. */
export type Markers = Readonly<Record<string, string>>;

/**
 * Fills a store with workflows that have a marker at every place where a payload may be: states, steps, merges, conflicts
 * that were resolved, reviews, subjects, and what LangGraph's tasks wrote.
 */
export async function markedWorkflow(
  store: Store,
  declared: { classification: "sensitive"; storageRegion: string },
): Promise<{ workflow: Workflow; markers: Markers }> {
  const markers: Record<string, string> = {};
  const mark = (place: string) => {
    markers[place] ??= marker(place);
    return markers[place];
  };
  const workflow = await store.createWorkflow("w", {
    ...declared,
    subjects: ["/state/users/{subject}"],
    isolation: ["/state/email"],
    state: { first: mark("first state"), users: {}, n: 0 },
    policies: { "/list": "append" },
  });
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  await branch.commit({
    state: {
      small: mark("small"),
      email: mark("isolated"),
      list: Array.from({ length: 100 }, (_, i) => `${mark("list")} ${i}`),
      text: `${mark("text")} words and lines\n`.repeat(60),
      fan: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, mark("fan")])),
      users: { c1: mark("subject"), c2: { deep: [mark("subject deep")] } },
      n: 1,
    },
  });
  const record = { name: "pay", input: { card: mark("input") }, output: mark("output") };
  await branch.update([{ op: "append", path: "/list", value: mark("appended") }], {
    step: { action: "write", record },
  });
  const big = { name: "big", output: `${mark("big output")} `.repeat(80) };
  await branch.update([], { step: { action: "read", record: big } });
  await workflow.run(branch, (ctx) =>
    ctx.step({ name: "look", action: "write", input: mark("run input") }, async () =>
      mark("run output"),
    ),
  );
  const asked = branch.step(
    { name: "transfer", action: "write", input: mark("asked for") },
    () => 1,
  );
  await asked.catch(() => undefined);
  const [review] = await workflow.reviews();
  await review?.approve({ actor: "eve", reason: "fine" });
  const canonical = await workflow.canonical();
  await canonical.update([{ op: "set", path: "/n", value: mark("conflict") }]);
  const merged = await workflow.merge(["agents/a/b"], { onConflict: "store" });
  if (merged.stored === null) throw new Error("there should be a conflict");
  const stored = await workflow.storedMerge();
  for (const { path } of await stored.openPaths()) {
    await stored.resolve(path, { value: mark("resolution") });
  }
  await stored.continue();

  const heir = await workflow.branch({ agent: "heir", branch: "b", from: "agents/a/b" });
  await heir.step({ name: "read", action: "read", memoize: true }, ({ relyOn }) =>
    relyOn({ type: "doc", id: mark("relied on"), version: mark("version") }),
  );
  await heir.handoff({
    summary: { goal: mark("goal"), done: [mark("done")] },
    note: mark("note"),
    resources: [{ type: "doc", id: mark("resource"), version: "1" }],
    fingerprints: { prompts: { system: mark("prompt") } },
  });
  const checkers = { doc: () => mark("found") };
  const stale = await heir.resume({ checkers, fingerprints: { model: mark("model") } });
  await (await workflow.review(stale.review?.id as string)).approve({ actor: "eve" });
  await heir.resume({ checkers, fingerprints: { model: mark("model") } });

  const saver = new AgstateSaver(store, { declaration: declared });
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(1), channel_values: { c: mark("channel") } };
  const at = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const metadata = { source: "loop", step: 0, parents: {}, note: mark("metadata") } as const;
  const put = await saver.put(at, checkpoint, metadata, { c: 1 });
  await saver.putWrites(put, [["c", mark("task's write")]], "task");
  return { workflow, markers };
}
