import { expect, it } from "vitest";
import { startChild } from "../support/child-processes.js";
import { startHttpService } from "../support/http-service.js";
import { makeStore } from "../support/stores.js";

const TRACED_RUN = new URL("./children/traced-run.mjs", import.meta.url);

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

/** A collector that answers as one does, and keeps what was sent to it. */
async function startCollector() {
  const service = await startHttpService((_, response) => {
    response.setHeader("content-type", "application/json").end("{}");
  });
  const bodies = (path: string) =>
    service.received.filter((each) => each.path === path).map(({ body }) => JSON.parse(body));
  return {
    url: service.url,
    spans(): OtlpSpan[] {
      return bodies("/v1/traces").flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: { spans: OtlpSpan[] }[] }) =>
          scopeSpans.flatMap(({ spans }) => spans),
        ),
      );
    },
    sums(): Record<string, number> {
      const metrics = bodies("/v1/metrics").flatMap(({ resourceMetrics }) =>
        resourceMetrics.flatMap(({ scopeMetrics }: { scopeMetrics: { metrics: object[] }[] }) =>
          scopeMetrics.flatMap(({ metrics: own }) => own),
        ),
      ) as { name: string; sum?: { dataPoints: { asInt?: string; asDouble?: number }[] } }[];
      return Object.fromEntries(
        metrics.flatMap(({ name, sum }) =>
          sum === undefined
            ? []
            : [[name, sum.dataPoints.reduce((all, p) => all + Number(p.asInt ?? p.asDouble), 0)]],
        ),
      );
    },
  };
}

const attributeOf = (span: OtlpSpan, key: string) =>
  Object.values(span.attributes.find((each) => each.key === key)?.value ?? {})[0] as unknown;

it("a run that is killed in a step is told up to there, and what goes on from it is linked to it", async () => {
  const { store, url } = await makeStore("sqlite");
  const workflow = await store.createWorkflow("trip", { state: {} });
  const collector = await startCollector();
  const run = (hang: boolean, inDoubt: string) =>
    startChild(TRACED_RUN, { url, endpoint: collector.url, hang, inDoubt });

  const dying = run(true, "fail");
  await dying.said("paying");
  dying.kill();
  expect((await dying.ended).signal).toBe("SIGKILL");
  const first = collector.spans();
  // What had not ended is not told: the step under way, and the run.
  const steps = (spans: OtlpSpan[]) => spans.filter(({ name }) => name === "execute_step");
  expect(steps(first).map((span) => attributeOf(span, "step.name"))).toEqual(["search"]);
  expect(first.map(({ name }) => name)).not.toContain("run");
  const [trace] = new Set(
    first.filter(({ name }) => name === "write_checkpoint").map((s) => s.traceId),
  );
  const branch = await workflow.branch("agents/booker/1");
  const intent = await branch.refresh();
  expect(intent.trace).toContain(trace);
  const told = first.filter(({ name }) => name === "write_checkpoint");
  expect(told.map((span) => attributeOf(span, "checkpoint.commit"))).toContain(intent.id);

  const doubting = run(false, "fail");
  await doubting.ended;
  expect(doubting.lines).toEqual(["stopped STEP_IN_DOUBT"]);
  const second = collector.spans().slice(first.length);
  const [resume] = second.filter(({ name }) => name === "resume");
  expect(resume!.traceId).not.toBe(trace);
  expect(resume!.links).toEqual([
    expect.objectContaining({ traceId: trace, spanId: intent.trace!.split("-")[2] }),
  ]);
  expect(attributeOf(resume!, "error.type")).toBe("STEP_IN_DOUBT");
  expect(collector.sums()["agstate.steps.in_doubt"]).toBe(1);

  const ending = run(false, "retry");
  await ending.ended;
  expect(ending.lines).toEqual(["paying", "ended"]);
  const third = collector.spans().slice(first.length + second.length);
  const [again] = steps(third);
  expect(attributeOf(again!, "step.name")).toBe("pay");
  // OTLP has 64-bit numbers as texts, or as numbers where they fit.
  expect(Number(attributeOf(again!, "step.attempt"))).toBe(2);
  expect(attributeOf(again!, "checkpoint.commit")).toBe(
    (await workflow.commitAt("agents/booker/1~1")).id,
  );
  expect(collector.sums()["agstate.commits"]).toBe(3);
});
