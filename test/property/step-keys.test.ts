import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AgstateError,
  type Branch,
  type ErrorCode,
  isAgstateError,
  openStore,
  type RunContext,
  StepError,
  type Tool,
  type ToolCall,
  type Workflow,
} from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore, newPlace } from "../support/stores.js";

const NAMES = ["canonical", "a/x", "a/y", "b/x"] as const;
type Name = (typeof NAMES)[number];

/** How a tool ends: well, with an error, or not at all, so that its step stays open. */
const FATES = ["well", "badly", "never"] as const;
type Fate = (typeof FATES)[number];

type Command =
  | { readonly do: "step"; readonly on: Name; readonly fate: Fate }
  | { readonly do: "run"; readonly on: Name; readonly fates: readonly Fate[] }
  | { readonly do: "seal"; readonly on: Name }
  | { readonly do: "reset"; readonly on: Name; readonly to: Name; readonly back: number }
  | { readonly do: "undo"; readonly on: Name; readonly back: number }
  | { readonly do: "delete"; readonly on: Name }
  | { readonly do: "fork"; readonly on: Name; readonly to: Name; readonly back: number }
  | { readonly do: "merge"; readonly on: Name; readonly to: Name }
  | { readonly do: "pick"; readonly on: Name; readonly to: Name; readonly back: number };

/** What is refused, rightly, now and then: there is no such branch or revision, or the history does not allow it. */
const REFUSALS: readonly ErrorCode[] = [
  "REF_NOT_FOUND",
  "REF_EXISTS",
  "REVISION_NOT_FOUND",
  "INVALID_ARGUMENT",
  "UNRELATED_HISTORIES",
  "OPEN_INTENTS",
  "STEP_IN_DOUBT",
  "STEP_MISMATCH",
];

/** A workflow that a sequence of commands is done to, and every key that a tool was given there. */
class World {
  /** For which step of which branch a key went out. */
  readonly usedFor = new Map<string, string>();
  readonly wrong: string[] = [];
  private drawn = 0;

  constructor(private readonly workflow: Workflow) {}

  async obey(command: Command): Promise<void> {
    try {
      await this.carryOut(command);
    } catch (error) {
      if (error instanceof StepError || isAgstateError(error, ...REFUSALS)) return;
      // What is given up throws what it was given up for.
      if ((error as Error).name === "AbortError") return;
      throw error;
    }
  }

  private async carryOut(command: Command): Promise<void> {
    const { workflow } = this;
    const { on } = command;
    switch (command.do) {
      case "step": {
        const branch = await workflow.branch(on);
        const controller = new AbortController();
        // No two are asked for alike, so that each is told from all others.
        const input = this.drawn++;
        const tool = this.tool(branch, `step ${input}`, () => command.fate, controller);
        await branch.step({ name: "step", input, signal: controller.signal }, tool);
        return;
      }
      case "run":
        await this.run(await workflow.branch(on), [...command.fates]);
        return;
      case "seal": {
        const branch = await workflow.branch(on);
        for (const number of branch.head.inFlight) await branch.sealStep(number, { output: 1 });
        return;
      }
      case "reset":
        await workflow.reset(on, `${command.to}~${command.back}`);
        return;
      case "undo":
        await workflow.revert(`${on}~${command.back}`, { onto: on });
        return;
      case "delete":
        await workflow.deleteBranch(on);
        return;
      case "fork": {
        const [agent, branch] = on.split("/");
        if (branch === undefined) return;
        const from = `${command.to}~${command.back}`;
        await workflow.branch({ agent: agent as string, branch, from, create: "always" });
        return;
      }
      case "merge":
        await workflow.merge([command.to], { into: on });
        return;
      case "pick":
        await workflow.cherryPick(`${command.to}~${command.back}`, { onto: on });
    }
  }

  /** Begins a run, or goes on with that which the branch has come by, be it another's. */
  private run(branch: Branch, fates: Fate[]): Promise<unknown> {
    const controller = new AbortController();
    const next = () => fates.shift() ?? "well";
    return this.workflow.run(
      branch,
      async (ctx: RunContext) => {
        const draw = { name: "draw", action: "read", memoize: true } as const;
        const input = await ctx.step(draw, () => this.drawn++);
        const effect = (part: RunContext, name: string) =>
          part.step(
            { name, input, action: "write", inDoubt: "retry", signal: controller.signal },
            this.tool(branch, `${name} of run ${input}`, next, controller),
          );
        await effect(ctx, "first");
        await ctx.all({
          one: (part) => effect(part, "one"),
          two: (part) => effect(part, "two"),
        });
        await effect(ctx, "last");
      },
      { signal: controller.signal },
    );
  }

