import { existsSync } from "node:fs";
import { join } from "node:path";
import stringWidth from "string-width";
import { afterAll, describe, expect, it } from "vitest";
import { type GovernancePolicy, openStore, type Workflow } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";

const boxes: CliSandbox[] = [];
afterAll(() => {
  for (const box of boxes) box.remove();
});

const RULES: GovernancePolicy = {
  rules: [
    { tool: "book*", decision: "approve", paths: ["/budget"], reason: "costs money" },
    { tool: "rm*", decision: "deny", reason: "nothing is removed here" },
  ],
  default: "allow",
};

/** A sandbox with a workflow and a branch of an agent, and what works on it as the agent's process does. */
function begin() {
  const box = new CliSandbox();
  boxes.push(box);
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip", "--state", "-"], { input: '{"budget":500}' });
  box.ok(["branch", "booker/try-1"]);
  const agent = async <T>(work: (workflow: Workflow) => Promise<T>): Promise<T> => {
    const store = await openStore(`sqlite:${join(box.directory, ".agstate")}`, {
      governance: RULES,
    });
    try {
      return await work(await store.workflow("trip"));
    } finally {
      await store.close();
    }
  };
  const step = (name: string, input: unknown, tool: () => unknown = () => "done") =>
    agent(async (workflow) =>
      (await workflow.branch("booker/try-1")).step({ name, input }, tool),
    ).catch((error: unknown) => error as { code: string; details: { review: string } });
  return { box, agent, step };
}

function within80(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  return lines;
}

interface ErrorJson {
  readonly error: { readonly code: string; readonly details: Record<string, unknown> };
}

describe("agstate review", () => {
  it("goes from a question to a decision to the step that it lets run", async () => {
    const { box, step } = begin();
    expect(box.ok(["review"])).toBe("Nothing waits for a decision.\n");
    expect(box.ok(["review", "list", "--all"])).toBe("Nobody has asked for a decision.\n");
    const input = { hotel: "H".repeat(150), text: "\u001b[31mred" };
    const asked = await step("book-hotel", input);
    expect(asked).toMatchObject({ code: "APPROVAL_NEEDED" });
    const id = (asked as { details: { review: string } }).details.review;

    const list = within80(box.ok(["review"]));
    expect(list[0]).toBe(`${id}  open  book-hotel  agents/booker/try-1`);
    const shown = within80(box.ok(["review", "show", id])).join("\n");
    expect(shown).toContain("Step      book-hotel (execute), step 1");
    expect(shown).toContain("Why       costs money");
    expect(shown).toContain("/budget  as it was\n    500");
    expect(shown).not.toContain("\u001b");
    expect(shown).toContain(`agstate review approve ${id}`);

    expect(box.run(["--json", "review", "approve", id, "--happened"]).status).toBe(2);
    const approved = within80(
      box.ok(["review", "approve", id, "--actor", "eve", "--reason", "fine"]),
    );
    expect(approved[0]).toBe("Approved: book-hotel on agents/booker/try-1 may run, once.");
    const late = box.run(["--json", "review", "discard", id]);
    expect(late.status).toBe(4);
    expect((JSON.parse(late.stderr) as ErrorJson).error.code).toBe("REVIEW_DECIDED");
    expect(await step("book-hotel", input)).toBe("done");
    expect(box.json(["review", "show", id])[0]).toMatchObject({
      status: "used",
      decision: { by: "eve", reason: "fine" },
      use: { number: 1 },
    });
    expect(box.ok(["review"])).toBe("Nothing waits for a decision.\n");
    expect(box.run(["review", "show", "approval-none-1"]).status).toBe(3);
    for (const args of [["review"], ["review", "approve"], ["review", "list"]]) {
      within80(box.ok([...args, "--help"]));
    }
  });

  it("tells what has changed, and what was discarded and denied, and by whom", async () => {
    const { box, step } = begin();
    const first = (await step("book", 1)) as { details: { review: string } };
    box.ok(["commit", "-", "-b", "booker/try-1", "-m", "less"], { input: '{"budget":5}' });
    const id = first.details.review;
    expect(within80(box.ok(["review", "show", id])).join("\n")).toContain(
      "/budget  changed since\n    5",
    );
    const refused = box.run(["--json", "review", "approve", id]);
    expect(refused.status).toBe(4);
    expect((JSON.parse(refused.stderr) as ErrorJson).error).toMatchObject({
      code: "REVIEW_LAPSED",
      details: { differ: ["/budget"] },
    });
    const second = (await step("book", 1)) as { details: { review: string } };
    const discarded = box.ok(["review", "discard", second.details.review, "--actor", "eve"]);
    expect(within80(discarded)[0]).toBe("Discarded: book on agents/booker/try-1");
    expect(await step("book", 1)).toMatchObject({ code: "STEP_DENIED" });
    expect(await step("rm", "/")).toMatchObject({ code: "STEP_DENIED" });
    const all = box.json<{ kind: string; status: string; askedBy: string }>([
      "review",
      "list",
      "--all",
    ]);
    expect(all.map(({ kind, status, askedBy }) => [kind, status, askedBy]).sort()).toEqual([
      ["approval", "discarded", "booker"],
      ["approval", "lapsed", "booker"],
      ["denial", "denied", "booker"],
    ]);
    within80(box.ok(["review", "list", "--all"]));
    expect(box.ok(["review", "list", "--kind", "denial"])).toContain("denied");
  });

  it("answers for a step in doubt what came out", async () => {
    const { box, agent } = begin();
    const run = (tool: () => unknown) =>
      agent(async (workflow) =>
        workflow.run(await workflow.branch("booker/try-1"), (ctx) =>
          ctx.step({ name: "pay", input: 5, inDoubt: "ask", timeoutMs: 20 }, tool),
        ),
      ).catch((error: unknown) => error as { code: string; details: { review?: string } });
    // Nobody waits any longer for the first: it stays open, as after a crash.
    await run(() => new Promise<never>(() => undefined));
    const doubt = (await run(() => "twice")) as { code: string; details: { review: string } };
    expect(doubt.code).toBe("STEP_IN_DOUBT");
    const id = doubt.details.review;
    within80(box.ok(["review", "show", id]));
    expect(box.run(["review", "approve", id]).status).toBe(2);
    expect(box.run(["review", "approve", id, "--happened", "{"]).status).toBe(2);
    const both = ["review", "approve", id, "--happened", "1", "--not-happened"];
    expect(box.run(both).status).toBe(2);
    within80(box.ok(["review", "approve", id, "--happened", '{"receipt":7}', "--actor", "eve"]));
    expect(await run(() => "twice")).toEqual({ receipt: 7 });
  });
});

