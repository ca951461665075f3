import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import {
  type Branch,
  type Store,
  type TraceReport,
  type TraceSpan,
  verifyTrace,
  type Workflow,
} from "../../src/index.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { agstateError, BACKENDS, type Backend, makeStore } from "../support/stores.js";
import { tellOpenTelemetry } from "../support/tracing.js";
import { changed, edited, exported, newId, only, shifted, which, withParts } from "./edit-spans.js";

/** How long a step takes whose times are surely told from those of others. */
const TOLD_APART_MS = 250;
const MINUTE = 60_000_000_000n;

interface Traced {
  readonly store: Store;
  readonly workflow: Workflow;
  readonly branch: Branch;
  /** Ids of commits that are damaged from now on. */
  readonly bad: Set<string>;
  readonly spans: readonly TraceSpan[];
}

/** A workflow of which all is traced: steps of each kind, one after another and beside each other, and what stands by itself. */
async function traced(backend: Backend, pauseMs = 0): Promise<Traced> {
  const told = tellOpenTelemetry();
  const bad = new Set<string>();
  const { store } = await makeStore(backend, { wrap: (storage) => damaging(storage, bad) });
  await store.createWorkflow("other", { state: {} });
  const workflow = await store.createWorkflow("w", { state: { n: 0 } });
  await workflow.branch({ agent: "a", branch: "beside" });
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  await workflow.run(branch, async (ctx) => {
    for (const n of [1, 2, 3]) {
      await ctx.step({ name: `write ${n}`, action: "write", input: n }, async () => {
        await sleep(pauseMs);
        return n;
      });
    }
    await ctx.step({ name: "ask", action: "inference" }, () => "answer");
    await ctx.all({
      one: (ctx) => ctx.step({ name: "x", action: "write" }, () => 1),
      two: (ctx) => ctx.step({ name: "y", action: "inference" }, () => 2),
    });
  });
  const beside = await workflow.branch("a/beside");
  await beside.update([{ op: "set", path: "/beside", value: 1 }]);
  await workflow.merge(["a/b", "a/beside"]);
  return { store, workflow, branch, bad, spans: await exported(told.spans()) };
}

/** A storage in which the bodies of some commits differ by a byte, as where a disk has rotted. */
function damaging(storage: Storage, bad: ReadonlySet<string>): Storage {
  return {
    ...forward(storage),
    async scanCommits(...asked) {
      const page = await storage.scanCommits(...asked);
      const rows = page.rows.map((row) => {
        const body = Buffer.from(row.body);
        if (bad.has(row.id)) body[body.length - 2] = 0x2a;
        return { ...row, body };
      });
      return { ...page, rows };
    },
  };
}

const kindsOf = ({ problems }: TraceReport) =>
  [...new Set(problems.map(({ kind }) => kind))].sort();

const seal = (name: string) =>
  which("write_checkpoint", { "step.name": name, "step.status": "completed" });
const step = (name: string) => which("execute_step", { "step.name": name });
const commitOf = (span: TraceSpan) => span.attributes.get("checkpoint.commit") as ObjectId;

type Fault = (it: Traced) => readonly TraceSpan[] | Promise<readonly TraceSpan[]>;

