import { readlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startChild } from "../support/child-processes.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";

const HOLD = new URL("./children/hold-lease.mjs", import.meta.url);
const PLACE = { workflow: "leased", branch: "agents/a/x" };

async function place(): Promise<string> {
  const path = storePlace();
  await withStore(path, async (store) => {
    const workflow = await store.createWorkflow(PLACE.workflow);
    await workflow.branch({ agent: "a", branch: "x" });
  });
  return path;
}

/** Whether this system tells of processes that have ended. */
function tellsOfProcesses(): boolean {
  try {
    return readlinkSync("/proc/self/ns/pid") !== "";
  } catch {
    return false;
  }
}

describe("the lease of a process", () => {
  it.runIf(tellsOfProcesses())(
    "that is killed goes to the next one at once, however long it would have lasted",
    async () => {
      const path = await place();
      const holder = startChild(HOLD, { path, ...PLACE, ttlMs: 3_600_000 });
      const token = Number(await holder.said("holds"));
      await holder.said("tool", 3);
      holder.kill();
      await holder.ended;
      await withWorkflow(path, PLACE.workflow, async (workflow, store) => {
        const branch = await workflow.branch(PLACE.branch);
        expect(await branch.lease()).toMatchObject({ token, gone: true });
        const lease = await branch.acquire();
        expect(lease.token).toBeGreaterThan(token);
        await lease.release();
        await expectSound(workflow, store);
      });
    },
  );

  it("that stands still is taken after its time, and the process knows when it goes on", async () => {
    const path = await place();
    const holder = startChild(HOLD, { path, ...PLACE, ttlMs: 2_400 });
    const token = Number(await holder.said("holds"));
    await holder.said("tool", 4);
    process.kill(holder.pid, "SIGSTOP");
    await withWorkflow(path, PLACE.workflow, async (workflow) => {
      const branch = await workflow.branch(PLACE.branch);
      const lease = await branch.acquire({ ttlMs: 60_000, waitMs: 60_000 });
      expect(lease.token).toBeGreaterThan(token);
      await branch.refresh();
      const { inFlight } = await branch.resumePoint();
      for (const number of inFlight) await branch.sealStep(number, { output: null });
      await branch.step({ name: "mine" }, () => "done");
      const calls = holder.lines.filter((line) => line.startsWith("tool ")).length;
      process.kill(holder.pid, "SIGCONT");
      expect(await holder.said("lost")).toBe("LEASE_LOST");
      expect(await holder.said("refused")).toMatch(/^(?:LEASE_LOST|STEP_FENCED)$/);
      const { code } = await holder.ended;
      expect(code).toBe(0);
      // One call may have been under way when it was stopped.
      const after = holder.lines.filter((line) => line.startsWith("tool ")).length;
      expect(after - calls).toBeLessThanOrEqual(1);
      await lease.release();
    });
  });
});
