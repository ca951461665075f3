import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/index.js";
import type { Child } from "../support/child-processes.js";
import { usually } from "../support/runs.js";
import {
  end,
  killWhereItStands,
  processesOn,
  type RunPlan,
  resultOf,
  type StepPlan,
  type Stopped,
  stopOf,
  told,
} from "../support/step-processes.js";
import { all } from "../support/stores.js";

const LIVES = usually(24, 100);
/** One life in so many ends by itself. */
const WHOLE_LIFE = 4;

const oneOf = (is: string) => expect.objectContaining({ is }) as unknown;

describe("a process that dies around a side effect (STP-01)", () => {
  const one = (branch: string, step: Omit<StepPlan, "name">): RunPlan => ({
    branch: `agents/a/${branch}`,
    form: "series",
    steps: [
      { name: "before", action: "write" },
      { name: "pay", ...step },
    ],
  });

  it("leaves nothing of a step that had not begun, which is then done once", async () => {
    const { make, start, effects } = await processesOn("sqlite");
    await make("x");
    await killWhereItStands(start(one("x", { hang: { moment: "asked" } })));
    const child = await end(start(one("x", {})));
    expect(told(child, "called").map(([, name, , attempt]) => [name, attempt])).toEqual([
      ["pay", "1"],
    ]);
    expect(effects().map(([name]) => name)).toEqual(["before", "pay"]);
  });

  it.each([
    { moment: "called", what: "before its effect" },
    { moment: "happened", what: "after its effect" },
  ] as const)("$what leaves it in doubt, and no resume does it again unasked", async (at) => {
    const { moment } = at;
    const { workflow, make, start, effects } = await processesOn("sqlite");
    const ways = ["fail", "ask", "probe", "retry"] as const;
    const branches = new Map<string, Awaited<ReturnType<typeof make>>>();
    for (const way of ways) branches.set(way, await make(way));
    const runs = (hang: boolean) =>
      ways.map((inDoubt) => one(inDoubt, { inDoubt, ...(hang ? { hang: { moment } } : {}) }));
    const dying = start(...runs(true));
    await killWhereItStands(dying, ways.length);
    const payOf = (child: Child, way: string) =>
      told(child, "called", `agents/a/${way}`).filter(([, name]) => name === "pay");
    const keys = new Map(ways.map((way) => [way, payOf(dying, way)[0]?.[2]]));
    expect(new Set(keys.values()).size).toBe(ways.length);

    const resumed = await end(start(...runs(false)));
    const again = (way: "probe" | "retry") => [[`agents/a/${way}`, "pay", keys.get(way), "2"]];
    expect(payOf(resumed, "fail")).toEqual([]);
    expect(payOf(resumed, "ask")).toEqual([]);
    expect(payOf(resumed, "probe")).toEqual(moment === "called" ? again("probe") : []);
    expect(payOf(resumed, "retry")).toEqual(again("retry"));
    for (const way of ["probe", "retry"]) {
      const result = resultOf(resumed, `agents/a/${way}`);
      expect(result).toEqual([oneOf("before"), oneOf("pay")]);
    }
    const output = "as a person found it";
    for (const way of ["fail", "ask"] as const) {
      const { code, details } = stopOf(resumed, `agents/a/${way}`) as Stopped;
      expect([code, details.name, details.key]).toEqual(["STEP_IN_DOUBT", "pay", keys.get(way)]);
      if (way === "fail") await branches.get(way)?.sealStep(details.step as number, { output });
      else {
        const review = await workflow.review(details.review as string);
        await review.approve({ actor: "eve", found: { happened: true, output } });
      }
    }
    const last = await end(start(one("fail", {}), one("ask", { inDoubt: "ask" })));
    expect(told(last, "called")).toEqual([]);
    for (const way of ["fail", "ask"]) {
      expect(resultOf(last, `agents/a/${way}`)).toEqual([oneOf("before"), output]);
    }
    // Where keys are honoured, both calls with one key are one effect; elsewhere there was one.
    const times = (way: "fail" | "ask" | "probe" | "retry") =>
      effects().filter(([, key]) => key === keys.get(way)).length;
    expect(ways.map(times)).toEqual(moment === "called" ? [0, 0, 1, 1] : [1, 1, 1, 2]);
    expect(effects().filter(([name]) => name === "before").length).toBe(ways.length);
  });

  it("in a batch of three: what was sealed is replayed, and the others are in doubt", async () => {
    const { make, start, effects } = await processesOn("sqlite");
    const branch = await make("x");
    const batch = (inDoubt: "fail" | "probe", hang: boolean): RunPlan => {
      const hangs = (moment: "called" | "happened") => (hang ? { hang: { moment } } : {});
      return {
        branch: "agents/a/x",
        form: "promise",
        steps: [
          { name: "sealed", inDoubt },
          { name: "done", inDoubt, ...hangs("happened") },
          { name: "begun", inDoubt, ...hangs("called") },
        ],
      };
    };
    const dying = start(batch("fail", true));
    await dying.said("back");
    await killWhereItStands(dying, 2);
    const [[, , ...text]] = told(dying, "back") as [string[]];
    const keys = new Map(told(dying, "called").map(([, name, key]) => [name, key]));
    expect((await branch.resumePoint()).inFlight.length).toBe(2);

    const stopped = await end(start(batch("fail", false)));
    expect(stopOf(stopped)?.code).toBe("STEP_IN_DOUBT");
    expect(told(stopped, "called")).toEqual([]);
    expect(effects().map(([name]) => name)).toEqual(["sealed", "done"]);

    const resumed = await end(start(batch("probe", false)));
    expect(told(resumed, "called")).toEqual([["agents/a/x", "begun", keys.get("begun"), "2"]]);
    expect(resultOf(resumed)).toEqual([
      JSON.parse(text.join(" ")),
      { is: "done", found: true },
      oneOf("begun"),
    ]);
    expect(effects().map(([name]) => name)).toEqual(["sealed", "done", "begun"]);
  });
});

