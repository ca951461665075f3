import { createHash } from "node:crypto";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import {
  AgstateError,
  type Branch,
  type RunContext,
  type Store,
  type Workflow,
} from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { all } from "../support/stores.js";

/** What a life brings, drawn from its seed. */
class Dice {
  private throws = 0;

  constructor(private readonly seed: number) {}

  /** A whole number below n. */
  below(n: number): number {
    const digest = createHash("sha256")
      .update(`${this.seed} ${this.throws++}`)
      .digest();
    return digest.readUInt32BE() % n;
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }
}

interface Life {
  readonly store: Store;
  readonly workflow: Workflow;
  readonly dice: Dice;
  /** A new branch's name. */
  readonly name: () => string;
  readonly net: Net;
}

/** What is between the store and its server: an answer can be lost on it. */
export class Net {
  /** Workflows of which the next answer is lost. */
  readonly losing = new Set<string>();

  readonly wrap = (storage: Storage): Storage => ({
    ...forward(storage),
    write: async (batch) => {
      const answer = await storage.write(batch);
      if (!this.losing.delete(batch.workflow)) return answer;
      throw new AgstateError("STORE_UNAVAILABLE", "the answer was lost");
    },
  });
}

const ACTIONS = ["read", "inference", "write", "execute"] as const;

async function someStep({ dice }: Life, ctx: RunContext, name: string): Promise<void> {
  const action = dice.one(ACTIONS);
  const fails = dice.below(4);
  let calls = 0;
  const spec = {
    name,
    action,
    memoize: dice.below(2) === 0,
    input: { name },
    retry: { attempts: 1, pauseMs: 0 },
    ...(dice.below(3) === 0 && {
      update: () => [{ op: "set", path: `/${name}`, value: 1 }] as const,
    }),
  };
  try {
    await ctx.step(spec, () => {
      // Some fail once, and are tried again; some fail for good.
      if (fails > 2 || (fails === 2 && ++calls === 1)) throw new Error("no");
      return name;
    });
  } catch {
    // What the agent makes of it is not the matter.
  }
}

function begin({ workflow, name }: Life, gathers = false): Promise<Branch> {
  const granularity = gathers ? ({ every: { steps: 4, ms: 60_000 } } as const) : "every-step";
  return workflow.branch({ agent: "a", branch: name(), granularity });
}

async function runs(life: Life): Promise<void> {
  const { workflow, dice } = life;
  const branch = await begin(life, dice.below(2) === 0);
  await workflow.run(branch, async (ctx) => {
    await ctx.now();
    for (let i = dice.below(3); i >= 0; i--) await someStep(life, ctx, `s${i}`);
    await ctx.all({
      left: (ctx) => someStep(life, ctx, "left"),
      right: async (ctx) => {
        await someStep(life, ctx, "right");
        await ctx.update([{ op: "set", path: "/right", value: 2 }]);
      },
    });
    // Beside each other, though not in parts of the run.
    await Promise.all([someStep(life, ctx, "x"), someStep(life, ctx, "y")]);
  });
}

/** Steps by themselves, plain commits and updates, gathered or not, and one that changes nothing. */
async function stands(life: Life): Promise<void> {
  const branch = await begin(life, life.dice.below(2) === 0);
  await branch.step({ name: "alone", action: "write" }, () => 1);
  for (let n = 0; n < 5; n++) await branch.update([{ op: "set", path: "/n", value: n }]);
  await branch.step({ name: "look", action: "read", memoize: true }, () => 2);
  await branch.commit({ state: await branch.state() });
  await branch.flush();
}

class Killed extends Error {}

/** A process ends in the midst of a step, and another goes on with the run. */
async function resumes(life: Life): Promise<void> {
  const { workflow, dice } = life;
  const gathers = dice.below(2) === 0;
  const branch = await begin(life, gathers);
  const inDoubt = dice.one(["retry", () => ({ happened: true, output: 7 }) as const] as const);
  const work = (dies: boolean) => async (ctx: RunContext) => {
    await ctx.step({ name: "first", action: "inference" }, () => 1);
    await ctx.step({ name: "look", action: "read", memoize: true }, () => 2);
    await ctx.step({ name: "send", action: "write", inDoubt }, () => {
      // Nothing of it is heard of again.
      if (dies) return new Promise<never>((_, reject) => gone.push(reject));
      return 3;
    });
    await ctx.step({ name: "last", action: "execute" }, () => 4);
  };
  const gone: ((error: Error) => void)[] = [];
  void workflow.run(branch, work(true)).catch(() => undefined);
  while (gone.length === 0) await new Promise(setImmediate);
  await workflow.run(await workflow.branch(branch.name), work(false));
  // Or it is heard of when another has gone on.
  if (dice.below(2) === 0) for (const reject of gone) reject(new Killed());
  await new Promise(setImmediate);
}

/** A person seals a step that is still under way, whose own seal comes too late. */
async function settles(life: Life): Promise<void> {
  const branch = await begin(life);
  const other = await life.workflow.branch(branch.name);
  await branch.step({ name: "send", action: "write" }, async ({ number }) => {
    await other.sealStep(number as number, { output: 1 });
    return 2;
  });
}

