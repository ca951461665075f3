import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { moveLease, readLease } from "../../src/store/lease/stored.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const REF = "refs/leases/agents/a/x";

describe.each(BACKENDS)("the lease on a branch on %s", (backend) => {
  async function begin() {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: {} });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const other = await (await (await another()).workflow("w")).branch("a/x");
    return { workflow, branch, other };
  }

  it("is held by one, told to others as soon as its holder is seen to live, and free once released", async () => {
    const { branch, other } = await begin();
    expect(await branch.lease()).toBeNull();
    const lease = await branch.acquire({ ttlMs: 1_500, holder: "one" });
    expect(lease.held).toBe(true);
    expect(await other.lease()).toMatchObject({
      branch: "agents/a/x",
      holder: "one",
      token: lease.token,
      gone: false,
    });
    await expect(other.acquire({ holder: "two" })).rejects.toEqual(
      agstateError("LEASE_HELD", { branch: "agents/a/x", holder: "one", token: lease.token }),
    );
    await lease.release();
    await lease.release();
    expect(lease.held).toBe(false);
    expect(lease.signal.aborted).toBe(false);
    const next = await other.acquire({ holder: "two" });
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
    expect(await branch.lease()).toBeNull();
  });

  it("is waited for while its holder lives, if that is asked for", async () => {
    const { branch, other } = await begin();
    const lease = await branch.acquire({ ttlMs: 300 });
    const waiting = other.acquire({ waitMs: 60_000 });
    await sleep(700);
    await lease.release();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it("is taken from a holder that gives no sign of life", async () => {
    const { workflow, branch, other } = await begin();
    const lease = await branch.acquire({ ttlMs: 60_000 });
    const repository = workflow.internals;
    const row = await repository.refs.row(REF);
    const record = await readLease(repository, row);
    // As if it ran on another machine and its process stood still.
    const process = { host: "elsewhere", pid: 1, space: null, began: null };
    const silent = { ...record!, process, ttlMs: 200 };
    await moveLease(repository, { ref: REF, row }, silent, { actor: "a", reason: "test" });
    const taken = await other.acquire({ ttlMs: 300 });
    expect(taken.token).toBeGreaterThan(lease.token);
    await expect(lease.release()).resolves.toBeUndefined();
    expect(await branch.lease()).toMatchObject({ token: taken.token });
    await taken.release();
  });

  it("is told to be lost by its next sign of life", async () => {
    const { workflow, branch } = await begin();
    const lease = await branch.acquire({ ttlMs: 150 });
    const repository = workflow.internals;
    const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
    for (let moved = null; moved === null && lease.held; ) {
      const row = await repository.refs.row(REF);
      const record = await readLease(repository, row);
      moved = await moveLease(
        repository,
        { ref: REF, row },
        { ...record!, holder: "thief" },
        {
          actor: "thief",
          reason: "test",
        },
      );
    }
    await lost;
    expect(lease.held).toBe(false);
    expect(lease.signal.reason).toEqual(agstateError("LEASE_LOST", { token: lease.token }));
    let calls = 0;
    const step = branch.step({ name: "book" }, () => {
      calls++;
    });
    await expect(step).rejects.toEqual(agstateError("LEASE_LOST"));
    expect(calls).toBe(0);
    // Giving back what is not held any more leaves the new holder alone.
    await lease.release();
    expect(await branch.lease()).toMatchObject({ holder: "thief" });
    const again = await branch.acquire({ ttlMs: 200 });
    expect(await branch.step({ name: "book" }, () => "booked")).toBe("booked");
    await again.release();
  });

  it("needs no sign of life of its own while steps are made", async () => {
    const { workflow, branch } = await begin();
    const lease = await branch.acquire({ ttlMs: 600 });
    const acquired = await workflow.internals.refs.row(REF);
    const until = performance.now() + 900;
    let steps = 0;
    while (performance.now() < until) {
      await branch.step({ name: "tick", action: "read", memoize: true }, () => steps++);
    }
    const row = await workflow.internals.refs.row(REF);
    expect(lease.held).toBe(true);
    expect(row?.seq).toBe(acquired?.seq);
    await lease.release();
  });

  it("lets one run work, and the others know before they have done anything", async () => {
    const { workflow, branch, other } = await begin();
    let works = 0;
    const work = async () => {
      works++;
      await sleep(900);
      return "done";
    };
    const first = workflow.run(branch, work, { lease: { ttlMs: 900 } });
    await sleep(100);
    await expect(workflow.run(other, work, { lease: true })).rejects.toEqual(
      agstateError("LEASE_HELD"),
    );
    expect(await first).toBe("done");
    expect(works).toBe(1);
    expect(await workflow.run(other, work, { lease: true })).toBe("done");
    expect(works).toBe(1);
    expect(await branch.lease()).toBeNull();
    expect((await workflow.fsck()).problems).toEqual([]);
    expect(await all(workflow.log({ revisions: ["a/x"] }))).not.toHaveLength(0);
  });

  it("is refused with times that make no sense", async () => {
    const { branch } = await begin();
    for (const ttlMs of [0, 99, 3_600_001, Number.NaN]) {
      await expect(branch.acquire({ ttlMs })).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    }
    await expect(branch.acquire({ waitMs: -1 })).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    await expect(branch.acquire({ holder: "two\nlines" })).rejects.toEqual(
      agstateError("INVALID_VALUE"),
    );
  });
});
