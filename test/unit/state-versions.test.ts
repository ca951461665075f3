import { describe, expect, it } from "vitest";
import {
  isAgstateError,
  type JsonValue,
  type OpenStoreOptions,
  openStore,
  type StateSchema,
} from "../../src/index.js";
import { decodeCommit, encodeCommit } from "../../src/objects/commit.js";
import {
  agstateError,
  BACKENDS,
  type Backend,
  makeStore,
  snapshot,
  type TestStore,
} from "../support/stores.js";

type Members = Record<string, JsonValue>;

/** Version 2 splits a name, version 3 makes a list of the city. */
const V3: StateSchema = {
  version: 3,
  migrations: {
    1: (state) => {
      const { name, ...rest } = state as { name: string };
      const [first, last = ""] = name.split(" ");
      return { ...rest, person: { first, last } };
    },
    2: (state) => {
      const { city, ...rest } = state as Members;
      return { ...rest, cities: city === undefined ? [] : [city] };
    },
  },
};
const V2: StateSchema = { version: 2, migrations: { 1: V3.migrations[1]! } };
const V1: StateSchema = { version: 1, migrations: {} };

const OLD = { name: "Ada Lovelace", city: "London", seats: 2 };
const NEW = { person: { first: "Ada", last: "Lovelace" }, cities: ["London"], seats: 2 };

/** The workflow `w` of a store, as a program with a schema opens it. */
async function openedWith(made: TestStore, schema: OpenStoreOptions["schema"]) {
  return (await made.another({ schema })).workflow("w");
}

/** Where a store can be opened a second time, with another schema. */
const ON_DISK = BACKENDS.find((backend) => backend !== "memory") as Backend;

describe("versions of states", () => {
  it("are not said without a schema, and said with one", async () => {
    const made = await makeStore(ON_DISK);
    const plain = await made.store.createWorkflow("plain", { state: OLD });
    expect((await plain.canonical()).head.stateVersion).toBeNull();
    const store = await made.another({ schema: V2 });
    const branch = await (await store.createWorkflow("w", { state: NEW })).canonical();
    expect(branch.head.stateVersion).toBe(2);
    await branch.update([{ op: "set", path: "/seats", value: 3 }]);
    expect(branch.head.stateVersion).toBe(2);
    await branch.setPolicies({ "/seats": "sum" });
    expect(branch.head.stateVersion).toBe(2);
    const hold = await (await store.workflow("w")).hold("canonical", { reason: "an audit" });
    expect((await (await store.workflow("w")).commitAt(`holds/${hold.name}`)).stateVersion).toBe(2);
    // Declarations are no states.
    const genesis = await (await store.workflow("w")).commitAt("refs/audit/workflow");
    expect(genesis.stateVersion).toBeNull();
    expect(await (await store.workflow("w")).stateAt("refs/audit/workflow")).toMatchObject({
      workflow: "w",
    });
    expect((await (await store.workflow("w")).fsck()).problems).toEqual([]);
  });

  it("are migrated on read, at any path, and read as stored when asked", async () => {
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: OLD });
    const workflow = await openedWith(made, V3);
    const branch = await workflow.canonical();
    expect(await branch.state()).toEqual(NEW);
    expect(await branch.state("/person/last")).toBe("Lovelace");
    expect(await branch.state("/cities/0")).toBe("London");
    await expect(branch.state("/name")).rejects.toEqual(agstateError("PATH_NOT_FOUND"));
    expect(await branch.state("/name", { migrate: false })).toBe("Ada Lovelace");
    expect(await workflow.stateAt("canonical")).toEqual(NEW);
    expect(await workflow.stateAt("canonical:/person/first")).toBe("Ada");
    expect(await workflow.stateAt("canonical", "", { migrate: false })).toEqual(OLD);
    // What a caller does to its copy reaches nobody.
    const mine = (await branch.state("/person")) as Members;
    mine.first = "Eve";
    expect(await branch.state("/person/first")).toBe("Ada");
    expect(branch.head.stateVersion).toBeNull();
  });

  it("are written by the schema: edits go by the migrated state", async () => {
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: OLD });
    const branch = await (await openedWith(made, V3)).canonical();
    const before = branch.head;
    expect(await branch.update([])).toEqual(before);
    await branch.update([{ op: "append", path: "/cities", value: "Turin" }]);
    expect(branch.head.stateVersion).toBe(3);
    expect(await branch.state("", { migrate: false })).toEqual({
      ...NEW,
      cities: ["London", "Turin"],
    });
  });

  it("rise when a state is committed, also one that is equal, and only then", async () => {
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: { seats: 1 } });
    const same = { version: 2, migrations: { 1: (state: JsonValue) => state } };
    const branch = await (await openedWith(made, same)).canonical();
    const first = branch.head.id;
    await branch.commit({ message: "carries the state over" });
    expect(branch.head.stateVersion).toBeNull();
    await branch.commit({ state: { seats: 1 } });
    expect(branch.head).toMatchObject({ stateVersion: 2, message: "" });
    const raised = branch.head.id;
    await branch.commit({ state: { seats: 1 } });
    expect(branch.head.id).toBe(raised);
    expect(raised).not.toBe(first);
  });

  it("are kept by code without a schema, which sees what is stored", async () => {
    const made = await makeStore(ON_DISK, { schema: V2 });
    await made.store.createWorkflow("w", { state: { person: {} } });
    const branch = await (await openedWith(made, undefined)).canonical();
    await branch.update([{ op: "set", path: "/seats", value: 1 }]);
    expect(branch.head.stateVersion).toBe(2);
    await branch.commit({ state: { person: {}, seats: 4 } });
    expect(branch.head.stateVersion).toBe(2);
    await branch.step({ name: "look", action: "write", update: () => [] } as never, () => 1);
    expect(branch.head.stateVersion).toBe(2);
  });

  it("refuse code that is older, on read and on write", async () => {
    const made = await makeStore(ON_DISK, { schema: V3 });
    await made.store.createWorkflow("w", { state: NEW });
    const workflow = await openedWith(made, V2);
    const branch = await workflow.canonical();
    const tooNew = agstateError("STATE_TOO_NEW", { version: 3, known: 2 });
    const before = await snapshot(workflow);
    await expect(branch.state()).rejects.toEqual(tooNew);
    await expect(branch.state("/seats")).rejects.toEqual(tooNew);
    await expect(workflow.stateAt("canonical")).rejects.toEqual(tooNew);
    await expect(branch.update([{ op: "set", path: "/a", value: 1 }])).rejects.toEqual(tooNew);
    await expect(branch.commit({ state: OLD })).rejects.toEqual(tooNew);
    await expect(branch.update([])).rejects.toEqual(tooNew);
    expect(await snapshot(workflow)).toEqual(before);
    expect(await branch.state("/seats", { migrate: false })).toBe(2);
    // What carries the state over neither reads nor changes it.
    await branch.commit({ message: "a note" });
    expect(branch.head.stateVersion).toBe(3);
  });

  it("of a step's seal are those of its edits", async () => {
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: OLD });
    const branch = await (await openedWith(made, V3)).canonical();
    await branch.step({ name: "look", action: "write" }, () => 1);
    expect(branch.head.stateVersion).toBeNull();
    await branch.step(
      {
        name: "book",
        action: "write",
        update: () => [{ op: "set", path: "/person/first", value: "Augusta" }],
      },
      () => 1,
    );
    expect(branch.head.stateVersion).toBe(3);
    expect(await branch.state("/person/first", { migrate: false })).toBe("Augusta");
  });
});

