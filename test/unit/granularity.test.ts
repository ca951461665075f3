import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AgstateError, type Granularity } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const LONG = 600_000;

describe.each(BACKENDS)("granularity on %s", (backend) => {
  async function begin(granularity: Granularity, state: unknown = { n: 0, list: [] }) {
    const counters: CountingStorage[] = [];
    const wrap = (storage: Storage) => {
      const counter = counting(storage);
      counters.push(counter);
      return counter.storage;
    };
    const { store, another } = await makeStore(backend, { wrap });
    const workflow = await store.createWorkflow("w", { state });
    const branch = await workflow.branch({ agent: "a", branch: "x", granularity });
    counters[0]?.reset();
    /** The branch as others see it. */
    const other = async () => (await (await another()).workflow("w")).branch("a/x");
    return { store, workflow, branch, other, writes: () => counters[0]?.counts().calls.write };
  }

  const set = (n: number) => [{ op: "set", path: "/n", value: n }] as const;
  const add = (value: unknown) => [{ op: "append", path: "/list", values: [value] }] as const;

  it("gathers plain updates and lands them in one write, each as a commit", async () => {
    const { workflow, branch, other, writes } = await begin({ every: { ms: LONG } });
    const before = branch.head.id;
    for (let i = 1; i <= 20; i++) {
      await branch.update(add({ i, text: "x".repeat(300) }), { message: `add ${i}` });
    }
    await branch.commit({ state: { ...((await branch.state()) as object), n: 20 } });
    expect(writes()).toBe(0);
    expect(branch.gathered).toBe(21);
    expect(branch.head.id).not.toBe(before);
    expect((await other()).head.id).toBe(before);
    expect(await branch.state("/n")).toBe(20);
    expect(await branch.state("/list/19/i")).toBe(20);
    const head = await branch.flush();
    expect(writes()).toBe(1);
    expect(branch.gathered).toBe(0);
    const there = await other();
    expect(there.head.id).toBe(head.id);
    expect(await there.state()).toEqual(await branch.state());
    const messages = (await all(there.log({ limit: 21 }))).map(({ message }) => message);
    expect(messages).toEqual(["", ...Array.from({ length: 20 }, (_, i) => `add ${20 - i}`)]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("lands what it gathered when there are so many, and when the first has waited so long", async () => {
    const counted = await begin({ every: { steps: 5, ms: LONG } });
    for (let i = 1; i <= 12; i++) await counted.branch.update(set(i));
    expect(counted.writes()).toBe(2);
    expect(counted.branch.gathered).toBe(2);
    const timed = await begin({ every: { ms: 50 } });
    await timed.branch.update(set(1));
    await timed.branch.update(set(2));
    expect(timed.branch.gathered).toBe(2);
    while (timed.branch.gathered > 0) await sleep(10);
    expect(timed.writes()).toBe(1);
    expect(await (await timed.other()).state("/n")).toBe(2);
  });

  it("keeps what it gathered when the store fails, and not what was to come on top", async () => {
    let fails = false;
    const wrap = (storage: Storage): Storage => ({
      ...forward(storage),
      async write(batch) {
        if (fails) throw new AgstateError("STORE_BUSY", "the store is busy");
        return storage.write(batch);
      },
    });
    const { store } = await makeStore(backend, { wrap });
    const workflow = await store.createWorkflow("w", { state: { n: 0, list: [] } });
    const granularity = { every: { steps: 3, ms: LONG } };
    const branch = await workflow.branch({ agent: "a", branch: "x", granularity });
    await branch.update(add(1));
    await branch.update(add(2));
    fails = true;
    await expect(branch.update(add(3))).rejects.toEqual(agstateError("STORE_BUSY"));
    expect(branch.gathered).toBe(2);
    expect(await branch.state("/list")).toEqual([1, 2]);
    fails = false;
    await branch.update(add(3));
    expect(branch.gathered).toBe(0);
    expect(await branch.state("/list")).toEqual([1, 2, 3]);
    expect(await workflow.stateAt("a/x", "/list")).toEqual([1, 2, 3]);
  });

  it("lands intents, seals and answers of models at once, with what was gathered before them", async () => {
    const { branch, other, writes } = await begin({ every: { ms: LONG } });
    const read = (name: string) => branch.step({ name, action: "read", memoize: true }, () => name);
    await read("r1");
    await branch.update(set(1));
    await read("r2");
    expect(writes()).toBe(0);
    await branch.step({ name: "effect", action: "write" }, async () => {
      expect(branch.gathered).toBe(0);
      expect((await other()).head.inFlight).toEqual([3]);
    });
    expect(writes()).toBe(2);
    await read("r3");
    await branch.step({ name: "think", action: "inference" }, () => "hm");
    expect(writes()).toBe(3);
    expect(branch.gathered).toBe(0);
    const steps = await all((await other()).steps());
    expect(steps.map(({ name, number }) => `${number} ${name}`)).toEqual([
      "5 think",
      "4 r3",
      "3 effect",
      "2 r2",
      "1 r1",
    ]);
  });

  it("tells what is lost when somebody else has moved the branch, once", async () => {
    const { branch, other } = await begin({ every: { ms: LONG } });
    await branch.update(set(1));
    await branch.update(set(2));
    await (await other()).update(add("by another"));
    await expect(branch.flush()).rejects.toEqual(agstateError("REF_CONFLICT", { gathered: 2 }));
    await branch.refresh();
    expect(await branch.state()).toEqual({ n: 0, list: ["by another"] });
    await branch.update(set(3));
    await branch.flush();
    expect(await (await other()).state()).toEqual({ n: 3, list: ["by another"] });
  });

  it("tells whoever calls next of what was lost meanwhile, or who closes the store", async () => {
    const { store, branch, other } = await begin({ every: { ms: 20 } });
    const lose = async () => {
      await (await other()).update(add("by another"));
      await branch.update(set(1));
      while (branch.gathered > 0) await sleep(5);
    };
    await lose();
    const lost = agstateError("REF_CONFLICT", { gathered: 1 });
    await expect(branch.update(set(2))).rejects.toEqual(lost);
    await branch.refresh();
    if (backend === "memory") return;
    await lose();
    await expect(store.close()).rejects.toEqual(lost);
  });

  it("lands what was gathered when the store is closed", async () => {
    const { store, branch, other } = await begin({ every: { ms: LONG } });
    const there = await other();
    await branch.update(set(7));
    if (backend === "memory") return void (await branch.flush());
    await store.close();
    await there.refresh();
    expect(await there.state("/n")).toBe(7);
  });

  it("fences a run off whose gathered steps were lost, and does them again", async () => {
    const { workflow, branch, other } = await begin({ every: { ms: LONG } });
    const calls: string[] = [];
    const work = (meanwhile: () => Promise<void>) =>
      workflow.run(branch, async (ctx) => {
        const seen = await ctx.step({ name: "look", action: "read", memoize: true }, () => {
          calls.push("look");
          return calls.length;
        });
        await meanwhile();
        return ctx.step({ name: "book", input: { seen } }, () => {
          calls.push("book");
          return "booked";
        });
      });
    const failed = work(async () => {
      await (await other()).update(add("by another"));
    });
    await expect(failed).rejects.toEqual(agstateError("REF_CONFLICT", { gathered: 2 }));
    expect(calls).toEqual(["look"]);
    expect(await work(async () => undefined)).toBe("booked");
    expect(calls).toEqual(["look", "look", "book"]);
    expect(branch.gathered).toBe(0);
  });

  it("is refused where it makes no sense", async () => {
    const { workflow } = await begin("every-step");
    for (const every of [{}, { steps: 0 }, { ms: 1.5 }, { steps: 10_001 }]) {
      const opened = workflow.branch("a/x", { granularity: { every } });
      await expect(opened).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    }
  });

  const edit = fc.oneof(
    fc.record({ kind: fc.constant("set" as const), n: fc.nat(9) }),
    fc.record({ kind: fc.constant("add" as const), n: fc.nat(400) }),
    fc.record({ kind: fc.constant("state" as const), n: fc.nat(5) }),
    fc.record({ kind: fc.constant("read" as const), n: fc.nat(9) }),
    fc.record({ kind: fc.constant("effect" as const), n: fc.nat(9) }),
    fc.record({ kind: fc.constant("flush" as const), n: fc.constant(0) }),
  );

  it("makes the same history as landing each commit by itself", async () => {
    const run = async (edits: { kind: string; n: number }[], steps: number) => {
      const { store, another } = await makeStore(backend);
      const workflow = await store.createWorkflow("w", { state: { n: 0, list: [] } });
      const told: unknown[] = [];
      const granularities: Granularity[] = ["every-step", { every: { steps, ms: LONG } }];
      for (const [i, granularity] of granularities.entries()) {
        const branch = await workflow.branch({ agent: "a", branch: `x${i}`, granularity });
        for (const { kind, n } of edits) {
          if (kind === "set") await branch.update(set(n));
          else if (kind === "add") await branch.update(add("y".repeat(n * 10)));
          else if (kind === "flush") await branch.flush();
          else if (kind === "state") {
            const state = (await branch.state()) as object;
            await branch.commit({ state: { ...state, [`k${n}`]: "z".repeat(n * 900) } });
          } else {
            const spec = kind === "read" ? ({ action: "read", memoize: true } as const) : {};
            await branch.step({ name: kind, input: n, ...spec, update: () => set(n) }, () => n);
          }
        }
        await branch.flush();
        const there = await (await (await another()).workflow("w")).branch(`a/x${i}`);
        expect(there.head.id).toBe(branch.head.id);
        const log = (await all(there.log())).map(({ message, step, nextStep, inFlight }) => ({
          message,
          step: step === null ? null : { ...step, key: undefined },
          nextStep,
          inFlight,
        }));
        told.push({ log, state: await there.state() });
        expect((await workflow.fsck()).problems).toEqual([]);
      }
      expect(told[1]).toEqual(told[0]);
    };
    const edits = fc.array(edit, { maxLength: 25 });
    await fc.assert(fc.asyncProperty(edits, fc.integer({ min: 1, max: 6 }), run), { numRuns: 15 });
  });
});
