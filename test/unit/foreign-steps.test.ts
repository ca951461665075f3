import { describe, expect, it, vi } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { openStore, type Workflow } from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { bytesOfStore } from "../residency/bytes.js";
import { makeGround } from "../support/regions.js";
import { agstateError, all } from "../support/stores.js";

const ASK = "which of the customers of the branch in Albany has the card that ends in 4711?";
const ANSWER = { who: "Grace Brewster Murray of Arlington", sure: 0.9 };
const PAID = { receipt: "RC-2026-000000004711-ALBANY-NY-0001" };

const inUs = (phase: "inference" | "tool" | "result") => ({ phase, region: "us" });

async function makeRun(placement = [inUs("inference"), inUs("tool"), inUs("result")]) {
  const ground = await makeGround(["eu", "us", "ap"]);
  const { regions } = await ground.open();
  const workflow = await regions.createWorkflow("trip", { storageRegion: "eu", placement });
  return { ground, regions, workflow };
}

const run = async (workflow: Workflow, calls: string[] = [], fails = false) =>
  workflow.run(await workflow.canonical(), async (ctx) => {
    const answer = await ctx.step({ name: "ask", action: "inference", input: { ask: ASK } }, () => {
      calls.push("ask");
      return ANSWER;
    });
    const paid = await ctx.step(
      { name: "pay", action: "write", input: { for: answer.who } },
      () => {
        calls.push("pay");
        return PAID;
      },
    );
    if (fails) throw new Error("the process ends here");
    return paid;
  });

describe("phases of steps that belong to another region", () => {
  it("are kept there, replayed from there, and told by a keyed hash here", async () => {
    const { ground, workflow } = await makeRun();
    const calls: string[] = [];
    await expect(run(workflow, calls, true)).rejects.toThrow("ends here");
    const { regions } = await ground.open();
    const again = await regions.workflow("trip");
    expect(await run(again, calls)).toEqual(PAID);
    expect(calls).toEqual(["ask", "pay"]);
    const steps = await all((await again.canonical()).steps());
    const pay = steps.find(({ name }) => name === "pay");
    expect(pay).toMatchObject({ input: { for: ANSWER.who }, output: PAID });
    const { digestText } = await import("../../src/objects/hash.js");
    expect(pay?.inputHash).toMatch(/^[0-9a-f]{64}$/);
    expect(pay?.inputHash).not.toBe(digestText(JSON.stringify({ for: ANSWER.who })));
    for (const text of [ASK, ANSWER.who, PAID.receipt]) {
      expect(bytesOfStore(ground.directory, "eu").includes(text)).toBe(false);
      expect(bytesOfStore(ground.directory, "us").includes(text)).toBe(true);
    }
    expect((await again.fsck()).problems).toEqual([]);
  });

  it("end a run where their region is not at hand, instead of going on with nothing", async () => {
    const { ground, workflow } = await makeRun();
    await expect(run(workflow, [], true)).rejects.toThrow("ends here");
    const { us: _, ...others } = ground.config.regions;
    const { regions } = await ground.open({}, { ...ground.config, regions: others });
    const calls: string[] = [];
    await expect(run(await regions.workflow("trip"), calls)).rejects.toEqual(
      agstateError("WITHHELD", { region: "us" }),
    );
    expect(calls).toEqual([]);
  });

  it("do not tell an input in an error", async () => {
    const { workflow } = await makeRun();
    await expect(run(workflow, [], true)).rejects.toThrow("ends here");
    const other = workflow.run(await workflow.canonical(), (ctx) =>
      ctx.step(
        { name: "ask", action: "inference", input: { ask: `${ASK} Or not?` } },
        () => ANSWER,
      ),
    );
    const error = await other.catch((thrown: unknown) => thrown);
    expect(error).toEqual(agstateError("STEP_MISMATCH"));
    expect(`${String(error)}${JSON.stringify(error)}`).not.toContain("Albany");
  });

  it("take in what a run edits of a part elsewhere", async () => {
    const ground = await makeGround(["eu", "us"]);
    const { regions } = await ground.open();
    const workflow = await regions.createWorkflow("trip", {
      storageRegion: "eu",
      placement: [{ path: "/state/customer", region: "us" }],
    });
    await workflow.run(await workflow.canonical(), (ctx) =>
      ctx.update([{ op: "set", path: "/customer", value: ANSWER }]),
    );
    expect(await workflow.stateAt("canonical", "/customer")).toEqual(ANSWER);
    expect(bytesOfStore(ground.directory, "eu").includes(ANSWER.who)).toBe(false);
  });

  it("leave a step sealed whose outcome may not be kept, and one open never", async () => {
    const { ground, workflow } = await makeRun([inUs("inference")]);
    const branch = await workflow.canonical();
    await branch.step({ name: "ask", action: "inference", input: ASK }, () => ANSWER);
    const pay = { name: "pay", action: "write" } as const;
    await expect(branch.step(pay, () => ({ to: ANSWER.who }))).rejects.toEqual(
      agstateError("RESIDENCY_REFUSED", { where: "/step/output/to", region: "us" }),
    );
    await expect(
      branch.step(pay, () => {
        throw new Error(`cannot pay ${ANSWER.who}`);
      }),
    ).rejects.toThrow("cannot pay");
    await expect(branch.step({ ...pay, input: ANSWER }, () => 1)).rejects.toEqual(
      agstateError("RESIDENCY_REFUSED"),
    );
    expect(await branch.resumePoint()).toMatchObject({ inFlight: [] });
    const steps = await all(branch.steps({ name: "pay" }));
    expect(steps.map(({ status, error }) => [status, error?.message])).toEqual([
      ["failed", "not kept here"],
      ["failed", "not kept here"],
    ]);
    expect(bytesOfStore(ground.directory, "eu").includes(ANSWER.who)).toBe(false);
  });

  it("are known though they never landed, as whoever did the step has them", async () => {
    const { workflow } = await makeRun([inUs("inference")]);
    const [one, other] = [await workflow.canonical(), await workflow.canonical()];
    await expect(
      one.step({ name: "ask", action: "inference" }, async () => {
        await other.step({ name: "look", action: "write" }, () => 1);
        // The handle knows by then that it may not go on, and makes no commit.
        await one.refresh();
        return ANSWER;
      }),
    ).rejects.toEqual(agstateError("STEP_FENCED"));
    await one.refresh();
    await expect(one.update([{ op: "set", path: "/copy", value: ANSWER.who }])).rejects.toEqual(
      agstateError("RESIDENCY_REFUSED", { where: "/state/copy" }),
    );
  });

  it("take the input of a step along when a person is asked", async () => {
    const ground = await makeGround(["eu", "us"]);
    const { regions } = await ground.open({
      governance: { rules: [{ tool: "pay", action: "write", decision: "approve" }] } as never,
    });
    const workflow = await regions.createWorkflow("trip", {
      storageRegion: "eu",
      placement: [inUs("tool")],
    });
    const branch = await workflow.canonical();
    const pay = () => branch.step({ name: "pay", action: "write", input: ANSWER }, () => 1);
    await expect(pay()).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    const [review] = await workflow.reviews();
    expect(review?.info.subject.input).toEqual(ANSWER);
    await review?.approve({ actor: "ann", reason: "it is asked for" });
    expect(await pay()).toBe(1);
    expect(bytesOfStore(ground.directory, "eu").includes(ANSWER.who)).toBe(false);
  });
});

