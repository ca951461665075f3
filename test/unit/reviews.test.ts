import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import type { Branch, GovernancePolicy, RunContext, Tool } from "../../src/index.js";
import { hashObject } from "../../src/objects/hash.js";
import { bytesOf } from "../../src/storage/rows/inline.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const BOOKING: GovernancePolicy = {
  rules: [{ tool: "book", decision: "approve", paths: ["/budget"], reason: "costs money" }],
};

describe.each(BACKENDS)("reviews on %s", (backend) => {
  async function begin(policy: GovernancePolicy = BOOKING) {
    const { store, another } = await makeStore(backend, { governance: policy });
    const workflow = await store.createWorkflow("w", { state: { budget: 500, note: "" } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const calls: unknown[] = [];
    const tool: Tool<string> = ({ key }) => {
      calls.push(key);
      return `done ${calls.length}`;
    };
    const book = (on: Branch = branch, input: unknown = { room: 1 }) =>
      on.step({ name: "book", input }, tool);
    const other = async () => (await another()).workflow("w");
    return { store, workflow, branch, calls, tool, book, other };
  }

  const reviewOf = (error: unknown): string =>
    (error as { details: { review: string } }).details.review;

  async function needed(step: Promise<unknown>): Promise<string> {
    const error = await step.then(
      () => new Error("it ran"),
      (thrown: unknown) => thrown,
    );
    expect(error).toEqual(agstateError("APPROVAL_NEEDED"));
    return reviewOf(error);
  }

  it("is asked once, approved once, and lets the step run once, with who did what on record", async () => {
    const { workflow, branch, calls, book, other } = await begin();
    const id = await needed(book());
    expect(await needed(book())).toBe(id);
    expect(calls).toEqual([]);
    expect(branch.head.step).toBeNull();

    const [review, ...more] = await (await other()).reviews({ open: true });
    expect(more).toEqual([]);
    expect(review?.info).toMatchObject({
      id,
      kind: "approval",
      status: "open",
      askedBy: "a",
      reason: "costs money",
      expiresAt: null,
      subject: {
        branch: "agents/a/x",
        number: 1,
        place: null,
        name: "book",
        action: "execute",
        input: { room: 1 },
        paths: [{ path: "/budget", digest: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      },
    });
    const decided = await review?.approve({ actor: "eve", reason: "cheap enough" });
    expect(decided).toMatchObject({
      status: "approved",
      decision: { by: "eve", reason: "cheap enough" },
    });
    const again = await workflow.review(id);
    for (const late of [again.approve({ actor: "x" }), review?.discard({ actor: "x" })]) {
      await expect(late).rejects.toEqual(
        agstateError("REVIEW_DECIDED", { status: "approved", by: "eve" }),
      );
    }

    expect(await book()).toBe("done 1");
    const [step] = await all(branch.steps());
    expect(step).toMatchObject({ number: 1, status: "completed", approval: id });
    expect((await workflow.review(id)).info).toMatchObject({ status: "used", use: { number: 1 } });

    const next = await needed(book());
    expect(next).not.toBe(id);
    expect(calls).toHaveLength(1);
    const log = await all(workflow.log({ revisions: [`reviews/${id}`] }));
    expect(log.map(({ author, message }) => [author, message])).toEqual([
      ["a", "Use the approval for step 1"],
      ["eve", "Approve: cheap enough"],
      ["a", "Ask for a decision on book"],
    ]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("is decided by one of many who decide at once", async () => {
    const { workflow, book, other } = await begin();
    const id = await needed(book());
    const reviews = await Promise.all(
      Array.from({ length: 6 }, async (_, i) =>
        (i % 2 === 0 ? workflow : await other()).review(id),
      ),
    );
    const settled = await Promise.allSettled(
      reviews.map((review, i) =>
        i % 3 === 0 ? review.discard({ actor: `p${i}` }) : review.approve({ actor: `p${i}` }),
      ),
    );
    const won = settled.filter((one) => one.status === "fulfilled");
    expect(won).toHaveLength(1);
    for (const one of settled) {
      if (one.status === "rejected") expect(one.reason).toEqual(agstateError("REVIEW_DECIDED"));
    }
    expect((await workflow.reflog(`reviews/${id}`)).length).toBe(2);
  });

  it("is one however many ask at once", async () => {
    const { workflow, other } = await begin();
    const handles = await Promise.all(
      Array.from({ length: 5 }, async () => (await other()).branch("a/x")),
    );
    const ids = await Promise.all(
      handles.map((handle) => needed(handle.step({ name: "book" }, () => 1))),
    );
    expect(new Set(ids).size).toBe(1);
    expect(await workflow.reviews()).toHaveLength(1);
  });

  it("that is discarded refuses the very step, and a step that differs is asked for anew", async () => {
    const { workflow, book, calls } = await begin();
    const id = await needed(book());
    await (await workflow.review(id)).discard({ actor: "eve", reason: "too dear" });
    for (let i = 0; i < 2; i++) {
      await expect(book()).rejects.toEqual(agstateError("STEP_DENIED", { review: id }));
    }
    await expect(book()).rejects.toThrow("discarded by eve: too dear");
    expect(await needed(book(undefined, { room: 2 }))).not.toBe(id);
    expect(calls).toEqual([]);
  });

  it("lapses when the input or the state that it names changes, and not when other state does", async () => {
    const { workflow, branch, book, calls } = await begin();
    const first = await needed(book());
    await (await workflow.review(first)).approve({ actor: "eve" });
    const second = await needed(book(undefined, { room: 2 }));
    expect(second).not.toBe(first);
    expect((await workflow.review(first)).info.status).toBe("lapsed");

    const third = await needed(book());
    await (await workflow.review(third)).approve({ actor: "eve" });
    await branch.update([{ op: "set", path: "/note", value: "other" }]);
    await branch.update([{ op: "set", path: "/budget", value: 10 }]);
    const fourth = await needed(book());
    expect(new Set([first, second, third, fourth]).size).toBe(4);
    await branch.update([{ op: "set", path: "/budget", value: 500 }]);
    await expect((await workflow.review(fourth)).approve({ actor: "eve" })).rejects.toEqual(
      agstateError("REVIEW_LAPSED", { differ: ["/budget"] }),
    );
    expect((await workflow.review(fourth)).info.status).toBe("lapsed");
    const fifth = await needed(book());
    await (await workflow.review(fifth)).approve({ actor: "eve" });
    await branch.update([{ op: "set", path: "/note", value: "more" }]);
    expect(calls).toEqual([]);
    expect(await book()).toBe("done 1");
  });

  it("does not hold for a branch that was made anew", async () => {
    const { workflow, book } = await begin();
    const id = await needed(book());
    await workflow.deleteBranch("a/x");
    await expect((await workflow.review(id)).approve({ actor: "eve" })).rejects.toEqual(
      agstateError("REVIEW_LAPSED", { differ: ["branch"] }),
    );
    const anew = await workflow.branch({ agent: "a", branch: "x" });
    const next = await needed(book(anew));
    expect(next).not.toBe(id);
  });

  it("does not hold when the state changes between the look and the intent", async () => {
    const { store, workflow, branch, calls, tool } = await begin();
    const id = await needed(branch.step({ name: "book" }, tool));
    await (await workflow.review(id)).approve({ actor: "eve" });
    // Hooks come after the rules, and so stand just between.
    const there = await workflow.branch("a/x");
    let moved = false;
    const hooks = store as unknown as { context: { hooks: unknown[] } };
    hooks.context.hooks.push({
      before: async () => {
        if (!moved) await there.update([{ op: "set", path: "/budget", value: 1 }]);
        moved = true;
      },
    });
    await expect(branch.step({ name: "book" }, tool)).rejects.toEqual(
      agstateError("APPROVAL_NEEDED", { review: id, differ: ["/budget"] }),
    );
    expect(calls).toEqual([]);
    expect((await branch.resumePoint()).inFlight).toEqual([]);
    expect(await needed(branch.step({ name: "book" }, tool))).not.toBe(id);
    expect((await workflow.review(id)).info.status).toBe("lapsed");
  });

  it("expires, before and after it is approved", async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { workflow, branch, calls, tool } = await begin({
      rules: [{ tool: "*", decision: "approve", expiresAfterMs: 1000 }],
    });
    const step = () => branch.step({ name: "t" }, tool);
    const first = await needed(step());
    vi.setSystemTime(start + 999);
    expect(await workflow.reviews({ open: true })).toHaveLength(1);
    vi.setSystemTime(start + 1000);
    expect(await workflow.reviews({ open: true })).toEqual([]);
    await expect((await workflow.review(first)).approve({ actor: "eve" })).rejects.toEqual(
      agstateError("REVIEW_EXPIRED", { review: first }),
    );
    const second = await needed(step());
    expect(second).not.toBe(first);
    expect((await workflow.reflog(`reviews/${first}`))[0]?.reason).toBe("Expire the request for t");
    await (await workflow.review(second)).approve({ actor: "eve" });
    vi.setSystemTime(start + 2000);
    expect((await workflow.review(second)).info.status).toBe("expired");
    const third = await needed(step());
    expect(third).not.toBe(second);
    await (await workflow.review(third)).approve({ actor: "eve" });
    vi.setSystemTime(start + 2999);
    expect(calls).toEqual([]);
    expect(await step()).toBe("done 1");
  });

  it("is used up by a step without an intent before that runs, so that a crash does not let it run twice", async () => {
    const { workflow, branch, other } = await begin();
    const spec = { name: "book", action: "inference" } as const;
    const id = await needed(branch.step(spec, () => 1));
    await (await workflow.review(id)).approve({ actor: "eve" });
    await new Promise<void>((begun) => {
      // Never ends, and leaves nothing on the branch.
      void branch.step(spec, () => {
        begun();
        return new Promise<never>(() => undefined);
      });
    });
    expect((await workflow.review(id)).info).toMatchObject({
      status: "used",
      use: { number: null },
    });
    const cold = await (await other()).branch("a/x");
    expect(await needed(cold.step(spec, () => 2))).not.toBe(id);
  });

  it("keeps what is isolated in step records as the very same object", async () => {
    const { store } = await makeStore(backend, { governance: BOOKING });
    const isolation = ["/step/input/email", "/step/output"];
    const workflow = await store.createWorkflow("w", { isolation });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const spec = { name: "book", input: { email: "eve@example.org", n: 1 } };
    const id = await needed(branch.step(spec, () => 1));
    const review = await workflow.review(id);
    expect(review.info.subject.input).toEqual(spec.input);
    // As an object of its own, before any step record has it.
    const { storage } = workflow.internals;
    const email = hashObject("blob", Buffer.from('"eve@example.org"'));
    const kept = await storage.readObjects("w", [email]);
    expect(kept).toEqual([expect.objectContaining({ id: email })]);
    const [commit] = await storage.readCommits("w", [review.info.commit as ObjectId]);
    const record = commit?.inline
      .map((object) => Buffer.from(bytesOf(object)).toString("latin1"))
      .join();
    expect(record).not.toContain("eve@");
    await review.approve({ actor: "eve" });
    expect(await branch.step(spec, () => 1)).toBe(1);
  });

  it("is not found by a name that nobody has", async () => {
    const { workflow } = await begin();
    await expect(workflow.review("approval-none-1")).rejects.toEqual(
      agstateError("REVIEW_NOT_FOUND", { review: "approval-none-1" }),
    );
    await expect(workflow.review("abcd")).rejects.toEqual(agstateError("INVALID_NAME"));
  });

  describe("of a step in doubt", () => {
    const OPEN: GovernancePolicy = { rules: [{ tool: "*", decision: "allow" }] };

    async function died() {
      const { workflow, branch, other, calls } = await begin(OPEN);
      const work = (tool: Tool<string>) => async (ctx: RunContext) =>
        ctx.step({ name: "pay", input: { sum: 5 }, inDoubt: "ask" }, tool);
      const kill = async (on: Branch) => {
        // The tool never ends, and nobody waits for it: as when the process dies.
        const begun = new Promise<void>((resolve) => {
          void workflow
            .run(
              on,
              work(({ key }) => {
                calls.push(key);
                resolve();
                return new Promise<never>(() => undefined);
              }),
            )
            .catch(() => undefined);
        });
        await begun;
      };
      await kill(branch);
      const again = async (tool: Tool<string> = () => "again") => {
        const cold = await other();
        return cold.run(await cold.branch("a/x"), work(tool));
      };
      const doubt = async () => {
        const error = await again().catch((thrown: unknown) => thrown);
        expect(error).toEqual(agstateError("STEP_IN_DOUBT", { step: 2, name: "pay" }));
        return reviewOf(error);
      };
      return { workflow, branch, calls, again, doubt, kill, other };
    }

    it("is asked once, and seals the step with what came out", async () => {
      const { workflow, again, doubt, calls, other } = await died();
      const id = await doubt();
      expect(await doubt()).toBe(id);
      const review = await workflow.review(id);
      expect(review.info).toMatchObject({
        kind: "in-doubt",
        subject: { number: 2, name: "pay", input: { sum: 5 }, key: calls[0], attempt: 1 },
      });
      await expect(review.approve({ actor: "eve" })).rejects.toEqual(
        agstateError("INVALID_ARGUMENT"),
      );
      await review.approve({ actor: "eve", found: { happened: true, output: "receipt" } });
      expect(await again()).toBe("receipt");
      expect(await again()).toBe("receipt");
      const cold = await (await other()).branch("a/x");
      const steps = await all(cold.steps({ name: "pay" }));
      expect(steps).toMatchObject([{ number: 2, status: "completed", output: "receipt" }]);
    });

    it("lets it run again with the same key, and asks anew when that dies as well", async () => {
      const { workflow, again, doubt, calls, kill, other } = await died();
      const id = await doubt();
      const review = await workflow.review(id);
      await review.approve({ actor: "eve", found: { happened: false } });
      await kill(await (await other()).branch("a/x"));
      expect(calls).toEqual([calls[0], calls[0]]);
      const next = await doubt();
      expect(next).not.toBe(id);
      expect((await workflow.review(next)).info.subject.attempt).toBe(2);
      expect((await workflow.review(id)).info.status).toBe("lapsed");
      await (await workflow.review(next)).approve({ actor: "eve", found: { happened: false } });
      expect(await again(({ key, attempt }) => `${key} ${attempt}`)).toBe(`${calls[0]} 3`);
    });

    it("that is discarded leaves it in doubt", async () => {
      const { workflow, doubt } = await died();
      const id = await doubt();
      await (await workflow.review(id)).discard({ actor: "eve" });
      expect(await doubt()).toBe(id);
    });

    it("does not speak for another step at the same place, after a reset", async () => {
      const { workflow, again, doubt, kill, other } = await died();
      const id = await doubt();
      const review = await workflow.review(id);
      await review.approve({ actor: "eve", found: { happened: true, output: "receipt" } });
      await workflow.reset("a/x", "canonical");
      const cold = await other();
      await kill(await cold.branch("a/x"));
      const error = await again().catch((thrown: unknown) => thrown);
      expect(error).toEqual(agstateError("STEP_IN_DOUBT"));
      expect(reviewOf(error)).not.toBe(id);
    });
  });
});