describe("a schema", () => {
  const open = (schema: unknown) => openStore("memory:", { schema } as OpenStoreOptions);

  it.each<[string, unknown, RegExp]>([
    ["no object", 3, /is no object/],
    ["version 0", { version: 0, migrations: {} }, /is 0; it is a whole number from 1/],
    ["half a version", { version: 1.5, migrations: {} }, /is 1\.5/],
    ["a hole", { version: 4, migrations: { 1: () => 1, 3: () => 1 } }, /lacks migrations\[2\]/],
    ["nothing to begin with", { version: 2, migrations: {} }, /lacks migrations\[1\]/],
    ["a hole above 0", { version: 2, migrations: { 0: () => 1 } }, /lacks migrations\[1\]/],
    ["one beyond", { version: 1, migrations: { 1: () => 1 } }, /leads beyond version 1/],
    ["no function", { version: 2, migrations: { 1: "secret" } }, /is no function/],
    ["a name", { version: 2, migrations: { one: () => 1 } }, /not named by the version/],
    ["an inherited one", { version: 2, migrations: Object.create({ 1: () => 1 }) }, /lacks/],
  ])("with %s is refused when the store is opened", async (_, schema, message) => {
    const error = await open(schema).catch((e: unknown) => e);
    expect(isAgstateError(error, "INVALID_ARGUMENT")).toBe(true);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain("secret");
  });

  it("of one workflow is checked when that is opened, and is of no other", async () => {
    const store = await openStore("memory:", {
      schema: (id) => (id === "a" ? V2 : id === "bad" ? { version: 2, migrations: {} } : undefined),
    });
    const a = await store.createWorkflow("a", { state: {} });
    const b = await store.createWorkflow("b", { state: {} });
    expect((await a.canonical()).head.stateVersion).toBe(2);
    expect((await b.canonical()).head.stateVersion).toBeNull();
    await expect(store.createWorkflow("bad")).rejects.toThrow(
      /the schema of workflow "bad" lacks migrations\[1\]/,
    );
  });

  it("takes a state of which nobody said a version for 1, unless there is a migration from 0", async () => {
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: { n: 1 } });
    const adopted = await (await openedWith(made, V1)).canonical();
    expect(await adopted.state()).toEqual({ n: 1 });
    await adopted.commit({ state: { n: 1 } });
    expect(adopted.head.stateVersion).toBeNull();
    const from0 = { version: 1, migrations: { 0: (state: JsonValue) => ({ was: state }) } };
    const branch = await (await openedWith(made, from0)).canonical();
    expect(await branch.state()).toEqual({ was: { n: 1 } });
  });
});

