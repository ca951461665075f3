import { describe, expect, it } from "vitest";
import type {
  JsonValue,
  MergeOptions,
  Policies,
  Resolution,
  Strategy,
  Workflow,
} from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore, parsed, snapshot } from "../support/stores.js";

/** The branch of an agent, with a state committed to it. */
async function withState(
  workflow: Workflow,
  agent: string,
  state: unknown,
  from = "canonical",
  date?: Date,
) {
  const branch = await workflow.branch({ agent, branch: "x", from });
  return branch.commit({ state, ...(date === undefined ? {} : { date }) });
}

describe.each(BACKENDS)("merge bases, on %s (MRG-01)", (backend) => {
  async function begin(state: unknown = { v: "base" }, policies: Policies = {}) {
    const { store } = await makeStore(backend);
    return store.createWorkflow("w", { state, policies });
  }

  it("is reached by the graph alone, however long one branch is beside the other", async () => {
    const workflow = await begin();
    const early = await workflow.resolve("canonical");
    await (await workflow.canonical()).commit({ state: { v: "later" } });
    const late = await workflow.resolve("canonical");
    const long = await workflow.branch({ agent: "long", branch: "x" });
    for (let i = 0; i < 40; i++) await long.commit({ state: { v: "later", i } });
    // A branch from before, that took the later commit in by a merge: two ways lead to the early one.
    await withState(workflow, "short", { v: "base", s: 1 }, early);
    await workflow.merge([late], { into: "short/x" });
    expect(await workflow.mergeBases("long/x", "short/x")).toEqual([late]);
    const { status, conflicts } = await workflow.merge(["long/x"], { into: "short/x" });
    expect([status, conflicts]).toEqual(["merged", []]);
    // By the early commit as the base, `v` would have been changed by both.
    expect(await workflow.stateAt("short/x")).toEqual({ v: "later", i: 39, s: 1 });
  });

  it("does not look at dates", async () => {
    const workflow = await begin();
    const canonical = await workflow.canonical();
    const date = (year: number) => new Date(Date.UTC(year, 0, 1));
    const old = canonical.head.id;
    // The best common ancestor is dated long before its own ancestors.
    const { id: base } = await canonical.commit({ state: { v: 2 }, date: date(1971) });
    await withState(workflow, "a", { v: 2, a: 1 }, "canonical", date(2090));
    await withState(workflow, "b", { v: 2, b: 1 }, "canonical", date(1970));
    expect(await workflow.mergeBases("a/x", "b/x")).toEqual([base]);
    expect(await workflow.mergeBases("a/x", "b/x", old)).toEqual([base]);
    expect((await workflow.merge(["b/x"], { into: "a/x" })).status).toBe("merged");
    expect(await workflow.stateAt("a/x")).toEqual({ v: 2, a: 1, b: 1 });
  });

  it("makes one base of two", async () => {
    const workflow = await begin({ n: 0, v: "base" }, { "/n": "sum" });
    const a = await withState(workflow, "a", { n: 1, v: "base" });
    const b = await withState(workflow, "b", { n: 10, v: "changed" });
    await workflow.merge([b.id], { into: "a/x" });
    await workflow.merge([a.id], { into: "b/x" });
    expect((await workflow.mergeBases("a/x", "b/x")).sort()).toEqual([a.id, b.id].sort());
    await (await workflow.branch("a/x")).commit({ state: { n: 12, v: "changed" } });
    await (await workflow.branch("b/x")).commit({ state: { n: 13, v: "again" } });
    const { status } = await workflow.merge(["b/x"], { into: "a/x" });
    expect(status).toBe("merged");
    // Either base alone would count what the other brought once more.
    expect(await workflow.stateAt("a/x")).toEqual({ n: 14, v: "again" });
    const record = await workflow.mergeRecord("a/x");
    expect([...(record?.sources[0]?.bases ?? [])].sort()).toEqual([a.id, b.id].sort());
  });

  it("goes forward to a descendant, and does nothing with an ancestor", async () => {
    const workflow = await begin();
    const { id } = await withState(workflow, "a", { v: 1 });
    const base = await workflow.resolve("canonical");
    expect(await workflow.mergeBases("a/x", "canonical")).toEqual([base]);
    expect((await workflow.merge(["canonical"], { into: "a/x" })).status).toBe("up-to-date");
    const forward = await workflow.merge(["a/x"]);
    expect([forward.status, forward.commit?.id]).toEqual(["fast-forward", id]);
    expect(await workflow.resolve("canonical")).toBe(id);
  });

  it("refuses histories that have no commit in common, unless that is meant", async () => {
    const workflow = await begin({ v: 1 });
    const before = await snapshot(workflow);
    expect(await workflow.mergeBases("canonical", "audit/workflow")).toEqual([]);
    const refused = agstateError("UNRELATED_HISTORIES", { into: "canonical" });
    await expect(workflow.merge(["audit/workflow"])).rejects.toThrow(refused);
    await expect(workflow.preview(["audit/workflow"])).rejects.toThrow(refused);
    expect(await snapshot(workflow)).toEqual(before);
    const { status } = await workflow.merge(["audit/workflow"], { allowUnrelated: true });
    expect(status).toBe("merged");
    expect(await workflow.stateAt("canonical")).toMatchObject({ v: 1, workflow: "w" });
  });
});

