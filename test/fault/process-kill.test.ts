import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Workflow } from "../../src/index.js";
import { type Child, startChild } from "../support/child-processes.js";
import { usually } from "../support/runs.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";

const COMMIT = new URL("./children/commit-until-killed.mjs", import.meta.url);
const MAKE = new URL("./children/make-store.mjs", import.meta.url);

const WORKFLOW = "killed";
const WRITERS = ["a", "b", "c"];
const ROUNDS = usually(1, 8);
/** Every so many rounds everything that is stored is checked. */
const CHECK_EVERY = 4;
/** Kills of each writer in a round; with the last one all die at once. */
const KILLS_A_ROUND = 8;
/** A writer dies after a random number of commits up to this, and a random part of the next. */
const COMMITS_MAX = 8;
const COMMIT_USUAL_MS = 10;
const PAYLOAD_BYTES = 20_000;
const CREATION_KILLS = usually(8, 30);

/** A commit whose acknowledgement a writer has seen. */
interface Acknowledged {
  readonly branch: string;
  readonly id: string;
  readonly n: number;
  readonly step: number;
}

/** What the parent knows of a branch that one writer alone writes. */
interface Writer {
  readonly agent: string;
  last: { id: string; n: number } | null;
}

/** All that was acknowledged in the run, and how it went. */
class Ledger {
  readonly acknowledged: Acknowledged[] = [];
  readonly kills = new Map(WRITERS.map((agent) => [agent, 0]));
  /** Commits that landed though the kill came before their acknowledgement. */
  landedUnsaid = 0;

  /** Starts a writer, lets it commit until `until`, kills it, and notes what it had acknowledged. */
  async runOnce(path: string, writer: Writer, until: (child: Child) => Promise<unknown>) {
    const { agent, last } = writer;
    const child = startChild(COMMIT, {
      path,
      workflow: WORKFLOW,
      agent,
      payloadBytes: PAYLOAD_BYTES,
    });
    await until(child);
    child.kill();
    const { signal } = await child.ended;
    expect(signal, child.errors()).toBe("SIGKILL");
    this.kills.set(agent, this.kills.get(agent)! + 1);

    const [head, n] = (await child.said("found")).split(" ") as [string, string];
    if (last !== null && head !== last.id) {
      // At most the one commit that was under way landed beyond what was acknowledged.
      expect(Number(n), `${agent} was at ${last.n} when it was killed`).toBe(last.n + 1);
      this.landedUnsaid++;
    }
    writer.last = { id: head, n: Number(n) };
    for (const line of child.lines.filter((each) => each.startsWith("acknowledged"))) {
      const [branch = "", id = "", value, step] = line.split(" ").slice(1);
      this.acknowledged.push({ branch, id, n: Number(value), step: Number(step) });
      if (branch !== "canonical") writer.last = { id, n: Number(value) };
    }
  }
}

/** Every acknowledged commit is in its branch's history with its count, and no step number came twice. */
async function expectNothingLost(workflow: Workflow, acknowledged: readonly Acknowledged[]) {
  for (const branch of new Set(acknowledged.map((each) => each.branch))) {
    const history = new Map<string, { distance: number; step: number | null }>();
    const steps: number[] = [];
    for await (const commit of workflow.log({ revisions: [branch] })) {
      history.set(commit.id, { distance: history.size, step: commit.step?.number ?? null });
      if (commit.step !== null) steps.push(commit.step.number);
    }
    expect(new Set(steps).size).toBe(steps.length);
    // Children come first, so along a branch the numbers fall.
    expect(steps).toEqual([...steps].sort((x, y) => y - x));

    const head = (await workflow.stateAt(branch)) as { n: number };
    expect(head.n).toBe(steps.length);
    const mine = acknowledged.filter((each) => each.branch === branch);
    expect(new Set(mine.map(({ id }) => id)).size).toBe(mine.length);
    for (const { id, n, step } of mine) {
      expect(history.get(id), `${branch} lost ${id}`).toEqual({ distance: head.n - n, step });
    }
  }
}

/** What is stored is what the branches reach: a commit that did not move its branch left nothing. */
async function expectNothingHalfWritten(workflow: Workflow): Promise<void> {
  const { commits, unreachable } = await workflow.fsck();
  let reachable = 0;
  for await (const _ of workflow.log()) reachable++;
  expect({ commits, unreachable }).toEqual({ commits: reachable, unreachable: 0 });
}

