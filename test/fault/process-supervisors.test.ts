import { describe, expect, it } from "vitest";
import type { MergeResult, Workflow } from "../../src/index.js";
import { resultOf, startTogether } from "../support/child-processes.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";
import { all } from "../support/stores.js";

const SUPERVISE = new URL("./children/supervise.mjs", import.meta.url);

const WORKFLOW = "raced";
const BRANCHES = 64;
const PROCESSES = 8;
const STEPS = 3;

type Merged = Pick<MergeResult, "status" | "attempts" | "contributions" | "conflicts"> & {
  readonly id: string | null;
};

const nameOf = (k: number) => `agents/a${k}/work`;

/** Makes branches that each set a key, append to one list and add to one counter, in some steps. */
async function makeBranches(path: string): Promise<Map<string, string[]>> {
  const own = new Map<string, string[]>();
  await withStore(path, async (store) => {
    const workflow = await store.createWorkflow(WORKFLOW, {
      state: { log: [], n: 0, found: {} },
      policies: { "/log": "append", "/n": "sum" },
    });
    for (let k = 0; k < BRANCHES; k++) {
      const branch = await workflow.branch({ agent: `a${k}`, branch: "work" });
      const ids: string[] = [];
      for (let step = 1; step <= STEPS; step++) {
        const commit = await branch.update([
          { op: "set", path: `/found/a${k}`, value: { step, text: "x".repeat(100 * step) } },
          { op: "append", path: "/log", value: `a${k} step ${step}` },
          { op: "set", path: "/n", value: step },
        ]);
        ids.push(commit.id);
      }
      own.set(branch.name, ids);
    }
  });
  return own;
}

/** Expects that canonical holds what every branch did, exactly once, and every commit. */
async function expectEverything(workflow: Workflow, own: Map<string, string[]>): Promise<void> {
  const { log, n, found } = (await workflow.stateAt("canonical")) as {
    log: string[];
    n: number;
    found: Record<string, { step: number }>;
  };
  expect(n).toBe(BRANCHES * STEPS);
  expect(Object.keys(found)).toHaveLength(BRANCHES);
  expect(log).toHaveLength(BRANCHES * STEPS);
  for (let k = 0; k < BRANCHES; k++) {
    expect(found[`a${k}`]?.step).toBe(STEPS);
    const lines = log.filter((line) => line.startsWith(`a${k} `));
    expect(lines).toEqual([1, 2, 3].map((step) => `a${k} step ${step}`));
  }
  const history = new Set<string>();
  for await (const { id } of workflow.log({ revisions: ["canonical"] })) history.add(id);
  for (const [branch, ids] of own) {
    for (const id of ids) expect(history.has(id), `${id} of ${branch}`).toBe(true);
  }
}

describe("eight supervisor processes", () => {
  it("merge 64 branches into one canonical ref and lose nothing", async () => {
    const path = storePlace();
    const own = await makeBranches(path);
    const shares = Array.from({ length: PROCESSES }, (_, p) =>
      Array.from({ length: BRANCHES / PROCESSES }, (_, i) => [nameOf(i * PROCESSES + p)]),
    );
    const children = await startTogether(
      SUPERVISE,
      shares.map((merges, p) => ({ path, workflow: WORKFLOW, supervisor: `s${p}`, merges })),
    );
    const results = await Promise.all(children.map((child) => resultOf<Merged[]>(child)));
    console.log(
      `attempts by supervisor: ${results.map((merges) => merges.map((m) => m.attempts).join(" ")).join(" | ")}`,
    );

    const merged = results.flat();
    expect(merged).toHaveLength(BRANCHES);
    for (const { status, conflicts, attempts, contributions } of merged) {
      expect(["merged", "fast-forward"]).toContain(status);
      expect(conflicts).toEqual([]);
      expect(attempts).toBeGreaterThanOrEqual(1);
      expect(contributions[0]?.commits).toBe(STEPS);
    }
    // They did get in each other's way; a lost race is told of, and leaves nothing.
    expect(merged.reduce((sum, { attempts }) => sum + attempts, 0)).toBeGreaterThan(BRANCHES);
    await withWorkflow(path, WORKFLOW, async (workflow, store) => {
      await expectEverything(workflow, own);
      const acknowledged = new Set(merged.map(({ id }) => id));
      expect(acknowledged.size).toBe(BRANCHES);
      // Each acknowledged head was canonical's at some time: its log has them all, and no other.
      const moves = (await workflow.reflog("canonical")).slice(0, -1);
      expect(new Set(moves.map((entry) => entry.new))).toEqual(acknowledged);
      // Genesis, canonical's first, the branches' own, the merge commits: no loser left any.
      const forwards = merged.filter(({ status }) => status === "fast-forward").length;
      expect(await expectSound(workflow, store)).toBe(2 + BRANCHES * (STEPS + 1) - forwards);
    });
  });

  it("may all merge the same 64 branches at once: each lands once, whoever comes first", async () => {
    const path = storePlace();
    const own = await makeBranches(path);
    const branches = Array.from({ length: BRANCHES }, (_, k) => nameOf(k));
    const children = await startTogether(
      SUPERVISE,
      Array.from({ length: PROCESSES }, (_, p) => ({
        path,
        workflow: WORKFLOW,
        supervisor: `s${p}`,
        merges: [branches],
      })),
    );
    const results = (await Promise.all(children.map((child) => resultOf<Merged[]>(child)))).flat();
    expect(results.map(({ status }) => status).sort()).toEqual([
      "merged",
      ...Array.from({ length: PROCESSES - 1 }, () => "up-to-date"),
    ]);
    await withWorkflow(path, WORKFLOW, async (workflow) => {
      await expectEverything(workflow, own);
      expect((await workflow.commitAt("canonical")).parents).toHaveLength(BRANCHES + 1);
      expect(
        await all(workflow.log({ revisions: ["canonical"], firstParent: true, limit: 9 })),
      ).toHaveLength(2);
    });
  });
});