/** By what is done: the fault, and the kinds of what is found, no others. */
const FAULTS: Record<string, readonly [Fault, ...TraceReport["problems"][number]["kind"][]]> = {
  "a commit is taken out of the store": [
    async ({ workflow, spans }) => {
      const { storage } = workflow.internals;
      const id = commitOf(only(spans, seal("write 2")));
      await storage.condemn("w", [id], Number.MAX_SAFE_INTEGER, 1);
      expect(await storage.sweep("w", [id], 1)).toEqual({ removed: 1, spared: [] });
      return spans;
    },
    "success-without-commit",
  ],
  "the workflow is another store's": [
    ({ spans }) => spans.map((span) => changed(span, { "workflow.id": "elsewhere" })),
    "success-without-commit",
  ],
  "a span is made up": [
    ({ spans }) => [
      ...spans,
      changed(
        only(spans, seal("write 2")),
        { "checkpoint.commit": "ab".repeat(32) },
        { spanId: newId() },
      ),
    ],
    "success-without-commit",
  ],
  "a span is made up, where history was dropped": [
    async ({ store, workflow, spans }) => {
      for (const name of ["a/b", "a/beside"]) await workflow.deleteBranch(name);
      // Commits and collection count whole seconds.
      await sleep(1100);
      await workflow.applyRetention({ policy: "history=P0D", graceMs: 0 });
      const gone = await verifyTrace(store, spans);
      expect(gone).toMatchObject({ problems: [], notices: [{ kind: "dropped" }] });
      const forged = changed(only(spans, seal("write 2")), {
        "checkpoint.commit": "ab".repeat(32),
      });
      return [...spans, { ...forged, spanId: newId() }];
    },
    "success-without-commit",
  ],
  "a span is taken out": [
    ({ spans }) => spans.filter((span) => !seal("write 2")(span)),
    "commit-without-span",
  ],
  "all spans of a step are taken out": [
    ({ spans }) => {
      const gone = withParts(spans, only(spans, step("write 2")));
      return spans.filter((span) => !gone.includes(span));
    },
    "commit-without-span",
  ],
  "a landing is told as a failure": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) =>
        changed(span, { "checkpoint.success": false, "error.type": "REF_CONFLICT" }),
      ),
    "failure-with-commit",
  ],
  "two steps change their times": [
    ({ spans }) => {
      const [one, two] = ["write 1", "write 2"].map((name) => only(spans, step(name))) as [
        TraceSpan,
        TraceSpan,
      ];
      const by = two.start - one.start;
      const times = new Map([
        ...withParts(spans, one).map((span) => [span, by] as const),
        ...withParts(spans, two).map((span) => [span, -by] as const),
      ]);
      return spans.map((span) => shifted(span, times.get(span) ?? 0n));
    },
    "out-of-order",
  ],
  "two steps change what they began at": [
    ({ spans }) => {
      const [one, two] = ["write 1", "write 2"].map((name) => only(spans, step(name))) as [
        TraceSpan,
        TraceSpan,
      ];
      const base = (span: TraceSpan) => ({
        "agstate.step.base": span.attributes.get("agstate.step.base"),
      });
      return spans.map((span) =>
        span === one ? changed(span, base(two)) : span === two ? changed(span, base(one)) : span,
      );
    },
    "out-of-order",
  ],
  "a step is told to have begun before the one before was sealed": [
    ({ spans }) =>
      edited(spans, step("write 2"), (span) => ({
        ...span,
        start: only(spans, step("write 1")).start + 1_000_000n,
      })),
    "out-of-order",
  ],
  "an attempt is told twice": [
    ({ spans }) => edited(spans, step("write 2"), (span) => [span, { ...span, spanId: newId() }]),
    "duplicate-attempt",
  ],
  "an attempt is told twice, with all that is part of it": [
    ({ spans }) => {
      const [root, ...parts] = withParts(spans, only(spans, step("write 2"))) as [
        TraceSpan,
        ...TraceSpan[],
      ];
      const spanId = newId();
      const copies = parts.map((part) => ({ ...part, spanId: newId(), parentSpanId: spanId }));
      return [...spans, { ...root, spanId }, ...copies];
    },
    "duplicate-attempt",
    "duplicate-span",
    "wrong-trace",
  ],
  "a commit is told twice": [
    ({ spans }) => edited(spans, seal("write 2"), (span) => [span, { ...span, spanId: newId() }]),
    "duplicate-span",
    "wrong-trace",
  ],
  "one span is told in two ways": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => [span, changed(span, { "step.seq": 99 })]),
    "duplicate-span",
  ],
  "the clock is a minute late": [
    ({ spans }) => spans.map((span) => shifted(span, MINUTE)),
    "clock-skew",
  ],
  "the clock is set while a commit is under way": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => ({ ...span, end: span.start - MINUTE })),
    "clock-skew",
    "out-of-order",
  ],
  "a commit's span begins before its step's": [
    ({ spans }) => edited(spans, seal("ask"), (span) => ({ ...span, start: span.start - MINUTE })),
    "clock-skew",
  ],
  "the branch is changed": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => changed(span, { branch: "agents/a/beside" })),
    "wrong-branch",
  ],
  "the branch is one that never was": [
    ({ spans }) =>
      edited(spans, step("write 2"), (span) => changed(span, { branch: "agents/a/never" })),
    "wrong-branch",
  ],
  "the incarnation is changed": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) =>
        changed(span, { "agstate.branch.incarnation": "0".repeat(32) }),
      ),
    "wrong-branch",
  ],
  "the agent is changed": [
    ({ spans }) => edited(spans, seal("write 2"), (span) => changed(span, { "agent.id": "b" })),
    "wrong-branch",
  ],
  "the workflow is changed": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => changed(span, { "workflow.id": "other" })),
    "wrong-workflow",
  ],
  "the step's number is changed": [
    ({ spans }) => edited(spans, seal("write 2"), (span) => changed(span, { "step.seq": 99 })),
    "wrong-step",
  ],
  "the step's name is changed": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => changed(span, { "step.name": "write 7" })),
    "wrong-step",
  ],
  "the step's action is changed": [
    ({ spans }) =>
      edited(spans, step("write 2"), (span) => changed(span, { "step.action": "inference" })),
    "wrong-step",
  ],
  "the step's status is changed": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => changed(span, { "step.status": "failed" })),
    "wrong-step",
  ],
  "the attempt is changed": [
    ({ spans }) => edited(spans, step("write 2"), (span) => changed(span, { "step.attempt": 2 })),
    "wrong-step",
  ],
  "a step is sealed by another's seal": [
    ({ spans }) => {
      const commit = commitOf(only(spans, seal("write 1")));
      return edited(spans, step("write 2"), (span) =>
        changed(span, { "checkpoint.commit": commit }),
      );
    },
    "out-of-order",
    "wrong-step",
  ],
  "a step is sealed by its intent": [
    ({ spans }) => {
      const intent = which("write_checkpoint", {
        "step.name": "write 2",
        "step.status": "started",
      });
      const commit = commitOf(only(spans, intent));
      return edited(spans, step("write 2"), (span) =>
        changed(span, { "checkpoint.commit": commit }),
      );
    },
    "success-without-seal",
  ],
  "a step that was never begun is sealed": [
    ({ spans }) =>
      edited(spans, step("write 2"), (span) =>
        changed(span, { "checkpoint.commit": undefined, "step.seq": 99 }),
      ),
    "success-without-seal",
  ],
  "a step is sealed with another key": [
    ({ spans }) =>
      edited(spans, step("write 2"), (span) =>
        changed(span, { "checkpoint.commit": undefined, "agstate.step.key": "0".repeat(32) }),
      ),
    "success-without-seal",
  ],
  "a commit's span is moved to another trace": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => ({ ...span, traceId: "ab".repeat(16) })),
    "wrong-trace",
  ],
  "a commit's flag says that it was not sampled": [
    async ({ branch, spans }) => {
      const [traceId, spanId] = ["ab".repeat(16), newId()];
      const { id } = await branch.commit({ message: "x", trace: `00-${traceId}-${spanId}-00` });
      const attributes = { "checkpoint.commit": id, "step.seq": undefined };
      const bare = new Map(
        [...only(spans, seal("ask")).attributes].filter(([key]) => !key.startsWith("step.")),
      );
      return [
        ...spans,
        changed({ ...only(spans, seal("ask")), attributes: bare }, attributes, { traceId, spanId }),
      ];
    },
    "wrong-trace",
  ],
  "a merge is told of other branches": [
    ({ spans, branch }) =>
      edited(spans, which("merge"), (span) =>
        changed(span, {
          "agstate.merge.sources": [commitOf(span)],
          "checkpoint.commit": branch.head.id,
        }),
      ),
    "wrong-branch",
    "wrong-merge",
  ],
  "a merge is made up": [
    ({ spans }) =>
      edited(spans, which("merge"), (span) =>
        changed(span, { "checkpoint.commit": "ab".repeat(32) }),
      ),
    "success-without-commit",
  ],
  "a commit is damaged": [
    ({ bad, spans }) => {
      bad.add(commitOf(only(spans, seal("write 2"))));
      return spans;
    },
    "corrupt-commit",
  ],
  "a commit's span is moved to another step": [
    ({ spans }) =>
      edited(spans, seal("write 2"), (span) => ({
        ...span,
        spanId: newId(),
        parentSpanId: only(spans, step("ask")).spanId,
      })),
    "wrong-trace",
  ],
};

