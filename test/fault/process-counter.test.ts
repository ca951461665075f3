import { describe, expect, it } from "vitest";
import { resultOf, startTogether } from "../support/child-processes.js";
import { usually } from "../support/runs.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";

const COUNT = new URL("./children/count.mjs", import.meta.url);

const PROCESSES = 8;
const RUN_MS = usually(8000, 30_000);

interface Counted {
  readonly ids: string[];
  readonly conflicts: number;
}

describe("eight processes that count on one branch by compare-and-swap", () => {
  it("lose no increment, share no commit id, and each does at least half of the mean", async () => {
    const path = storePlace();
    await withStore(path, (store) => store.createWorkflow("count", { state: { n: 0 } }));
    const children = await startTogether(
      COUNT,
      Array.from({ length: PROCESSES }, () => ({ path, workflow: "count", ms: RUN_MS })),
    );
    const counted = await Promise.all(children.map((child) => resultOf<Counted>(child)));

    const counts = counted.map(({ ids }) => ids.length);
    const total = counts.reduce((sum, count) => sum + count, 0);
    const conflicts = counted.map((each) => each.conflicts);
    console.log(
      `increments by process: ${counts.join(" ")} = ${total}; conflicts: ${conflicts.join(" ")}`,
    );

    await withWorkflow(path, "count", async (workflow, store) => {
      expect(await workflow.stateAt("canonical")).toEqual({ n: total });
      const acknowledged = new Set(counted.flatMap(({ ids }) => ids));
      expect(acknowledged.size).toBe(total);
      const history: string[] = [];
      for await (const { id } of workflow.log({ revisions: ["canonical"] })) history.push(id);
      // The first commit of canonical came with the workflow.
      expect(new Set(history.slice(0, -1))).toEqual(acknowledged);
      // A loser's commit is not stored: beside these there is only the genesis commit.
      expect(await expectSound(workflow, store)).toBe(history.length + 1);
    });
    expect(total).toBeGreaterThan(PROCESSES);
    expect(Math.min(...counts) / (total / PROCESSES)).toBeGreaterThanOrEqual(0.5);
  });
});
