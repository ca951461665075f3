import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import stringWidth from "string-width";
import { afterAll, describe, expect, it } from "vitest";
import { openStore, type Workflow } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";

const boxes: CliSandbox[] = [];
afterAll(() => {
  for (const box of boxes) box.remove();
});

/** A sandbox with a workflow, a branch that has done a step, and a document that it relies on. */
async function begin() {
  const box = new CliSandbox();
  boxes.push(box);
  box.ok(["init"]);
  box.ok(["workflow", "create", "refunds", "--state", "-"], { input: '{"refunded":{}}' });
  box.ok(["branch", "clerk/may"]);
  mkdirSync(join(box.directory, "docs"));
  const rules = (text: string) => writeFileSync(join(box.directory, "docs/rules.md"), text);
  rules("Refund up to 100.\n");
  const agent = async <T>(work: (workflow: Workflow) => Promise<T>): Promise<T> => {
    const store = await openStore(`sqlite:${join(box.directory, ".agstate")}`);
    try {
      return await work(await store.workflow("refunds"));
    } finally {
      await store.close();
    }
  };
  const step = (name: string) =>
    agent(async (workflow) =>
      (await workflow.branch("clerk/may")).step({ name, action: "write" }, () => "done"),
    );
  await step("refund A1");
  return { box, rules, agent, step };
}

function within80(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  return lines;
}

const HANDOFF = [
  ...["handoff", "clerk/may", "--goal", "Refund the orders of May"],
  ...["--done", "A1 is refunded", "A2 needs nothing", "--open", "B2"],
  ...["--decision", "no refund for what came too late", "--next", "Go on with B2"],
  ...["--note", "The customer\ncalls at nine.", "--resource", "file:docs/rules.md"],
];

