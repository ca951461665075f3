import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AuditEvent, Workflow } from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const RUNS = Number(process.env.AGSTATE_RUNS ?? 15);

/** The entries of all logs, deleted refs included, as the stream must tell them. */
async function allEntries(workflow: Workflow): Promise<string[]> {
  const { storage } = workflow.internals;
  const rows = await storage.readRefs(workflow.id, { prefix: "refs/", deleted: true });
  const keys: string[] = [];
  for (const { name } of rows) {
    for (const { seq, hash } of await storage.readReflog(workflow.id, name, { limit: 10_000 })) {
      keys.push(`${name} ${seq} ${hash}`);
    }
  }
  return keys.sort();
}

function keyOf({ ref, seq, hash }: AuditEvent): string {
  return `${ref} ${seq} ${hash}`;
}

/** What was told of some refs: kinds, actors and steps. */
async function told(workflow: Workflow, refs: string): Promise<string[]> {
  const events = await all(workflow.audit({ refs }));
  return events.map(({ kind, steps, actor }) => {
    const done = steps?.map(({ number, name, status }) => `${number}:${name}:${status}`);
    return [kind, actor, ...(done ?? ["?"])].join(" ");
  });
}

const RULES = {
  rules: [
    { tool: "rm", decision: "deny" },
    { tool: "book", decision: "approve", action: "write", paths: ["/budget"] },
  ],
  default: "allow",
} as const;

/** Sets the clock that the store dates by. */
function setClock(workflow: Workflow, now: () => number): void {
  Object.assign(workflow.internals.context, { now });
}

