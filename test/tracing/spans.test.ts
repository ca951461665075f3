import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AlwaysOffSampler, type ReadableSpan } from "@opentelemetry/sdk-trace-node";
import { describe, expect, it } from "vitest";
import type { Workflow } from "../../src/index.js";
import { registry } from "../../src/pressure/guards.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import type { Storage } from "../../src/storage/port.js";
import { GivenPressure } from "../support/pressure.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";
import { parentOf, type Told, tellOpenTelemetry, traceparentOf } from "../support/tracing.js";

/** Spans of agstate's own work, without round trips. */
const own = (told: Told) => told.spans().filter(({ kind }) => kind === SpanKind.INTERNAL);
const trips = (told: Told) => told.spans().filter(({ kind }) => kind === SpanKind.CLIENT);

/** Does work within a span of the test's own, in a trace of its own. */
async function within<T>(name: string, work: () => Promise<T>): Promise<T> {
  const tracer = trace.getTracer("test");
  return tracer.startActiveSpan(name, { root: true }, async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });
}

/** Names of spans with those of what they are below, nearest first. */
function lineage(span: ReadableSpan, all: readonly ReadableSpan[]): string[] {
  const parent = parentOf(span, all);
  return [span.name, ...(parent === undefined ? [] : lineage(parent, all))];
}

const wrong = (span: ReadableSpan) => [span.status.code, span.status.message];