describe("agstate handoff and resume", () => {
  it("goes from a hand-off over a document that changes and a review to work that goes on", async () => {
    const { box, rules, step } = await begin();
    const handed = box.ok(HANDOFF);
    within80(handed);
    expect(handed).toMatch(
      /^agents\/clerk\/may is handed off at [0-9a-f]{10} \(tags\/handoff-clerk-may-1\)/,
    );

    // A shift report, as whoever comes next reads it.
    const shown = box.ok(["show", "handoff-clerk-may-1"]);
    within80(shown);
    const report = shown.slice(shown.indexOf("Goal"));
    expect(
      report
        .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\n]*/, "TIME")
        .replace(/[0-9a-f]{33}\.\.\./, "HASH..."),
    ).toBe(
      `Goal
  Refund the orders of May

Done
  - A1 is refunded
  - A2 needs nothing

Open
  - B2

Decisions
  - no refund for what came too late

Next
  Go on with B2

Note
  The customer
  calls at nine.

The session
  Branch      agents/clerk/may
  Handed off  clerk, TIME
  Tag         tags/handoff-clerk-may-1
  Work        step 1

Side effects
  step 1  refund A1  write  completed

Relies on
  file docs/rules.md
    sha256:${report.match(/sha256:([0-9a-f]+)/)?.[1]}..., exact
`.replace(/sha256:[0-9a-f]+\.\.\./, (text) => text),
    );
    const status = box.ok(["status"]);
    within80(status);
    expect(status).toMatch(/^agents\/clerk\/may was handed off by clerk, /m);
    expect(box.json(["status"])).toMatchObject([
      { branches: [{ handedOff: "handoff-clerk-may-1" }, { name: "canonical", handedOff: null }] },
    ]);
    const asked = box.ok(["resume", "clerk/may"]);
    within80(asked);
    expect(asked).toContain("Handed off by clerk");
    await expect(step("refund B2")).rejects.toMatchObject({ code: "HANDED_OFF" });

    const fresh = box.run(["resume", "clerk/may", "--check"]);
    expect(fresh).toMatchObject({ status: 0, stderr: "" });
    expect(fresh.stdout).toContain("fresh: 1 resource checked");

    rules("Refund up to 60.\n");
    const head = box.ok(["log", "clerk/may", "-n", "1", "--oneline"]);
    const stale = box.run(["resume", "clerk/may", "--check"]);
    expect(stale).toMatchObject({ status: 1, stderr: "" });
    within80(stale.stdout);
    expect(stale.stdout).toMatch(
      /\nstale: 1 of 1 resource is not known to be as before\n\nchanged {4}file docs\/rules\.md\n {11}- sha256:\w+\.{0,3}\n {11}\+ sha256:\w+/,
    );
    expect(box.ok(["review"])).toBe("Nothing waits for a decision.\n");
    const json = box.run(["--json", "resume", "clerk/may", "--check"]);
    expect(json.status).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      branch: "agents/clerk/may",
      verdict: "stale",
      handoff: { tag: "handoff-clerk-may-1" },
      resources: [{ found: "changed", verdict: "stale", tolerated: false }],
    });
    expect(box.ok(["log", "clerk/may", "-n", "1", "--oneline"])).toBe(head);

    const refused = box.run(["resume", "clerk/may", "--take-up", "--expires", "12h"]);
    expect(refused).toMatchObject({ status: 1, stderr: "" });
    within80(refused.stdout);
    const id = /review (staleness-\S+) waits/.exec(refused.stdout)?.[1] as string;
    within80(box.ok(["review"]));
    const review = box.ok(["review", "show", id]);
    within80(review);
    expect(review).toContain("resume handoff-clerk-may-1");
    expect(review).toMatch(/^Expires {3}20/m);
    expect(review).toMatch(/Not as it was\n {2}file docs\/rules\.md changed\n {4}- sha256:/);
    box.ok([
      "review",
      "approve",
      id,
      "--actor",
      "mara",
      "--reason",
      "the limit counts from now on",
    ]);
    const taken = box.ok(["resume", "clerk/may", "--take-up", "--author", "night-shift"]);
    within80(taken);
    expect(taken).toMatch(/agents\/clerk\/may is taken up at [0-9a-f]{10}\./);
    expect(await step("refund B2")).toBe("done");

    // The whole story, where Git's users look for it.
    const log = box.ok(["log", "clerk/may"]);
    within80(log);
    expect(log).toMatch(
      /refund B2: completed[\s\S]*Resume agents\/clerk\/may: stale, approved by mara\n\n {4}1 resource checked: 1 changed\n {4}Review staleness-\S+: the limit counts from now on\n {4}Handed off at handoff-clerk-may-1\n[\s\S]*Hand off agents\/clerk\/may\n\n {4}1 step, 1 side effect, 1 resource\n[\s\S]*refund A1: completed/,
    );
    const resumed = box.ok(["show", "clerk/may~2"]);
    within80(resumed);
    expect(resumed).toMatch(/Taken up\n {2}By {7}night-shift, [\s\S]*file docs\/rules\.md changed/);
    expect(box.json(["show", "handoff-clerk-may-1"])[0]).toMatchObject({
      session: { kind: "handoff" },
    });
    const list = box.ok(["resume", "clerk/may", "--list"]);
    within80(list);
    expect(box.ok(["status"])).not.toContain("was handed off");
    expect(list).toMatch(/^handoff-clerk-may-1 {2}.* {2}1 step again {2}1 side effect\n$/);
    expect(box.ok(["fsck"])).toContain("No problems.");
  });

  it("shows where a discarded checkpoint may be left for, and goes back there when that is agreed to", async () => {
    const { box, rules, step } = await begin();
    box.ok(["handoff", "clerk/may", "--goal", "g", "--tag", "monday"]);
    box.ok(["resume", "clerk/may", "--take-up"]);
    await step("pay \u001b[31mB2");
    box.ok([...HANDOFF, "--tag", "tuesday"]);
    rules("Other.\n");
    const id = /review (staleness-\S+) waits/.exec(
      box.run(["resume", "clerk/may", "--take-up"]).stdout,
    )?.[1] as string;
    box.ok(["review", "discard", id, "--actor", "mara", "--reason", "begin on Monday's"]);
    const discarded = box.run(["resume", "clerk/may", "--take-up"]);
    expect(discarded.status).toBe(1);
    within80(discarded.stdout);
    expect(discarded.stdout).toMatch(
      /Discarded by mara: begin on Monday's\n\nIt can go on from an earlier hand-off:\n {2}monday {2}.*1 step again {2}1 side effect/,
    );
    const back = ["resume", "clerk/may", "--take-up", "--from", "tags/monday"];
    const unasked = box.run(back);
    expect(unasked.status).toBe(4);
    expect(unasked.stderr).toContain("SIDE_EFFECTS_LEFT");
    const agreed = box.ok([...back, "--yes"]);
    within80(agreed);
    expect(agreed).not.toContain("\u001b[31m");
    expect(agreed).toContain("is taken up at");
    await step("pay B2 anew");
  });

  it("shows what the work is done with, where it has changed, as a diff", async () => {
    const { box } = await begin();
    const fingerprints = (model: string, properties: object) =>
      JSON.stringify({ model, tools: [{ name: "refund", schema: { properties } }], code: "1" });
    box.ok([...HANDOFF, "--fingerprints", "-"], { input: fingerprints("m-1", { a: 1, b: 2 }) });
    const { stdout, status } = box.run(["resume", "clerk/may", "--check", "--fingerprints", "-"], {
      input: fingerprints("m-2", { a: 1, c: 3 }),
    });
    expect(status).toBe(0);
    within80(stdout);
    const drift = stdout.slice(stdout.indexOf("What the work"), stdout.lastIndexOf("\n\n"));
    expect(drift.split("\n")).toEqual([
      "What the work is done with has changed",
      "  - /tool/refund/properties/b: 2",
      "  + /tool/refund/properties/c: 3",
      "  ~ /model",
      '      - "m-1"',
      '      + "m-2"',
    ]);
  });

  it("says what is wrong with what it is given, and changes nothing", async () => {
    const { box } = await begin();
    const head = box.ok(["log", "clerk/may", "-n", "1", "--oneline"]);
    const wrong: [string[], number, string][] = [
      [["handoff", "clerk/may"], 2, "INVALID_VALUE"],
      [["handoff", "clerk/may", "--goal", "g", "--resource", "rules"], 2, "INVALID_ARGUMENT"],
      [["handoff", "clerk/may", "--goal", "g", "--tolerance", "often"], 2, "INVALID_VALUE"],
      [["handoff", "clerk/may", "--goal", "g", "--tag", "a/b"], 2, "INVALID_NAME"],
      [["handoff", "clerk/nobody", "--goal", "g"], 3, "REF_NOT_FOUND"],
      [["handoff", "clerk/may", "--goal", "g", "--checkers", "none.json"], 2, "INVALID_ARGUMENT"],
      [["resume", "clerk/may", "--from", "canonical"], 2, "INVALID_ARGUMENT"],
      [["resume", "clerk/may", "--check", "--yes"], 2, "INVALID_ARGUMENT"],
      [["resume", "clerk/may", "--take-up", "--expires", "soon"], 2, "INVALID_ARGUMENT"],
      [["resume", "clerk/may", "--check", "--from", "nothing"], 3, "REVISION_NOT_FOUND"],
      [["resume", "clerk/may", "--check", "--from", "canonical"], 2, "INVALID_ARGUMENT"],
    ];
    for (const [args, status, code] of wrong) {
      const result = box.run(args);
      expect({ args, status: result.status, stdout: result.stdout }).toEqual({
        args,
        status,
        stdout: "",
      });
      expect(result.stderr).toContain(`(${code})`);
      expect(result.stderr.trimEnd().split("\n")).toHaveLength(1);
    }
    expect(box.run(["resume", "clerk/may", "--check", "--take-up"]).status).toBe(2);
    expect(box.ok(["log", "clerk/may", "-n", "1", "--oneline"])).toBe(head);
    expect(box.ok(["tag"])).not.toContain("handoff");
    // A branch that nobody has handed off relies on nothing, and goes on.
    expect(box.run(["resume", "clerk/may", "--check"]).status).toBe(0);
    expect(box.run(["resume", "clerk/may", "--take-up"]).status).toBe(0);
    expect(box.ok(["resume", "clerk/may", "--list"])).toContain("was never handed off");
  });
});
