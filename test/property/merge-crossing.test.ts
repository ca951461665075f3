import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue, Strategy, Workflow } from "../../src/index.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const RUNS = Number(process.env.AGSTATE_RUNS ?? 150);
const runs = (share: number) => ({ numRuns: Math.max(5, Math.ceil(RUNS * share)) });
let created = 0;

/** Two branches beside canonical that begin with the same state. */
async function two(
  create: (id: string) => Promise<Workflow>,
): Promise<{ workflow: Workflow; names: readonly [string, string] }> {
  const workflow = await create(`w${created++}`);
  for (const agent of ["a", "b"]) await workflow.branch({ agent, branch: "x" });
  return { workflow, names: ["agents/a/x", "agents/b/x"] };
}

/** Each of two branches merges the other as it was before: from then on they have two merge bases. */
async function cross(
  workflow: Workflow,
  [a, b]: readonly [string, string],
  choose: (into: string) => JsonValue | undefined = () => undefined,
): Promise<void> {
  const [headA, headB] = [await workflow.resolve(a), await workflow.resolve(b)];
  for (const [into, source] of [
    [a, headB],
    [b, headA],
  ] as const) {
    const value = choose(into);
    const resolve = () => (value === undefined ? undefined : { value });
    expect(
      (await workflow.merge([source], { into, resolve, fastForward: "never" })).conflicts,
    ).toEqual([]);
  }
  expect((await workflow.mergeBases(a, b)).sort()).toEqual([headA, headB].sort());
}

