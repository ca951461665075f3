import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  type Drift,
  type RunContext,
  type RunOptions,
  StepError,
  type Workflow,
} from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

describe.each(BACKENDS)("one step asked for by many, on %s (STP-02)", (backend) => {
  it("is done by one of ten handles, and the others are told that somebody else goes on", async () => {
    const { store, another } = await makeStore(backend);
    await (await store.createWorkflow("w")).branch({ agent: "a", branch: "x" });
    const handles = await Promise.all(
      Array.from({ length: 10 }, async () => (await (await another()).workflow("w")).branch("a/x")),
    );
    let under = 0;
    let most = 0;
    const keys: (string | null)[] = [];
    const settled = await Promise.allSettled(
      handles.map((branch) =>
        branch.step({ name: "pay", input: { amount: 70 } }, async ({ key }) => {
          keys.push(key);
          most = Math.max(most, ++under);
          await sleep(50);
          under--;
          return "paid";
        }),
      ),
    );
    expect(most).toBe(1);
    expect(keys.length).toBe(1);
    const outcomes = settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason));
    expect(outcomes.filter((one) => one === "paid")).toEqual(["paid"]);
    for (const error of outcomes.filter((one) => one !== "paid")) {
      expect(error).toEqual(agstateError("STEP_FENCED", { branch: "agents/a/x" }));
      expect(error.message).toMatch(/let that one finish, or stop it and run again/);
    }
    const branch = await (await (await another()).workflow("w")).branch("a/x");
    const steps = await all(branch.steps());
    expect(steps.map(({ name, status }) => [name, status])).toEqual([["pay", "completed"]]);
  });
});

describe.each(BACKENDS)("code that changed between crash and resume, on %s (STP-05)", (backend) => {
  type Work = (ctx: RunContext) => Promise<unknown>;

  /** A run whose code was cut off after its steps. */
  async function begin(work: Work, options: RunOptions = {}) {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    await workflow.branch({ agent: "a", branch: "x" });
    const run = async (work: Work, options: RunOptions = {}) => {
      const cold: Workflow = await (await another()).workflow("w");
      return cold.run(await cold.branch("a/x"), work, options);
    };
    const cut = run(async (ctx) => {
      await work(ctx);
      throw new Error("cut off");
    }, options);
    await expect(cut).rejects.toThrow("cut off");
    const calls: string[] = [];
    const tool = () => calls.push("called");
    return { workflow, run, calls, tool };
  }

  const fetched: Work = (ctx) =>
    ctx.step({ name: "fetch", action: "write", input: { of: 1 } }, () => ({ rows: [1, 2] }));

  it("is stopped by a step of another name, class or input, told both of it and both versions", async () => {
    const { workflow, run, calls, tool } = await begin(fetched, { version: "1.4" });
    const head = await workflow.resolve("a/x");
    const spec = { name: "fetch", action: "write", input: { of: 1 } } as const;
    const changed: [Work, Record<string, unknown>][] = [
      [
        (ctx) => ctx.step({ ...spec, name: "load" }, tool),
        { step: 2, recorded: "fetch", asked: "load" },
      ],
      [
        (ctx) => ctx.step({ ...spec, action: "execute" }, tool),
        { step: 2, name: "fetch", recorded: "write", asked: "execute" },
      ],
      [
        (ctx) => ctx.step({ ...spec, input: { of: 2 } }, tool),
        { step: 2, name: "fetch", path: "/of" },
      ],
      [async () => "no step at all", { run: "main", steps: [2] }],
    ];
    for (const [work, details] of changed) {
      const versions = { version: { recorded: "1.4", now: "2.0" } };
      const stopped = run(work, { version: "2.0" });
      await expect(stopped).rejects.toEqual(
        agstateError("STEP_MISMATCH", { ...details, ...versions }),
      );
      await expect(stopped).rejects.toThrow(
        /began with version "1\.4", and this is version "2\.0"/,
      );
      const same = run(work, { version: "1.4" });
      await expect(same).rejects.toEqual(agstateError("STEP_MISMATCH", details));
      await expect(same).rejects.not.toThrow(/version/);
    }
    expect(calls).toEqual([]);
    expect(await workflow.resolve("a/x")).toBe(head);
  });

  it("is told to onDrift where another version goes on, before any step, whatever matches", async () => {
    const told: (Drift | string)[] = [];
    const onDrift = (drift: Drift) => told.push(drift);
    const { run } = await begin(fetched, { version: "1.4", onDrift });
    const cut: Work = async (ctx) => {
      told.push("work");
      await fetched(ctx);
      throw new Error("cut off");
    };
    for (const version of ["1.4", undefined, "2.0"]) {
      const options = version === undefined ? { onDrift } : { version, onDrift };
      await expect(run(cut, options)).rejects.toThrow("cut off");
    }
    const drift = { kind: "version", recorded: "1.4", now: "2.0" };
    expect(told).toEqual(["work", "work", drift, "work"]);
    await run(fetched, { version: "2.0", onDrift });
    // What is over is not gone on with.
    await run(fetched, { version: "3.0", onDrift });
    expect(told.slice(4)).toEqual([drift]);
  });

  it("is told to onDrift where the run began with no version", async () => {
    const told: Drift[] = [];
    const { run } = await begin(fetched);
    await run(fetched, { version: "1", onDrift: (drift) => told.push(drift) });
    expect(told).toEqual([{ kind: "version", recorded: undefined, now: "1" }]);
    const renamed = await begin(fetched);
    await expect(
      renamed.run((ctx) => ctx.step({ name: "load" }, () => 1), { version: "1" }),
    ).rejects.toThrow(/began with no version, and this is version "1"/);
  });

  it("gets the output as it was recorded, and not the tool's new one", async () => {
    const { run, calls, tool } = await begin(fetched, { version: "rows" });
    const told: Drift[] = [];
    const result = await run(
      (ctx) => ctx.step({ name: "fetch", action: "write", input: { of: 1 } }, tool),
      { version: "columns", onDrift: (drift) => told.push(drift) },
    );
    expect(result).toEqual({ rows: [1, 2] });
    expect(calls).toEqual([]);
    expect(told.map(({ kind }) => kind)).toEqual(["version"]);
  });

  it("may put an error's name, message and stack into the next step, which are the same on replay", async () => {
    const seen: string[] = [];
    const work: Work = async (ctx) => {
      const error = await ctx
        .step({ name: "fetch" }, () => {
          throw new RangeError("no rows");
        })
        .catch((reason: unknown) => reason as StepError);
      expect(error).toBeInstanceOf(StepError);
      const { name, message, stack } = error as StepError;
      seen.push(`${name} ${message} ${stack}`);
      return ctx.step({ name: "report", input: { name, message, stack } }, () => "reported");
    };
    const { run } = await begin(work);
    expect(await run(work)).toBe("reported");
    expect(seen.length).toBe(2);
    expect(new Set(seen).size).toBe(1);
    expect(seen[0]).toMatch(/^RangeError no rows RangeError: no rows\n/);
  });
});
