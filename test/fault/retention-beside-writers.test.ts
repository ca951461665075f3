import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { isAgstateError, type MergeResult, type Store } from "../../src/index.js";
import { startChild } from "../support/child-processes.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const RETAIN = new URL("./children/retain.mjs", import.meta.url);
const WRITERS = 3;
const ROUNDS = 25;
const ROUNDS_MAX = 300;
const KILLS = 6;

/** A list that is a tree of its own; a handful of them come again and again. */
const long = (seed: number) => Array.from({ length: 150 }, (_, i) => `part ${seed % 4}, line ${i}`);

const statusOf = (merged: unknown) => (merged as { status?: string }).status;

/**
 * Whether what both sides come from was not known, wherever they conflict: its time was over. What is told of it is read later,
 * when another may have written the same again: then one side is as it was, which is no conflict. Where history has been
 * dropped below a side, the last that both come from may have gone with it, and what is left is older.
 */
function isWithoutBase(merged: unknown): boolean {
  const { conflicts } = merged as MergeResult;
  return conflicts.every(({ base, ours, theirs }) => {
    if (!base.exists || JSON.stringify(base).includes("withheld")) return true;
    return [ours, theirs].some(
      (side) =>
        side.writer?.boundary === true ||
        (side.exists && isDeepStrictEqual(side.value, base.value)),
    );
  });
}

/** Commits what was there before and what was not, merges, and reads each head as a newcomer does. */
async function write(
  another: () => Promise<Store>,
  cold: Store,
  agent: string,
  enough: () => boolean,
) {
  const store = await another();
  const workflow = await store.workflow("w");
  let branch = await workflow.branch({ agent, branch: "0" });
  for (let round = 0; round < ROUNDS || (!enough() && round < ROUNDS_MAX); round++) {
    const doc = long(Math.floor(Math.random() * 4));
    await branch.update([
      { op: "set", path: `/${agent}`, value: { round, doc } },
      { op: "set", path: `/${agent}-old`, value: long(round) },
    ]);
    const reader = await cold.workflow("w");
    expect(await reader.stateAt(branch.name)).toMatchObject({ [agent]: { round, doc } });
    if (round % 5 !== 4) continue;
    const merged = await workflow.merge([branch.name]).catch((error: unknown) => error);
    const baseIsOver =
      // It was begun from what canonical had just left, while history went up to canonical's head.
      isAgstateError(merged, "UNRELATED_HISTORIES") ||
      // The payload of what both come from is over, and nobody had it in memory any more. It may have come back since,
      // when another wrote the same.
      (statusOf(merged) === "conflict" && isWithoutBase(merged));
    if (baseIsOver) {
      await workflow.deleteBranch(branch.name);
      branch = await workflow.branch({ agent, branch: `${round}`, create: "always" });
      continue;
    }
    expect(["merged", "fast-forward"]).toContain(statusOf(merged));
    expect(await reader.stateAt("canonical", `/${agent}/round`)).toBe(round);
    // A line that begins anew, from what the others have come to.
    await workflow.deleteBranch(branch.name);
    branch = await workflow.branch({ agent, branch: `${round}`, create: "always" });
    expect(await (await cold.workflow("w")).stateAt(branch.name)).toMatchObject({
      [agent]: { round, doc },
    });
  }
}

describe.each(BACKENDS.filter((one) => one !== "memory"))("retention on %s", (backend) => {
  it("leaves heads whole beside writers, and the store sound when it is killed", async () => {
    const { store, url, another } = await makeStore(backend);
    await store.createWorkflow("w", { state: { doc: long(0) } });
    let writing = true;
    let [kills, dropped, expired] = [0, 0, 0];
    const retaining = (async () => {
      while (writing || kills < KILLS) {
        const child = startChild(RETAIN, { url, workflow: "w" });
        if (kills % 2 === 0) await child.said("retained", 2);
        await sleep(Math.random() * 150);
        child.kill();
        const { signal } = await child.ended;
        expect(signal, child.errors()).toBe("SIGKILL");
        kills++;
        for (const line of child.lines) {
          dropped += Number(line.split(" ")[1]);
          expired += Number(line.split(" ")[2]);
        }
      }
    })();
    const cold = await another();
    const enough = () => kills >= KILLS && dropped > 0 && expired > 0;
    const writers = Array.from({ length: WRITERS }, async (_, i) =>
      write(another, cold, `agent${i}`, enough),
    );
    const written = Promise.all(writers).finally(() => {
      writing = false;
    });
    await Promise.all([written, retaining]);
    expect(dropped).toBeGreaterThan(0);
    expect(expired).toBeGreaterThan(0);

    const workflow = await (await another()).workflow("w");
    const policy = { payload: "P0D", history: "P0D" };
    await sleep(1100);
    for (let left = Number.POSITIVE_INFINITY; left > 0; ) {
      const { history, payload } = await workflow.applyRetention({ policy, graceMs: 0 });
      left = (history?.removed?.commits ?? 0) + (payload?.bytes ?? 0);
    }
    expect((await workflow.fsck()).problems).toEqual([]);
    expect((await workflow.verifyAudit()).problems).toEqual([]);
    for (const { name } of await workflow.refs("refs/heads/")) {
      expect(JSON.stringify(await workflow.stateAt(name))).not.toContain("withheld");
    }
  });
});