interface Clash {
  readonly base: JsonValue;
  readonly ours: JsonValue;
  readonly theirs: JsonValue;
  readonly policies?: Policies;
  /** Path, kind, and the three values; undefined where there is none. */
  readonly conflict: readonly [
    string,
    string,
    JsonValue | undefined,
    JsonValue | undefined,
    JsonValue | undefined,
  ];
}

const LONG = "line\n".repeat(1000);
const manyKeys = (own: object) => ({
  ...Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, i])),
  ...own,
});

const CLASHES: Record<string, Clash> = {
  "an element deleted and edited": {
    base: { f: [{ id: 1, n: "a" }] },
    ours: { f: [] },
    theirs: { f: [{ id: 1, n: "b" }] },
    conflict: ["/f", "list", [{ id: 1, n: "a" }], [], [{ id: 1, n: "b" }]],
  },
  "an element deleted and edited, by id": {
    base: { f: [{ id: 1, n: "a" }, { id: 2 }] },
    ours: { f: [{ id: 2 }] },
    theirs: { f: [{ id: 1, n: "b" }, { id: 2 }] },
    policies: { "/f": "by-id:id" },
    conflict: ["/f/id=1", "edit/delete", { id: 1, n: "a" }, undefined, { id: 1, n: "b" }],
  },
  "an element edited and deleted, by id": {
    base: { f: [{ id: "1", n: "a" }] },
    ours: { f: [{ id: "1", n: "b" }] },
    theirs: { f: [] },
    policies: { "/f": "by-id:id" },
    conflict: ['/f/id="1"', "edit/delete", { id: "1", n: "a" }, { id: "1", n: "b" }, undefined],
  },
  "a key deleted and edited": {
    base: { a: 1, k: { deep: 1 } },
    ours: { a: 1 },
    theirs: { a: 1, k: { deep: 2 } },
    conflict: ["/k", "edit/delete", { deep: 1 }, undefined, { deep: 2 }],
  },
  "a key edited and deleted, in a large object": {
    base: manyKeys({ k: LONG }),
    ours: manyKeys({ k: `${LONG}more` }),
    theirs: manyKeys({}),
    conflict: ["/k", "edit/delete", LONG, `${LONG}more`, undefined],
  },
  "a key nulled and edited": {
    base: { k: 1 },
    ours: { k: null },
    theirs: { k: 2 },
    conflict: ["/k", "type", 1, null, 2],
  },
  "a key deleted and nulled": {
    base: { k: 1 },
    ours: {},
    theirs: { k: null },
    conflict: ["/k", "edit/delete", 1, undefined, null],
  },
  "a type changed, and what was there edited": {
    base: { k: { a: 1 } },
    ours: { k: [1] },
    theirs: { k: { a: 2 } },
    conflict: ["/k", "type", { a: 1 }, [1], { a: 2 }],
  },
  "two added, of one name": {
    base: {},
    ours: { k: [1] },
    theirs: { k: [2] },
    conflict: ["/k", "add/add", undefined, [1], [2]],
  },
  "the whole state replaced, and a part edited": {
    base: { k: 1 },
    ours: "done",
    theirs: { k: 2 },
    conflict: ["", "type", { k: 1 }, "done", { k: 2 }],
  },
};