describe("a migration", () => {
  async function failing(migration: (state: JsonValue) => unknown) {
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: { secret: "4111-1111" } });
    const workflow = await openedWith(made, { version: 2, migrations: { 1: migration } });
    return (await workflow.canonical()).state().catch((e: unknown) => e) as Promise<
      Error & { details: Record<string, unknown> }
    >;
  }

  it("that throws says which, and where, and nothing of the state", async () => {
    const error = await failing((state) => {
      throw new TypeError(`cannot take ${JSON.stringify(state)}`);
    });
    expect(error).toEqual(agstateError("MIGRATION_FAILED", { workflow: "w", from: 1, to: 2 }));
    expect(error.message).toMatch(
      /from version 1 to 2 failed with TypeError \(state-versions\.test\.ts:\d+:\d+\), which is/,
    );
    expect(error.message + JSON.stringify(error.details)).not.toContain("4111");
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  it.each<[string, (state: JsonValue) => unknown]>([
    ["nothing", () => undefined],
    ["a promise", async (state) => state],
    ["a promise that fails", () => Promise.reject(new Error("4111"))],
    ["what JSON has not", (state) => ({ state, at: new Map() })],
  ])("that answers %s has failed", async (_, migration) => {
    const error = await failing(migration);
    expect(error).toEqual(agstateError("MIGRATION_FAILED"));
    expect(error.message).not.toContain("4111");
  });

  it("may change what it is given, and that reaches nobody", async () => {
    const made = await makeStore(ON_DISK);
    const state = { list: Array.from({ length: 900 }, (_, i) => ({ i })), deep: { a: [1] } };
    await made.store.createWorkflow("w", { state });
    const shared = { given: [] as number[] };
    const schema: StateSchema = {
      version: 3,
      migrations: {
        1: (old) => {
          const mine = old as { list: unknown[]; deep: { a: number[] } };
          mine.list.length = 0;
          mine.deep.a.push(2);
          return { ...mine, shared };
        },
        2: (old) => {
          (old as { shared: { given: number[] } }).shared.given.push(7);
          return old;
        },
      },
    };
    const branch = await (await openedWith(made, schema)).canonical();
    const migrated = { list: [], deep: { a: [1, 2] }, shared: { given: [7] } };
    expect(await branch.state()).toEqual(migrated);
    expect(await branch.state("", { migrate: false })).toEqual(state);
    expect(await branch.state()).toEqual(migrated);
    expect(shared).toEqual({ given: [] });
    await branch.update([{ op: "set", path: "/deep/a/0", value: 5 }]);
    expect(await branch.state("/deep")).toEqual({ a: [5, 2] });
  });

  it("is run once for a state that is read at many paths", async () => {
    let runs = 0;
    const made = await makeStore(ON_DISK);
    await made.store.createWorkflow("w", { state: { a: 1, b: 2 } });
    const count = (state: JsonValue) => {
      runs++;
      return state;
    };
    const workflow = await openedWith(made, { version: 2, migrations: { 1: count } });
    const branch = await workflow.canonical();
    for (const path of ["/a", "/b", "", "/a"]) await branch.state(path);
    await workflow.stateAt("canonical", "/a");
    expect(runs).toBe(1);
  });
});

describe("the header of a version", () => {
  const fields = {
    tree: "a".repeat(64) as never,
    parents: [],
    author: "a",
    committer: "a",
    workflow: "w",
    authorTime: 1,
    committerTime: 1,
    nonce: "0".repeat(32),
    nextStep: 1,
    inFlight: [3],
    message: "",
  };

  it("stands behind the open steps, and only where there is one", () => {
    const text = encodeCommit({ ...fields, stateVersion: 12 }).toString();
    expect(text).toContain("agstate-in-flight 3\nagstate-state-version 12\n");
    expect(decodeCommit(Buffer.from(text), "b" as never).stateVersion).toBe(12);
    const without = encodeCommit(fields).toString();
    expect(without).not.toContain("state-version");
    expect(decodeCommit(Buffer.from(without), "b" as never).stateVersion).toBeUndefined();
  });

  it.each(["0", "01", "-1", "1.0", "two", "", "1000000000"])("that says %j is damage", (said) => {
    const text = encodeCommit({ ...fields, stateVersion: 12 }).toString();
    const body = Buffer.from(text.replace("version 12", `version ${said}`));
    expect(() => decodeCommit(body, "b" as never)).toThrow(/malformed/);
  });
});