describe("ten processes at one step (STP-02)", () => {
  it("do it once, whoever loses is told what to do, and when the winner dies none does it unasked", async () => {
    const { make, start, startMany, effects } = await processesOn("sqlite");
    await make("x");
    const pay = (rest: Partial<StepPlan>): RunPlan => ({
      branch: "agents/a/x",
      form: "series",
      steps: [{ name: "pay", ...rest }],
    });
    const calls = (children: readonly Child[]) => children.flatMap((one) => told(one, "called"));
    const expectTold = async (losers: readonly Child[]) => {
      for (const loser of losers) {
        await end(loser);
        const { code, message } = stopOf(loser) as Stopped;
        expect(["STEP_FENCED", "STEP_IN_DOUBT"]).toContain(code);
        expect(message).toMatch(/; (let that one finish|find out)/);
      }
    };
    const ten = await startMany(10, pay({ hang: { moment: "called" } }));
    const winner = await Promise.any(ten.map((one) => one.said("stands").then(() => one)));
    await expectTold(ten.filter((one) => one !== winner));
    const [[, , key]] = calls(ten) as [string[]];
    expect(calls(ten)).toEqual([["agents/a/x", "pay", key, "1"]]);
    await killWhereItStands(winner);

    const unasked = await startMany(2, pay({}));
    await expectTold(unasked);
    expect(calls(unasked)).toEqual([]);
    expect(effects()).toEqual([]);

    // Where the tool honours keys it may be called again: by whomever, it is the same effect.
    const asked = await startMany(2, pay({ inDoubt: "retry" }));
    for (const one of asked) await end(one);
    const last = await end(start(pay({ inDoubt: "retry" })));
    expect(resultOf(last)).toEqual([oneOf("pay")]);
    expect(new Set(calls([...asked, last]).map(([, , each]) => each))).toEqual(new Set([key]));
    for (const one of asked) expect(resultOf(one) ?? resultOf(last)).toEqual(resultOf(last));
  });
});