/** Random numbers whose seed is told. When a kill hits stays a matter of the machine. */
function dice(): () => number {
  const seed = Date.now() % 2 ** 31;
  console.log(`seed ${seed}`);
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe("writers that are killed at random", () => {
  it("lose no acknowledged commit and leave nothing half written", {
    timeout: 600_000,
  }, async () => {
    const random = dice();
    const path = storePlace();
    await withStore(path, (store) => store.createWorkflow(WORKFLOW, { state: { n: 0 } }));
    const ledger = new Ledger();
    const writers = WRITERS.map((agent): Writer => ({ agent, last: null }));
    const someCommits = async (child: Child) => {
      await child.said("found");
      const commits = Math.floor(random() * (COMMITS_MAX + 1));
      if (commits > 0) await child.said("acknowledged", commits);
    };
    const partOfOne = () => sleep(random() * COMMIT_USUAL_MS);
    const alone = (child: Child) => someCommits(child).then(partOfOne);

    for (let round = 1; round <= ROUNDS; round++) {
      // Each writer is killed and started again while the others go on.
      await Promise.all(
        writers.map(async (writer) => {
          for (let k = 1; k < KILLS_A_ROUND; k++) await ledger.runOnce(path, writer, alone);
        }),
      );
      // Then all at once, so that the next to open the store finds nobody there.
      let wait = writers.length;
      let killAll = () => {};
      const together = new Promise<void>((resolve) => {
        killAll = resolve;
      });
      const withTheOthers = async (child: Child) => {
        await someCommits(child);
        if (--wait === 0) partOfOne().then(killAll);
        await together;
      };
      await Promise.all(writers.map((writer) => ledger.runOnce(path, writer, withTheOthers)));

      await withWorkflow(path, WORKFLOW, async (workflow, store) => {
        await expectNothingLost(workflow, ledger.acknowledged);
        if (round % CHECK_EVERY === 0 || round === ROUNDS) {
          await expectSound(workflow, store);
          await expectNothingHalfWritten(workflow);
        }
      });
    }

    const kills = [...ledger.kills.values()];
    const acknowledged = ledger.acknowledged.length;
    console.log(
      `${kills.reduce((a, b) => a + b)} kills (${kills.join(" ")}), ` +
        `${acknowledged} commits acknowledged, ${ledger.landedUnsaid} landed without word`,
    );
    expect(kills).toEqual(writers.map(() => ROUNDS * KILLS_A_ROUND));
    expect(acknowledged).toBeGreaterThan(ROUNDS * KILLS_A_ROUND);
  });

  it("leave a store that can be finished when they die while they make it", async () => {
    const random = dice();
    const usualMs = await timeOfMaking();
    const reached = { nothing: 0, files: 0, store: 0, workflow: 0 };
    for (let k = 0; k < CREATION_KILLS; k++) {
      const path = storePlace();
      const child = startChild(MAKE, { path, workflow: WORKFLOW });
      await child.said("begins");
      await sleep(random() * usualMs);
      child.kill();
      await child.ended;
      const storeId = child.lines.find((line) => line.startsWith("store"))?.slice(6);
      const made = child.lines.includes("workflow");
      reached[made ? "workflow" : storeId ? "store" : existsSync(path) ? "files" : "nothing"]++;

      await withStore(path, async (store) => {
        if (storeId !== undefined) expect((await store.describe()).storeId).toBe(storeId);
        const stored = [];
        for await (const each of store.workflows()) stored.push(each);
        if (made) expect(stored.map(({ id }) => id)).toEqual([WORKFLOW]);
        if (stored.length === 0) await store.createWorkflow(WORKFLOW, { state: { n: 0 } });
        const workflow = await store.workflow(WORKFLOW);
        expect(await workflow.stateAt("canonical")).toEqual({ n: 0 });
        await expectSound(workflow, store);
        await expectNothingHalfWritten(workflow);
      });
    }
    console.log(`killed with this much done ${JSON.stringify(reached)}`);
  });
});

/** How long it takes here, now, to make a store. */
async function timeOfMaking(): Promise<number> {
  const child = startChild(MAKE, { path: storePlace(), workflow: WORKFLOW });
  await child.said("begins");
  const since = performance.now();
  await child.said("workflow");
  return performance.now() - since;
}