describe.each(BACKENDS)("spans held against the DAG on %s", (backend) => {
  it.each(Object.entries(FAULTS))("tell that %s", async (_, [fault, ...kinds]) => {
    const it = await traced(backend, kinds[0] === "out-of-order" ? TOLD_APART_MS : 0);
    expect((await verifyTrace(it.store, it.spans)).problems).toEqual([]);
    const report = await verifyTrace(it.store, await fault(it));
    expect(kindsOf(report), JSON.stringify(report.problems, null, 1)).toEqual(kinds);
  });

  it("are not missed where a collector kept a trace only from where something failed", async () => {
    const told = tellOpenTelemetry();
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    const run = workflow.run(branch, async (ctx) => {
      for (const n of [1, 2, 3])
        await ctx.step({ name: `write ${n}`, action: "write" }, () => {
          if (n === 3) throw new Error("no");
        });
    });
    await expect(run).rejects.toThrow("no");
    const spans = await exported(told.spans());
    const late = (from: string) =>
      spans.slice(spans.indexOf(only(spans, which("execute_step", { "step.name": from }))));
    const cut = await verifyTrace(store, late("write 2"));
    expect(cut).toMatchObject({ problems: [], notices: [{ kind: "kept-in-part", count: 5 }] });
    // Whatever comes after what is there must be there.
    const hole = await verifyTrace(store, [only(spans, seal("write 1")), ...late("write 2")]);
    expect(kindsOf(hole)).toEqual(["commit-without-span"]);
    const fine = late("write 2").filter(({ attributes }) => !attributes.has("error.type"));
    expect(kindsOf(await verifyTrace(store, fine))).toEqual(["commit-without-span"]);
  });

  it("are not looked for where there are none", async () => {
    const { store, spans } = await traced(backend);
    expect(await verifyTrace(store, [])).toMatchObject({ spans: 0, checked: 0, problems: [] });
    const others = spans.map((span) => ({ ...span, scope: "http" }));
    // Their traces are there, and the commits' spans are not.
    expect(kindsOf(await verifyTrace(store, others))).toEqual([]);
    expect(kindsOf(await verifyTrace(store, others, { workflow: "w" }))).toEqual([
      "commit-without-span",
    ]);
    await expect(verifyTrace(store, [], { workflow: "none" })).rejects.toEqual(
      agstateError("WORKFLOW_NOT_FOUND"),
    );
  });
});
