import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolMatcher } from "../../src/governance/pattern.js";
import { Governance } from "../../src/governance/policy.js";
import {
  type Branch,
  checkGovernance,
  type GovernancePolicy,
  type GovernanceRule,
  isAgstateError,
  type RunContext,
  type StepCall,
  type Tool,
} from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

describe("a policy", () => {
  it("is read strictly, and what is wrong is named by its place", () => {
    const rule = { tool: "a", decision: "allow" };
    const wrong: [unknown, string][] = [
      [null, ""],
      [[], ""],
      [{}, "/rules"],
      [{ rules: {} }, "/rules"],
      [{ rules: [], default: "ask" }, "/default"],
      [{ rules: [], extra: 1 }, "/extra"],
      [{ rules: ["a"] }, "/rules/0"],
      [{ rules: [{ decision: "allow" }] }, "/rules/0/tool"],
      [{ rules: [{ tool: "", decision: "allow" }] }, "/rules/0/tool"],
      [{ rules: [rule, { tool: "b" }] }, "/rules/1/decision"],
      [{ rules: [{ ...rule, decision: "Allow" }] }, "/rules/0/decision"],
      [{ rules: [{ ...rule, action: "delete" }] }, "/rules/0/action"],
      [{ rules: [{ ...rule, actions: "read" }] }, "/rules/0/actions"],
      [{ rules: [{ ...rule, "a/b": 1 }] }, "/rules/0/a~1b"],
      [{ rules: [{ ...rule, paths: ["/a"] }] }, "/rules/0/paths"],
      [{ rules: [{ ...rule, decision: "approve", paths: "/a" }] }, "/rules/0/paths"],
      [{ rules: [{ ...rule, decision: "approve", paths: ["/a", "b"] }] }, "/rules/0/paths/1"],
      [{ rules: [{ ...rule, decision: "approve", expiresAfterMs: 0 }] }, "/rules/0/expiresAfterMs"],
      [
        { rules: [{ ...rule, decision: "approve", expiresAfterMs: 1.5 }] },
        "/rules/0/expiresAfterMs",
      ],
      [{ rules: [{ ...rule, expiresAfterMs: 1 }] }, "/rules/0/expiresAfterMs"],
      [{ rules: [{ ...rule, reason: "a\nb" }] }, "/rules/0/reason"],
      [{ rules: [rule, rule] }, "/rules/1/tool"],
      [{ rules: [{ ...rule, tool: "*" }, rule] }, "/rules/1/tool"],
      [{ rules: [rule, { ...rule, tool: "b*" }, { ...rule, tool: "b*c" }] }, "/rules/2/tool"],
    ];
    for (const [policy, at] of wrong) {
      let thrown: unknown;
      try {
        checkGovernance(policy);
      } catch (error) {
        thrown = error;
      }
      expect(thrown, JSON.stringify(policy)).toEqual(agstateError("INVALID_POLICY", { at }));
    }
    const good: GovernancePolicy = {
      rules: [
        { tool: "a", decision: "approve", paths: ["/a", "/a~1b"], expiresAfterMs: 5, reason: "r" },
      ],
      default: "deny",
    };
    expect(checkGovernance(good)).toEqual(good);
  });

  it("refuses a rule exactly when those before it match all the names that it does", () => {
    const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*"), minLength: 1, maxLength: 5 });
    // A letter that stands in no pattern tells apart what `*` matches and what is written out.
    const names = ["", "a", "b", "c"].flatMap((end) =>
      Array.from({ length: 4 ** 4 }, (_, n) =>
        [...n.toString(4).padStart(4, "0")].map((digit) => " abc"[Number(digit)]).join(""),
      ).map((name) => `${name.replaceAll(" ", "")}${end}`),
    );
    fc.assert(
      fc.property(pattern, pattern, (first, second) => {
        const rules = [first, second].map((tool) => ({ tool, decision: "allow" }));
        const covered = names.every(
          (name) => !toolMatcher(second)(name) || toolMatcher(first)(name),
        );
        if (covered) expect(() => checkGovernance({ rules })).toThrow(/can never count/);
        else expect(checkGovernance({ rules }).rules).toHaveLength(2);
      }),
      { numRuns: 1000 },
    );
  });

  it("matches names as a regular expression of the same pattern would", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 7 });
    fc.assert(
      fc.property(
        text,
        fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 9 }),
        (pattern, name) => {
          const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
          expect(toolMatcher(pattern)(name)).toBe(expected);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it("counts by its first rule that matches; tools that no rule names are strictest", () => {
    const governance = new Governance({
      rules: [
        { tool: "book-test", decision: "allow", action: "read" },
        { tool: "book*", decision: "approve", paths: ["/b"] },
        { tool: "*-test", decision: "deny" },
      ],
    });
    expect(governance.verdictOn("book-test")).toMatchObject({ decision: "allow", action: "read" });
    expect(governance.verdictOn("book-flight")).toMatchObject({
      decision: "approve",
      paths: ["/b"],
    });
    expect(governance.verdictOn("pay-test")).toMatchObject({ decision: "deny" });
    expect(governance.verdictOn("pay")).toMatchObject({
      decision: "approve",
      action: "execute",
      rule: null,
    });
    const open = new Governance({ rules: [], default: "allow" });
    expect(open.verdictOn("pay")).toMatchObject({ decision: "allow", action: "execute" });
  });
});

