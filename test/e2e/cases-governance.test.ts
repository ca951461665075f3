import { describe, expect, it } from "vitest";
import { dayClock } from "../support/clock.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const DOC = Array.from({ length: 400 }, (_, i) => `page ${i}: ${"held ".repeat(20)}`);

describe.each(BACKENDS)("a commit under hold, on %s (GOV-01)", (backend) => {
  it("stays readable, with all that it references, until all holds are released", async () => {
    const clock = dayClock();
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      retentionPolicy: "payload=P0D;history=P0D",
    });
    const one = await workflow.branch({ agent: "booker", branch: "one" });
    await one.update([{ op: "set", path: "/doc", value: DOC }]);
    await one.step({ name: "book", input: { hotel: "Astoria" } }, () => ({ receipt: DOC }));
    const { id: held } = one.head;
    await one.update([{ op: "delete", path: "/doc" }]);
    const two = await workflow.branch({ agent: "booker", branch: "two" });
    const { id: lost } = await two.commit({ state: { scratch: true } });
    const state = await workflow.stateAt(held);
    const record = await workflow.stepRecord(held);
    const history = (await all(workflow.log({ revisions: [held] }))).map(({ id }) => id);

    await workflow.hold(held, { name: "case-7", reason: "litigation", actor: "counsel" });
    await workflow.hold(held, { name: "audit-3", reason: "audit", actor: "auditor" });

    let day = 0;
    /** Whatever makes room: reset, deletion of every branch of the agent, retention of no time, collection without grace. */
    const makeRoom = async () => {
      clock.set(++day);
      for (const { name } of await workflow.refs("refs/heads/agents/booker/")) {
        await workflow.reset(name, "canonical");
        await workflow.deleteBranch(name);
      }
      const { history } = await workflow.applyRetention({ graceMs: 0 });
      const collected = await workflow.gc({ graceMs: 0 });
      return { ...collected, commits: collected.commits + (history?.removed?.commits ?? 0) };
    };
    const expectReadable = async () => {
      const reader = await (await another()).workflow("w");
      expect(await reader.stateAt(held)).toEqual(state);
      expect(await reader.stepRecord(held)).toEqual(record);
      const log = await all(reader.log({ revisions: [held] }));
      expect(log.map(({ id }) => id)).toEqual(history);
      for (const { id } of log) await reader.stateAt(id);
      expect((await reader.fsck()).problems).toEqual([]);
    };

    expect((await makeRoom()).commits).toBeGreaterThan(0);
    await expectReadable();
    const refusals = async () => {
      const events = await all(workflow.audit({ refs: "refs/audit/events" }));
      return events.filter(({ kind, facts }) => kind === "refused" && facts?.name === "retention");
    };
    expect((await refusals()).map(({ facts }) => facts?.holds)).toEqual(["audit-3 case-7"]);
    await expect(workflow.releaseHold("case-7", { reason: "" })).rejects.toEqual(
      agstateError("INVALID_VALUE"),
    );
    await workflow.releaseHold("case-7", { reason: "settled", actor: "counsel" });
    await makeRoom();
    await expectReadable();
    expect((await refusals()).map(({ facts }) => facts?.holds)).toEqual([
      "audit-3 case-7",
      "audit-3",
    ]);

    await workflow.releaseHold("audit-3", { reason: "closed", actor: "auditor" });
    expect((await makeRoom()).commitsHeld).toBe(0);
    const reader = await (await another()).workflow("w");
    for (const id of [held, lost]) {
      await expect(reader.resolve(id)).rejects.toEqual(agstateError("REVISION_NOT_FOUND"));
    }
    // Who held it, who let go of it, and why, is on record for good.
    for (const [name, by, placed, released] of [
      ["case-7", "counsel", "litigation", "settled"],
      ["audit-3", "auditor", "audit", "closed"],
    ]) {
      expect(await reader.reflog(`refs/holds/${name}`)).toMatchObject([
        { actor: by, reason: `release: ${released}`, new: null },
        { actor: by, reason: `hold: ${placed}`, old: null },
      ]);
    }
    expect((await reader.fsck()).problems).toEqual([]);
  });
});
