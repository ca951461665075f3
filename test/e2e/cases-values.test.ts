import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { JsonValue, Workflow } from "../../src/index.js";
import { agstateError, BACKENDS, makeStore, parsed, snapshot } from "../support/stores.js";

async function stateId(workflow: Workflow, revision = "canonical"): Promise<string | undefined> {
  return (await workflow.internals.commitAt(revision)).root.state?.id;
}

/** Long enough that what holds it is a tree, whose entries are named by the keys. */
const LONG = "x".repeat(3000);

function nested(levels: number, inner: unknown = 0): unknown {
  let value = inner;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe.each(BACKENDS)("values that JSON holds, on %s", (backend) => {
  /** Commits a state and reads it back cold; gives the id that it has. */
  async function roundTrip(state: unknown): Promise<{ back: JsonValue; id: string | undefined }> {
    const { store, another } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const workflow = await store.createWorkflow("w", { state });
    const reader = await (await another()).workflow("w");
    expect((await reader.fsck()).problems).toEqual([]);
    return { back: await reader.stateAt("canonical"), id: await stateId(workflow) };
  }

  it("hashes nested keys whatever their order, and covers them all (SER-02)", async () => {
    const one = { z: { z: 1, aa: [{ b: 1, a: 2 }], a: 2 }, aa: 1.0, a: 1e2 };
    const two = { a: 100, aa: 1, z: { a: 2, aa: [{ a: 2, b: 1 }], z: 1 } };
    const changed = { ...two, z: { ...two.z, aa: [{ a: 2, b: 2 }] } };
    for (const pad of [{}, { pad: LONG }]) {
      const [a, b, c] = await Promise.all(
        [one, two, changed].map((state) => roundTrip({ ...state, ...pad })),
      );
      expect(a!.id).toBe(b!.id);
      expect(c!.id).not.toBe(a!.id);
      expect(a!.back).toEqual({ ...two, ...pad });
    }
  });

  it("keeps every number that a double holds; -0 is 0 (SER-02, SER-07)", async () => {
    const numbers = {
      ...{ one: 1.0, hundred: 1e2, tiny: 1e-320, least: 5e-324, huge: 1e21 },
      ...{ most: Number.MAX_VALUE, safe: Number.MAX_SAFE_INTEGER, third: 1 / 3, minus: -1.5e-7 },
    };
    expect((await roundTrip(numbers)).back).toEqual(numbers);

    const zero = await roundTrip({ a: 0, l: [0], o: { z: 0 } });
    const minusZero = await roundTrip({ a: -0, l: [-0], o: { z: -0 } });
    expect(minusZero.id).toBe(zero.id);
    expect(Object.is((minusZero.back as { a: number }).a, 0)).toBe(true);
    expect((await roundTrip({ a: -0, pad: LONG })).id).toBe(
      (await roundTrip({ a: 0, pad: LONG })).id,
    );
  });

  it("takes 0 for -0 in an update, too, and sees no change in it", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { a: 0 } });
    const branch = await workflow.canonical();
    const { id } = branch.head;
    expect((await branch.update([{ op: "set", path: "/a", value: -0 }])).id).toBe(id);
    expect((await branch.commit({ state: { a: -0 } })).id).toBe(id);
  });

  it("drops undefined members, and reads back what it hashed (SER-03)", async () => {
    const without = await roundTrip({ ok: 1, deep: [{ a: null }] });
    const toJSON = () => undefined;
    for (const state of [
      { ok: 1, error: undefined, deep: [{ a: null, b: undefined }] },
      { ok: 1, error: { toJSON }, deep: [{ a: null }] },
    ]) {
      const given = await roundTrip(state);
      expect(given).toEqual(without);
      expect(Object.keys(given.back as object)).toEqual(["deep", "ok"]);
    }
    const step = async (record: unknown) => {
      const { store } = await makeStore(backend);
      const branch = await (await store.createWorkflow("w")).canonical();
      const { id } = await branch.commit({ step: { action: "read", record } });
      return (await store.workflow("w")).stepRecord(id);
    };
    const record = await step({ name: "n", output: undefined });
    expect(record).toEqual({ name: "n" });
    expect(Object.keys(record as object)).toEqual(["name"]);
  });

  it("keeps __proto__ and its like as keys, in any order (SER-04)", async () => {
    const proto = '"__proto__":{"polluted":1,"__proto__":[1]}';
    const others = '"constructor":{"prototype":{"polluted":1}},"hasOwnProperty":1,"toString":null';
    for (const pad of ["", `,"pad":"${LONG}"`]) {
      const one = await roundTrip(parsed(`{${proto},"b":2,${others}${pad}}`));
      const two = await roundTrip(parsed(`{${others},"b":2,${proto}${pad}}`));
      expect(one.id).toBe(two.id);
      expect(Object.keys(one.back as object).sort()).toEqual(
        [
          ...["__proto__", "b", "constructor", "hasOwnProperty", "toString"],
          ...(pad && ["pad"]),
        ].sort(),
      );
      expect(JSON.stringify(Object.getOwnPropertyDescriptor(one.back, "__proto__")?.value)).toBe(
        '{"__proto__":[1],"polluted":1}',
      );
      expect(Object.getPrototypeOf(one.back)).toBe(Object.prototype);
    }
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it.each(["", LONG])("edits and compares such keys by path (SER-04), pad %#", async (pad) => {
    const { store } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const workflow = await store.createWorkflow("w", {
      state: parsed(`{"__proto__":{"x":1},"b":2,"pad":"${pad}"}`),
    });
    const branch = await workflow.canonical();
    await branch.update([
      { op: "set", path: "/__proto__/x", value: 2 },
      { op: "set", path: "/constructor", value: { prototype: { polluted: 1 } } },
      { op: "append", path: "/toString", value: 1 },
    ]);
    expect(await branch.state("/__proto__/x")).toBe(2);
    expect(await branch.state("/constructor/prototype")).toEqual({ polluted: 1 });
    await expect(branch.state("/hasOwnProperty")).rejects.toThrow(agstateError("PATH_NOT_FOUND"));
    await expect(branch.state("/b/__proto__")).rejects.toThrow(agstateError("PATH_NOT_FOUND"));
    await expect(branch.update([{ op: "set", path: "/valueOf/x", value: 1 }])).rejects.toThrow(
      agstateError("PATH_NOT_FOUND"),
    );
    expect(await workflow.diff("canonical~1", "canonical")).toEqual([
      { kind: "changed", path: "/__proto__/x", before: 1, after: 2 },
      { kind: "added", path: "/constructor", after: { prototype: { polluted: 1 } } },
      { kind: "added", path: "/toString", after: [1] },
    ]);
    await branch.update([{ op: "delete", path: "/__proto__" }]);
    expect(Object.keys((await branch.state()) as object)).not.toContain("__proto__");
    // The same states, given whole, have the same ids.
    const whole = await store.createWorkflow("w2", { state: await branch.state() });
    expect(await stateId(whole)).toBe(await stateId(workflow));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("takes shared references, objects without a prototype and of another realm, and toJSON", async () => {
    const shared = { s: [1] };
    const bare = Object.assign(Object.create(null), { x: 1 });
    const foreign = runInNewContext("({ list: [1, { a: 2 }] })");
    const money = new (class Money {
      constructor(readonly cents: number) {}
      toJSON() {
        return { cents: this.cents };
      }
    })(5);
    const date = new Date(1e12);
    const { back } = await roundTrip({
      a: shared,
      b: [shared, shared],
      bare,
      foreign,
      money,
      date,
    });
    expect(back).toEqual({
      a: shared,
      b: [shared, shared],
      bare: { x: 1 },
      foreign: { list: [1, { a: 2 }] },
      money: { cents: 5 },
      date: "2001-09-09T01:46:40.000Z",
    });
  });

  it("keeps a copy: what the caller changes afterwards changes nothing", async () => {
    const { store } = await makeStore(backend);
    const branch = await (await store.createWorkflow("w")).canonical();
    const state = { list: [1], o: { k: 1 } };
    await branch.commit({ state });
    state.list.push(2);
    state.o.k = 2;
    expect(await branch.state()).toEqual({ list: [1], o: { k: 1 } });
    const read = (await branch.state()) as { list: number[] };
    read.list.push(9);
    expect(await branch.state("/list")).toEqual([1]);
    await branch.commit({ state });
    expect(await branch.state()).toEqual({ list: [1, 2], o: { k: 2 } });
  });

  it("takes 256 levels of nesting, and commits, edits, compares and reads them (SER-08)", async () => {
    const { store } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const workflow = await store.createWorkflow("w", { state: nested(256) });
    const branch = await workflow.canonical();
    await branch.update([{ op: "set", path: "/0".repeat(256), value: LONG }]);
    expect(await branch.state()).toEqual(nested(256, LONG));
    expect(await workflow.diff("canonical~1", "canonical")).toEqual([
      { kind: "changed", path: "/0".repeat(256), before: 0, after: LONG },
    ]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});

class Point {
  constructor(readonly x = 1) {}
}

function cyclic(): unknown {
  const a: Record<string, unknown> = { b: [0] };
  (a.b as unknown[]).push({ back: a });
  return a;
}

function cyclicArray(): unknown {
  const list: unknown[] = [0];
  list.push(list);
  return list;
}

function sparse(): unknown[] {
  const list: unknown[] = [1, 2, 3];
  delete list[1];
  return list;
}

/** What JSON does not hold; put at /in, each is refused at the path beside it. */
const REFUSED: Record<string, [value: unknown, path: string]> = {
  NaN: [Number.NaN, "/in"],
  "NaN, deeper": [{ "a/b": [{ "~": Number.NaN }] }, "/in/a~1b/0/~0"],
  Infinity: [[Number.POSITIVE_INFINITY], "/in/0"],
  "-Infinity": [{ x: Number.NEGATIVE_INFINITY }, "/in/x"],
  BigInt: [{ id: 9007199254740993n }, "/in/id"],
  "undefined in an array": [[undefined, 1], "/in/0"],
  "a hole": [sparse(), "/in/1"],
  "an array of holes": [new Array(3), "/in/0"],
  "toJSON that gives undefined, in an array": [[{ toJSON: () => undefined }], "/in/0"],
  "toJSON that gives NaN": [{ a: { toJSON: () => Number.NaN } }, "/in/a"],
  "toJSON that gives a Map": [{ a: { toJSON: () => new Map() } }, "/in/a"],
  "a function": [{ f: () => 1 }, "/in/f"],
  "a function in an array": [[() => 1], "/in/0"],
  "a symbol": [{ s: Symbol("s") }, "/in/s"],
  "a symbol key": [{ a: { [Symbol("s")]: 1 } }, "/in/a"],
  Map: [new Map([["a", 1]]), "/in"],
  Set: [[new Set([1])], "/in/0"],
  WeakMap: [new WeakMap(), "/in"],
  RegExp: [/x/, "/in"],
  Error: [new Error("x"), "/in"],
  "a class instance": [[new Point()], "/in/0"],
  "an instance without own keys": [new (class Empty {})(), "/in"],
  "a subclass of Array": [new (class List extends Array<number> {})(1, 2), "/in"],
  Promise: [Promise.resolve(1), "/in"],
  Uint8Array: [new Uint8Array([1]), "/in"],
  Float64Array: [new Float64Array(1), "/in"],
  ArrayBuffer: [new ArrayBuffer(1), "/in"],
  "a boxed number": [Object(1), "/in"],
  "a boxed BigInt": [Object(1n), "/in"],
  "an object with an inherited member": [Object.create({ a: 1 }), "/in"],
};

/** What a `toJSON` of the platform makes of a value that cannot be restored from it. */
const LOST_BY_TO_JSON: Record<string, [value: unknown, path: string]> = {
  "an invalid Date": [{ at: new Date(Number.NaN) }, "/in/at"],
  "an array with more than elements": [Object.assign([1], { total: 1 }), "/in"],
};

describe.each(BACKENDS)("values that JSON does not hold, on %s (SER-03, 07, 08, 11)", (backend) => {
  /** Tries a value in every place where one enters; each is refused, and nothing is written. */
  async function refusedEverywhere(value: unknown, code: "INVALID_VALUE" | "LIMIT_EXCEEDED") {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { in: 0, list: [] } });
    const branch = await workflow.canonical();
    const before = await snapshot(workflow);
    const { id } = branch.head;
    const paths: string[] = [];
    const attempts: Record<string, () => Promise<unknown>> = {
      commit: () => branch.commit({ state: { in: value } }),
      set: () => branch.update([{ op: "set", path: "/in", value }]),
      append: () => branch.update([{ op: "append", path: "/list", value }]),
      splice: () => branch.update([{ op: "splice", path: "/list", index: 0, values: [value] }]),
      "set behind the end": () => branch.update([{ op: "set", path: "/list/-", value }]),
      step: () => branch.commit({ step: { action: "read", record: { in: value } } }),
      create: () => store.createWorkflow("other", { state: { in: value } }),
      "a good edit, then it": () =>
        branch.update([
          { op: "set", path: "/ok", value: 1 },
          { op: "set", path: "/in", value },
        ]),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      const error: unknown = await attempt().then(
        () => "written",
        (e: unknown) => e,
      );
      expect(error, name).toMatchObject({ name: "AgstateError", code });
      const { path } = (error as { details: { path: string } }).details;
      paths.push(path.replace(/^\/list\/-/, "/in"));
    }
    expect(await snapshot(workflow)).toEqual(before);
    expect(branch.head.id).toBe(id);
    await expect(store.workflow("other")).rejects.toThrow(agstateError("WORKFLOW_NOT_FOUND"));
    // The handle is as good as before.
    await branch.update([{ op: "set", path: "/in", value: 1 }]);
    expect(await branch.state()).toEqual({ in: 1, list: [] });
    return paths;
  }

  it.each(Object.keys(REFUSED))("refuses, naming the path: %s", async (name) => {
    const [value, path] = REFUSED[name]!;
    const paths = await refusedEverywhere(value, "INVALID_VALUE");
    expect(new Set(paths)).toEqual(new Set([path]));
  });

  it.each(Object.keys(LOST_BY_TO_JSON))("refuses what would be lost: %s", async (name) => {
    const [value, path] = LOST_BY_TO_JSON[name]!;
    expect(new Set(await refusedEverywhere(value, "INVALID_VALUE"))).toEqual(new Set([path]));
  });

  it("refuses the state itself when it is none", async () => {
    const { store } = await makeStore(backend);
    for (const state of [undefined, Number.NaN, () => 1, { toJSON: () => undefined }, new Map()]) {
      await expect(store.createWorkflow("w", { state })).rejects.toThrow(
        agstateError("INVALID_VALUE", { path: "" }),
      );
    }
    const branch = await (await store.createWorkflow("w")).canonical();
    await expect(branch.commit({ step: { action: "read", record: undefined } })).rejects.toThrow(
      agstateError("INVALID_VALUE", { path: "" }),
    );
    await expect(branch.update([{ op: "set", path: "", value: undefined }])).rejects.toThrow(
      agstateError("INVALID_VALUE", { path: "" }),
    );
  });

  it.each([
    ["an object", cyclic, "/in/b/1/back/b/1/back"],
    ["an array", cyclicArray, "/in/1/1/1"],
  ])("tells a cycle from mere depth: %s", async (_, make, begins) => {
    for (const path of await refusedEverywhere(make(), "INVALID_VALUE")) {
      expect(path.slice(0, begins.length)).toBe(begins);
    }
  });

  it.each([257, 5000, 100_000])("refuses %i nested arrays, and lives (SER-08)", async (levels) => {
    await refusedEverywhere(nested(levels), "LIMIT_EXCEEDED");
    const objects = parsed(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`);
    await refusedEverywhere(objects, "LIMIT_EXCEEDED");
  });

  it("counts the depth from the root, also in an update", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: nested(200, []) });
    const branch = await workflow.canonical();
    const path = "/0".repeat(200);
    await expect(branch.update([{ op: "append", path, value: nested(56) }])).rejects.toThrow(
      agstateError("LIMIT_EXCEEDED", { limit: 256 }),
    );
    await branch.update([{ op: "append", path, value: nested(55) }]);
    expect(await branch.state()).toEqual(nested(256));
  });

  // 3,072 bytes: plain, of two bytes each, and escaped to three.
  const LONGEST_KEYS = ["k".repeat(3072), "é".repeat(1536), "%".repeat(1024)];

  it("counts a key's bytes as they are stored", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { o: {} } });
    const branch = await workflow.canonical();
    for (const key of LONGEST_KEYS) {
      await branch.commit({ state: { o: { [key]: 1 } } });
      await branch.update([{ op: "set", path: `/o/${key}`, value: 2 }]);
      expect(await branch.state(`/o/${key}`)).toBe(2);
    }
    const before = await snapshot(workflow);
    for (const key of LONGEST_KEYS.map((k) => `${k}x`)) {
      const tooLong = agstateError("LIMIT_EXCEEDED", { path: "/o", size: 3073, limit: 3072 });
      await expect(branch.commit({ state: { o: { [key]: 1 } } })).rejects.toThrow(tooLong);
      await expect(branch.update([{ op: "set", path: "/o", value: { [key]: 1 } }])).rejects.toThrow(
        tooLong,
      );
    }
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("counts the bytes of a key that an update makes by its path", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { o: {} } });
    const branch = await workflow.canonical();
    const before = await snapshot(workflow);
    for (const key of LONGEST_KEYS.map((k) => `${k}x`)) {
      for (const operation of [
        { op: "set", path: `/o/${key}`, value: 1 },
        { op: "append", path: `/o/${key}`, value: 1 },
        { op: "text-append", path: `/o/${key}`, text: "x" },
      ] as const) {
        await expect(branch.update([operation]), operation.op).rejects.toThrow(
          agstateError("LIMIT_EXCEEDED", { limit: 3072 }),
        );
      }
    }
    expect(await snapshot(workflow)).toEqual(before);
  });
});