describe.each(BACKENDS)("governance on %s", (backend) => {
  async function begin(policy: GovernancePolicy, state: unknown = {}) {
    const told: StepCall[] = [];
    const { store, another } = await makeStore(backend, {
      governance: policy,
      stepHooks: [{ before: (call) => void told.push(call) }],
    });
    const workflow = await store.createWorkflow("w", { state });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const calls: number[] = [];
    const tool: Tool<number> = () => calls.push(1);
    return { workflow, branch, calls, tool, told, another };
  }

  it("refuses a policy that is wrong before it opens anything", async () => {
    const governance = { rules: [{ tool: "a", decision: "may" }] } as unknown as GovernancePolicy;
    await expect(makeStore(backend, { governance })).rejects.toEqual(
      agstateError("INVALID_POLICY", { at: "/rules/0/decision" }),
    );
  });

  it("denies, and keeps who was denied what, without a step", async () => {
    const { workflow, branch, calls, tool, told } = await begin({
      rules: [{ tool: "rm*", decision: "deny", reason: "nothing is removed here" }],
      default: "allow",
    });
    const head = branch.head.id;
    const remove = (path: string) =>
      branch.step({ name: "rm", input: { path, token: "t" }, secrets: ["/token"] }, tool);
    for (const path of ["/a", "/a", "/b"]) {
      await expect(remove(path)).rejects.toEqual(agstateError("STEP_DENIED", { name: "rm" }));
    }
    expect(calls).toEqual([]);
    expect(told).toEqual([]);
    expect((await branch.refresh()).id).toBe(head);
    expect(await branch.resumePoint()).toEqual({ nextSeq: 1, inFlight: [] });
    const denials = (await workflow.reviews({ kind: "denial" })).map(({ info }) => info);
    expect(denials).toHaveLength(2);
    for (const info of denials) {
      expect(info).toMatchObject({
        status: "denied",
        askedBy: "a",
        reason: "nothing is removed here",
        subject: { name: "rm", branch: "agents/a/x" },
      });
      expect(JSON.stringify(info)).not.toContain('"t"');
      await expect((await workflow.review(info.id)).approve({ actor: "eve" })).rejects.toEqual(
        agstateError("REVIEW_DECIDED", { status: "denied" }),
      );
    }
    expect(await workflow.reviews({ open: true })).toEqual([]);
    await branch.step({ name: "ls" }, tool);
    expect(told.map(({ name }) => name)).toEqual(["ls"]);
  });

  it("says of which class a tool is, whatever the code says", async () => {
    const { branch, tool } = await begin({
      rules: [
        { tool: "find", decision: "allow", action: "read" },
        { tool: "send", decision: "allow", action: "write" },
        { tool: "coded", decision: "allow" },
      ],
      default: "allow",
    });
    await branch.step({ name: "find", action: "execute" }, tool);
    await branch.step({ name: "send", action: "read" }, tool);
    await branch.step({ name: "coded", action: "inference" }, tool);
    await branch.step({ name: "unknown", action: "read" }, tool);
    const steps = await all(branch.steps());
    expect(steps.map(({ name, action }) => [name, action])).toEqual([
      ["unknown", "execute"],
      ["coded", "inference"],
      ["send", "write"],
    ]);
  });

  it("lets an approved read run once in a run, and replays it after", async () => {
    const { workflow, branch, calls, tool, another } = await begin({
      rules: [{ tool: "*", decision: "approve" }],
    });
    const run = async () => {
      const cold = await (await another()).workflow("w");
      return cold.run(await cold.branch("a/x"), async (ctx) => {
        await ctx.now();
        await ctx.update([{ op: "set", path: "/n", value: 1 }]);
        const both = await ctx.all({
          one: (part) => part.step({ name: "look", action: "read" }, tool),
          two: (part) => part.step({ name: "look", action: "read" }, tool),
        });
        const last = await ctx.step({ name: "ask", action: "inference" }, tool);
        return [both.one, both.two, last];
      });
    };
    const approveAll = async () => {
      const open = await workflow.reviews({ open: true });
      for (const review of open) await review.approve({ actor: "eve" });
      return open.length;
    };
    await expect(run()).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    expect(await approveAll()).toBe(2);
    await expect(run()).rejects.toEqual(agstateError("APPROVAL_NEEDED", { name: "ask" }));
    expect(calls).toHaveLength(2);
    expect(await approveAll()).toBe(1);
    const result = await run();
    expect([...result].sort()).toEqual([1, 2, 3]);
    expect(await run()).toEqual(result);
    expect(calls).toHaveLength(3);
    await branch.refresh();
    const approvals = (await all(branch.steps())).map(({ name, approval }) => [name, approval]);
    expect(approvals.filter(([, approval]) => approval !== null)).toHaveLength(3);
  });

  it("leaves what is on record its class when the rules change, and not what is done from the start", async () => {
    let action: StepCall["action"] = "inference";
    const { store } = await makeStore(backend, { stepHooks: [{ classify: () => ({ action }) }] });
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    let failing = true;
    const calls: string[] = [];
    const run = async () =>
      workflow.run(await workflow.branch("a/x"), async (ctx) => {
        const first = await ctx.step({ name: "first" }, () => calls.push("first"));
        const second = await ctx.step({ name: "second" }, ({ key }) => {
          calls.push(key === null ? "second" : "second with a key");
          if (failing) throw new Error("not yet");
          return 2;
        });
        return [first, second];
      });
    await expect(run()).rejects.toThrow("not yet");
    action = "write";
    failing = false;
    expect(await run()).toEqual([1, 2]);
    expect(calls).toEqual(["first", "second", "second with a key"]);
    await branch.refresh();
    const steps = (await all(branch.steps())).filter(({ name }) => !name.startsWith("agstate:"));
    expect(steps.map(({ name, action, status }) => [name, action, status])).toEqual([
      ["second", "write", "completed"],
      ["first", "inference", "completed"],
    ]);
  });

  it("binds an approval to the place in the run", async () => {
    const { workflow, branch, calls, tool } = await begin({
      rules: [{ tool: "*", decision: "approve" }],
    });
    const spec = { name: "pay", input: 1 } as const;
    await expect(workflow.run(branch, (ctx) => ctx.step(spec, tool))).rejects.toEqual(
      agstateError("APPROVAL_NEEDED"),
    );
    const [review] = await workflow.reviews({ open: true });
    await review?.approve({ actor: "eve" });
    const elsewhere: ((ctx: RunContext) => Promise<unknown>)[] = [
      async (ctx) => (await ctx.now()) && ctx.step(spec, tool),
      (ctx) => ctx.all({ part: (part) => part.step(spec, tool) }),
    ];
    for (const [i, work] of elsewhere.entries()) {
      // From the start each time, so that nothing of the other is on record.
      await workflow.reset("a/x", "canonical");
      await expect(workflow.run(await workflow.branch("a/x"), work)).rejects.toEqual(
        agstateError("APPROVAL_NEEDED"),
      );
      const other = workflow.run(await workflow.branch("a/x"), (ctx) => ctx.step(spec, tool), {
        id: `other-${i}`,
      });
      await expect(other).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    }
    expect(calls).toEqual([]);
    await workflow.reset("a/x", "canonical");
    expect(await workflow.run(await workflow.branch("a/x"), (ctx) => ctx.step(spec, tool))).toBe(1);
  });

  it("takes an approval for further attempts of the same step, and for nothing after a reset", async () => {
    const { workflow, branch, calls } = await begin({
      rules: [{ tool: "*", decision: "approve" }],
    });
    const run = (on: Branch) =>
      workflow.run(on, (ctx) =>
        ctx.step({ name: "flaky", retry: { attempts: 1, pauseMs: 1 } }, ({ attempt }) => {
          calls.push(attempt);
          if (attempt < 3) throw new Error(`attempt ${attempt}`);
          return "done";
        }),
      );
    await expect(run(branch)).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    const [review] = await workflow.reviews();
    await review?.approve({ actor: "eve" });
    await expect(run(branch)).rejects.toThrow("attempt 2");
    expect(await run(branch)).toBe("done");
    expect(calls).toEqual([1, 2, 3]);
    await workflow.reset("a/x", "canonical");
    await expect(run(await workflow.branch("a/x"))).rejects.toEqual(
      agstateError("APPROVAL_NEEDED"),
    );
    expect(calls).toEqual([1, 2, 3]);
  });

  it("lets one of two processes use an approval", async () => {
    const { workflow, calls, tool, another } = await begin({
      rules: [{ tool: "*", decision: "approve" }],
    });
    const handles = await Promise.all(
      Array.from({ length: 3 }, async () => (await (await another()).workflow("w")).branch("a/x")),
    );
    const step = (on: Branch) => on.step({ name: "once" }, tool);
    await expect(step(handles[0] as Branch)).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    for (const review of await workflow.reviews()) await review.approve({ actor: "eve" });
    const settled = await Promise.allSettled(handles.map(step));
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(calls).toHaveLength(1);
    for (const one of settled) {
      if (one.status === "rejected") {
        expect(isAgstateError(one.reason, "STEP_FENCED", "APPROVAL_NEEDED"), one.reason).toBe(true);
      }
    }
  });

  it("never lets anything run whose binding differs in any part", async () => {
    interface Asked {
      readonly name: string;
      readonly action: "write" | "execute" | "inference" | "read";
      readonly input: unknown;
      readonly budget: unknown;
      readonly list: unknown;
      readonly steps: number;
      readonly anew: boolean;
    }
    const few = (...values: unknown[]) => fc.constantFrom(...values);
    const asked = fc.record({
      name: fc.constantFrom("a", "b"),
      action: fc.constantFrom(
        "write" as const,
        "execute" as const,
        "inference" as const,
        "read" as const,
      ),
      input: few(undefined, null, { x: 1 }, { x: 1, y: null }, [1]),
      budget: few(undefined, null, 0, "0"),
      list: few([], [1, 2], { 0: 1 }),
      steps: fc.constantFrom(0, 1),
      anew: fc.constantFrom(false, true),
    });
    const same = asked.map((one) => [one, one] as const);
    const oneOff = fc
      .tuple(
        asked,
        asked,
        fc.constantFrom("name", "action", "input", "budget", "list", "steps", "anew"),
      )
      .map(([one, other, part]) => [one, { ...one, [part]: other[part as keyof Asked] }] as const);
    const rule: Omit<GovernanceRule, "tool"> = {
      decision: "approve",
      paths: ["/budget", "/list"],
    };
    const { workflow } = await begin({
      rules: [
        { tool: "free", decision: "allow" },
        { tool: "a", ...rule },
        { tool: "b", ...rule },
      ],
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(same, oneOff), async ([before, after]) => {
        const at = { agent: "a", branch: `r${round++}` };
        let ran = 0;
        const step = async (one: Asked) => {
          const branch = await workflow.branch(at);
          const { name, action, input } = one;
          return branch.step(
            { name, action, ...(input === undefined ? {} : { input }) },
            () => ++ran,
          );
        };
        const arrange = async (one: Asked) => {
          if (one.anew) await workflow.deleteBranch(`a/${at.branch}`);
          const branch = await workflow.branch(at);
          if (one.steps > 0) await branch.step({ name: "free", action: "write" }, () => 1);
          const { budget, list } = one;
          // A member that changes besides, to which nothing is bound.
          await branch.commit({ state: { budget, list, besides: Math.random() } });
        };
        await workflow.branch(at);
        await arrange({ ...before, anew: false });
        await expect(step(before)).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
        const [review] = await workflow.reviews({ open: true, branch: `a/${at.branch}` });
        await review?.approve({ actor: "eve" });
        const moved = after.anew || after.steps > 0;
        await arrange(moved ? after : { ...after, steps: 0 });
        const bound = ({ name, action, input, budget, list }: Asked) =>
          JSON.stringify({ name, action, input, budget, list });
        const holds = !moved && bound(before) === bound(after);
        if (holds) await step(after);
        else await expect(step(after)).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
        expect(ran).toBe(holds ? 1 : 0);
        // And once at most.
        await expect(step(after)).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
        expect(ran).toBe(holds ? 1 : 0);
      }),
      { numRuns: backend === "memory" ? 200 : 30 },
    );
  });
});