/** Two handles on one branch: one of them loses, and what it had gathered is lost. */
async function races(life: Life): Promise<void> {
  const { workflow } = life;
  const one = await begin(life, true);
  const two = await workflow.branch(one.name);
  await one.step({ name: "look", action: "read", memoize: true }, () => 1);
  await one.update([{ op: "set", path: "/lost", value: 1 }]);
  await two.update([{ op: "set", path: "/won", value: 1 }]);
  await one.flush().catch(() => undefined);
  await one.refresh();
  await two.update([{ op: "set", path: "/won", value: 2 }]);
  await one.update([{ op: "set", path: "/late", value: 1 }]);
  await one.flush().catch(() => undefined);
}

/** Branches that come together: fast forward, by a merge, by picks; and are taken away again. */
async function merges(life: Life): Promise<void> {
  const { workflow, dice } = life;
  const branches = [await begin(life), await begin(life)] as const;
  for (const branch of branches) {
    for (let n = dice.below(3); n >= 0; n--)
      await branch.update([
        { op: "set", path: `/${branch.name.split("/").at(-1)}-${n}`, value: n },
      ]);
  }
  const [one, two] = branches;
  if (dice.below(2) === 0) await workflow.cherryPick(one.head.id);
  await workflow.merge([one.name], { fastForward: dice.one(["auto", "never"] as const) });
  await workflow.merge([two.name]);
  const { id, parents } = await workflow.commitAt("canonical");
  if (dice.below(2) === 0) await workflow.revert(id, parents.length > 1 ? { mainline: 1 } : {});
  await workflow.merge([one.name, two.name]);
  const fork = await workflow.branch({ agent: "b", branch: life.name(), from: two.name });
  await fork.update([{ op: "set", path: "/fork", value: 1 }]);
  await workflow.promote(fork.name);
  if (dice.below(2) === 0) await workflow.reset(one.name, "canonical");
  await workflow.deleteBranch(two.name);
  if (dice.below(2) === 0) {
    const [, agent, branch] = two.name.split("/") as [string, string, string];
    const anew = await workflow.branch({ agent, branch });
    await anew.update([{ op: "set", path: "/anew", value: 1 }]);
  }
}

/** Supervisors that merge into one branch at once, of which all but one have to try again. */
async function crowds(life: Life): Promise<void> {
  const branches = [await begin(life), await begin(life), await begin(life)];
  await Promise.all(
    branches.map(async (branch) => {
      const path = `/crowd-${branch.name.split("/").at(-1)}`;
      await branch.update([{ op: "set", path, value: 1 }]);
      await life.workflow.merge([branch.name], { fastForward: "never" });
    }),
  );
}

/** Answers get lost, of a plain commit and of a step's seal; then another goes on. */
async function loses(life: Life): Promise<void> {
  const { workflow, net } = life;
  const branch = await begin(life);
  net.losing.add(workflow.id);
  await branch.update([{ op: "set", path: "/n", value: 1 }]).catch(() => undefined);
  await branch.refresh();
  const work = (loses: boolean) => (ctx: RunContext) =>
    ctx.step({ name: "send", action: "write" }, () => {
      if (loses) net.losing.add(workflow.id);
      return 1;
    });
  await workflow.run(branch, work(true)).catch(() => undefined);
  await workflow.run(await workflow.branch(branch.name), work(false));
}

/** A graph of LangGraph's, with a thread of its own, that is forked. */
async function graphs({ store, workflow, dice }: Life): Promise<void> {
  if (dice.below(10) > 0) return;
  const State = Annotation.Root({ n: Annotation<number> });
  const graph = new StateGraph(State)
    .addNode("one", ({ n }) => ({ n: n + 1 }))
    .addNode("two", ({ n }) => ({ n: n * 2 }))
    .addEdge(START, "one")
    .addEdge("one", "two")
    .addEdge("two", END)
    .compile({ checkpointer: new AgstateSaver(store) });
  const thread = { configurable: { thread_id: `${workflow.id}-${dice.below(1_000_000)}` } };
  await graph.invoke({ n: 1 }, thread);
  const [, , older] = await all(graph.getStateHistory(thread));
  await graph.invoke(null, older?.config as typeof thread);
  await graph.updateState(thread, { n: 100 });
}

/** Callers that bring their own traceparent, readable or not. */
async function brings(life: Life): Promise<void> {
  const branch = await begin(life);
  const hex = (n: number) =>
    Array.from({ length: n }, () => life.dice.below(16).toString(16)).join("");
  const traces = [`00-${hex(32)}-${hex(16)}-01`, `00-${hex(32)}-${hex(16)}-00`, "ticket 12"];
  for (const trace of traces) {
    await branch.commit({ message: "mine", trace });
    await branch.step({ name: "mine", action: "write", trace }, () => 1);
  }
}

const SCENES = [
  runs,
  stands,
  resumes,
  settles,
  races,
  merges,
  crowds,
  loses,
  graphs,
  brings,
] as const;

/** Lets a workflow live through a few scenes. */
export async function live(store: Store, net: Net, id: string, seed: number): Promise<Workflow> {
  const workflow = await store.createWorkflow(id, { state: {} });
  const dice = new Dice(seed);
  let names = 0;
  const life = { store, workflow, dice, net, name: () => `b-${++names}` };
  for (let n = 1 + dice.below(3); n > 0; n--) await dice.one(SCENES)(life);
  return workflow;
}
