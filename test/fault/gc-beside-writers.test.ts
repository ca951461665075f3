import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { isAgstateError, type Workflow } from "../../src/index.js";
import { startChild } from "../support/child-processes.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const COLLECT = new URL("./children/collect.mjs", import.meta.url);
const WRITERS = 4;
const ROUNDS = 25;
/** Writers go on until the collector has removed something, but not for ever. */
const ROUNDS_MAX = 400;
const KILLS = 8;

/** A list that is a tree of its own; a handful of them come again and again. */
const long = (seed: number) => Array.from({ length: 150 }, (_, i) => `part ${seed % 5}, line ${i}`);

/**
 * Forks, commits what others had and lost, goes back to what its branch was, picks, deletes, and
 * reads after each acknowledgement what was acknowledged.
 */
async function write(workflow: Workflow, agent: string, enough: () => boolean): Promise<number> {
  const random = Math.random;
  let acknowledged = 0;
  for (let round = 0; round < ROUNDS || (!enough() && round < ROUNDS_MAX); round++) {
    const name = `round-${round}`;
    const branch = await workflow.branch({ agent, branch: name, create: "always" });
    const state = { agent, round, doc: long(Math.floor(random() * 5)) };
    const first = await branch.commit({ state });
    const second = await branch.commit({
      state: { ...state, doc: long(round + 1), extra: long(round) },
    });
    acknowledged += 2;
    expect(await workflow.stateAt(second.id)).toEqual({
      ...state,
      doc: long(round + 1),
      extra: long(round),
    });
    await workflow.reset(branch.name, first.id);
    await branch.refresh();
    expect(await branch.state()).toEqual(state);
    // What was left may be gone by now, which must be said, and may not be half there.
    try {
      await workflow.branch({ agent, branch: `${name}-again`, from: second.id, create: "always" });
      expect(await workflow.stateAt(`agents/${agent}/${name}-again`)).toMatchObject({ round });
      // Of some rounds nothing is left that a ref reaches, however fast others pick up what was left.
      if (round % 4 === 0) await workflow.deleteBranch(`agents/${agent}/${name}-again`);
    } catch (error) {
      if (!isAgstateError(error, "MISSING_OBJECT") && !isAgstateError(error, "REVISION_NOT_FOUND"))
        throw error;
    }
    if (round % 2 === 0) await workflow.deleteBranch(branch.name);
  }
  return acknowledged;
}

describe.each(BACKENDS.filter((backend) => backend !== "memory"))("gc on %s", (backend) => {
  it("takes nothing from writers beside it, and leaves the store sound when it is killed", async () => {
    const { store, url, another } = await makeStore(backend);
    await store.createWorkflow("w", { state: { doc: long(0) } });
    let writing = true;
    let kills = 0;
    let collected = 0;
    const collecting = (async () => {
      while (writing || kills < KILLS) {
        const child = startChild(COLLECT, { url, workflow: "w" });
        // Somewhere in its first or second collection.
        if (kills % 2 === 0) await child.said("collected", 2);
        await sleep(Math.random() * 150);
        child.kill();
        const { signal } = await child.ended;
        expect(signal, child.errors()).toBe("SIGKILL");
        kills++;
        for (const line of child.lines) collected += Number(line.split(" ")[1] ?? 0);
      }
    })();
    const handles = await Promise.all(Array.from({ length: WRITERS }, () => another()));
    const acknowledged = await Promise.all(
      handles.map(async (handle, i) =>
        write(await handle.workflow("w"), `agent-${i}`, () => collected > 0),
      ),
    ).finally(() => {
      writing = false;
    });
    await collecting;
    for (const commits of acknowledged) expect(commits).toBeGreaterThanOrEqual(2 * ROUNDS);
    expect(collected).toBeGreaterThan(0);

    const cold = await (await another()).workflow("w");
    expect((await cold.fsck()).problems).toEqual([]);
    for (let i = 0; i < WRITERS; i++) {
      for (let round = 1; round < ROUNDS; round += 2) {
        const state = await cold.stateAt(`agents/agent-${i}/round-${round}`);
        expect(state).toMatchObject({ agent: `agent-${i}`, round });
      }
    }
    await cold.gc({ graceMs: 0 });
    const report = await cold.fsck();
    expect(report.problems).toEqual([]);
    expect(report.unreachable).toBe(0);
  });
});