describe.each(BACKENDS)("one side removes what the other edits, on %s (MRG-03)", (backend) => {
  it.each(Object.entries(CLASHES))(
    "%s",
    async (_, { base, ours, theirs, policies = {}, conflict }) => {
      const { store } = await makeStore(backend);
      const value = (side: { exists: boolean; value?: JsonValue }) =>
        side.exists ? side.value : undefined;
      for (const flipped of [false, true]) {
        const workflow = await store.createWorkflow(`w ${flipped}`, { state: base, policies });
        const source = await withState(workflow, "a", flipped ? ours : theirs);
        const target = await (await workflow.canonical()).commit({
          state: flipped ? theirs : ours,
        });
        const before = await snapshot(workflow);
        const { status, conflicts, commit } = await workflow.merge(["a/x"]);
        expect([status, commit, conflicts.length]).toEqual(["conflict", null, 1]);
        const [found] = conflicts as [(typeof conflicts)[0]];
        const [path, kind, b, o, t] = conflict;
        expect([found.path, found.kind, value(found.base)]).toEqual([path, kind, b]);
        expect([value(found.ours), value(found.theirs)]).toEqual(flipped ? [t, o] : [o, t]);
        expect([found.ours.branch, found.theirs.branch]).toEqual(["canonical", "agents/a/x"]);
        expect([found.ours.writer?.id, found.theirs.writer?.id]).toEqual([target.id, source.id]);
        expect(await snapshot(workflow)).toEqual(before);

        // A named policy decides, and so does whoever is asked.
        const pattern = path.replace(/\/id=.*/, "/*");
        for (const [strategy, expected] of [
          ["ours", flipped ? theirs : ours],
          ["theirs", flipped ? ours : theirs],
        ] as const) {
          const preview = await workflow.preview(["a/x"], { policies: { [pattern]: strategy } });
          expect(preview.status).toBe("merged");
          expect(await preview.state()).toEqual(expected);
          const asked = await workflow.preview(["a/x"], { resolve: () => ({ take: strategy }) });
          expect(await asked.state()).toEqual(expected);
        }
      }
    },
  );
});

const POLLUTION = '{"polluted":true,"toString":"x"}';

