import { setTimeout as sleep } from "node:timers/promises";
import { AlwaysOnSampler, TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace-node";
import { describe, expect, it } from "vitest";
import { verifyTrace, type Workflow } from "../../src/index.js";
import { usually } from "../support/runs.js";
import { makeStore } from "../support/stores.js";
import { tellOpenTelemetry } from "../support/tracing.js";
import { exported } from "./edit-spans.js";
import { live, Net } from "./lives.js";

const RUNS = usually(160, 1000);
/** How many run beside each other. */
const TOGETHER = 20;

/** Takes away what is over, of some of them. */
async function tidy(workflows: readonly Workflow[]): Promise<void> {
  for (const [i, workflow] of workflows.entries()) {
    if (i % 3 === 2) continue;
    for (const { shortName } of await workflow.refs("refs/heads/"))
      if (shortName !== "canonical") await workflow.deleteBranch(shortName);
  }
  // Commits and collection count whole seconds.
  await sleep(1100);
  for (const [i, workflow] of workflows.entries()) {
    const policy = "payload=P0D;history=P0D";
    if (i % 3 === 0) await workflow.applyRetention({ policy, graceMs: 0 });
    if (i % 3 === 1) await workflow.gc({ graceMs: 0 });
  }
}

describe("spans of what went as it should", () => {
  it.each([
    ["all", new AlwaysOnSampler()],
    ["a tenth of", new TraceIdRatioBasedSampler(0.1)],
  ] as const)(`fit ${RUNS} lives, with %s the traces`, async (share, sampler) => {
    const told = tellOpenTelemetry({ sampler });
    const net = new Net();
    const { store } = await makeStore("memory", { wrap: net.wrap });
    const workflows: Workflow[] = [];
    for (let seed = 0; seed < RUNS; seed += TOGETHER) {
      const some = Array.from({ length: TOGETHER }, (_, i) => seed + i);
      workflows.push(...(await Promise.all(some.map((n) => live(store, net, `w${n}`, n)))));
    }

    const before = await verifyTrace(store, await exported(told.spans()));
    expect(before.problems).toEqual([]);
    expect([...new Set(before.notices.map(({ kind }) => kind))].sort()).toEqual([
      "gathered",
      "lost-answer",
    ]);

    await tidy(workflows);
    const after = await verifyTrace(store, await exported(told.spans()));
    expect(after.problems).toEqual([]);
    const gone = after.notices.map(({ kind }) => kind);
    expect(gone).toContain("dropped");
    expect(gone).toContain("collected");

    // It was something that was looked at.
    const least = share === "all" ? 10 * RUNS : RUNS;
    expect(Math.min(before.checked, before.commits)).toBeGreaterThan(least);
  });
});