describe("three parallel steps that come in any order (STP-04)", () => {
  it(`give what they gave, or stop with one clear error, in each of ${LIVES} processes`, async () => {
    const { workflow, make, start } = await processesOn("sqlite");
    const steps = (lateMs: number): StepPlan[] => [
      { name: "pay", inDoubt: "retry", slowMs: 8, lateMs },
      { name: "look", action: "read", memoize: true, slowMs: 8, lateMs },
      { name: "ship", action: "write", inDoubt: "probe", slowMs: 8, lateMs },
    ];
    const forms = [
      // Asked for in the order of the code, done in any.
      { form: "promise", steps: steps(0) },
      // Asked for in any order as well, and told apart by the names of the parts.
      { form: "all", steps: steps(8) },
      // And by nothing: which of the steps is new is then not always to be told.
      { form: "promise", steps: steps(8) },
    ] as const;
    let made = 0;
    const fresh = async (i: number): Promise<RunPlan> => {
      const name = `run-${made++}`;
      await make(name);
      return { ...forms[i]!, branch: `agents/a/${name}` };
    };
    const plans = await Promise.all(forms.map((_, i) => fresh(i)));
    const given = new Map<string, string>();
    const over = forms.map(() => 0);
    let stops = 0;
    for (let life = 0; life < LIVES; life++) {
      const child = start(...plans);
      if (life % WHOLE_LIFE > 0) {
        const word = Math.random() < 0.5 ? "called" : "back";
        // It may end earlier.
        await child.said(word, Math.ceil(Math.random() * 6)).catch(() => undefined);
        child.kill();
      }
      const { code, signal } = await child.ended;
      expect(signal === "SIGKILL" || code === 0, child.errors()).toBe(true);
      for (const [branch, name, ...rest] of told(child, "back")) {
        const at = `${branch} ${name}`;
        given.set(at, given.get(at) ?? rest.join(" "));
        expect(rest.join(" "), at).toBe(given.get(at));
      }
      const [stopped, results] = [told(child, "stopped"), told(child, "result")];
      if (signal === null) expect(stopped.length + results.length).toBe(forms.length);
      for (const [branch] of stopped) {
        const { code: why, message } = stopOf(child, branch) as Stopped;
        expect([branch, why]).toEqual([plans[2]?.branch, "STEP_MISMATCH"]);
        expect(message).toMatch(/begin another run/);
        stops++;
      }
      for (const [branch, ...rest] of results) {
        const outputs = ["pay", "look", "ship"].map((name) => given.get(`${branch} ${name}`));
        expect(rest.join(" ")).toBe(`[${outputs.join(",")}]`);
        const i = plans.findIndex((plan) => plan.branch === branch);
        over[i]!++;
        plans[i] = await fresh(i);
      }
    }
    console.log(`${over.join(", ")} runs came to their end in ${LIVES} lives; ${stops} stops`);
    for (const count of over.slice(0, 2)) {
      expect(count).toBeGreaterThanOrEqual(Math.floor(LIVES / WHOLE_LIFE));
    }
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});

describe("a resume (STP-07)", () => {
  it("goes on with the attempts where the second of four was cut off", async () => {
    const { make, start, effects } = await processesOn("sqlite");
    const runs = (hang: boolean): RunPlan[] =>
      [3, 99].map((fails) => ({
        branch: `agents/a/fails-${fails}`,
        form: "series",
        steps: [
          {
            name: "pay",
            inDoubt: "retry",
            fails,
            retry: { attempts: 3, pauseMs: 1 },
            ...(hang ? { hang: { moment: "called", attempt: 2 } } : {}),
          },
        ],
      }));
    const branches = [await make("fails-3"), await make("fails-99")];
    const dying = start(...runs(true));
    await killWhereItStands(dying, 2);
    const child = await end(start(...runs(false)));
    for (const { name } of branches) {
      const calls = [dying, child].flatMap((each) => told(each, "called", name));
      expect(calls.map(([, , , attempt]) => attempt)).toEqual(["1", "2", "3", "4"]);
      expect(new Set(calls.map(([, , key]) => key)).size).toBe(1);
    }
    expect(effects().length).toBe(1);
    expect(resultOf(child, "agents/a/fails-3")).toEqual([oneOf("pay")]);
    const failure = { name: "RangeError", message: "attempt 4" };
    expect(stopOf(child, "agents/a/fails-99")).toMatchObject(failure);
    const steps: (JsonValue | object)[] = [];
    for (const branch of branches) {
      await branch.refresh();
      steps.push(...(await all(branch.steps({ name: "pay" }))));
    }
    expect(steps).toMatchObject([
      { status: "completed", attempt: 4 },
      { status: "failed", attempt: 4, error: failure },
    ]);
  });
});
