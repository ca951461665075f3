import { describe, expect, it } from "vitest";
import type { Branch, CheckFunction, HandoffOptions, OpenStoreOptions } from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

/** Documents that change, vanish and fail, as a checker of the caller's finds them. */
class Documents {
  readonly versions = new Map<string, string>();
  readonly failing = new Set<string>();
  asked = 0;

  readonly check: CheckFunction = ({ id }) => {
    this.asked++;
    if (this.failing.has(id)) throw new Error("the server is away");
    return this.versions.get(id) ?? null;
  };
}

function saying(code: string, message: RegExp): unknown {
  return expect.objectContaining({ code, message: expect.stringMatching(message) });
}

describe.each(BACKENDS)("hand-off on %s", (backend) => {
  async function begin(options: OpenStoreOptions = {}) {
    const documents = new Documents();
    documents.versions.set("rules", "v1").set("prices", "v7");
    const checkers = { doc: documents.check };
    const { store, another } = await makeStore(backend, { checkers, ...options });
    const workflow = await store.createWorkflow("w", { state: { orders: 0 } });
    const branch = await workflow.branch({ agent: "clerk", branch: "try" });
    const other = async () => (await another({ checkers, ...options })).workflow("w");
    return { documents, checkers, store, workflow, branch, other };
  }

  const read = (branch: Branch, id: string, name = `read ${id}`) =>
    branch.step({ name, action: "read", memoize: true }, async ({ relyOn }) => {
      await relyOn({ type: "doc", id });
      return id;
    });
  const send = (branch: Branch, name = "send") =>
    branch.step({ name, action: "write" }, () => ({ sent: true }));
  const HANDOFF: HandoffOptions = { summary: "Refund the orders of May" };

  it("keeps in one commit and one tag what people, checkers and the next session need", async () => {
    const { workflow, branch, other } = await begin();
    await read(branch, "rules");
    await send(branch);
    await read(branch, "rules", "read again");
    await branch
      .step({ name: "flaky", action: "execute", timeoutMs: 5 }, () => new Promise(() => {}))
      .catch(() => 0);
    const handoff = await branch.handoff({
      summary: {
        goal: "Refund the orders of May",
        done: ["read the rules", "sent the first"],
        open: "two orders are left",
        decisions: ["no refund above 100"],
        next: "send the second",
      },
      resources: [
        { type: "doc", id: "prices", tolerance: { maxAgeMs: 60_000 } },
        { type: "doc", id: "rules", version: "v1", tolerance: "exact" },
      ],
      fingerprints: { model: "m-1", tools: [{ name: "send", schema: { type: "object" } }] },
      note: "The customer calls at nine.",
    });
    expect(handoff).toMatchObject({
      tag: "handoff-clerk-try-1",
      branch: "agents/clerk/try",
      by: "clerk",
      summary: { done: ["read the rules", "sent the first"], open: ["two orders are left"] },
      facts: {
        since: null,
        steps: { first: 1, last: 4, count: 4 },
        sideEffects: {
          count: 2,
          items: [
            { number: 2, name: "send", status: "completed" },
            { number: 4, name: "flaky", status: "in doubt" },
          ],
        },
        inDoubt: { count: 1, items: [{ number: 4, name: "flaky" }] },
        conflicts: { count: 0, items: [] },
        reviews: { count: 0, items: [] },
      },
      resources: [
        { type: "doc", id: "rules", version: "v1", tolerance: "exact", steps: [1, 3] },
        { type: "doc", id: "prices", version: "v7", tolerance: { maxAgeMs: 60_000 }, steps: [] },
      ],
    });
    const later = await other();
    expect(await later.resolve("tags/handoff-clerk-try-1")).toBe(handoff.commit);
    expect(await later.resolve("agents/clerk/try")).toBe(handoff.commit);
    expect(await later.sessionAt("handoff-clerk-try-1")).toEqual({ kind: "handoff", handoff });
    const { message } = await workflow.commitAt(handoff.commit);
    expect(message).toContain("4 steps, 2 side effects, 2 resources, 1 in doubt");
    // What is in clear for ever says nothing of what may be secret.
    expect(message).not.toContain("Refund");
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("lets no step run until somebody has taken the branch up", async () => {
    const { workflow, branch, other } = await begin();
    await read(branch, "rules");
    const old = await (await other()).branch("agents/clerk/try");
    await branch.handoff(HANDOFF);
    const head = branch.head.id;
    const refused = saying("HANDED_OFF", /handed off at tags\/handoff-clerk-try-1 by clerk/);
    let called = 0;
    const tool = () => ++called;
    for (const action of ["read", "inference", "write"] as const) {
      await expect(branch.step({ name: "x", action }, tool)).rejects.toEqual(refused);
    }
    await expect(workflow.run(branch, (ctx) => ctx.step({ name: "x" }, tool))).rejects.toEqual(
      refused,
    );
    // A handle that does not know of the hand-off yet is fenced by it.
    await expect(old.step({ name: "x", action: "write" }, tool)).rejects.toEqual(
      agstateError("STEP_FENCED"),
    );
    const fromTag = await workflow.branch({
      agent: "heir",
      branch: "x",
      from: "tags/handoff-clerk-try-1",
    });
    await expect(send(fromTag)).rejects.toEqual(refused);
    expect(called).toBe(0);
    expect(await workflow.resolve("agents/clerk/try")).toBe(head);
    // Edits by hand may be what makes it fit to go on.
    await branch.update([{ op: "set", path: "/orders", value: 1 }]);
    await expect(send(branch)).rejects.toEqual(refused);

    const report = await branch.resume({ author: "night-shift" });
    expect(report).toMatchObject({ verdict: "fresh", ready: true, review: null });
    expect(report.resources).toMatchObject([{ found: "same", verdict: "fresh", now: "v1" }]);
    expect(report.commit).toMatchObject({
      author: "night-shift",
      message: expect.stringMatching(/^Resume agents\/clerk\/try: fresh\n/),
    });
    expect(await send(branch)).toEqual({ sent: true });
    expect(await workflow.run(branch, (ctx) => ctx.step({ name: "y" }, () => 7))).toBe(7);
    // The heir's branch is another: it takes up for itself.
    await expect(send(fromTag)).rejects.toEqual(refused);
    expect((await fromTag.resume()).ready).toBe(true);
    expect(await send(fromTag)).toEqual({ sent: true });
  });

  it("lets what is under way when a branch is handed off end, and fences what comes after", async () => {
    const { workflow, branch, other } = await begin();
    const second = await (await other()).branch("agents/clerk/try");
    let letGo = () => {};
    const gone = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let begun = () => {};
    const running = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const run = workflow.run(branch, async (ctx) => {
      await ctx.step({ name: "slow", action: "write" }, async () => {
        begun();
        await gone;
        return "done";
      });
      await ctx.step({ name: "after", action: "write" }, () => "never");
    });
    const ended = run.then(
      () => "ran",
      (error: unknown) => error,
    );
    await running;
    await second.refresh();
    const { facts } = await second.handoff(HANDOFF);
    expect(facts.inDoubt.items).toEqual([{ number: 2, name: "slow" }]);
    letGo();
    expect(await ended).toEqual(agstateError("HANDED_OFF"));
    const steps = await all(branch.steps());
    expect(steps.map(({ name, status }) => [name, status])).toEqual([
      ["slow", "completed"],
      ["agstate:run begins", "completed"],
    ]);
  });

  it("stops on what has changed until somebody agrees to just that, once", async () => {
    const { documents, workflow, branch, other } = await begin();
    await read(branch, "rules");
    await read(branch, "prices");
    const { tag } = await branch.handoff(HANDOFF);
    documents.versions.set("rules", "v2");
    const before = branch.head.id;
    const report = await branch.resume();
    expect(report).toMatchObject({ verdict: "stale", ready: false, commit: null });
    expect(report.resources).toMatchObject([
      { resource: { id: "rules", version: "v1", steps: [1] }, found: "changed", now: "v2" },
      { resource: { id: "prices" }, found: "same" },
    ]);
    expect(report.review).toMatchObject({
      kind: "staleness",
      status: "open",
      subject: {
        name: `resume ${tag}`,
        input: { resources: [{ id: "rules", found: "changed", was: "v1", now: "v2", steps: [1] }] },
      },
    });
    expect(branch.head.id).toBe(before);
    await expect(send(branch)).rejects.toEqual(agstateError("HANDED_OFF"));
    // Asked again it is the same question.
    const id = (report.review as { id: string }).id;
    expect((await branch.resume()).review?.id).toBe(id);

    const review = await (await other()).review(id);
    await review.approve({ actor: "mara", reason: "v2 changes nothing for May" });
    const resumed = await branch.resume();
    expect(resumed).toMatchObject({
      verdict: "stale",
      ready: true,
      review: { status: "used", decision: { by: "mara" } },
    });
    expect(resumed.commit?.message).toBe(
      `Resume agents/clerk/try: stale, approved by mara\n\n2 resources checked: 1 changed\nReview ${id}: v2 changes nothing for May\nHanded off at ${tag}`,
    );
    await send(branch);
    // Work goes on from what was agreed to.
    expect(await branch.freshness()).toMatchObject({ verdict: "fresh", handoff: null });
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("lets an approval lapse when anything moves again", async () => {
    const { documents, workflow, branch } = await begin();
    await read(branch, "rules");
    await read(branch, "prices");
    await branch.handoff(HANDOFF);
    const asked = async () => (await branch.resume()).review as { id: string; status: string };
    documents.versions.set("rules", "v2");
    const first = await asked();
    await (await workflow.review(first.id)).approve({ actor: "mara" });
    documents.versions.set("rules", "v3");
    const second = await asked();
    expect(second).toMatchObject({ status: "open" });
    expect(second.id).not.toBe(first.id);
    expect((await workflow.review(first.id)).info.status).toBe("lapsed");
    // Another resource that has been as it was.
    await (await workflow.review(second.id)).approve({ actor: "mara" });
    documents.versions.set("prices", "v8");
    const third = await asked();
    expect((await workflow.review(second.id)).info.status).toBe("lapsed");
    // Another envelope with the very same versions.
    await (await workflow.review(third.id)).approve({ actor: "mara" });
    await branch.handoff({ summary: "again" });
    const fourth = await asked();
    expect((await workflow.review(third.id)).info.status).toBe("lapsed");
    // Everything as it was again: nothing is left to be decided.
    documents.versions.set("rules", "v1").set("prices", "v7");
    expect(await branch.resume()).toMatchObject({ verdict: "fresh", ready: true });
    expect((await workflow.review(fourth.id)).info.status).toBe("lapsed");
  });

  it("offers what a discarded checkpoint may be left for, and what that would do again", async () => {
    const { documents, workflow, branch } = await begin();
    await read(branch, "rules");
    await branch.handoff({ ...HANDOFF, tag: "monday" });
    await branch.resume();
    await read(branch, "prices");
    await send(branch, "pay");
    await branch.handoff({ ...HANDOFF, tag: "tuesday" });
    documents.versions.delete("prices");
    const stale = await branch.resume();
    expect(stale).toMatchObject({ verdict: "stale", ready: false });
    expect(stale.resources[1]).toMatchObject({ found: "gone", now: null });
    const id = stale.review?.id as string;
    await (await workflow.review(id)).discard({ actor: "mara", reason: "do it anew" });
    const discarded = await branch.resume();
    expect(discarded).toMatchObject({ ready: false, review: { status: "discarded" } });
    expect(discarded.earlier).toMatchObject([
      { handoff: { tag: "monday" }, steps: 2, sideEffects: [{ number: 3, name: "pay" }] },
    ]);
    await expect(branch.resume({ from: "tags/monday" })).rejects.toEqual(
      agstateError("SIDE_EFFECTS_LEFT"),
    );
    const back = await branch.resume({ from: "tags/monday", sideEffects: "tell" });
    expect(back).toMatchObject({
      verdict: "fresh",
      ready: true,
      sideEffects: [{ number: 3, name: "pay" }],
    });
    expect(back.commit?.parents).toEqual([await workflow.resolve("tags/monday")]);
    // Numbers are never given twice.
    await send(branch);
    expect(branch.head.step?.number).toBe(4);
    await expect(branch.resume({ from: `${branch.name}~1` })).rejects.toEqual(
      saying("INVALID_ARGUMENT", /is no hand-off/),
    );
    await expect(branch.resume({ from: "canonical" })).rejects.toEqual(
      saying("INVALID_ARGUMENT", /is no hand-off/),
    );
    await expect(branch.resume({ from: "tags/tuesday" })).rejects.toEqual(
      saying("INVALID_ARGUMENT", /not in the history/),
    );
  });

  it("goes on as tolerances allow, and lets what was tolerated grow older", async () => {
    const now = Date.now();
    const { documents, branch } = await begin();
    await branch.handoff({
      ...HANDOFF,
      resources: [
        { type: "doc", id: "rules", version: "v0", tolerance: "ignore" },
        {
          type: "doc",
          id: "prices",
          version: "v6",
          tolerance: { maxAgeMs: 3_600_000 },
          observedAt: now,
        },
      ],
    });
    const report = await branch.resume();
    expect(documents.asked).toBe(1);
    expect(report).toMatchObject({
      verdict: "fresh",
      ready: true,
      resources: [
        { found: "ignored", tolerated: true },
        { found: "changed", verdict: "stale", tolerated: true, now: "v7" },
      ],
    });
    const { resources } = await branch.handoff(HANDOFF);
    expect(resources).toMatchObject([
      { id: "rules", version: "v0", tolerance: "ignore" },
      { id: "prices", version: "v6", observedAt: now },
    ]);
  });

  it("takes what it cannot find out for unknown, never for fresh", async () => {
    const { documents, branch } = await begin();
    await branch.handoff({
      ...HANDOFF,
      resources: [
        { type: "doc", id: "rules", version: "v1" },
        { type: "doc", id: "prices", version: null },
        { type: "nobody-knows", id: "x", version: "1" },
      ],
    });
    documents.failing.add("rules");
    const report = await branch.resume({ retries: 0 });
    expect(report).toMatchObject({ verdict: "unknown", ready: false });
    expect(report.resources.map(({ found }) => found)).toEqual(["unknown", "unknown", "unknown"]);
    expect(report.review?.subject.input).toMatchObject({ resources: [{}, {}, {}] });
  });

  it("asks anew when a review has waited too long", async () => {
    const { documents, workflow, branch } = await begin();
    await read(branch, "rules");
    await branch.handoff(HANDOFF);
    documents.versions.set("rules", "v2");
    await expect(branch.resume({ reviewExpiresAfterMs: 0 })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    const first = (await branch.resume({ reviewExpiresAfterMs: 1 })).review?.id as string;
    await new Promise((resolve) => setTimeout(resolve, 5));
    await expect((await workflow.review(first)).approve({ actor: "mara" })).rejects.toEqual(
      agstateError("REVIEW_EXPIRED"),
    );
    const second = (await branch.resume()).review;
    expect(second).toMatchObject({ status: "open" });
    expect(second?.id).not.toBe(first);
  });

  it("shows what the work is done with and has drifted, and stops on it where that was asked for", async () => {
    const { branch } = await begin();
    const then = {
      model: "m-1",
      code: "abc",
      tools: [{ name: "send", schema: { type: "object" } }],
    };
    const now = { model: "m-2", code: "abc", tools: [] };
    await branch.handoff({ ...HANDOFF, fingerprints: then });
    const report = await branch.resume({ fingerprints: now });
    expect(report).toMatchObject({ verdict: "fresh", ready: true });
    expect(report.drift).toMatchObject([
      { kind: "tool", name: "send", change: "removed" },
      { kind: "model", name: null, change: "changed" },
    ]);
    // What it went on with is what the next one is compared with.
    await branch.handoff({ ...HANDOFF, tolerance: { fingerprints: "exact" } });
    const untold = await branch.resume();
    expect(untold).toMatchObject({ verdict: "unknown", ready: false });
    expect(await branch.resume({ fingerprints: then })).toMatchObject({
      verdict: "stale",
      ready: false,
      drift: [{ name: "send", change: "added" }, { kind: "model" }],
    });
    expect(await branch.resume({ fingerprints: now })).toMatchObject({ ready: true, drift: [] });
  });

  it("merges a branch that is handed off without handing its target off", async () => {
    const { workflow, branch } = await begin();
    await branch.update([{ op: "set", path: "/orders", value: 3 }]);
    await branch.handoff(HANDOFF);
    const merged = await workflow.merge([branch.name]);
    expect(merged.status).toBe("merged");
    const canonical = await workflow.canonical();
    expect(await canonical.state("/orders")).toBe(3);
    expect(await send(canonical)).toEqual({ sent: true });
    const fresh = await workflow.branch({ agent: "b", branch: "new" });
    expect(await send(fresh)).toEqual({ sent: true });
  });

  it("lets one of two take the branch up", async () => {
    const { workflow, branch, other } = await begin();
    await branch.handoff(HANDOFF);
    const handles = [branch, await (await other()).branch(branch.name)];
    const settled = await Promise.allSettled(handles.map((one) => one.resume()));
    const taken = settled.filter((one) => one.status === "fulfilled" && one.value.commit !== null);
    expect(taken).toHaveLength(1);
    for (const one of settled) {
      if (one.status === "rejected") expect(one.reason).toEqual(agstateError("REF_CONFLICT"));
    }
    const log = await all(workflow.log({ revisions: [branch.name] }));
    expect(log.filter(({ message }) => message.startsWith("Resume"))).toHaveLength(1);
  });

  it("writes nothing of what is wrong", async () => {
    const { workflow, branch } = await begin();
    await workflow.tag("taken", "canonical");
    const head = branch.head.id;
    const wrong: [HandoffOptions, string][] = [
      [{ summary: "" }, "INVALID_VALUE"],
      [{ summary: { goals: "x" } as never }, "INVALID_VALUE"],
      [{ ...HANDOFF, note: "a\0b" }, "INVALID_VALUE"],
      [{ ...HANDOFF, resources: [{ type: "doc" } as never] }, "INVALID_VALUE"],
      [
        { ...HANDOFF, resources: [{ type: "doc", id: "x", tolerance: "sometimes" as never }] },
        "INVALID_VALUE",
      ],
      [{ ...HANDOFF, resources: "x" as never }, "INVALID_VALUE"],
      [{ ...HANDOFF, resources: 5 as never }, "INVALID_VALUE"],
      [{ ...HANDOFF, forget: 5 as never }, "INVALID_VALUE"],
      [{ ...HANDOFF, resources: [{ type: "http", id: "https://u:p@h/x" }] }, "INVALID_VALUE"],
      [{ ...HANDOFF, tolerance: { fingerprints: "never" as never } }, "INVALID_VALUE"],
      [{ ...HANDOFF, fingerprints: { tools: 1 as never } }, "INVALID_VALUE"],
      [{ ...HANDOFF, forget: [{ type: "doc" } as never] }, "INVALID_VALUE"],
      [{ ...HANDOFF, tag: "a b" }, "INVALID_NAME"],
      [{ ...HANDOFF, tag: "taken" }, "REF_EXISTS"],
      [{ ...HANDOFF, author: "a:b" }, "INVALID_NAME"],
    ];
    for (const [options, code] of wrong) {
      await expect(branch.handoff(options)).rejects.toEqual(agstateError(code as "INVALID_VALUE"));
    }
    await branch.refresh();
    expect(branch.head.id).toBe(head);
    expect((await workflow.refs("refs/tags/")).map(({ shortName }) => shortName)).toEqual([
      "tags/taken",
    ]);
    expect((await branch.handoff(HANDOFF)).tag).toBe("handoff-clerk-try-1");
  });

  it("does not go on by itself where it is not told any more what steps relied on", async () => {
    const { workflow, branch } = await begin();
    await read(branch, "rules");
    await send(branch);
    await workflow.erase({ paths: ["/step/reliesOn"], by: "mara", reason: "asked for" });
    await branch.refresh();
    const untold = ["what step 1 relied on"];
    expect((await branch.handoff(HANDOFF)).untold).toEqual(untold);
    // It does not become known by being handed off again.
    expect((await branch.handoff(HANDOFF)).untold).toEqual(untold);
    const report = await branch.resume();
    expect(report.untold).toEqual(untold);
    expect(report).toMatchObject({ verdict: "unknown", ready: false });
    await (await workflow.review(report.review?.id as string)).approve({ actor: "mara" });
    expect(await branch.resume()).toMatchObject({ ready: true });
    expect(await branch.resume()).toMatchObject({ ready: true, verdict: "fresh" });
  });

  it("keeps what was relied on by reads that are not recorded, and between steps", async () => {
    const { workflow, branch } = await begin();
    let fails = true;
    const work = () =>
      workflow.run(branch, async (ctx) => {
        await ctx.step({ name: "look", action: "read" }, ({ relyOn }) =>
          relyOn({ type: "doc", id: "rules" }),
        );
        expect(await ctx.relyOn({ type: "doc", id: "prices" })).toBe("v7");
        await ctx.all({
          a: (part) =>
            part.step({ name: "in a", action: "write" }, async () => {
              await part.relyOn({ type: "doc", id: "of-a", version: "1" });
            }),
          b: (part) => part.step({ name: "in b", action: "write" }, () => null),
        });
        await ctx.relyOn({ type: "doc", id: "late", version: "1" });
        if (fails) throw new Error("killed");
        await ctx.relyOn({ type: "doc", id: "later", version: "1" });
      });
    await expect(work()).rejects.toThrow("killed");
    fails = false;
    await work();
    const { resources } = await branch.handoff(HANDOFF);
    const steps = await all(branch.steps());
    const named = (number: number) => steps.find((step) => step.number === number)?.name;
    const found = resources.map(({ id, version, steps: of }) => [id, version, of.map(named)]);
    // What an unrecorded read relied on is kept with what is recorded next, each time that it is done.
    expect(found).toEqual([
      ["rules", "v1", ["agstate:rely on", "agstate:rely on"]],
      ["prices", "v7", ["agstate:rely on"]],
      ["of-a", "1", ["in a"]],
      ["late", "1", ["agstate:rely on"]],
      ["later", "1", ["agstate:rely on"]],
    ]);
  });

  it("keeps what was relied on by the last reads of a session, though nothing was recorded after them", async () => {
    const { branch } = await begin();
    const look = (id: string) =>
      branch.step({ name: "look", action: "read" }, ({ relyOn }) => relyOn({ type: "doc", id }));
    await look("rules");
    await look("prices");
    await expect(branch.handoff({ ...HANDOFF, tag: "canonical" })).rejects.toEqual(
      agstateError("INVALID_NAME"),
    );
    const { resources } = await branch.handoff(HANDOFF);
    expect(resources).toMatchObject([
      { id: "rules", version: "v1", steps: [] },
      { id: "prices", version: "v7", steps: [] },
    ]);
    await branch.resume();
    await send(branch);
    const [step] = await all(branch.steps({ limit: 1 }));
    expect(await branch.handoff(HANDOFF)).toMatchObject({
      resources: [{ steps: [] }, { steps: [] }],
    });
    expect(step?.name).toBe("send");
  });

  it("counts what a branch has done itself, and takes what is on record in a strange form for untold", async () => {
    const { workflow } = await begin();
    const canonical = await workflow.canonical();
    await read(canonical, "rules");
    await send(canonical);
    const heir = await workflow.branch({ agent: "heir", branch: "x" });
    await send(heir, "own");
    const record = { v: 1, name: "made", attempt: 1, startedAt: 0, reliesOn: [{ type: "?" }] };
    await heir.commit({ step: { action: "read", record } });
    const { facts, resources, untold } = await heir.handoff(HANDOFF);
    expect(facts).toMatchObject({
      steps: { first: 3, last: 4, count: 2 },
      sideEffects: { count: 1, items: [{ name: "own" }] },
    });
    expect(untold).toEqual(["what step 4 relied on"]);
    // Its state rests on what canonical's steps have read.
    expect(resources).toMatchObject([{ id: "rules", steps: [1] }]);
    expect((await canonical.handoff(HANDOFF)).facts.steps?.count).toBe(2);
  });

  it("counts what was read last where a resource was read twice", async () => {
    const { documents, branch } = await begin();
    await read(branch, "rules");
    documents.versions.set("rules", "v2");
    await read(branch, "rules", "again");
    const { resources } = await branch.handoff({ ...HANDOFF, forget: [{ type: "doc", id: "x" }] });
    expect(resources).toMatchObject([{ id: "rules", version: "v2", steps: [1, 2] }]);
    await branch.resume();
    const without = await branch.handoff({ ...HANDOFF, forget: [{ type: "doc", id: "rules" }] });
    expect(without).toMatchObject({ tag: "handoff-clerk-try-2", resources: [] });
  });
});