describe("side effects that are left behind", () => {
  it("are told, and a branch is deleted or reset only when that is agreed to", async () => {
    const { box, agent, step } = begin();
    await step("send", { to: "x" });
    await agent(async (workflow) =>
      (await workflow.branch("booker/try-1"))
        .step({ name: "pay", timeoutMs: 10 }, () => new Promise<never>(() => undefined))
        .catch(() => undefined),
    );
    const effects = [
      expect.objectContaining({ number: 1, name: "send", status: "completed" }),
      expect.objectContaining({ number: 2, name: "pay", status: "in doubt" }),
    ];
    const before = box.ok(["log", "--oneline", "--all"]);
    for (const args of [
      ["branch", "-d", "booker/try-1"],
      ["reset", "booker/try-1", "canonical"],
    ]) {
      const refused = box.run(["--json", ...args]);
      expect(refused.status).toBe(4);
      expect((JSON.parse(refused.stderr) as ErrorJson).error).toEqual(
        expect.objectContaining({
          code: "SIDE_EFFECTS_LEFT",
          details: expect.objectContaining({ sideEffects: effects }),
        }),
      );
      expect(box.run(args).stderr).toContain("1 (send), 2 (pay)");
    }
    expect(box.ok(["log", "--oneline", "--all"])).toBe(before);
    const reset = box.json(["reset", "booker/try-1", "booker/try-1~1", "--yes"]);
    expect(reset[0]).toMatchObject({ sideEffects: [effects[1]] });
    expect(box.ok(["reset", "booker/try-1", "booker/try-1"])).toContain("is now at");
    const deleted = within80(box.ok(["branch", "-d", "booker/try-1", "-y"]));
    expect(deleted.slice(0, 2)).toEqual([
      "These side effects, which no other branch has, are not undone:",
      expect.stringMatching(/^ {2}1 {2}send {2}execute {2}completed {2}[0-9a-f]{10}$/),
    ]);
  });

  it.runIf(existsSync("/usr/bin/script"))("are asked about at a terminal", async () => {
    const { box, step } = begin();
    await step("send", 1);
    const asked = (answer: string) =>
      box.shell(
        `printf '${answer}' | TERM=dumb script -qec "$AGSTATE branch -d booker/try-1" /dev/null`,
      );
    const no = asked("n\\n");
    expect(no.stdout).toContain("Go on? [y/N]");
    expect(no.status).toBe(1);
    expect(box.json(["branch"])).toHaveLength(2);
    expect(asked("y\\n").status).toBe(0);
    expect(box.json(["branch"])).toHaveLength(1);
  });
});
