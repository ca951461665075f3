import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/core/json.js";
import { dayClock } from "../support/clock.js";
import { BACKENDS, makeStore } from "../support/stores.js";

/** `npm run test:nightly` runs the whole of what else is a part of it. */
const WHOLE = process.env.AGSTATE_RUNS !== undefined;

const DISK = BACKENDS.filter((backend) => backend !== "memory");
const STATIC_BYTES = 200_000;

/** Text that no compression shortens much, different for each seed. */
function text(seed: number, bytes: number): string {
  let x = seed + 1;
  let out = "";
  while (out.length < bytes) {
    x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    out += (x >>> 0).toString(36);
  }
  return out.slice(0, bytes);
}

/** A state of so many bytes that nobody changes: sections of texts. */
function staticState(bytes: number): JsonObject {
  const sections = Math.ceil(bytes / 2000);
  return Object.fromEntries(
    Array.from({ length: sections }, (_, i) => [`section-${i}`, text(i, 1980)]),
  );
}

describe.each(DISK)("a long workflow with a state that hardly changes, on %s", (backend) => {
  it("takes what its changes take, and gives the space back when it is thinned", async () => {
    const clock = dayClock();
    const { store: first, directory, another } = await makeStore(backend);
    // A server takes its time; all of it every night.
    const steps = WHOLE || backend === "sqlite" ? 3600 : 900;
    const changed = 300;
    const empty = (await first.compact()).bytesAfter;
    const made = await first.createWorkflow("w", {
      state: { static: staticState(STATIC_BYTES), note: "" },
      retentionPolicy: "history=P100D",
    });
    const writing = await made.canonical();
    for (let step = 1; step <= steps; step++) {
      clock.set(step);
      await writing.update([{ op: "set", path: "/note", value: text(1000 + step, changed) }], {
        step: { action: "execute", record: { name: "work", output: step } },
      });
    }
    await first.close();
    const store = await another();
    // As the writer left it, before anybody tidies up; SQLite's log, which goes on from its beginning, is empty then.
    const left =
      directory === ""
        ? (await store.compact()).bytesBefore
        : statSync(join(directory, "store.db")).size;
    const grown = left - empty;
    const bound = STATIC_BYTES + steps * (1500 + 3 * changed);
    console.log(
      `${backend}: ${steps} steps, ${changed} bytes changed in each: ${grown} bytes, bound ${bound}, ${Math.round((grown - STATIC_BYTES) / steps)} a step`,
    );
    expect(grown).toBeLessThanOrEqual(bound);

    const workflow = await store.workflow("w");
    const { history } = await workflow.applyRetention({ graceMs: 0 });
    expect(history).toMatchObject({ boundaries: 1, removed: { commits: history?.commits } });
    // A commit a day: of the last hundred days those stay.
    expect(history?.commits).toBe(steps + 1 - 101);
    const { bytesBefore, bytesAfter } = await store.compact();
    const stays = STATIC_BYTES + 101 * (1500 + 3 * changed);
    // Log entries of what was dropped stay, and so does the list of it.
    const onRecord = steps * 400 + 100_000;
    console.log(
      `${backend}: thinned to 101 commits: ${bytesBefore} bytes before, ${bytesAfter - empty} after, ${Math.round((bytesAfter - empty - STATIC_BYTES) / steps)} a step that was dropped`,
    );
    expect(bytesAfter - empty).toBeLessThan(stays + onRecord);
    expect((await workflow.fsck()).problems).toEqual([]);
    expect(await workflow.stateAt("canonical")).toMatchObject({
      note: text(1000 + steps, changed),
    });
  });
});

describe.each(DISK)("many threads of one workflow, on %s (OPS-01)", (backend) => {
  it("grow by what they change, are told apart, and give their space back", async () => {
    const clock = dayClock();
    const { store } = await makeStore(backend);
    const threads = 32;
    const each = WHOLE ? 113 : 12;
    const changed = 300;
    const workflow = await store.createWorkflow("w", {
      state: { static: staticState(STATIC_BYTES), note: "" },
      retentionPolicy: "payload=P30D;history=P30D",
    });
    clock.set(1);
    const before = (await store.compact()).bytesAfter;
    await Promise.all(
      Array.from({ length: threads }, async (_, thread) => {
        const agent = `agent-${thread}`;
        const branch = await workflow.branch({ agent, branch: "work" });
        for (let step = 0; step < each; step++) {
          const value = text(1000 * thread + step, changed);
          await branch.update([{ op: "set", path: "/note", value }], {
            step: { action: "execute", record: { name: "work", output: step } },
          });
        }
      }),
    );
    const steps = threads * each;
    const grown = (await store.compact()).bytesAfter - before;
    console.log(`${backend}: ${steps} steps of ${threads} threads: ${grown} bytes`);
    expect(grown).toBeLessThanOrEqual(steps * (1500 + 3 * changed));

    const stats = await workflow.stats();
    expect(stats.agents.map(({ agent }) => agent)).toEqual([
      null,
      ...Array.from({ length: threads }, (_, i) => `agent-${i}`).sort(),
    ]);
    for (const { agent, branches, own, shared } of stats.agents.slice(1)) {
      expect({ agent, branches, commits: own.commits }).toEqual({
        agent,
        branches: 1,
        commits: each,
      });
      expect(own.bytes).toBeGreaterThan(each * changed);
      expect(own.bytes).toBeLessThan(each * (1500 + 3 * changed));
      // Canonical's only commit, whose state is most of what each has.
      expect(shared.commits).toBe(1);
      expect(shared.bytes).toBeGreaterThan(STATIC_BYTES);
    }
    const sum = [...stats.agents.map(({ own }) => own), stats.others, stats.unreached];
    expect(sum.reduce((all, { commits }) => all + commits, 1)).toBe(stats.total.commits);

    // All is over but the heads: what they stand on parts at canonical's first commit, and stays till they go.
    clock.set(60);
    const retained = await workflow.applyRetention({ graceMs: 0 });
    expect(retained.payload?.commits).toBe(steps + 1);
    expect(retained.history?.kept).toMatchObject({ branches: 33, bases: steps - threads });
    for (let thread = 0; thread < threads; thread++) {
      await workflow.deleteBranch(`agent-${thread}/work`);
    }
    const again = await workflow.applyRetention({ graceMs: 0 });
    expect(again.history?.removed?.commits).toBe(steps);
    const { bytesBefore, bytesAfter } = await store.compact();
    console.log(
      `${backend}: ${bytesBefore} bytes before, ${bytesAfter - before} more than at first`,
    );
    // Logs stay, and the records of what went.
    expect(bytesAfter - before).toBeLessThan(steps * 450 + 50_000);
    expect((await workflow.stats()).agents).toHaveLength(1);
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});
