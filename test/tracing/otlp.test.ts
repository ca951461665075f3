import { expect, it } from "vitest";
import { startChild } from "../support/child-processes.js";
import { startHttpService } from "../support/http-service.js";
import { metricsOf, type OtlpSpan, spansOf } from "../support/otlp.js";
import { makeStore } from "../support/stores.js";

const TRACED_RUN = new URL("./children/traced-run.mjs", import.meta.url);

/** A collector that answers as one does, and keeps what was sent to it. */
async function startCollector() {
  const { url, received } = await startHttpService((_, response) => {
    response.setHeader("content-type", "application/json").end("{}");
  });
  return {
    url,
    spans: () => spansOf(received),
    /** The sum of a counter, over all that was sent. */
    total(name: string): number {
      const points = metricsOf(received).flatMap((metric) =>
        metric.name === name ? (metric.sum?.dataPoints ?? []) : [],
      );
      return points.reduce((all, { asInt, asDouble }) => all + Number(asInt ?? asDouble), 0);
    },
  };
}

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
  expect(steps(first).map((span) => span.attributes["step.name"])).toEqual(["search"]);
  expect(first.map(({ name }) => name)).not.toContain("run");
  const [trace] = new Set(
    first.filter(({ name }) => name === "write_checkpoint").map((s) => s.traceId),
  );
  const branch = await workflow.branch("agents/booker/1");
  const intent = await branch.refresh();
  expect(intent.trace).toContain(trace);
  const told = first.filter(({ name }) => name === "write_checkpoint");
  expect(told.map((span) => span.attributes["checkpoint.commit"])).toContain(intent.id);

  const doubting = run(false, "fail");
  await doubting.ended;
  expect(doubting.lines).toEqual(["stopped STEP_IN_DOUBT"]);
  const second = collector.spans().slice(first.length);
  const [resume] = second.filter(({ name }) => name === "resume");
  expect(resume!.traceId).not.toBe(trace);
  expect(resume!.links).toEqual([
    expect.objectContaining({ traceId: trace, spanId: intent.trace!.split("-")[2] }),
  ]);
  expect(resume!.attributes["error.type"]).toBe("STEP_IN_DOUBT");
  expect(collector.total("agstate.steps.in_doubt")).toBe(1);

  const ending = run(false, "retry");
  await ending.ended;
  expect(ending.lines).toEqual(["paying", "ended"]);
  const third = collector.spans().slice(first.length + second.length);
  const [again] = steps(third);
  expect(again!.attributes["step.name"]).toBe("pay");
  expect(again!.attributes["step.attempt"]).toBe(2);
  expect(again!.attributes["checkpoint.commit"]).toBe(
    (await workflow.commitAt("agents/booker/1~1")).id,
  );
  expect(collector.total("agstate.commits")).toBe(3);
});