describe.each(BACKENDS)("keys that reach for prototypes, on %s (MRG-06)", (backend) => {
  const clean = () => {
    expect(({} as { polluted?: unknown }).polluted).toBe(undefined);
    expect(typeof {}.toString).toBe("function");
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(([] as { polluted?: unknown }).polluted).toBe(undefined);
  };

  it("are data in what is merged, and in what a resolver gives", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: parsed('{"constructor":{"prototype":{"a":1}},"v":0}'),
    });
    const theirs = parsed(
      `{"__proto__":${POLLUTION},"constructor":{"prototype":{"a":1,"polluted":true}},"v":1}`,
    );
    await withState(workflow, "a", theirs);
    const ours = parsed('{"constructor":{"prototype":{"a":2}},"v":2}');
    await (await workflow.canonical()).commit({ state: ours });
    const answer = parsed(
      `{"__proto__":${POLLUTION},"constructor":{"prototype":{"polluted":true}}}`,
    );
    const result = await workflow.merge(["a/x"], {
      resolve: ({ path }) => (path === "/v" ? { value: answer } : undefined),
    });
    expect(result.status).toBe("merged");
    const state = await workflow.stateAt("canonical");
    const expected = `{"__proto__":${POLLUTION},"constructor":{"prototype":{"a":2,"polluted":true}},"v":${JSON.stringify(answer)}}`;
    expect(JSON.stringify(state)).toBe(expected);
    expect(await workflow.stateAt("canonical:/__proto__/polluted")).toBe(true);
    expect(await workflow.stateAt("canonical:/v/constructor/prototype/polluted")).toBe(true);
    clean();
  });

  it("conflict, and are resolved, stored and looked up, as any key", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: parsed('{"__proto__":{"__proto__":0}}'),
    });
    await withState(workflow, "a", parsed('{"__proto__":{"__proto__":1}}'));
    await (await workflow.canonical()).commit({ state: parsed('{"__proto__":{"__proto__":2}}') });
    const { conflicts, stored } = await workflow.merge(["a/x"], { onConflict: "store" });
    expect(conflicts.map(({ path, kind }) => [path, kind])).toEqual([
      ["/__proto__/__proto__", "edit/edit"],
    ]);
    const merge = await workflow.storedMerge(stored as string);
    await merge.resolve("/__proto__/__proto__", { value: parsed(POLLUTION) });
    expect((await merge.continue()).status).toBe("merged");
    expect(JSON.stringify(await workflow.stateAt("canonical"))).toBe(
      `{"__proto__":{"__proto__":${POLLUTION}}}`,
    );
    clean();
  });

  it("name policies and resolvers as any key, and no inherited property is one", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: parsed('{"__proto__":{"n":1},"constructor":1}'),
      policies: parsed('{"/__proto__/n":"sum","/constructor":"max"}') as Policies,
    });
    await withState(workflow, "a", parsed('{"__proto__":{"n":2},"constructor":5}'));
    await (await workflow.canonical()).commit({
      state: parsed('{"__proto__":{"n":3},"constructor":4}'),
    });
    const preview = await workflow.preview(["a/x"]);
    expect(JSON.stringify(await preview.state())).toBe('{"__proto__":{"n":4},"constructor":5}');

    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const policies = { "/constructor": `custom:${name}` as Strategy };
      await expect(workflow.preview(["a/x"], { policies })).rejects.toThrow(
        agstateError("RESOLVER_NOT_FOUND"),
      );
      await expect(
        workflow.merge(["a/x"], { policies: { "/n": name as Strategy } }),
      ).rejects.toThrow(agstateError("INVALID_POLICY"));
      const resolvers = Object.fromEntries([
        [name, { version: "1", resolve: () => ({ value: 9 }) }],
      ]);
      const found = await workflow.preview(["a/x"], { policies, resolvers });
      expect(JSON.stringify(await found.state())).toBe('{"__proto__":{"n":4},"constructor":9}');
    }
    for (const bad of ["__proto__", "{}", '{"__proto__":{"take":"ours"}}', '{"constructor":1}']) {
      const given = bad.startsWith("{") ? parsed(bad) : bad;
      const merging = workflow.merge(["a/x"], {
        policies: { "/constructor": "manual" },
        resolve: () => given as unknown as Resolution,
      });
      await expect(merging).rejects.toThrow(agstateError("RESOLVER_FAILED"));
    }
    expect((await workflow.merge(["a/x"])).status).toBe("merged");
    const record = await workflow.mergeRecord("canonical");
    expect(JSON.stringify(record?.policies)).toBe('{"/__proto__/n":"sum","/constructor":"max"}');
    clean();
  });
});