describe.each(BACKENDS)("histories that cross, on %s", (backend) => {
  it("count every change once, and hold every element once", async () => {
    const { store } = await makeStore(backend);
    const round = fc.record({
      adds: fc.tuple(fc.integer({ min: -5, max: 5 }), fc.integer({ min: -5, max: 5 })),
      logs: fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 })),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(round, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(0, 3, 300),
        async (rounds, size) => {
          const log = Array.from({ length: size }, (_, i) => `old ${i}`);
          const policies = { "/n": "sum", "/log": "append", "/tags": "union" } as const;
          const { workflow, names } = await two((id) =>
            store.createWorkflow(id, { state: { n: 10, log, tags: ["t"] }, policies }),
          );
          const elements: string[] = [...log];
          let n = 10;
          for (const [r, { adds, logs }] of rounds.entries()) {
            for (const side of [0, 1] as const) {
              const branch = await workflow.branch(names[side]);
              const state = (await branch.state()) as { n: number; log: string[]; tags: string[] };
              const added = Array.from({ length: logs[side] }, (_, i) => `${r} ${side} ${i}`);
              elements.push(...added);
              n += adds[side];
              await branch.commit({
                state: {
                  n: state.n + adds[side],
                  log: [...state.log, ...added],
                  tags: [...state.tags, ...added],
                },
              });
            }
            await cross(workflow, names);
          }
          for (const name of names) {
            const state = (await workflow.stateAt(name)) as {
              n: number;
              log: string[];
              tags: string[];
            };
            expect(state.n).toBe(n);
            expect([...state.log].sort()).toEqual([...elements].sort());
            expect(state.log.slice(0, size)).toEqual(log);
            expect([...state.tags].sort()).toEqual(["t", ...elements.slice(size)].sort());
          }
          const { commit } = await workflow.merge(names, { fastForward: "never" });
          const { log: all, ...others } = (await workflow.stateAt(commit?.id as string)) as {
            n: number;
            log: string[];
            tags: string[];
          };
          expect(others.n).toBe(n);
          expect([...all].sort()).toEqual([...elements].sort());
        },
      ),
      runs(0.04),
    );
  });

  it("are in conflict again where a conflict was resolved differently, and agree where it was not", async () => {
    const { store } = await makeStore(backend);
    const value = fc.constantFrom<JsonValue[]>(
      1,
      2,
      "x",
      null,
      { in: 1 },
      { in: 2 },
      [1],
      "long ".repeat(500),
    );
    await fc.assert(
      fc.asyncProperty(value, value, fc.constantFrom("", "/deep"), async (one, other, at) => {
        const state = (v: JsonValue) => (at === "" ? { v, w: 0 } : { deep: { v }, w: 0 });
        const { workflow, names } = await two((id) =>
          store.createWorkflow(id, { state: state("base") }),
        );
        for (const name of names)
          await (await workflow.branch(name)).commit({ state: state(`by ${name}`) });
        await cross(workflow, names, (into) => (into === names[0] ? one : other));

        const result = await workflow.merge([names[1]], { into: names[0] });
        if (JSON.stringify(one) === JSON.stringify(other)) {
          expect(result.conflicts).toEqual([]);
          expect(await workflow.stateAt(names[0])).toEqual(state(one));
          return;
        }
        expect(result.status).toBe("conflict");
        expect(
          result.conflicts.map(({ path, base, ours, theirs }) => [
            path,
            base,
            ours.exists && ours.value,
            theirs.exists && theirs.value,
          ]),
        ).toEqual([[`${at}/v`, { exists: false, ambiguous: true }, one, other]]);
      }),
      runs(0.06),
    );
  });

  it("never let a source change the rule that it is merged by, and tell what was in force", async () => {
    const { store } = await makeStore(backend);
    const strategy = fc.constantFrom<Strategy[]>("ours", "theirs", "sum", "max", "min", "manual");
    await fc.assert(
      fc.asyncProperty(
        strategy,
        fc.option(strategy, { nil: null }),
        fc.option(strategy, { nil: null }),
        async (mine, its, call) => {
          const { workflow, names } = await two((id) =>
            store.createWorkflow(id, { state: { n: 10 }, policies: { "/n": mine } }),
          );
          const source = await workflow.branch(names[0]);
          await source.setPolicies({ "/n": its });
          await source.commit({ state: { n: 13 } });
          const canonical = await workflow.canonical();
          await canonical.commit({ state: { n: 11 } });
          const results = { ours: 11, theirs: 13, sum: 14, max: 13, min: 11 } as Record<
            string,
            number | undefined
          >;
          const policies = call === null ? {} : { "/n": call };
          const inForce = call ?? mine;
          const merged = await workflow.merge([names[0]], { policies });
          const expected = results[inForce];
          if (expected === undefined) {
            expect(merged.conflicts.map(({ part, path }) => [part, path])).toEqual([
              ["state", "/n"],
            ]);
            return;
          }
          expect(merged.status).toBe("merged");
          expect(await workflow.stateAt("canonical")).toEqual({ n: expected });
          const record = await workflow.mergeRecord("canonical");
          expect(record?.policies).toEqual({ "/n": inForce });
          expect(record?.callPolicies).toEqual(call === null ? undefined : { "/n": call });
          // The source's own rule acts from the next merge.
          expect(await (await workflow.canonical()).policies()).toEqual(
            its === null ? {} : { "/n": its },
          );
          await (await workflow.branch(names[0])).commit({ state: { n: 20 } });
          await (await workflow.canonical()).commit({ state: { n: expected + 1 } });
          const next = await workflow.merge([names[0]]);
          const sums = {
            ours: expected + 1,
            theirs: 20,
            sum: expected + 1 + 7,
            max: Math.max(20, expected + 1),
            min: Math.min(20, expected + 1),
          };
          const wanted =
            its === null ? undefined : (sums as Record<string, number | undefined>)[its];
          expect(next.status).toBe(wanted === undefined ? "conflict" : "merged");
          if (wanted !== undefined)
            expect(await workflow.stateAt("canonical")).toEqual({ n: wanted });
        },
      ),
      runs(0.06),
    );
  });

  it("merge the rules themselves by default rules, whatever the rules say", async () => {
    const { store } = await makeStore(backend);
    const strategy = fc.constantFrom<Strategy[]>("ours", "theirs", "sum", "max", "append");
    const change = fc.option(fc.option(strategy, { nil: null }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(strategy, strategy, change, change, async (all, old, mine, its) => {
        const begin = { "": all, "/*": all, "/*/*": all, "/n": old };
        const { workflow, names } = await two((id) =>
          store.createWorkflow(id, { policies: begin }),
        );
        const source = await workflow.branch(names[0]);
        const canonical = await workflow.canonical();
        const set = async (
          branch: typeof source,
          state: JsonValue,
          to: Strategy | null | undefined,
        ) => {
          if (to !== undefined) await branch.setPolicies({ "/n": to });
          await branch.commit({ state });
        };
        await set(source, { a: 1 }, its);
        await set(canonical, { b: 1 }, mine);
        const [m, i] = [mine === undefined ? old : mine, its === undefined ? old : its];
        const { conflicts } = await workflow.preview([names[0]], { policies: { "": "ours" } });
        const clash = m !== old && i !== old && m !== i;
        expect(conflicts.map(({ part, path }) => [part, path])).toEqual(
          clash ? [["policy", "/~1n"]] : [],
        );
        if (clash) return;
        await workflow.merge([names[0]], { policies: { "": "ours" } });
        const result = m === old ? i : m;
        const { "/n": _, ...others } = begin;
        expect(await (await workflow.canonical()).policies()).toEqual(
          result === null ? others : { ...others, "/n": result },
        );
      }),
      runs(0.05),
    );
  });
});