  private tool(
    branch: Branch,
    step: string,
    fate: () => Fate,
    controller: AbortController,
  ): Tool<string> {
    return async ({ key }: ToolCall) => {
      const what = `${branch.name} ${branch.incarnation}: ${step}`;
      const before = this.usedFor.get(key as string) ?? what;
      this.usedFor.set(key as string, before);
      // A throw would be the step's failure.
      if (before !== what) this.wrong.push(`${key} went out for ${before}, and then for ${what}`);
      const how = fate();
      if (how === "badly") throw new Error("no rooms");
      if (how === "never") {
        controller.abort();
        await new Promise(() => undefined);
      }
      return "done";
    };
  }
}

const on = fc.constantFrom(...NAMES);
const back = fc.nat(6);
const fate = fc.constantFrom(...FATES);
const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: fc.record({ do: fc.constant("step" as const), on, fate }), weight: 3 },
  {
    arbitrary: fc.record({
      do: fc.constant("run" as const),
      on,
      fates: fc.array(fate, { minLength: 1, maxLength: 4 }),
    }),
    weight: 4,
  },
  { arbitrary: fc.record({ do: fc.constant("seal" as const), on }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant("reset" as const), on, to: on, back }), weight: 3 },
  { arbitrary: fc.record({ do: fc.constant("undo" as const), on, back }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant("delete" as const), on }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant("fork" as const), on, to: on, back }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant("merge" as const), on, to: on }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant("pick" as const), on, to: on, back }), weight: 1 },
);

describe.each(BACKENDS)("idempotency keys, on %s", (backend) => {
  it("go out for one step of one branch each, whatever is done to branches", async () => {
    let keys = 0;
    const sequence = fc.array(command, { minLength: 4, maxLength: 30, size: "max" });
    const property = fc.asyncProperty(sequence, async (commands) => {
      const place = newPlace(backend);
      const store = await openStore(place.url);
      try {
        const workflow = await store.createWorkflow("w", { state: { n: 0 } });
        for (const name of ["x", "y"]) await workflow.branch({ agent: "a", branch: name });
        const world = new World(workflow);
        for (const each of commands) await world.obey(each);
        expect(world.wrong).toEqual([]);
        keys += world.usedFor.size;
      } finally {
        await store.close();
        await place.remove();
      }
    });
    await fc.assert(property, { numRuns: backend === "memory" ? 300 : 30 });
    console.log(`${backend}: ${keys} keys`);
  });

  it("are asked about as they went out, where a step came with another branch's history", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const sent: string[] = [];
    /** Goes on with the run on a branch, and gives up while its effect is under way. */
    const goOn = async (name: string) => {
      const controller = new AbortController();
      const spec = { name: "pay", inDoubt: "retry", signal: controller.signal } as const;
      const run = workflow.run(await workflow.branch(name), (ctx) =>
        ctx.step(spec, ({ key }) => {
          sent.push(key as string);
          controller.abort();
          return new Promise<never>(() => undefined);
        }),
      );
      await expect(run).rejects.toThrow();
      return sent.at(-1);
    };
    /** The key by which the outside world, a person or a probe, is asked what became of it. */
    const asked = async (name: string) => {
      const told: unknown[] = [];
      const probe = ({ key }: { key: string }) => {
        told.push(key);
        return "unknown" as const;
      };
      for (const inDoubt of [probe, "fail", "ask"] as const) {
        const run = workflow.run(await workflow.branch(name), (ctx) =>
          ctx.step<string>({ name: "pay", inDoubt }, () => "never"),
        );
        const error = await run.catch((reason: unknown) => reason);
        expect(error).toEqual(agstateError("STEP_IN_DOUBT"));
        told.push((error as AgstateError).details.key);
        const { review } = (error as AgstateError).details;
        if (review === undefined) continue;
        told.push((await workflow.review(review as string)).info.subject.key);
      }
      expect(new Set(told).size).toBe(1);
      return told[0];
    };
    for (const name of ["x", "y"]) await workflow.branch({ agent: "a", branch: name });
    const x = await goOn("a/x");
    const y = await workflow.branch("a/y");
    for (let i = 0; i < 3; i++)
      await y.step({ name: "own" }, ({ key }) => sent.push(key as string));
    await workflow.reset("a/y", "a/x");
    expect(await asked("a/y")).toBe(x);
    const onY = await goOn("a/y");
    expect(await asked("a/y")).toBe(onY);
    expect(await goOn("a/y")).toBe(onY);
    await workflow.branch({ agent: "a", branch: "z", from: "a/y" });
    expect(await asked("a/z")).toBe(onY);
    const onZ = await goOn("a/z");
    expect(await goOn("a/z")).toBe(onZ);
    expect(await goOn("a/x")).toBe(x);
    expect(new Set(sent).size).toBe(3 + 3);
    // Who seals it, seals what went out.
    const z = await workflow.branch("a/z");
    await workflow.reset("a/z", "a/x");
    await z.refresh();
    await z.sealStep(z.head.inFlight[0] as number, { output: "paid" });
    const [sealed] = await all(z.steps({ name: "pay" }));
    expect(sealed).toMatchObject({ status: "completed", key: x });
  });
});