describe.each(BACKENDS)("merges that race, on %s (REF-01, REF-02)", (backend) => {
  const ROUNDS = 6;

  it("all land, beside a ninth writer; what was acknowledged is reachable and nothing is lost", async () => {
    const { store, another } = await makeStore(backend);
    const policies: Policies = { "/log": "append", "/n": "sum" };
    const workflow = await store.createWorkflow("w", { state: { log: [], n: 0 }, policies });
    const others = [workflow, await (await another()).workflow("w")];
    const acknowledged: string[] = [];
    const logged: string[] = [];
    let attempts = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const names = Array.from({ length: 8 }, (_, i) => `r${round}-${i}`);
      for (const name of names) {
        const branch = await workflow.branch({ agent: name, branch: "x" });
        const state = (await branch.state()) as { log: string[]; n: number };
        acknowledged.push(
          (
            await branch.commit({
              state: { ...state, log: [...state.log, name], n: state.n + 1, [name]: round },
            })
          ).id,
        );
        logged.push(name);
      }
      const commits = async () => {
        for (let i = 0; i < 3; i++) {
          const canonical = await workflow.canonical();
          const committed = await canonical
            .update([{ op: "set", path: `/own${round}-${i}`, value: i }])
            .catch((error: unknown) => {
              expect(error).toEqual(agstateError("REF_CONFLICT"));
              return null;
            });
          if (committed !== null) acknowledged.push(committed.id);
        }
      };
      const merges = names.map((name, i) =>
        (others[i % 2] as Workflow).merge([`${name}/x`], { fastForward: "never" }),
      );
      const [, ...results] = await Promise.all([commits(), ...merges]);
      for (const result of results) {
        expect(result.status).toBe("merged");
        attempts += result.attempts;
        acknowledged.push(result.commit?.id as string);
      }
    }
    const reachable = new Set(
      (await all(workflow.log({ revisions: ["canonical"] }))).map(({ id }) => id),
    );
    expect(acknowledged.filter((id) => !reachable.has(id))).toEqual([]);
    const state = (await workflow.stateAt("canonical")) as { [key: string]: JsonValue };
    expect([...(state.log as string[])].sort()).toEqual([...logged].sort());
    expect(state.n).toBe(logged.length);
    expect(logged.filter((name) => !(name in state))).toEqual([]);
    expect(attempts).toBeGreaterThan(8 * ROUNDS);
    const report = await workflow.fsck();
    expect([report.problems, report.unreachable]).toEqual([[], 0]);
  });

  it("give up with a typed conflict when they may not try again, and write nothing then", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: {} });
    const names = Array.from({ length: 8 }, (_, i) => `m${i}`);
    for (const name of names) await withState(workflow, name, { [name]: 1 });
    const options: MergeOptions = { maxAttempts: 1, fastForward: "never" };
    const results = await Promise.allSettled(
      names.map((name) => workflow.merge([`${name}/x`], options)),
    );
    const won = results.filter((result) => result.status === "fulfilled");
    expect(won.length).toBeGreaterThanOrEqual(1);
    const expected: Record<string, number> = {};
    results.forEach((result, i) => {
      if (result.status === "fulfilled") expected[names[i] as string] = 1;
      else
        expect(result.reason).toEqual(
          agstateError("REF_CONFLICT", { ref: "refs/heads/canonical", attempts: 1 }),
        );
    });
    expect(won.length).toBeLessThan(8);
    expect(await workflow.stateAt("canonical")).toEqual(expected);
    expect((await workflow.reflog("canonical")).length).toBe(1 + won.length);
    const { problems, unreachable } = await workflow.fsck();
    expect([problems, unreachable]).toEqual([[], 0]);
  });

  it("refuse a target or a source that is not there, and list and log as before", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: {} });
    await withState(workflow, "a", { a: 1 });
    const before = await snapshot(workflow);
    await expect(workflow.merge(["a/x"], { into: "a/none" })).rejects.toThrow(
      agstateError("REF_NOT_FOUND"),
    );
    await expect(workflow.merge(["a/none"])).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
    await expect(workflow.merge([])).rejects.toThrow(agstateError("INVALID_ARGUMENT"));
    await expect(workflow.reset("canonical", "a/x", { expected: "a/x" })).rejects.toThrow(
      agstateError("REF_CONFLICT"),
    );
    await expect(workflow.reset("a/none", "canonical")).rejects.toThrow(
      agstateError("REF_NOT_FOUND"),
    );
    expect(await snapshot(workflow)).toEqual(before);
    expect((await workflow.refs()).map((ref) => ref.shortName)).toEqual([
      "audit/workflow",
      "agents/a/x",
      "canonical",
    ]);
    expect((await all(workflow.log())).length).toBe(3);
  });
});
