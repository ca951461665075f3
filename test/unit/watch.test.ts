import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Move, Moves, Workflow } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

/** The next moves, so many. */
async function take(moves: Moves, count: number): Promise<Move[]> {
  const taken: Move[] = [];
  while (taken.length < count) {
    const { value, done } = await moves.next();
    if (done === true) throw new Error(`ended after ${taken.length} moves`);
    taken.push(value);
  }
  return taken;
}

/** Everything that is in the logs of a workflow's refs, oldest first, by ref. */
async function logs(workflow: Workflow): Promise<Record<string, unknown[]>> {
  const { storage } = workflow.internals;
  const rows = await storage.readRefs(workflow.id, { prefix: "refs/", deleted: true });
  const found: Record<string, unknown[]> = {};
  for (const { name } of rows) {
    const lines = await workflow.reflog(name);
    found[name] = lines.map(({ selector: _, ...line }) => line).reverse();
  }
  return found;
}

/** Moves by ref, in the order in which they were told. */
function byRef(moves: readonly Move[]): Record<string, unknown[]> {
  const found: Record<string, unknown[]> = {};
  for (const { ref, shortName: _, ...line } of moves) {
    found[ref] ??= [];
    found[ref].push(line);
  }
  return found;
}

const branches = (n: number) => ({ agent: "a", branch: `b${n}` });

describe.each(BACKENDS)("watching refs, on %s", (backend) => {
  it("tells of moves of this and of another connection, as the log has them", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const moves = workflow.watch();
    await moves.start();
    const canonical = await workflow.canonical();
    const commit = await canonical.commit({ state: { n: 1 }, message: "One\n\nmore" });
    const [first] = await take(moves, 1);
    expect(first).toMatchObject({
      ref: "refs/heads/canonical",
      shortName: "canonical",
      seq: 2,
      new: commit.id,
      old: commit.parents[0],
      actor: "agstate",
      reason: "One",
    });
    expect(first?.date).toBeInstanceOf(Date);

    const other = await (await another()).workflow("w");
    const waiting = take(moves, 4);
    const branch = await other.branch(branches(1));
    await branch.commit({ state: { n: 2 } });
    await other.deleteBranch("a/b1");
    await other.branch(branches(1));
    const told = await waiting;
    expect(told.map((move) => [move.shortName, move.seq, move.new === null])).toEqual([
      ["agents/a/b1", 1, false],
      ["agents/a/b1", 2, false],
      ["agents/a/b1", 3, true],
      ["agents/a/b1", 4, false],
    ]);
    expect(told[3]?.incarnation).not.toBe(told[0]?.incarnation);
    await moves.return();
  });

  it("tells all moves of a busy ref to a slow consumer, reading a page at a time", async () => {
    let counter: CountingStorage | undefined;
    const { store, another } = await makeStore(backend, {
      wrap: (storage) => {
        counter = counting(storage);
        return counter.storage;
      },
    });
    const workflow = await store.createWorkflow("w");
    const moves = workflow.watch("canonical");
    await moves.start();
    const writer = await (
      await (await another({ wrap: (storage) => storage })).workflow("w")
    ).canonical();
    const ids: string[] = [];
    for (let n = 1; n <= 1050; n++) ids.push((await writer.commit({ state: { n } })).id);
    counter?.reset();
    const told = await take(moves, 1);
    const { readReflog, readRefs } = counter?.counts().calls ?? {};
    // On memory the writer's calls are counted as well; it reads neither.
    expect({ readReflog, readRefs }).toEqual({ readReflog: 1, readRefs: 1 });
    told.push(...(await take(moves, 1049)));
    expect(told.map((move) => move.new)).toEqual(ids);
    await moves.return();
  });

  it("begins with what is there, at the start of the logs, or after what was seen", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch(branches(1));
    await branch.commit({ state: { n: 1 } });
    await workflow.deleteBranch("a/b1");

    const fromStart = workflow.watch("*", { from: "start" });
    const all = await take(fromStart, 5);
    expect(byRef(all)).toEqual(await logs(workflow));
    expect(fromStart.seen).toEqual({
      "refs/audit/workflow": 1,
      "refs/heads/agents/a/b1": 3,
      "refs/heads/canonical": 1,
    });
    await fromStart.return();

    const fromNow = workflow.watch();
    await fromNow.start();
    const { seen } = fromNow;
    expect(seen).toEqual(fromStart.seen);
    await fromNow.return();
    // While nobody watches: an old ref is made anew, and one that is new comes and goes.
    await workflow.branch(branches(1));
    await workflow.branch(branches(2));
    await workflow.deleteBranch("a/b2");
    const again = workflow.watch("a/*", { from: JSON.parse(JSON.stringify(seen)) });
    expect((await take(again, 3)).map((move) => [move.shortName, move.seq])).toEqual([
      ["agents/a/b1", 4],
      ["agents/a/b2", 1],
      ["agents/a/b2", 2],
    ]);
    await again.return();
  });

  it("tells only of what the pattern matches", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const one = workflow.watch("a/b2");
    const some = workflow.watch("refs/heads/agents/*");
    await Promise.all([one.start(), some.start()]);
    await (await workflow.canonical()).commit({ state: { n: 1 } });
    await workflow.branch(branches(1));
    await workflow.tag("b2", "canonical");
    await workflow.branch(branches(2));
    expect((await take(one, 1))[0]?.ref).toBe("refs/heads/agents/a/b2");
    expect((await take(some, 2)).map((move) => move.ref)).toEqual([
      "refs/heads/agents/a/b1",
      "refs/heads/agents/a/b2",
    ]);
    await Promise.all([one.return(), some.return()]);
  });

  it("ends by break, by return while it waits, by the signal, and with the store", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const first = workflow.watch("*", { from: "start" });
    for await (const move of first) {
      expect(move.seq).toBe(1);
      break;
    }
    expect(await first.next()).toEqual({ done: true, value: undefined });

    const returned = workflow.watch();
    await returned.start();
    const waiting = returned.next();
    await returned.return();
    expect(await waiting).toEqual({ done: true, value: undefined });

    const stop = new AbortController();
    const aborted = workflow.watch("*", { signal: stop.signal });
    const waits = aborted.next();
    await aborted.start();
    stop.abort();
    expect((await waits).done).toBe(true);
    const never = workflow.watch("*", { signal: stop.signal, from: "start" });
    expect((await never.next()).done).toBe(true);
    const unasked = workflow.watch();
    expect((await unasked.return()).done).toBe(true);

    // In the midst of what there is to tell, too.
    const between = new AbortController();
    const some = workflow.watch("*", { signal: between.signal, from: "start" });
    await take(some, 1);
    between.abort();
    expect((await some.next()).done).toBe(true);

    const open = workflow.watch();
    await open.start();
    const last = open.next();
    await store.close();
    expect((await last).done).toBe(true);
    await expect(workflow.watch().next()).rejects.toThrow(agstateError("STORE_CLOSED"));
  });

  it("loses nothing and tells nothing twice, whatever moves, whenever it is asked, over restarts", async () => {
    const { store, another } = await makeStore(backend);
    const other = await another();
    let runs = 0;
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom("commit", "delete", "reset"), branch: fc.nat(2) }),
      fc.record({ do: fc.constant("take"), branch: fc.nat(3) }),
      fc.record({ do: fc.constant("restart"), branch: fc.constant(0) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const id = `w${runs++}`;
        await store.createWorkflow(id);
        const [watched, written] = [await store.workflow(id), await other.workflow(id)];
        let moves = watched.watch("*", { from: "start" });
        const told: Move[] = [];
        let made = 2;
        for (const { do: what, branch: n } of steps) {
          const there = (await written.refs("refs/heads/agents/")).some(
            (ref) => ref.shortName === `agents/a/b${n}`,
          );
          if (what === "commit") {
            const branch = await written.branch(branches(n));
            await branch.commit({ state: { made }, allowEmpty: true });
            made += there ? 1 : 2;
          } else if (what === "delete" && there) {
            await written.deleteBranch(`a/b${n}`);
            made++;
          } else if (what === "reset" && there) {
            await written.reset(`a/b${n}`, "canonical");
            made++;
          } else if (what === "take") {
            told.push(...(await take(moves, Math.min(n, made - told.length))));
          } else if (what === "restart") {
            const { seen } = moves;
            await moves.return();
            moves = watched.watch("*", { from: seen });
            // What was seen is known even before anything is read.
            await moves.start();
          }
        }
        told.push(...(await take(moves, made - told.length)));
        await moves.return();
        expect(byRef(told)).toEqual(await logs(watched));
      }),
      { numRuns: backend === "postgres" ? 15 : 40 },
    );
  });
});