describe("what lies beside", () => {
  async function makeCustomer() {
    const ground = await makeGround(["eu", "us"]);
    const { regions } = await ground.open();
    const workflow = await regions.createWorkflow("trip", {
      storageRegion: "eu",
      placement: [{ path: "/state/customer", region: "us" }],
      state: { customer: ANSWER },
    });
    return { ground, regions, workflow };
  }

  it("is swept when no pointer stands for it, and missed when it is gone though one does", async () => {
    const { ground, workflow } = await makeCustomer();
    const one = await workflow.branch({ agent: "a", branch: "x" });
    const other = await workflow.branch({ agent: "a", branch: "x" });
    await one.update([{ op: "set", path: "/n", value: 1 }]);
    // The payload is there before the pointer is refused; and is young at first.
    const lose = (value: string) =>
      expect(other.update([{ op: "set", path: "/customer", value }])).rejects.toEqual(
        agstateError("REF_CONFLICT"),
      );
    await lose("never at home, this one");
    const before = Date.now() - 11 * 60_000;
    vi.spyOn(Date, "now").mockImplementation(() => before);
    await lose("never at home, nor this one").finally(() => vi.restoreAllMocks());
    const swept = { payloads: { removed: 1, unreached: [] } };
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject(swept);
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject({
      payloads: { ...swept.payloads, removed: 0 },
    });
    expect(await workflow.fsck()).toMatchObject({
      payloads: { checked: 1, unreached: [] },
      problems: [],
    });
    expect(await workflow.stateAt("canonical", "/customer")).toEqual(ANSWER);
    const us = await openStore(`sqlite:${ground.directory}/us`, {
      wrap: (storage) => {
        void storage.write({
          workflow: "trip",
          objects: [],
          moves: [],
          atomic: true,
          dropPending: ["payloads/"],
        });
        return storage;
      },
    });
    await us.close();
    expect((await workflow.fsck()).problems).toMatchObject([{ kind: "missing-payload" }]);
  });

  it("is known as a copy by who has only read the pointer", async () => {
    const { ground } = await makeCustomer();
    const { us: _, ...others } = ground.config.regions;
    const { regions } = await ground.open({}, { ...ground.config, regions: others });
    const workflow = await regions.workflow("trip");
    const branch = await workflow.canonical();
    await branch.state();
    await expect(
      branch.update([{ op: "set", path: "/copy", value: { name: ANSWER.who } }]),
    ).rejects.toEqual(
      agstateError("RESIDENCY_REFUSED", { where: "/state/copy/name", region: "us" }),
    );
    await branch.update([{ op: "set", path: "/copy", value: "something else altogether" }]);
  });

  it("is exported as the pointers that stand here", async () => {
    const { ground, workflow } = await makeCustomer();
    const target = `${ground.directory}/export.git`;
    await exportWorkflow(workflow, target);
    const { readFileSync, readdirSync } = await import("node:fs");
    const bytes = readdirSync(target, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(`${entry.parentPath}/${entry.name}`).toString("latin1"))
      .join("");
    expect(bytes.length).toBeGreaterThan(1000);
    expect(bytes).not.toContain(ANSWER.who);
  });

  it("is nothing that a checkpointer of LangGraph can keep", async () => {
    const { regions } = await makeCustomer();
    const store = await regions.store("eu");
    const put = (saver: AgstateSaver, thread: string) =>
      saver.putWrites(
        { configurable: { thread_id: thread, checkpoint_ns: "", checkpoint_id: "1" } },
        [["customer", ANSWER]],
        "task",
      );
    const placement = [{ path: "/state/customer", region: "us" }];
    const saver = new AgstateSaver(store, { declaration: { storageRegion: "eu", placement } });
    await expect(put(saver, "one")).rejects.toEqual(agstateError("REGION_REFUSED"));
  });

  it("is declared soundly, or not at all", async () => {
    const ground = await makeGround(["eu", "us"]);
    const { regions, writes } = await ground.open();
    const make = (placement: unknown, more = {}) =>
      regions.createWorkflow("trip", { storageRegion: "eu", placement, ...more } as never);
    for (const [placement, code] of [
      [{}, "INVALID_ARGUMENT"],
      [[{}], "INVALID_ARGUMENT"],
      [[{ path: "/state/a" }], "INVALID_ARGUMENT"],
      [[{ path: "/state/a", region: "eu" }], "INVALID_ARGUMENT"],
      [[{ path: "/state/a", region: "mars" }], "REGION_UNKNOWN"],
      [[{ path: "/state", region: "us" }], "INVALID_PATH"],
      [[{ path: "/state/a", phase: "tool", region: "us" }], "INVALID_ARGUMENT"],
      [[{ phase: "thought", region: "us" }], "INVALID_ARGUMENT"],
      [[{ path: "/state/a", region: "us", class: "x" }], "INVALID_ARGUMENT"],
      [[{ path: "/state/a", region: "us", classification: "x" }], "INVALID_ARGUMENT"],
      [
        [
          { path: "/state/a", region: "us" },
          { path: "/state/a/b", region: "us" },
        ],
        "INVALID_ARGUMENT",
      ],
      [
        [
          { path: "/state/*", region: "us" },
          { path: "/state/a", region: "us" },
        ],
        "INVALID_ARGUMENT",
      ],
      [
        [
          { path: "/step/input", region: "us" },
          { phase: "tool", region: "us" },
        ],
        "INVALID_ARGUMENT",
      ],
    ] as const) {
      await expect({
        placement,
        error: await make(placement).catch((error: unknown) => error),
      }).toEqual({
        placement,
        error: agstateError(code),
      });
    }
    expect(writes).toEqual([]);
    const { us } = ground.config.regions;
    const strict = {
      ...ground.config.regions,
      us: { ...us!, classifications: ["public"] as const },
    };
    const { regions: others } = await ground.open({}, { ...ground.config, regions: strict });
    await expect(
      others.createWorkflow("trip", { storageRegion: "eu", placement: [inUs("tool")] }),
    ).rejects.toEqual(agstateError("REGION_REFUSED", { region: "us" }));
    const made = await make([inUs("tool"), { path: "/state/a", region: "us" }]);
    const placement = [
      { path: "/state/a", region: "us", classification: "internal" },
      { phase: "tool", region: "us", classification: "internal" },
    ];
    expect(made.info.placement).toEqual(placement);
    expect(await made.stateAt("audit/workflow")).toMatchObject({ placement });
  });
});