describe.each(BACKENDS)("spans on %s", (backend) => {
  const start = async (options: Parameters<typeof makeStore>[1] = {}) => {
    const made = await makeStore(backend, options);
    const workflow = await made.store.createWorkflow("trip", { state: { cities: [] } });
    return { ...made, workflow };
  };
  const booker = (workflow: Workflow) => workflow.branch({ agent: "booker", branch: "1" });

  it("tell of a commit what it is, whose, and which; it says the same of its span", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    const commit = await within("mine", () => branch.commit({ state: { cities: ["Rome"] } }));
    const [span, ...others] = told.named("write_checkpoint");
    expect(others).toEqual([]);
    expect(span!.attributes).toEqual({
      "workflow.id": "trip",
      "agent.id": "booker",
      branch: "agents/booker/1",
      "agstate.branch.incarnation": branch.incarnation,
      "checkpoint.success": true,
      "checkpoint.commit": commit.id,
      "agstate.commit.bytes": expect.any(Number),
      "agstate.commit.objects": 1,
    });
    expect(span!.status.code).toBe(SpanStatusCode.UNSET);
    expect(span!.instrumentationScope.name).toBe("agstate");
    expect(lineage(span!, told.spans())).toEqual(["write_checkpoint", "mine"]);
    expect(commit.trace).toBe(traceparentOf(span!));
    expect((await branch.reflog({ limit: 1 }))[0]?.trace).toBe(commit.trace);
    expect(await told.total("agstate.commits")).toBe(1);
    expect(await told.total("agstate.commit.duration")).toBe(1);
    expect(await told.total("agstate.commit.bytes")).toBe(span!.attributes["agstate.commit.bytes"]);
  });

  it("tell nothing of success where nothing had changed", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    await branch.commit({ state: { cities: [] } });
    const [span] = told.named("write_checkpoint");
    expect(span!.attributes).toMatchObject({ "agstate.commit.unchanged": true });
    expect(span!.attributes).not.toHaveProperty("checkpoint.success");
    expect(await told.total("agstate.commits")).toBe(0);
  });

  it("say why a commit was made that nobody's work asked for", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const watch = new GivenPressure();
    registry.watch = watch;
    const guard = branch.guard({ state: () => ({ cities: ["Lyon"] }) });
    const told = tellOpenTelemetry();
    expect((await watch.checkpoint()).safe).toBe(true);
    guard.release();
    registry.watch = undefined;
    const [span] = told.named("write_checkpoint");
    expect(span!.attributes).toMatchObject({
      "agstate.commit.reason": "memory-pressure",
      "checkpoint.success": true,
      "checkpoint.commit": branch.head.id,
    });
  });

  it("tell of what was lost to another, once, and the caller gets the error itself", async () => {
    const { workflow } = await start();
    const [first, late] = [await booker(workflow), await booker(workflow)];
    await first.commit({ state: 1 });
    const told = tellOpenTelemetry();
    const error = await late.commit({ state: 2 }).catch((raised: unknown) => raised);
    expect(error).toEqual(agstateError("REF_CONFLICT"));
    const [span, ...others] = told.named("write_checkpoint");
    expect(others).toEqual([]);
    expect(span!.attributes).toMatchObject({
      "checkpoint.success": false,
      "checkpoint.commit": expect.any(String),
      "error.type": "REF_CONFLICT",
    });
    expect(wrong(span!)).toEqual([SpanStatusCode.ERROR, "REF_CONFLICT"]);
    expect(span!.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      ["exception", { "exception.type": "REF_CONFLICT" }],
    ]);
    expect(await told.total("agstate.commit.failures", { "error.type": "REF_CONFLICT" })).toBe(1);
    expect(await told.total("agstate.commits")).toBe(0);
  });

  it("tell of what cannot be a state", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    await expect(branch.commit({ state: { n: Number.NaN } })).rejects.toEqual(
      agstateError("INVALID_VALUE"),
    );
    expect(told.named("write_checkpoint").map(({ attributes }) => attributes)).toEqual([
      expect.objectContaining({ "checkpoint.success": false, "error.type": "INVALID_VALUE" }),
    ]);
  });

  it("tell of a step what it was, with its intent and its seal below it", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const base = branch.head.id;
    const told = tellOpenTelemetry();
    let inside: string | undefined;
    let key: string | null = null;
    await branch.step(
      { name: "book", action: "execute", input: { city: "Rome" } },
      async (call) => {
        inside = trace.getActiveSpan()?.spanContext().spanId;
        key = call.key;
        return { seat: 4 };
      },
    );
    const [step, ...others] = told.named("execute_step");
    expect(others).toEqual([]);
    expect(inside).toBe(step!.spanContext().spanId);
    expect(step!.attributes).toEqual({
      "workflow.id": "trip",
      "agent.id": "booker",
      branch: "agents/booker/1",
      "agstate.branch.incarnation": branch.incarnation,
      "step.seq": 1,
      "step.name": "book",
      "step.action": "execute",
      "step.attempt": 1,
      "checkpoint.success": true,
      "checkpoint.commit": branch.head.id,
      "agstate.step.base": base,
      "agstate.step.key": key,
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "book",
      "gen_ai.agent.id": "booker",
      "gen_ai.conversation.id": "trip",
    });
    const commits = told.named("write_checkpoint");
    expect(commits.map((span) => lineage(span, told.spans()))).toEqual([
      ["write_checkpoint", "execute_step"],
      ["write_checkpoint", "execute_step"],
    ]);
    expect(commits.map(({ attributes }) => attributes)).toEqual(
      ["started", "completed"].map((status) =>
        expect.objectContaining({
          "step.seq": 1,
          "step.name": "book",
          "step.action": "execute",
          "step.status": status,
          "checkpoint.success": true,
        }),
      ),
    );
  });

  it("tell of a tool that is tried again one step, and of each of its attempts an intent", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    let left = 2;
    const retry = { attempts: 3, pauseMs: 1 };
    await branch.step({ name: "flaky", action: "write", retry }, async () => {
      if (left-- > 0) throw new TypeError("not yet");
      return 1;
    });
    const [step, ...others] = told.named("execute_step");
    expect(others).toEqual([]);
    expect(step!.attributes).toMatchObject({ "step.attempt": 3, "checkpoint.success": true });
    expect(step!.status.code).toBe(SpanStatusCode.UNSET);
    const statuses = told
      .named("write_checkpoint")
      .map(({ attributes }) => attributes["step.status"]);
    expect(statuses).toEqual(["started", "started", "started", "completed"]);
  });

  it("tell of a tool that failed that it did, and that this is on record", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    const cause = new RangeError("what it says is nobody's business");
    const error = await branch
      .step({ name: "fails", action: "execute" }, () => Promise.reject(cause))
      .catch((raised: unknown) => raised);
    expect((error as Error).cause).toBe(cause);
    const [step] = told.named("execute_step");
    expect(step!.attributes).toMatchObject({
      "checkpoint.success": true,
      "checkpoint.commit": branch.head.id,
      "error.type": "RangeError",
    });
    expect(wrong(step!)).toEqual([SpanStatusCode.ERROR, "RangeError"]);
    expect(
      JSON.stringify(told.spans().map(({ events, status }) => [events, status])),
    ).not.toContain("nobody");
    const commits = told.named("write_checkpoint");
    expect(commits.map(({ attributes }) => attributes["step.status"])).toEqual([
      "started",
      "failed",
    ]);
    expect(commits.map(({ status }) => status.code)).toEqual([0, 0]);
  });

  it("tell of a read that is not recorded that it was, and of no checkpoint", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    await branch.step({ name: "look", action: "read" }, async () => 1);
    expect(own(told).map(({ name }) => name)).toEqual(["execute_step"]);
    expect(Object.keys(own(told)[0]!.attributes)).not.toContain("checkpoint.success");
  });

  it("tell of a run, of what it goes on from, and of nothing twice", async () => {
    const { workflow, another } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    const spec = (name: string) => ({ name, action: "write" }) as const;
    const isDead = new Error("the process dies");
    const first = within("first life", () =>
      workflow.run(branch, async (ctx) => {
        await ctx.step(spec("one"), async () => 1);
        throw isDead;
      }),
    );
    expect(await first.catch((raised: unknown) => raised)).toBe(isDead);
    const [run] = told.named("run");
    expect(run!.attributes).toMatchObject({ "agstate.run.id": "main", branch: "agents/booker/1" });
    expect(wrong(run!)).toEqual([SpanStatusCode.ERROR, "Error"]);
    const before = branch.head.trace;
    expect(before).toContain(run!.spanContext().traceId);

    told.clear();
    const again = await (await another()).workflow("trip");
    await within("second life", async () =>
      again.run(await booker(again), async (ctx) => {
        await ctx.step(spec("one"), async () => 1);
        await ctx.step(spec("two"), async () => 2);
      }),
    );
    const [resume, ...others] = told.named("resume");
    expect(others).toEqual([]);
    expect(resume!.attributes).toMatchObject({
      "agstate.run.id": "main",
      "agstate.run.recorded_steps": 1,
    });
    expect(resume!.links.map(({ context: to }) => to.spanId)).toEqual([before?.split("-")[2]]);
    expect(resume!.spanContext().traceId).not.toBe(run!.spanContext().traceId);
    // What is on record is not done again, so not told again either.
    const steps = told.named("execute_step");
    expect(steps.map(({ attributes }) => attributes["step.name"])).toEqual(["two"]);
    expect(lineage(steps[0]!, told.spans())).toEqual(["execute_step", "resume", "second life"]);
    expect(steps[0]!.attributes).toMatchObject({
      "agstate.run.id": "main",
      "agstate.step.scope": "",
    });
  });

  it("tell of a merge its bases, sources, and what became of it", async () => {
    const { workflow } = await start();
    const base = workflow.branch({ agent: "a", branch: "1" });
    const [left, right] = [await base, await workflow.branch({ agent: "b", branch: "1" })];
    const from = left.head.id;
    await left.commit({ state: { cities: [], a: 1 } });
    await right.commit({ state: { cities: [], b: 1 } });
    const told = tellOpenTelemetry();
    const { commit } = await workflow.merge([left.name, right.name]);
    const [merge] = told.named("merge");
    expect(merge!.attributes).toEqual({
      "workflow.id": "trip",
      "agent.id": "supervisor",
      branch: "canonical",
      "agstate.merge.operation": "merge",
      "agstate.merge.status": "merged",
      "agstate.merge.sources": [left.head.id, right.head.id],
      "agstate.merge.bases": [from],
      "agstate.merge.conflicts": 0,
      "agstate.merge.attempts": 1,
      "checkpoint.commit": commit!.id,
    });
    const [written] = told.named("write_checkpoint");
    expect(lineage(written!, told.spans())).toEqual(["write_checkpoint", "merge"]);
    expect(written!.attributes).toMatchObject({
      "checkpoint.commit": commit!.id,
      branch: "canonical",
    });
  });

  it("tell of a merge that conflicts how often, and of no checkpoint", async () => {
    const { workflow } = await start();
    const [left, right] = [
      await booker(workflow),
      await workflow.branch({ agent: "b", branch: "1" }),
    ];
    await left.commit({ state: { cities: ["Rome"] } });
    await right.commit({ state: { cities: ["Oslo"] } });
    await workflow.merge([left.name]);
    await right.commit({ state: { cities: "none" } });
    const told = tellOpenTelemetry();
    const { status } = await workflow.merge([right.name]);
    expect(status).toBe("conflict");
    const [merge] = told.named("merge");
    expect(merge!.attributes).toMatchObject({
      "agstate.merge.status": "conflict",
      "agstate.merge.conflicts": 1,
    });
    expect(merge!.status.code).toBe(SpanStatusCode.UNSET);
    expect(told.named("write_checkpoint")).toEqual([]);
    expect(await told.total("agstate.merge.conflicts")).toBe(1);
  });

  it("tell of a merge that is tried again each attempt's checkpoint", async () => {
    const { workflow, another } = await start();
    const branch = await booker(workflow);
    await branch.commit({ state: { cities: "Rome" } });
    const rival = await (await another()).workflow("trip");
    const told = tellOpenTelemetry();
    let races = 1;
    const resolve = async () => {
      if (races-- > 0) {
        const canonical = await rival.canonical();
        await canonical.commit({ state: { cities: "Oslo" }, message: "faster" });
      }
      return { take: "theirs" } as const;
    };
    const canonical = await workflow.canonical();
    await canonical.commit({ state: { cities: "Bern" } });
    told.clear();
    const { attempts, commit } = await workflow.merge([branch.name], { resolve });
    expect(attempts).toBe(2);
    const [merge] = told.named("merge");
    expect(merge!.attributes).toMatchObject({ "agstate.merge.attempts": 2 });
    const below = told
      .named("write_checkpoint")
      .filter((span) => parentOf(span, told.spans())?.name === "merge");
    // Between them what was faster has landed.
    const outcomes = below.map(({ attributes }) => [
      attributes["checkpoint.success"],
      attributes["error.type"],
    ]);
    expect(outcomes).toContainEqual([false, "REF_CONFLICT"]);
    expect(outcomes.at(-1)).toEqual([true, undefined]);
    expect(below.at(-1)!.attributes["checkpoint.commit"]).toBe(commit!.id);
    expect(await told.total("agstate.cas.retries", { "agstate.operation": "merge" })).toBe(1);
  });

  it("tell of gathered commits when they have landed, each of where it was asked for", async () => {
    const { workflow } = await start();
    const gathering = await workflow.branch({
      agent: "booker",
      branch: "1",
      granularity: { every: { steps: 10, ms: 60_000 } },
    });
    const told = tellOpenTelemetry();
    for (const name of ["a", "b", "c"]) {
      await within(name, () => gathering.commit({ state: { name } }));
    }
    expect(told.named("write_checkpoint")).toEqual([]);
    expect(await told.total("agstate.commits")).toBe(0);
    await gathering.flush();
    const commits = told.named("write_checkpoint");
    expect(commits.map((span) => lineage(span, told.spans())[1])).toEqual(["a", "b", "c"]);
    expect(await told.total("agstate.commits")).toBe(3);
    if (backend === "memory") return;
    const write = trips(told).find(({ links }) => links.length > 0);
    expect(write!.links.map((link) => link.context.spanId)).toEqual(
      commits.map((span) => span.spanContext().spanId),
    );
    for (const commit of commits) {
      expect(commit.links.map((link) => link.context.spanId)).toEqual([
        write!.spanContext().spanId,
      ]);
    }
  });

  it("tell that gathered commits are lost", async () => {
    const { workflow } = await start();
    const gathering = await workflow.branch({
      agent: "booker",
      branch: "1",
      granularity: { every: { steps: 10, ms: 60_000 } },
    });
    const rival = await booker(workflow);
    const told = tellOpenTelemetry();
    await gathering.commit({ state: 1 });
    await gathering.commit({ state: 2 });
    await rival.commit({ state: 3 });
    told.clear();
    await expect(gathering.flush()).rejects.toEqual(agstateError("REF_CONFLICT"));
    expect(
      told.named("write_checkpoint").map(({ attributes }) => attributes["checkpoint.success"]),
    ).toEqual([false, false]);
    expect(await told.total("agstate.commit.failures")).toBe(2);
  });

  it("stand below whoever asked, over awaited walks and among agents at work at the same time (TRC-01)", async () => {
    const { workflow, another } = await start();
    const agents = Array.from({ length: 12 }, (_, i) => `agent${i}`);
    const cold = await (await another()).workflow("trip");
    const branches = await Promise.all(
      agents.map((agent) => workflow.branch({ agent, branch: "1" })),
    );
    const told = tellOpenTelemetry();
    await Promise.all(
      agents.map((agent, i) =>
        within(agent, async () => {
          const branch = branches[i]!;
          for (let n = 0; n < 5; n++) {
            await branch.step({ name: agent, action: "write" }, async () => n);
            await branch.commit({ state: { [agent]: n } });
          }
          for await (const commit of cold.log({ revisions: [branch.name] })) {
            expect(trace.getActiveSpan()).toBeDefined();
            await cold.stateAt(commit.id);
          }
        }),
      ),
    );
    const all = told.spans();
    const byTrace = new Map(
      all
        .filter(({ name }) => agents.includes(name))
        .map((span) => [span.spanContext().traceId, span.name]),
    );
    expect(byTrace.size).toBe(agents.length);
    for (const span of own(told).filter(({ name }) => !agents.includes(name))) {
      const agent = byTrace.get(span.spanContext().traceId);
      expect(span.attributes["agent.id"]).toBe(agent);
      expect(lineage(span, all).at(-1)).toBe(agent);
    }
    // A round trip is below what asked for it; one that brings several writes is below the first, and linked with all.
    for (const trip of trips(told)) {
      expect(lineage(trip, all).length).toBeGreaterThan(1);
      expect(lineage(trip, all).at(-1)).toBe(byTrace.get(trip.spanContext().traceId));
      const ids = trip.links.map((link) => link.context.spanId);
      if (ids.length === 0) continue;
      expect(ids[0]).toBe(trip.parentSpanContext?.spanId);
      const members = all.filter((span) => ids.includes(span.spanContext().spanId));
      expect(members.map(({ name }) => name)).toEqual(ids.map(() => "write_checkpoint"));
      for (const member of members) {
        const linked = member.links.map((link) => link.context.spanId);
        expect(linked).toContain(trip.spanContext().spanId);
      }
    }
    expect(await told.total("agstate.commits")).toBe(agents.length * 15);
    expect(await told.total("agstate.queue.depth")).toBe(0);
  });

  it("of round trips are as many as there are, and measured as often", async () => {
    if (backend === "memory") return;
    let counter: CountingStorage | undefined;
    const wrap = (storage: Storage) => {
      counter = counting(storage);
      return counter.storage;
    };
    const { workflow } = await start({ wrap });
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    counter?.reset();
    for (let n = 0; n < 7; n++) await branch.commit({ state: n });
    const calls = Object.values(counter?.counts().calls ?? {}).reduce((a, b) => a + b, 0);
    expect(trips(told).length).toBe(calls);
    expect(await told.total("db.client.operation.duration")).toBe(trips(told).length);
    const trip = trips(told).at(-1);
    const system = backend === "postgres" ? "postgresql" : "sqlite";
    expect(trip!.attributes).toMatchObject({ "db.system.name": system });
    expect(trip!.name).toMatch(/^(write|append_commit) ./);
    expect(await told.total("agstate.group.size")).toBe(7);
    expect(await told.sum("agstate.group.size")).toBe(7);
  });

  it("are not needed for measurements, and commits say that they are not sampled", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry({ sampler: new AlwaysOffSampler() });
    for (let n = 0; n < 5; n++) await branch.commit({ state: n });
    expect(told.spans()).toEqual([]);
    expect(await told.total("agstate.commits")).toBe(5);
    expect(branch.head.trace).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });

  it("begin with an SDK that is registered later, end with it, and are not where they are not wanted", async () => {
    const { workflow, another } = await start();
    const branch = await booker(workflow);
    expect((await branch.commit({ state: 1 })).trace).toBeNull();
    const told = tellOpenTelemetry();
    expect((await branch.commit({ state: 2 })).trace).not.toBeNull();
    expect(told.named("write_checkpoint").length).toBe(1);
    trace.disable();
    expect((await branch.commit({ state: 3 })).trace).toBeNull();
    if (backend === "memory") return;
    tellOpenTelemetry();
    const quiet = await (await another({ tracing: false })).workflow("trip");
    expect((await (await booker(quiet)).commit({ state: 4 })).trace).toBeNull();
  });

  it("are part of the trace that a caller names", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    const told = tellOpenTelemetry();
    const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const commit = await within("another", () => branch.commit({ state: 1, trace: given }));
    expect(commit.trace).toBe(given);
    const [span] = told.named("write_checkpoint");
    expect(span!.spanContext().traceId).toBe("0af7651916cd43dd8448eb211c80319c");
    expect(span!.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
    told.clear();
    // What is no traceparent is kept, and counts as none.
    const odd = await within("another", () => branch.commit({ state: 2, trace: "ticket 4711" }));
    expect(odd.trace).toBe("ticket 4711");
    expect(lineage(told.named("write_checkpoint")[0]!, told.spans())[1]).toBe("another");
  });

  it("do not stop the work when whoever listens throws", async () => {
    const { workflow } = await start();
    const branch = await booker(workflow);
    tellOpenTelemetry();
    trace.disable();
    const fails = () => {
      throw new Error("a broken processor");
    };
    trace.setGlobalTracerProvider({
      getTracer: () => ({ startSpan: fails, startActiveSpan: fails }),
    });
    const commit = await branch.commit({ state: 1 });
    expect(commit.trace).toBeNull();
    expect(context.active()).toBeDefined();
  });
});
