import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  type Branch,
  type RunContext,
  StepError,
  type StepSpec,
  type Tool,
} from "../../src/index.js";
import { bytesOf } from "../../src/storage/rows/inline.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

/** A tool that notes each call. */
function tool<Output>(answer: (call: Parameters<Tool<Output>>[0]) => Output | Promise<Output>) {
  const calls: { key: string | null; number: number | null; attempt: number }[] = [];
  const run: Tool<Output> = (call) => {
    const { key, number, attempt } = call;
    calls.push({ key, number, attempt });
    return answer(call);
  };
  return { calls, run };
}

/** What ends a run as a kill would: nothing after it is recorded. */
class Killed extends Error {}

describe.each(BACKENDS)("the step log on %s", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    /** The branch as a new process opens it. */
    const again = async () => {
      const cold = await (await another()).workflow("w");
      return { workflow: cold, branch: await cold.branch("a/x") };
    };
    return { store, workflow, branch, again };
  }

  describe("one step", () => {
    it("lands an intent before the tool is called, and a seal after", async () => {
      const { workflow, branch } = await begin();
      const seen: unknown[] = [];
      const output = await branch.step(
        { name: "book", input: { room: 1 }, update: () => [{ op: "set", path: "/n", value: 1 }] },
        async ({ key, number }) => {
          const there = await workflow.branch("a/x");
          seen.push({ key, number, point: await there.resumePoint(), head: there.head.step });
          return { id: "b-1" };
        },
      );
      expect(output).toEqual({ id: "b-1" });
      expect(seen).toEqual([
        {
          key: expect.stringMatching(/^[0-9a-f]{32}$/),
          number: 1,
          point: { nextSeq: 2, inFlight: [1] },
          head: expect.objectContaining({ status: "started", action: "execute", number: 1 }),
        },
      ]);
      expect(await branch.resumePoint()).toEqual({ nextSeq: 2, inFlight: [] });
      expect(await branch.state()).toEqual({ n: 1 });
      const [step] = await all(branch.steps());
      expect(step).toMatchObject({
        number: 1,
        name: "book",
        status: "completed",
        attempt: 1,
        input: { room: 1 },
        output: { id: "b-1" },
        key: (seen[0] as { key: string }).key,
      });
      const messages = (await all(branch.log({ limit: 2 }))).map(({ message }) => message);
      expect(messages).toEqual(["book: completed", "book: started"]);
    });

    it("costs two commits with a side effect, one when memoized, none when only read", async () => {
      const { branch } = await begin();
      const commits = async (spec: StepSpec<number>) => {
        const before = branch.head.generation;
        await branch.step(spec, () => 1);
        return branch.head.generation - before;
      };
      expect(await commits({ name: "w", action: "write" })).toBe(2);
      expect(await commits({ name: "e" })).toBe(2);
      expect(await commits({ name: "i", action: "inference" })).toBe(1);
      expect(await commits({ name: "m", action: "read", memoize: true })).toBe(1);
      expect(await commits({ name: "r", action: "read" })).toBe(0);
      expect((await all(branch.steps())).map(({ number }) => number)).toEqual([4, 3, 2, 1]);
    });

    it("keeps a model's response and the tool calls in it beside its output", async () => {
      const { branch } = await begin();
      const calls = [{ id: "c1", name: "book", arguments: { room: 1 } }];
      const answer = { text: "I book it", calls };
      const output = await branch.step(
        {
          name: "think",
          action: "inference",
          input: { prompt: "book a room" },
          describe: (text: string) => ({ toolCalls: calls, llmResponse: { ...answer, text } }),
        },
        () => answer.text,
      );
      expect(output).toBe("I book it");
      const [step] = await all(branch.steps());
      expect(step).toMatchObject({ output: "I book it", toolCalls: calls, llmResponse: answer });
      expect(step?.inputHash).toBe(
        createHash("sha256").update('{"prompt":"book a room"}').digest("hex"),
      );
      const unkept = branch.step(
        { name: "odd", action: "inference", describe: () => ({ toolCalls: [1n] }) },
        () => "paid for",
      );
      await expect(unkept).rejects.toEqual(agstateError("INVALID_VALUE"));
      const [odd] = await all(branch.steps());
      expect(odd).toMatchObject({ name: "odd", status: "failed", toolCalls: undefined });
    });

    it("is tried again with the same key, each attempt on record before it begins", async () => {
      const { branch } = await begin();
      const flaky = tool(({ attempt }) => {
        if (attempt < 3) throw new TypeError(`attempt ${attempt}`);
        return "done";
      });
      const retry = { attempts: 3, pauseMs: 1 };
      expect(await branch.step({ name: "flaky", retry }, flaky.run)).toBe("done");
      expect(flaky.calls.map(({ attempt, number }) => [attempt, number])).toEqual([
        [1, 1],
        [2, 1],
        [3, 1],
      ]);
      expect(new Set(flaky.calls.map(({ key }) => key)).size).toBe(1);
      const [step] = await all(branch.steps());
      expect(step).toMatchObject({ status: "completed", attempt: 3, output: "done" });
    });

    it("that fails is sealed as failed, with its error by name and message", async () => {
      const { branch } = await begin();
      const error = Object.assign(new RangeError("no rooms"), { code: "E_FULL" });
      const failing = branch.step({ name: "book" }, () => {
        throw error;
      });
      await expect(failing).rejects.toMatchObject({
        name: "RangeError",
        message: "no rooms",
        code: "E_FULL",
        step: "book",
        cause: error,
      });
      const [step] = await all(branch.steps({ status: "failed" }));
      expect(step?.error).toEqual({ name: "RangeError", message: "no rooms", code: "E_FULL" });
      expect(await branch.resumePoint()).toEqual({ nextSeq: 2, inFlight: [] });
    });

    it("whose time is over stays open, since its effect may have happened", async () => {
      const { branch } = await begin();
      let aborted = false;
      const slow = branch.step({ name: "slow", timeoutMs: 20 }, ({ signal }) => {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        return new Promise<never>(() => undefined);
      });
      await expect(slow).rejects.toEqual(agstateError("STEP_IN_DOUBT", { step: 1, name: "slow" }));
      expect(aborted).toBe(true);
      expect(await branch.resumePoint()).toEqual({ nextSeq: 2, inFlight: [1] });
      await branch.sealStep(
        1,
        { output: "it did happen" },
        { update: [{ op: "set", path: "/n", value: 1 }] },
      );
      expect(await branch.state()).toEqual({ n: 1 });
      expect(await branch.resumePoint()).toEqual({ nextSeq: 2, inFlight: [] });
      const [step] = await all(branch.steps());
      expect(step).toMatchObject({ status: "completed", output: "it did happen", name: "slow" });
      await expect(branch.sealStep(1, {})).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    });

    it("whose output is not JSON keeps its effect on record, and is not tried again", async () => {
      const { branch } = await begin();
      const bad = tool(() => ({ big: 1n }));
      const retry = { attempts: 5, pauseMs: 1 };
      await expect(branch.step({ name: "bad", retry }, bad.run)).rejects.toEqual(
        agstateError("INVALID_VALUE"),
      );
      expect(bad.calls.length).toBe(1);
      const [step] = await all(branch.steps());
      expect(step).toMatchObject({ status: "failed", error: { code: "INVALID_VALUE" } });
    });

    it("whose time was over is tried again only where the tool honours keys", async () => {
      const { branch } = await begin();
      const slow = tool(
        ({ attempt }) => new Promise<number>((r) => void (attempt === 2 && setTimeout(r, 1, 2))),
      );
      const spec = { name: "slow", timeoutMs: 20, retry: { attempts: 2, pauseMs: 1 } };
      await expect(branch.step(spec, slow.run)).rejects.toEqual(agstateError("STEP_IN_DOUBT"));
      expect(slow.calls.length).toBe(1);
      slow.calls.length = 0;
      expect(await branch.step({ ...spec, inDoubt: "retry" }, slow.run)).toBe(2);
      expect(slow.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(new Set(slow.calls.map(({ key }) => key)).size).toBe(1);
    });

    it("whose input is not JSON is refused before anything happens", async () => {
      const { branch } = await begin();
      const head = branch.head.id;
      const never = tool(() => 1);
      expect(() => branch.step({ name: "bad", input: { f: () => 1 } }, never.run)).toThrow(
        agstateError("INVALID_VALUE"),
      );
      expect(never.calls).toEqual([]);
      expect((await branch.refresh()).id).toBe(head);
    });

    it("keeps no secrets", async () => {
      const { workflow, branch } = await begin();
      const input = {
        url: "http://127.0.0.1/",
        headers: { Authorization: "Bearer abc", Accept: "*/*" },
        users: [{ password: "p1" }, { password: "p2" }],
      };
      const seen: unknown[] = [];
      await branch.step({ name: "login", input, secrets: ["/users/*/password"] }, () => {
        seen.push(input.users[0]?.password);
        return "ok";
      });
      expect(seen).toEqual(["p1"]);
      const [step] = await all(branch.steps());
      expect(step?.input).toEqual({
        url: "http://127.0.0.1/",
        headers: { Authorization: "[secret]", Accept: "*/*" },
        users: [{ password: "[secret]" }, { password: "[secret]" }],
      });
      const { storage } = workflow.internals;
      const bodies = (await storage.scanObjects("w", null, 1000)).rows.map((o) =>
        "body" in o ? Buffer.from(o.body).toString() : "",
      );
      const commits = (await storage.scanCommits("w", null, 1000)).rows.flatMap((c) =>
        [c.body, ...c.inline.map(bytesOf)].map((body) => Buffer.from(body).toString()),
      );
      for (const text of [...bodies, ...commits]) expect(text).not.toMatch(/Bearer abc|p1|p2/);
    });

    it("has the hooks of the store around it, which may refuse it", async () => {
      const told: unknown[] = [];
      const { store } = await makeStore(backend, {
        stepHooks: [
          {
            before: ({ name, attempt, input }) => {
              told.push(["before", name, attempt, input]);
              if (name === "forbidden") throw new Error("not that one");
            },
            after: ({ name, number }, { status }) =>
              void told.push(["after", name, number, status]),
          },
        ],
      });
      const workflow = await store.createWorkflow("w");
      const branch = await workflow.branch({ agent: "a", branch: "x" });
      await branch.step({ name: "fine", input: 1 }, () => 2);
      const never = tool(() => 1);
      await expect(branch.step({ name: "forbidden" }, never.run)).rejects.toThrow("not that one");
      expect(never.calls).toEqual([]);
      expect(await branch.resumePoint()).toEqual({ nextSeq: 2, inFlight: [] });
      expect(told).toEqual([
        ["before", "fine", 1, 1],
        ["after", "fine", 1, "completed"],
        ["before", "forbidden", 1, undefined],
      ]);
    });

    it("lands on top of what others wrote beside it, and many at once in few moves", async () => {
      const { workflow, branch } = await begin();
      const other = await workflow.branch("a/x");
      await branch.step({ name: "one" }, async () => {
        await other.refresh();
        await other.update([{ op: "set", path: "/beside", value: true }]);
      });
      expect(await branch.state()).toEqual({ n: 0, beside: true });
      const before = branch.head.generation;
      const seq = (await workflow.refs("refs/heads/agents/a/x"))[0]?.seq as number;
      const many = Array.from({ length: 30 }, (_, i) =>
        branch.step({ name: `many ${i}`, action: "write" }, () => i),
      );
      expect(await Promise.all(many)).toEqual(Array.from({ length: 30 }, (_, i) => i));
      expect(branch.head.generation - before).toBe(60);
      const moves = ((await workflow.refs("refs/heads/agents/a/x"))[0]?.seq as number) - seq;
      expect(moves).toBeLessThan(20);
      expect((await workflow.fsck()).problems).toEqual([]);
    });
  });

  it("gives no key twice: not to steps, branches of one name, or branches with the same steps", async () => {
    const { workflow } = await begin();
    const keys: string[] = [];
    const step = async (branch: Branch) => {
      await branch.step({ name: "s" }, ({ key }) => void keys.push(key as string));
    };
    for (let i = 0; i < 3; i++) {
      const branch = await workflow.branch({ agent: "a", branch: "again" });
      await step(branch);
      await step(branch);
      await workflow.reset("a/again", "canonical");
      await branch.refresh();
      await step(branch);
      await workflow.deleteBranch("a/again");
    }
    for (const name of ["p", "q"]) await step(await workflow.branch({ agent: "a", branch: name }));
    const canonical = await workflow.canonical();
    await step(canonical);
    await step(canonical);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.length).toBe(13);
    // The formula of canonical's keys is part of the contract with the outside world.
    const { createHash } = await import("node:crypto");
    const expected = createHash("sha256").update("w:1").digest("hex").slice(0, 32);
    expect(keys[11]).toBe(expected);
  });

  describe("a run", () => {
    const booking = (calls: ReturnType<typeof tool<string>>) => async (ctx: RunContext) => {
      const plan = await ctx.step({ name: "plan", action: "inference", input: "trip" }, () => "A");
      const id = await ctx.step({ name: "book", input: { plan } }, calls.run);
      const when = await ctx.now();
      await ctx.update([{ op: "set", path: "/booked", value: id }]);
      return { id, when, uuid: await ctx.uuid(), random: await ctx.random() };
    };

    it("does each step once, however often it is run again", async () => {
      const { workflow, branch, again } = await begin();
      const calls = tool(() => "id-1");
      const result = await workflow.run(branch, booking(calls));
      expect(await branch.state()).toEqual({ n: 0, booked: "id-1" });
      const head = branch.head.id;
      for (let i = 0; i < 2; i++) {
        const next = await again();
        expect(await next.workflow.run(next.branch, booking(calls))).toEqual(result);
        expect(next.branch.head.id).toBe(head);
      }
      expect(calls.calls.length).toBe(1);
    });

    it("goes on wherever it was cut off", async () => {
      const { workflow, again } = await begin();
      // The work is cut off at each of its steps in turn, and then goes on in what is as good as a new process.
      const calls = tool(() => "id-1");
      let outputs: unknown;
      for (let cut = 0; cut <= 6; cut++) {
        const { workflow: w, branch } = await again();
        let asked = 0;
        const guarded = (ctx: RunContext): RunContext =>
          new Proxy(ctx, {
            get(target, name) {
              const value = Reflect.get(target, name, target);
              if (typeof value !== "function") return value;
              return (...args: unknown[]) => {
                if (asked++ === cut) throw new Killed();
                return Reflect.apply(value, target, args);
              };
            },
          });
        const run = w.run(branch, (ctx) => booking(calls)(guarded(ctx)));
        if (cut < 6) await expect(run).rejects.toThrow(Killed);
        else outputs = await run;
      }
      expect(outputs).toMatchObject({ id: "id-1" });
      expect(calls.calls.length).toBe(1);
      expect((await workflow.fsck()).problems).toEqual([]);
    });

    describe("that died between effect and seal", () => {
      /** Leaves step 2 (after the beginning of the run) begun and not sealed. */
      async function died(input: unknown = 7) {
        const begun = await begin();
        const keys: (string | null)[] = [];
        const hanging = begun.workflow.run(begun.branch, (ctx) =>
          ctx.step({ name: "pay", input }, ({ key }) => {
            keys.push(key);
            return new Promise<never>(() => undefined);
          }),
        );
        void hanging;
        while (keys.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        return { ...begun, keys };
      }

      it("is in doubt unless the step says otherwise", async () => {
        const { again } = await died();
        const { workflow, branch } = await again();
        const never = tool(() => "paid");
        const run = () =>
          workflow.run(branch, (ctx) => ctx.step({ name: "pay", input: 7 }, never.run));
        await expect(run()).rejects.toEqual(agstateError("STEP_IN_DOUBT", { step: 2 }));
        expect(never.calls).toEqual([]);
        expect((await branch.resumePoint()).inFlight).toEqual([2]);
        await branch.sealStep(2, { output: "paid by hand" });
        expect(await run()).toBe("paid by hand");
      });

      it("calls the tool again with the same key where that is said", async () => {
        const { again, keys } = await died();
        const { workflow, branch } = await again();
        const calls = tool(() => "paid");
        const spec = { name: "pay", input: 7, inDoubt: "retry" } as const;
        expect(await workflow.run(branch, (ctx) => ctx.step(spec, calls.run))).toBe("paid");
        expect(calls.calls).toEqual([{ key: keys[0], number: 2, attempt: 2 }]);
      });

      it("asks the outside world where it can be asked", async () => {
        for (const probed of [
          { happened: true, output: "found" },
          { happened: false },
          "unknown",
        ] as const) {
          const { again, keys } = await died();
          const { workflow, branch } = await again();
          const calls = tool(() => "paid");
          const asked: unknown[] = [];
          const inDoubt = (step: unknown) => {
            asked.push(step);
            return probed;
          };
          const run = workflow.run(branch, (ctx) =>
            ctx.step<string>({ name: "pay", input: 7, inDoubt }, calls.run),
          );
          if (probed === "unknown")
            await expect(run).rejects.toEqual(agstateError("STEP_IN_DOUBT"));
          else expect(await run).toBe(probed.happened ? "found" : "paid");
          expect(asked).toEqual([{ number: 2, key: keys[0], input: 7, attempt: 1 }]);
          expect(calls.calls.length).toBe(probed !== "unknown" && !probed.happened ? 1 : 0);
        }
      });

      it("is not gone on with for another input", async () => {
        const { again } = await died();
        const { workflow, branch } = await again();
        const never = tool(() => "paid");
        const run = workflow.run(branch, (ctx) =>
          ctx.step({ name: "pay", input: 8, inDoubt: "retry" }, never.run),
        );
        await expect(run).rejects.toEqual(agstateError("STEP_MISMATCH", { step: 2, path: "" }));
        expect(never.calls).toEqual([]);
      });

      it("is fenced off when somebody else has gone on", async () => {
        const { workflow, branch, again } = await begin();
        let release: (value: string) => void = () => undefined;
        const first = workflow.run(branch, async (ctx) => {
          await ctx.step(
            { name: "pay", input: 7 },
            () => new Promise<string>((r) => (release = r)),
          );
          return ctx.step({ name: "ship" }, () => "shipped by the first");
        });
        const failed = expect(first).rejects.toEqual(agstateError("STEP_FENCED"));
        while ((await branch.resumePoint()).inFlight.length === 0);
        const other = await again();
        const result = await other.workflow.run(other.branch, async (ctx) => {
          await ctx.step({ name: "pay", input: 7, inDoubt: "retry" }, () => "paid");
          return ctx.step({ name: "ship" }, () => "shipped");
        });
        expect(result).toBe("shipped");
        // A handle that is taken where the branch is now is fenced off all the same.
        await branch.refresh();
        release("late");
        await failed;
        const steps = await all(other.branch.steps({ name: "ship" }));
        expect(steps.map(({ output }) => output)).toEqual(["shipped"]);
      });
    });

    it("does not call a tool again whose output could not be kept, until somebody says what came out", async () => {
      const { again } = await begin();
      const bad = tool(() => new Map() as unknown as string);
      const run = async () => {
        const { workflow, branch } = await again();
        return workflow.run(branch, (ctx) => ctx.step({ name: "bad", inDoubt: "retry" }, bad.run));
      };
      for (let i = 0; i < 2; i++) {
        await expect(run()).rejects.toMatchObject({ code: "INVALID_VALUE" });
      }
      expect(bad.calls.length).toBe(1);
      const { branch } = await again();
      await branch.sealStep(2, { output: "what it was" });
      expect(await run()).toBe("what it was");
      await expect(branch.sealStep(2, { output: "x" })).rejects.toEqual(
        agstateError("INVALID_ARGUMENT"),
      );
    });

    it("that lost the branch still seals what it had begun, and goes no further", async () => {
      const { workflow, branch, again } = await begin();
      let release: (value: string) => void = () => undefined;
      const first = workflow.run(branch, async (ctx) => {
        await ctx.step({ name: "pay", input: 7 }, () => new Promise<string>((r) => (release = r)));
        return ctx.step({ name: "ship" }, () => "shipped by the first");
      });
      const failed = expect(first).rejects.toEqual(agstateError("STEP_FENCED"));
      while ((await branch.resumePoint()).inFlight.length === 0);
      const other = await again();
      await other.branch.step({ name: "beside", action: "write" }, () => "done");
      release("paid");
      await failed;
      const steps = await all((await again()).branch.steps());
      expect(steps.map(({ name, status }) => [name, status]).slice(0, 2)).toEqual([
        ["pay", "completed"],
        ["beside", "completed"],
      ]);
      expect(steps.some(({ name }) => name === "ship")).toBe(false);
      const late = await again();
      const result = await late.workflow.run(late.branch, async (ctx) => {
        const paid = await ctx.step({ name: "pay", input: 7 }, () => "never");
        return `${paid}, ${await ctx.step({ name: "ship" }, () => "shipped")}`;
      });
      expect(result).toBe("paid, shipped");
    });

    it.each([
      { first: "ends", other: "ends" },
      { first: "ends", other: "fails" },
      { first: "fails", other: "ends" },
    ])(
      "takes what the one before it sealed late for what came out, where that one $first and this one $other",
      async (how) => {
        const { workflow, branch, again } = await begin();
        /** A run whose tool waits until it is let end. */
        const paying = (end: string, output: string) => {
          let over = () => {};
          const gate = new Promise<void>((resolve) => {
            over = resolve;
          });
          const calls: string[] = [];
          const work = async (ctx: RunContext) => {
            const spec = {
              ...{ name: "pay", input: 7, inDoubt: "retry" as const },
              update: (by: string) => [{ op: "set" as const, path: "/by", value: by }],
            };
            const paid = await ctx
              .step(spec, async () => {
                calls.push(output);
                await gate;
                if (end === "fails") throw new RangeError(output);
                return output;
              })
              .catch((error: unknown) => (error as Error).message);
            const shipped = await ctx.step({ name: "ship" }, () => `shipped by ${output}`);
            return `${paid}, ${shipped}`;
          };
          return { work, over: () => over(), calls };
        };
        const first = paying(how.first, "first");
        const fenced = expect(workflow.run(branch, first.work)).rejects.toEqual(
          agstateError("STEP_FENCED"),
        );
        while (first.calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        const other = paying(how.other, "other");
        const { workflow: w, branch: taken } = await again();
        const run = w.run(taken, other.work);
        while (other.calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        first.over();
        await fenced;
        other.over();
        expect(await run).toBe("first, shipped by other");
        const pays = (await all(taken.log())).filter(({ message }) => message.startsWith("pay:"));
        expect(pays.map(({ step }) => step?.status)).toEqual([
          how.first === "ends" ? "completed" : "failed",
          "started",
          "started",
        ]);
        expect(await taken.state()).toEqual(
          how.first === "ends" ? { n: 0, by: "first" } : { n: 0 },
        );
        const late = await again();
        expect(await late.workflow.run(late.branch, other.work)).toBe("first, shipped by other");
        expect(other.calls).toEqual(["other"]);
      },
    );

    it("gives the same error again to code that went on after it, and tries again what ended it", async () => {
      const { again } = await begin();
      const failing = tool(({ attempt }) => {
        if (attempt === 1) throw new RangeError("full");
        return "room";
      });
      let last = false;
      const work = async (ctx: RunContext) => {
        let seen = "";
        try {
          await ctx.step({ name: "first" }, () => {
            throw new RangeError("closed");
          });
        } catch (error) {
          expect(error).toBeInstanceOf(StepError);
          seen = `${(error as Error).name}: ${(error as Error).message}`;
        }
        await ctx.step({ name: "note", input: seen }, () => seen);
        last = true;
        return ctx.step({ name: "second" }, failing.run);
      };
      const one = await again();
      await expect(one.workflow.run(one.branch, work)).rejects.toThrow("full");
      expect(last).toBe(true);
      const two = await again();
      expect(await two.workflow.run(two.branch, work)).toBe("room");
      expect(failing.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(new Set(failing.calls.map(({ key }) => key)).size).toBe(1);
    });

    it("gives the same error again where only parallel parts went on after it", async () => {
      const { again } = await begin();
      const failing = tool(() => {
        throw new RangeError("no rooms");
      });
      const work = (cut: boolean) => async (ctx: RunContext) => {
        let seen = "";
        await ctx.step({ name: "refused" }, failing.run).catch((error) => {
          seen = error.message;
        });
        return ctx.all({
          part: async (inner) => {
            const output = await inner.step({ name: "uses", input: seen }, () => seen);
            if (cut) throw new Killed();
            return output;
          },
        });
      };
      const one = await again();
      await expect(one.workflow.run(one.branch, work(true))).rejects.toThrow(Killed);
      const two = await again();
      expect(await two.workflow.run(two.branch, work(false))).toEqual({ part: "no rooms" });
      expect(failing.calls.length).toBe(1);
    });

    it("tells parallel parts apart by name, whatever their timing", async () => {
      const { again } = await begin();
      const calls: string[] = [];
      const work = (stopAfter: number) => (ctx: RunContext) => {
        const part = (name: string) => async (inner: RunContext) => {
          let sum = 0;
          for (let i = 0; i < 3; i++) {
            sum += await inner.step({ name: "add", input: { name, i } }, async () => {
              await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
              if (calls.length >= stopAfter) throw new Killed();
              calls.push(`${name} ${i}`);
              return i + name.length;
            });
          }
          return sum;
        };
        const names = Array.from({ length: 10 }, (_, i) => `part ${i}`);
        return ctx.all(Object.fromEntries(names.map((name) => [name, part(name)])));
      };
      let result: unknown;
      for (let stop = 5; result === undefined; stop += 5) {
        const { workflow, branch } = await again();
        result = await workflow.run(branch, work(stop)).catch((error) => {
          expect(error.name).toBe("Error");
          return undefined;
        });
      }
      expect(new Set(calls).size).toBe(30);
      expect(calls.length).toBe(30);
      const { workflow, branch } = await again();
      expect(await workflow.run(branch, work(0))).toEqual(result);
    });

    it("refuses code that is not what is on record", async () => {
      const { again } = await begin();
      const one = await again();
      await expect(
        one.workflow.run(one.branch, async (ctx) => {
          await ctx.step({ name: "fetch", action: "write", input: 1 }, () => "x");
          throw new Killed();
        }),
      ).rejects.toThrow(Killed);
      const never = tool(() => "y");
      const attempt = async (work: (ctx: RunContext) => Promise<unknown>) => {
        const { workflow, branch } = await again();
        return workflow.run(branch, work);
      };
      await expect(
        attempt((ctx) => ctx.step({ name: "load", action: "write", input: 1 }, never.run)),
      ).rejects.toEqual(agstateError("STEP_MISMATCH", { recorded: "fetch", asked: "load" }));
      await expect(
        attempt((ctx) => ctx.step({ name: "fetch", action: "execute", input: 1 }, never.run)),
      ).rejects.toEqual(agstateError("STEP_MISMATCH"));
      await expect(attempt(async () => "nothing")).rejects.toEqual(
        agstateError("STEP_MISMATCH", { steps: [2] }),
      );
      expect(never.calls).toEqual([]);
      const drift: unknown[] = [];
      const { workflow, branch } = await again();
      const output = await workflow.run(
        branch,
        async (ctx) => {
          await ctx.step({ name: "look", action: "read" }, () => "unrecorded");
          return ctx.step({ name: "fetch", action: "write", input: 2 }, never.run);
        },
        { onDrift: (each) => drift.push(each) },
      );
      expect(output).toBe("x");
      expect(drift).toEqual([{ kind: "input", step: 2, name: "fetch", recorded: 1, now: 2 }]);
    });

    it("waits no longer than was said, over restarts", async () => {
      const { again } = await begin();
      const one = await again();
      await expect(
        one.workflow.run(one.branch, async (ctx) => {
          await ctx.sleep(0);
          throw new Killed();
        }),
      ).rejects.toThrow(Killed);
      const two = await again();
      expect(
        await two.workflow.run(two.branch, async (ctx) => {
          await ctx.sleep(0);
          return "awake";
        }),
      ).toBe("awake");
      const [slept] = await all(two.branch.steps({ name: "agstate:sleep" }));
      expect(slept).toMatchObject({ input: { ms: 0 }, action: "read" });
    });

    it("gives outputs with their members in one order, at first and from the record", async () => {
      const { again } = await begin();
      const long = (i: number) => ({ z: "z".repeat(40), i, a: "a" });
      // One that is kept as a tree, whose entries lie in another order still, and one that is not.
      const wide = Object.fromEntries(
        Array.from({ length: 300 }, (_, i) => [`k${(i * 7) % 300}`, long(i)]),
      );
      const work = (cut: boolean) => async (ctx: RunContext) => {
        const output = await ctx.step({ name: "s" }, () => ({ z: 1, a: { y: 1, b: 2 }, wide }));
        const text = JSON.stringify(output);
        await ctx.step({ name: "depends", input: text }, () => null);
        if (cut) throw new Killed();
        return output;
      };
      const one = await again();
      await expect(one.workflow.run(one.branch, work(true))).rejects.toThrow(Killed);
      const texts: string[] = [];
      for (let i = 0; i < 3; i++) {
        const { workflow, branch } = await again();
        texts.push(JSON.stringify(await workflow.run(branch, work(false))));
      }
      expect(new Set(texts).size).toBe(1);
    });

    it("is begun anew under another id", async () => {
      const { workflow, branch } = await begin();
      const calls = tool(() => "x");
      const work = (ctx: RunContext) => ctx.step({ name: "s" }, calls.run);
      for (const id of ["one", "two", "one"]) await workflow.run(branch, work, { id });
      expect(calls.calls.length).toBe(2);
    });
  });

  it("is fenced: of ten that go on with one branch at once, each side effect is made by one", async () => {
    const { workflow, again } = await begin();
    const effects: string[] = [];
    const handles = await Promise.all(Array.from({ length: 10 }, again));
    const outcomes = await Promise.allSettled(
      handles.map(({ workflow: w, branch }) =>
        w.run(branch, async (ctx) => {
          for (const name of ["one", "two", "three"]) {
            await ctx.step({ name, inDoubt: "retry" }, ({ key }) => void effects.push(`${key}`));
          }
          return "done";
        }),
      ),
    );
    for (const one of outcomes) {
      if (one.status === "rejected") expect(one.reason).toEqual(agstateError("STEP_FENCED"));
    }
    expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
    expect(new Set(effects).size).toBe(3);
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});