describe("watching refs", () => {
  it("refuses what is no pattern or no place to begin at", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    expect(() => workflow.watch("a b")).toThrow(agstateError("INVALID_NAME", { name: "a b" }));
    for (const from of ["end", 5, { canonical: 1 }, { "refs/heads/canonical": -1 }]) {
      expect(() => workflow.watch("*", { from: from as "now" })).toThrow(
        agstateError("INVALID_ARGUMENT"),
      );
    }
    const ahead = workflow.watch("*", { from: { "refs/heads/canonical": 7 } });
    await expect(take(ahead, 3)).rejects.toThrow(
      agstateError("INVALID_ARGUMENT", { ref: "refs/heads/canonical", seen: 7, last: 1 }),
    );
  });

  it("says so when a log lacks an entry, and tells nothing wrong", async () => {
    const { store } = await makeStore("memory", {
      wrap: (good) => ({
        ...forward(good),
        readReflog: async (w, ref, options) =>
          (await good.readReflog(w, ref, options)).filter((entry) => entry.seq > 1),
      }),
    });
    const workflow = await store.createWorkflow("w");
    await (await workflow.canonical()).commit({ state: { n: 1 } });
    const moves = workflow.watch("canonical", { from: "start" });
    await expect(moves.next()).rejects.toThrow(
      agstateError("STORE_DAMAGED", { ref: "refs/heads/canonical", seq: 1 }),
    );
    expect((await moves.next()).done).toBe(true);
  });

  it("lets go of the storage when it ends", async () => {
    let open = 0;
    const { store } = await makeStore("memory", {
      wrap: (good) => ({
        ...forward(good),
        async watch(w, wake) {
          const watch = await good.watch(w, wake);
          open++;
          return {
            async close() {
              open--;
              await watch.close();
            },
          };
        },
      }),
    });
    const workflow = await store.createWorkflow("w");
    const moves = workflow.watch("*", { from: "start" });
    await moves.next();
    expect(open).toBe(1);
    await moves.return();
    await moves.return();
    expect(open).toBe(0);
  });
});