describe.each(BACKENDS)("workflow.audit on %s", (backend) => {
  it("tells of branches, commits, merges, resets, tags, holds, leases and what became of them", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { author: "ann" });
    const branch = await workflow.branch({ agent: "booker", branch: "try" });
    await branch.commit({ state: { n: 1 }, message: "one" });
    await workflow.merge(["booker/try"], { author: "lead", fastForward: "never" });
    await branch.commit({ state: { n: 2 } });
    await workflow.reset("booker/try", "booker/try~1", { actor: "lead" });
    await workflow.deleteBranch("booker/try", { actor: "lead" });
    const made = await workflow.branch({ agent: "lead", branch: "made" });
    const beside = await workflow.branch({ agent: "lead", branch: "other" });
    await beside.commit({ state: { n: 2 } });
    await made.commit({ state: { n: 3 }, mergeParents: ["lead/other"], message: "by hand" });
    expect(await told(workflow, "lead/made")).toEqual(["branch lead", "merge lead"]);
    await workflow.tag("v1", "canonical", { actor: "lead" });
    await workflow.deleteTag("v1", { actor: "lead" });
    await workflow.hold("canonical", { name: "h", reason: "file 7", actor: "law" });
    await workflow.releaseHold("h", { reason: "over", actor: "law" });
    const lease = await (await workflow.canonical({ author: "sup" })).acquire();
    await lease.release();
    await workflow.complete({ author: "ann" });
    expect(await told(workflow, "booker/try")).toEqual([
      "branch booker",
      "commit booker",
      "commit booker",
      "reset lead",
      "delete lead",
    ]);
    expect((await told(workflow, "canonical")).map((line) => line.split(" ")[0])).toEqual([
      "branch",
      "merge",
      "completed",
    ]);
    expect(await told(workflow, "tags/v1")).toEqual(["tag lead", "delete lead"]);
    expect(await told(workflow, "holds/h")).toEqual(["hold law", "release law"]);
    expect(await told(workflow, "refs/leases/canonical")).toEqual(["lease sup", "lease-ended sup"]);
    expect(await told(workflow, "refs/audit/workflow")).toEqual(["workflow ann", "completed ann"]);
    const [hold] = await all(workflow.audit({ refs: "holds/h" }));
    expect(hold).toMatchObject({ workflow: "w", reason: "hold: file 7", trace: null, facts: null });
  });

  it("tells of each step by name and outcome, those that came in one move as well, and of no payload", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.step(
      { name: "book", action: "write", input: { secret: "PAYLOAD-IN" } },
      () => "PAYLOAD-OUT",
    );
    await branch
      .step({ name: "fail", action: "write" }, () => {
        throw new Error("PAYLOAD-ERROR");
      })
      .catch(() => undefined);
    const gathered = await workflow.branch("a/b", {
      granularity: { every: { steps: 10, ms: 60_000 } },
    });
    for (const n of [1, 2, 3]) {
      await gathered.commit({
        state: { n },
        step: { action: "read", record: { name: `look ${n}`, input: "PAYLOAD-IN" } },
      });
    }
    await gathered.flush();
    const lines = await told(workflow, "a/b");
    expect(lines.slice(0, 5)).toEqual([
      "branch a",
      "step a 1:book:started",
      "step a 1:book:completed",
      "step a 2:fail:started",
      "step a 2:fail:failed",
    ]);
    // However many moves they came in.
    expect(
      lines
        .slice(5)
        .join(" ")
        .match(/\d:look \d:\w+/g),
    ).toEqual(["3:look 1:completed", "4:look 2:completed", "5:look 3:completed"]);
    expect(JSON.stringify(await all(workflow.audit()))).not.toContain("PAYLOAD");
  });

  it("tells of requests, decisions, uses and refusals, and counts an agent's loop of refusals cheaply", async () => {
    const { store, another } = await makeStore(backend, { governance: RULES });
    const workflow = await store.createWorkflow("w", { state: { budget: 10 } });
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    const rm = () => branch.step({ name: "rm", action: "write", input: "PAYLOAD" }, () => 1);
    for (let i = 0; i < 40; i++) await expect(rm()).rejects.toEqual(agstateError("STEP_DENIED"));
    const denials = (await all(workflow.audit())).filter(({ kind }) => kind === "refused");
    // The first is the review's own commit; of 39 more those that make 1, 2, 4, 8, 16, 32.
    expect(denials).toHaveLength(1 + 6);
    expect(denials.map(({ facts }) => facts?.times ?? 1)).toEqual([1, 1, 1, 2, 4, 8, 16]);
    expect(denials.at(-1)).toMatchObject({
      ref: "refs/audit/events",
      actor: "a",
      facts: { name: "rm", branch: "agents/a/b", why: "was denied before" },
    });
    const book = () => branch.step({ name: "book", action: "write" }, () => 1);
    await expect(book()).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    const [asked] = await workflow.reviews({ open: true });
    await asked!.approve({ actor: "ann" });
    await expect(asked!.approve({ actor: "bob" })).rejects.toEqual(agstateError("REVIEW_DECIDED"));
    await book();
    await expect(book()).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
    const next = (await workflow.reviews({ open: true }))[0]!;
    await next.discard({ actor: "ann" });
    await expect(book()).rejects.toEqual(agstateError("STEP_DENIED"));
    const of = (id: string) => told(workflow, `refs/reviews/${id}`);
    expect(await of(asked!.id)).toEqual(["review-requested a", "approved ann", "approval-used a"]);
    expect(await of(next.id)).toEqual(["review-requested a", "discarded ann"]);
    const events = await all(workflow.audit());
    expect(JSON.stringify(events)).not.toContain("PAYLOAD");
    const whys = events
      .filter(({ ref }) => ref === "refs/audit/events")
      .map((e) => [e.actor, e.facts?.why]);
    expect(whys.slice(6)).toEqual([
      ["bob", "approved too late: was approved"],
      ["a", "was discarded"],
    ]);
    if (backend === "memory") return;
    // What was counted and not written is, when the store is closed.
    await store.close();
    const again = await (await another()).workflow("w");
    const sums = (await all(again.audit())).filter(
      ({ ref, facts }) => ref === "refs/audit/events" && facts?.name === "rm",
    );
    expect(sums.reduce((sum, { facts }) => sum + (facts?.times as number), 0)).toBe(39);
    expect((await again.verifyAudit()).problems).toEqual([]);
  });

  it("tells of an approval that lapsed just as it was used, or that another step used first", async () => {
    const { store } = await makeStore(backend, { governance: RULES });
    const workflow = await store.createWorkflow("w", { state: { budget: 10 } });
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    // Hooks come after the rules, and so stand between the look and the intent.
    let between: () => Promise<unknown> = async () => undefined;
    const hooks = store as unknown as { context: { hooks: unknown[] } };
    hooks.context.hooks.push({ before: () => between() });
    const book = (on = branch) => on.step({ name: "book", action: "write" }, () => 1);
    const approve = async () => {
      await expect(book()).rejects.toEqual(agstateError("APPROVAL_NEEDED"));
      const review = (await workflow.reviews({ open: true }))[0]!;
      await review.approve({ actor: "ann" });
      return review.id;
    };
    const lapsed = await approve();
    const there = await workflow.branch("a/b");
    between = async () => {
      between = async () => undefined;
      await there.update([{ op: "set", path: "/budget", value: 1 }]);
    };
    await expect(book()).rejects.toEqual(agstateError("APPROVAL_NEEDED", { review: lapsed }));
    const used = await approve();
    const review = await workflow.review(used);
    between = async () => {
      const { record } = (review as unknown as { stored: { record: object } }).stored;
      const { writeChange, readReview } = await import("../../src/store/reviews/stored.js");
      const changed = { ...record, status: "discarded" } as never;
      const at = await readReview(workflow.internals, used);
      await writeChange(workflow.internals, at, changed, { actor: "bob", says: "No" });
    };
    await expect(book()).rejects.toEqual(agstateError("APPROVAL_NEEDED", { review: used }));
    const events = await all(workflow.audit({ refs: "refs/audit/events" }));
    expect(events.map(({ facts }) => [facts?.review, facts?.why])).toEqual([
      [lapsed, "lapsed: /budget changed"],
      [used, "was discarded"],
    ]);
  });

  it("keeps a hundred different refusals apart, and counts the others together", async () => {
    const { store } = await makeStore(backend, { governance: RULES });
    const workflow = await store.createWorkflow("w");
    const { recordAudit } = await import("../../src/store/audit/tally.js");
    const note = (n: number) => ({
      kind: "refused" as const,
      actor: "a",
      says: `refused ${n}`,
      facts: { name: `tool ${n}` },
    });
    for (let n = 0; n < 1100; n++) await recordAudit(workflow.internals, note(n));
    const events = await all(workflow.audit({ refs: "refs/audit/events" }));
    // A thousand together: 1, 2, 4 ... 512.
    expect(events).toHaveLength(100 + 10);
    expect(events[99]?.facts).toEqual({ name: "tool 99", times: 1 });
    expect(events.at(-1)?.facts).toEqual({ more: 100, times: 256 });
  });

  it("records refusals of several writers at once, each", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const { writeEvent } = await import("../../src/store/audit/record.js");
    const others = await Promise.all([1, 2, 3].map(async () => (await another()).workflow("w")));
    const note = { kind: "refused", says: "no", facts: {} } as const;
    const written = await Promise.all(
      others.flatMap(({ internals }, w) =>
        [1, 2, 3].map((n) => writeEvent(internals, { ...note, actor: `w${w}-${n}` }, 1)),
      ),
    );
    expect(written).toEqual(written.map(() => true));
    const events = await all(workflow.audit({ refs: "refs/audit/events" }));
    expect(new Set(events.map(({ actor }) => actor)).size).toBe(9);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // Each is a commit on top of the one before.
    expect(await all(workflow.log({ revisions: ["refs/audit/events"] }))).toHaveLength(9);
  });

  it("refuses just the same where nothing can be recorded", async () => {
    let writable = true;
    const { store } = await makeStore(backend, {
      governance: RULES,
      wrap: (storage) =>
        Object.assign(Object.create(storage), {
          write: (batch: Parameters<typeof storage.write>[0]) =>
            writable ? storage.write(batch) : Promise.reject(new Error("no space")),
        }),
    });
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    const rm = () => branch.step({ name: "rm", action: "write" }, () => 1);
    await expect(rm()).rejects.toEqual(agstateError("STEP_DENIED"));
    const review = await workflow.review((await workflow.reviews())[0]!.id);
    writable = false;
    await expect(review.approve({ actor: "x" })).rejects.toEqual(agstateError("REVIEW_DECIDED"));
    writable = true;
    await expect(review.approve({ actor: "x" })).rejects.toEqual(agstateError("REVIEW_DECIDED"));
    // What could not be written went with the next.
    const events = await all(workflow.audit({ refs: "refs/audit/events" }));
    expect(events.map(({ facts }) => facts?.times)).toEqual([2]);
  });

  it("keeps how much a collection removed, and what holds alone keep", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.commit({ state: { n: 1 } });
    await workflow.hold("a/b", { name: "h", reason: "r" });
    await branch.commit({ state: { n: 2 } });
    await workflow.deleteBranch("a/b");
    const { commits, bytes } = await workflow.gc({ graceMs: 0 });
    await workflow.gc({ graceMs: 0 });
    const events = await all(workflow.audit({ refs: "refs/audit/events" }));
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      kind: "collected",
      facts: { commits, bytes, commitsHeld: 1, times: 1 },
    });
    // What was removed can be told of all the same, as far as the logs have it.
    const [, , gone] = await all(workflow.audit({ refs: "a/b" }));
    expect(gone).toMatchObject({ kind: "commit", steps: null, actor: "a" });
    expect((await workflow.verifyAudit()).problems).toEqual([]);
  });

  it("is the union of all logs, in order, wherever it is taken up again, with any clocks and writers between", async () => {
    const { store } = await makeStore(backend);
    let n = 0;
    const action = fc.record({
      what: fc.constantFrom("commit", "commit", "tag", "branch", "delete", "read"),
      where: fc.nat(2),
      clock: fc.nat(20),
      take: fc.nat(7),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 25 }), async (actions) => {
        const workflow = await store.createWorkflow(`w${n++}`);
        let clock = 1_700_000_000_000;
        setClock(workflow, () => clock);
        const given: AuditEvent[] = [];
        const cursors: [string, number][] = [];
        let cursor: string | undefined;
        const read = async (limit?: number) => {
          const trail = workflow.audit({
            ...(cursor === undefined ? {} : { from: cursor }),
            ...(limit === undefined ? {} : { limit }),
          });
          await trail.start();
          cursors.push([trail.cursor, given.length]);
          for await (const event of trail) given.push(event);
          cursor = trail.cursor;
        };
        for (const { what, where, clock: at, take } of actions) {
          // Any time, also before all that was told.
          clock = 1_700_000_000_000 + at * 1000;
          const name = `a/b${where}`;
          if (what === "read") await read(take);
          else if (what === "tag")
            await workflow
              .tag(`t${n}-${given.length}-${where}`, "canonical")
              .catch(() => undefined);
          else if (what === "delete") await workflow.deleteBranch(name).catch(() => undefined);
          else {
            const branch = await workflow.branch({ agent: "a", branch: `b${where}` });
            if (what === "commit")
              await branch.commit({ state: { at: given.length, clock }, allowEmpty: true });
          }
        }
        await read();
        expect(given.map(keyOf).sort()).toEqual(await allEntries(workflow));
        // In its own log each comes after the one before it.
        const last = new Map<string, number>();
        for (const { ref, seq } of given) {
          expect(seq).toBe((last.get(ref) ?? 0) + 1);
          last.set(ref, seq);
        }
        // What is told in one go is in order, but for entries dated before the one before them in their log.
        const whole = await all(workflow.audit());
        expect(whole.map(keyOf).sort()).toEqual(await allEntries(workflow));
        for (const [i, { date, ref }] of whole.entries()) {
          const before = whole[i - 1];
          if (before === undefined || before.ref === ref) continue;
          const sorted = before.date < date || (+before.date === +date && before.ref < ref);
          const own = whole.slice(0, i).findLast((event) => event.ref === ref);
          if (!sorted)
            expect(own !== undefined && own.date > date ? "late" : { before, ref, date }).toBe(
              "late",
            );
        }
        // Every cursor that was ever given goes on with just the rest.
        for (const [at, count] of cursors) {
          const rest = await all(workflow.audit({ from: at }));
          const had = new Set(given.slice(0, count).map(keyOf));
          expect(rest.some((event) => had.has(keyOf(event)))).toBe(false);
          expect(rest.length + count).toBe(given.length);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("follows what others write, to the moment it is ended", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    // Moves of one millisecond would come in the order of their refs.
    let clock = Date.now();
    setClock(workflow, () => clock++);
    const trail = workflow.audit({ follow: true });
    expect([(await trail.next()).value?.ref, (await trail.next()).value?.ref]).toEqual([
      "refs/audit/workflow",
      "refs/heads/canonical",
    ]);
    const waited = trail.next();
    const theirs = await (await another()).workflow("w");
    setClock(theirs, () => clock++);
    await theirs.tag("t1", "canonical");
    expect((await waited).value).toMatchObject({ ref: "refs/tags/t1", kind: "tag" });
    await theirs.tag("t2", "canonical");
    await theirs.tag("t0", "canonical");
    expect((await trail.next()).value?.ref).toBe("refs/tags/t2");
    const { cursor } = trail;
    expect((await trail.next()).value?.ref).toBe("refs/tags/t0");
    const ending = trail.next();
    // Until it waits.
    await sleep(100);
    await trail.return();
    expect(await ending).toEqual({ done: true, value: undefined });
    expect((await all(workflow.audit({ from: cursor }))).map(({ ref }) => ref)).toEqual([
      "refs/tags/t0",
    ]);
  });

  it("tells of a log that is read in many pages", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical({ granularity: { every: { steps: 2 } } });
    for (let n = 0; n < 2200; n++) await canonical.commit({ state: { n } });
    await canonical.flush();
    const events = await all(workflow.audit({ refs: "canonical" }));
    expect(events.length).toBeGreaterThan(1001);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  });

  it("takes its own cursors only, with any names, and says what is wrong with others", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    for (const name of [
      "\u{1f600}a",
      "\u{1f601}a",
      "é b".replace(" ", "\u00a0"),
      "x".repeat(150),
    ]) {
      await workflow.tag(name, "canonical");
    }
    const trail = workflow.audit();
    const events = await all(trail);
    expect(events).toHaveLength(6);
    expect(await all(workflow.audit({ from: trail.cursor }))).toEqual([]);
    expect(trail.cursor.length).toBeLessThan(400);
    // With all that the cursor knows of, and yet another.
    const other = await store.createWorkflow("other");
    for (const { shortName } of events.slice(2)) {
      await other.tag(shortName.slice("tags/".length), "canonical");
    }
    const wrong = agstateError("INVALID_ARGUMENT");
    for (const from of [trail.cursor.slice(0, -9), "", "1.x", "now", `${trail.cursor}!`]) {
      await expect(workflow.audit({ from }).next()).rejects.toEqual(wrong);
    }
    await expect(other.audit({ from: trail.cursor }).next()).rejects.toEqual(wrong);
    expect(() => workflow.audit({ limit: -1 })).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT" }),
    );
    expect(await all(workflow.audit({ limit: 0 }))).toEqual([]);
    expect(await all(workflow.audit({ limit: 3 }))).toEqual(events.slice(0, 3));
  });
});
