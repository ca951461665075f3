import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { isWithheld, openStore } from "../../src/index.js";
import { makeGround } from "../support/regions.js";

const CARD = "4000 1234 5678 9010 11 of Ada Lovelace";
const HOUR_MS = 3_600_000;

/** A workflow in eu whose customer is in us, and the clock by which both stores go. */
async function makeTrip() {
  const clock = vi.spyOn(Date, "now");
  const ground = await makeGround(["eu", "us"]);
  const { regions } = await ground.open();
  const workflow = await regions.createWorkflow("trip", {
    storageRegion: "eu",
    classification: "sensitive",
    placement: [{ path: "/state/customer", region: "us" }],
    state: { customer: { card: CARD }, n: 0 },
  });
  const canonical = await workflow.canonical();
  await canonical.update([{ op: "set", path: "/n", value: 1 }]);
  const pass = (ms: number) =>
    clock.mockReturnValue(performance.timeOrigin + performance.now() + ms);
  return { ground, regions, workflow, canonical, pass };
}

/** Whether a text stands in the file of us once nothing is open, and freed space is given back. */
async function isInUs(ground: Awaited<ReturnType<typeof makeGround>>, text: string) {
  const store = await openStore(ground.config.regions.us!.store as string, { create: false });
  await store.compact();
  await store.close();
  return readFileSync(join(ground.directory, "us", "store.db")).includes(text);
}

describe("a payload in another region", () => {
  it("goes with the next collection after its pointer was erased", async () => {
    const { ground, regions, workflow, pass } = await makeTrip();
    const head = await workflow.resolve("canonical");
    const request = { paths: ["/state/customer"], reason: "request 17", by: "officer" };
    const report = await workflow.erase(request);
    expect(report.objects).toBeGreaterThan(0);
    expect(await workflow.stateAt("canonical")).toEqual({ n: 1 });
    const before = (await workflow.stateAt(head)) as { customer: unknown };
    expect(isWithheld(before.customer)).toBe(true);
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject({ payloads: { removed: 0 } });
    pass(HOUR_MS);
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject({
      payloads: { removed: 1, unreached: [] },
    });
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
    await regions.close();
    expect(await isInUs(ground, CARD)).toBe(false);
  });

  it("goes when what pointed to it is over, and not before", async () => {
    const { ground, regions, workflow, canonical, pass } = await makeTrip();
    pass(48 * HOUR_MS);
    await canonical.update([
      { op: "set", path: "/customer", value: { card: "none of them left" } },
    ]);
    await workflow.applyRetention({ policy: { payload: "P3D" } });
    expect(await workflow.gc()).toMatchObject({ payloads: { removed: 0 } });
    expect(await workflow.stateAt("canonical~1")).toMatchObject({ customer: { card: CARD } });
    await workflow.applyRetention({ policy: { payload: "P1D" } });
    expect(await workflow.stateAt("canonical~1")).toMatchObject({ reason: "expired" });
    expect(await workflow.gc({ graceMs: 0 })).toMatchObject({ payloads: { removed: 1 } });
    expect(await workflow.stateAt("canonical")).toMatchObject({
      customer: { card: "none of them left" },
    });
    await regions.close();
    expect(await isInUs(ground, CARD)).toBe(false);
    expect(await isInUs(ground, "none of them left")).toBe(true);
  });
});
