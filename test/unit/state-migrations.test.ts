import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import {
  isWithheld,
  type JsonValue,
  type OpenStoreOptions,
  openStore,
  type StateSchema,
  type Workflow,
} from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { git, temporaryFolder } from "../support/git.js";
import { testKeys } from "../support/keys.js";
import { makeGround } from "../support/regions.js";
import {
  agstateError,
  all,
  BACKENDS,
  makeStore,
  snapshot,
  type TestStore,
} from "../support/stores.js";

type Members = Record<string, JsonValue>;

/** Version 2 calls seats places, version 3 counts them by class. */
const SCHEMA: StateSchema = {
  version: 3,
  migrations: {
    1: (state) => {
      const { seats, ...rest } = state as Members;
      return { ...rest, places: seats as JsonValue };
    },
    2: (state) => {
      const { places, ...rest } = state as { places: number };
      if (typeof places !== "number") throw new TypeError(`no number: ${JSON.stringify(state)}`);
      return { ...rest, places: { second: places, first: 0 } };
    },
  },
};
const V2: StateSchema = { version: 2, migrations: { 1: SCHEMA.migrations[1]! } };

/** A large part that no migration touches. */
const LOG = Array.from({ length: 400 }, (_, i) => `entry ${i} of a long log`);
const BY = { reason: "request 9", by: "officer" };

async function openedWith(made: TestStore, schema: OpenStoreOptions["schema"]): Promise<Workflow> {
  return (await made.another({ schema })).workflow("w");
}

/** A workflow whose canonical is of version 1, with a branch that is of version 2 and one that is not migrated. */
async function makeBranches(made: TestStore) {
  const old = await made.store.createWorkflow("w", {
    state: { seats: 2, log: LOG, notes: {} },
    policies: { "/log": "append" },
  });
  await old.branch({ agent: "a", branch: "new" });
  const left = await old.branch({ agent: "b", branch: "old" });
  const second = await (await openedWith(made, V2)).branch("a/new");
  await second.update([
    { op: "set", path: "/places", value: 3 },
    { op: "append", path: "/log", value: "by a" },
  ]);
  await left.update([
    { op: "append", path: "/log", value: "by b" },
    { op: "set", path: "/notes/b", value: "x".repeat(3000) },
  ]);
  const canonical = await old.canonical();
  await canonical.update([{ op: "set", path: "/notes/c", value: 1 }]);
  return { old, workflow: await openedWith(made, SCHEMA) };
}

const folder = temporaryFolder();
const ON_DISK = BACKENDS.filter((backend) => backend !== "memory");

describe.each(ON_DISK)("merging states of several versions on %s", (backend) => {
  it("compares them at the schema's version, and says what was migrated", async () => {
    const made = await makeStore(backend);
    const { old, workflow } = await makeBranches(made);
    const preview = await workflow.preview(["a/new", "b/old"]);
    expect(preview.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "added /log/400",
      "added /log/401",
      "added /notes/b",
      "changed /places/second",
    ]);
    const { status, commit } = await workflow.merge(["a/new", "b/old"]);
    expect([status, commit?.stateVersion]).toEqual(["merged", 3]);
    // Another process, without a schema, sees what is stored now.
    const stored = {
      places: { second: 3, first: 0 },
      log: [...LOG, "by a", "by b"],
      notes: { b: "x".repeat(3000), c: 1 },
    };
    expect(await (await openedWith(made, undefined)).stateAt("canonical")).toEqual(stored);
    expect(await workflow.mergeRecord("canonical")).toMatchObject({
      stateVersion: 3,
      migratedFrom: 1,
      sources: [{ migratedFrom: 2 }, { migratedFrom: 1 }],
    });
    const { problems, unreachable } = await old.fsck();
    expect([problems, unreachable]).toEqual([[], 0]);
    // Only what nobody migrated stays as it was.
    expect((await old.commitAt("a/new")).stateVersion).toBe(2);
    expect((await old.commitAt("b/old")).stateVersion).toBeNull();
  });

  it("is refused without a schema, and changes nothing then", async () => {
    const made = await makeStore(backend);
    const { old } = await makeBranches(made);
    const before = await snapshot(old);
    const refused = agstateError("SCHEMA_NEEDED", { versions: [null, 2] });
    await expect(old.merge(["a/new"])).rejects.toEqual(refused);
    await expect(old.preview(["a/new"])).rejects.toEqual(refused);
    await expect(old.cherryPick("a/new")).rejects.toEqual(agstateError("SCHEMA_NEEDED"));
    // Bases are compared as well.
    await expect(old.revert("a/new", { onto: "a/new" })).rejects.toEqual(
      agstateError("SCHEMA_NEEDED"),
    );
    expect(await snapshot(old)).toEqual(before);
    expect((await old.merge(["b/old"])).commit?.stateVersion).toBeNull();
  });

  it("of one version needs no schema, and stays of it", async () => {
    const made = await makeStore(backend, { schema: SCHEMA });
    const workflow = await made.store.createWorkflow("w", { state: { places: {} } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.update([{ op: "set", path: "/x", value: 1 }]);
    await (await workflow.canonical()).update([{ op: "set", path: "/y", value: 1 }]);
    const plain = await openedWith(made, undefined);
    const { commit } = await plain.merge(["a/x"]);
    expect(commit?.stateVersion).toBe(3);
    expect(await plain.mergeRecord("canonical")).toMatchObject({ stateVersion: 3 });
    expect(await plain.mergeRecord("canonical")).not.toHaveProperty("migratedFrom");
  });

  it("of a newer version is refused, unless the target is moved forward alone", async () => {
    const made = await makeStore(backend);
    const { old, workflow } = await makeBranches(made);
    await workflow.migrateState({ branches: ["a/new"] });
    const second = await openedWith(made, V2);
    await expect(second.merge(["a/new"])).rejects.toEqual(agstateError("STATE_TOO_NEW"));
    const head = (await old.commitAt("a/new")).id;
    await old.branch({ agent: "c", branch: "begun", from: "a/new~1" });
    const forward = await second.merge(["a/new"], { into: "c/begun" });
    expect([forward.status, forward.commit?.id]).toEqual(["fast-forward", head]);
  });

  it("previews what a move forward changes by the schema", async () => {
    const made = await makeStore(backend);
    const { workflow } = await makeBranches(made);
    await workflow.branch({ agent: "c", branch: "begun", from: "a/new~1" });
    const preview = await workflow.preview(["a/new"], { into: "c/begun" });
    expect(preview.status).toBe("fast-forward");
    expect(preview.changes.map(({ path }) => path)).toEqual(["/log/400", "/places/second"]);
    expect(await preview.state()).toMatchObject({ places: { second: 3, first: 0 } });
  });

  it("tells conflicts by migrated values, stores them, and goes on with them", async () => {
    const made = await makeStore(backend);
    const { old, workflow } = await makeBranches(made);
    await (await old.canonical()).update([{ op: "set", path: "/seats", value: 9 }]);
    const result = await workflow.merge(["a/new"], { onConflict: "store" });
    expect(result.conflicts).toMatchObject([
      {
        path: "/places/second",
        kind: "edit/edit",
        base: { value: 2 },
        ours: { value: 9, branch: "canonical" },
        theirs: { value: 3, branch: "agents/a/new" },
      },
    ]);
    const name = result.stored as string;
    expect((await workflow.commitAt(`merges/${name}`)).stateVersion).toBe(3);
    expect(await workflow.stateAt(`merges/${name}:/places`)).toEqual({ second: 9, first: 0 });
    // Who has no schema cannot go on with it.
    const unknowing = await old.storedMerge(name);
    await expect(unknowing.conflicts()).rejects.toEqual(agstateError("SCHEMA_NEEDED"));
    const merge = await (await openedWith(made, SCHEMA)).storedMerge(name);
    await merge.resolve("/places/second", { take: "theirs" });
    const { commit } = await merge.continue();
    expect(commit?.stateVersion).toBe(3);
    expect(await workflow.stateAt("canonical:/places/second")).toBe(3);
    const { problems, unreachable } = await workflow.fsck();
    expect([problems, unreachable]).toEqual([[], 0]);
  });

  it("of which several are bases merges them as if all had been migrated before", async () => {
    const migrate = (state: JsonValue): JsonValue => {
      const { log } = state as { log: JsonValue[] };
      return { first: log[0] ?? null, log: log.map((entry) => [entry, true]) };
    };
    const schema: StateSchema = { version: 2, migrations: { 1: migrate } };
    const V1: StateSchema = { version: 1, migrations: {} };
    const old = await makeStore(backend, { schema: V1 });
    const current = await old.another({ schema });
    const plain = await makeStore(backend);
    /** Two bases that appended to one list, below one tip of the old version and one of the new. */
    const conflictsOf = async (id: string, before: boolean) => {
      const of = (...log: string[]): JsonValue => (before ? migrate({ log }) : { log });
      const first = before ? plain.store : old.store;
      const workflow = await first.createWorkflow(id, { state: of() });
      const canonical = await workflow.canonical();
      const branch = await workflow.branch({ agent: "a", branch: "x" });
      const ours = await canonical.commit({ state: of("x") });
      const theirs = await branch.commit({ state: of("y") });
      await canonical.commit({ state: of("x"), mergeParents: [theirs.id], allowEmpty: true });
      await branch.commit({ state: of("y"), mergeParents: [ours.id], allowEmpty: true });
      const now = await (before ? plain.store : current).workflow(id);
      await (await now.branch("a/x")).commit({ state: migrate({ log: ["y"] }), allowEmpty: true });
      const { conflicts } = await now.preview(["a/x"]);
      expect(conflicts.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
        "edit/edit /first",
        "list /log",
      ]);
      const told = conflicts.map((one) => [one.path, one.base, one.ours, one.theirs]);
      return { told: JSON.stringify(told, ["exists", "value"]), order: ours.id < theirs.id };
    };
    const found: Awaited<ReturnType<typeof conflictsOf>>[] = [];
    const orders = new Set<boolean>();
    for (let i = 0; i < 100 && orders.size < 2; i++) {
      found.push(await conflictsOf(`c${i}`, false), await conflictsOf(`p${i}`, true));
      for (const { order } of found) orders.add(order);
    }
    expect(orders.size).toBe(2);
    expect(new Set(found.map(({ told }) => told)).size).toBe(1);
  });

  it("takes a commit's change over, and back, at the schema's version", async () => {
    const made = await makeStore(backend);
    const { old, workflow } = await makeBranches(made);
    const picked = await workflow.cherryPick("a/new");
    expect([picked.status, picked.commit?.stateVersion]).toEqual(["applied", 3]);
    expect(await workflow.stateAt("canonical:/places")).toEqual({ second: 3, first: 0 });
    expect(await workflow.mergeRecord("canonical")).toMatchObject({
      migratedFrom: 1,
      sources: [{ migratedFrom: 2 }],
    });
    const back = await workflow.revert("canonical");
    expect([back.status, back.commit?.stateVersion]).toEqual(["applied", 3]);
    expect(await workflow.stateAt("canonical:/places")).toEqual({ second: 2, first: 0 });
    // Nothing to take over is no reason to migrate.
    const branch = await old.branch("b/old");
    const head = (await branch.update([{ op: "set", path: "/notes/d", value: 1 }])).id;
    const none = await workflow.cherryPick("b/old", { onto: "b/old" });
    expect([none.status, none.commit?.id]).toEqual(["up-to-date", head]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("is, in an export, what real Git finds sound", async () => {
    const made = await makeStore(backend);
    const { workflow } = await makeBranches(made);
    await workflow.merge(["a/new"]);
    await workflow.erase({ paths: ["/state/notes/c"], ...BY });
    for (const redacted of [false, true]) {
      const target = join(mkdtempSync(join(folder, "versions-")), "export.git");
      await exportWorkflow(workflow, target, { redacted });
      expect(git(target, ["fsck", "--strict", "--full"]).trim()).toBe("");
      // The erasure's commit is made anew from one that was of version 3.
      for (const commit of ["canonical", "canonical~1"]) {
        expect(git(target, ["cat-file", "-p", commit])).toContain("\nagstate-state-version 3\n");
      }
    }
    expect(await workflow.stateAt("canonical:/notes")).toEqual({});
  });
});

describe.each(ON_DISK)("migrating the branches of a workflow on %s", (backend) => {
  it("tells in a dry run what it would do, and then does it", async () => {
    const made = await makeStore(backend);
    const { workflow } = await makeBranches(made);
    await workflow.tag("first", "canonical");
    const before = await snapshot(workflow);
    const dry = await workflow.migrateState({ dryRun: true });
    expect(await snapshot(workflow)).toEqual(before);
    expect(dry).toMatchObject({ workflow: "w", version: 3, dryRun: true });
    expect(dry.branches.map(({ branch, status, from, to }) => [branch, status, from, to])).toEqual([
      ["agents/a/new", "pending", 2, 3],
      ["agents/b/old", "pending", 1, 3],
      ["canonical", "pending", 1, 3],
    ]);
    expect(dry.branches[1]).toMatchObject({
      changes: 2,
      paths: [
        { kind: "added", path: "/places" },
        { kind: "removed", path: "/seats" },
      ],
      commit: null,
      error: null,
    });
    const done = await workflow.migrateState({ author: "ops" });
    const canonical = await workflow.canonical();
    expect(done.branches[2]).toMatchObject({ status: "migrated", commit: canonical.head.id });
    expect(canonical.head).toMatchObject({
      author: "ops",
      message: "Migrate state 1 -> 3",
      stateVersion: 3,
    });
    // Its policies are what they were.
    expect(await canonical.policies()).toEqual({ "/log": "append" });
    expect((await workflow.commitAt("tags/first")).stateVersion).toBeNull();
    expect(await workflow.stateAt("tags/first:/places")).toEqual({ second: 2, first: 0 });
    const again = await workflow.migrateState();
    expect(again.branches.map(({ status }) => status)).toEqual(["current", "current", "current"]);
    const { problems, unreachable } = await workflow.fsck();
    expect([problems, unreachable]).toEqual([[], 0]);
  });

  it("tells of a branch that fails, and goes on with the others", async () => {
    const made = await makeStore(backend);
    const { old, workflow } = await makeBranches(made);
    await (await old.branch("b/old")).update([{ op: "set", path: "/seats", value: "many" }]);
    const { branches } = await workflow.migrateState();
    expect(branches.map(({ status }) => status)).toEqual(["migrated", "failed", "migrated"]);
    expect(branches[1]?.error).toEqual(
      agstateError("MIGRATION_FAILED", { workflow: "w", from: 2, to: 3 }),
    );
    expect(branches[1]?.error?.message).not.toContain("many");
    expect((await old.commitAt("b/old")).stateVersion).toBeNull();
    const newer = await (await openedWith(made, V2)).migrateState({ branches: ["canonical"] });
    expect(newer.branches[0]).toMatchObject({ status: "failed", error: { code: "STATE_TOO_NEW" } });
  });

  it("is done on a branch that moves meanwhile, to what that is then", async () => {
    const made = await makeStore(backend);
    const { old } = await makeBranches(made);
    const canonical = await old.canonical();
    let moved = 0;
    const between = (storage: Storage): Storage => ({
      ...forward(storage),
      write: async (batch) => {
        if (moved++ < 2) await canonical.update([{ op: "set", path: "/seats", value: moved }]);
        return storage.write(batch);
      },
    });
    const workflow = await (await made.another({ schema: SCHEMA, wrap: between })).workflow("w");
    const { branches } = await workflow.migrateState({ branches: ["canonical"] });
    expect(branches[0]?.status).toBe("migrated");
    expect(moved).toBe(3);
    expect(await workflow.stateAt("canonical:/places/second")).toBe(2);
  });

  it("is refused for what is complete, but for a dry run, and for what has no schema", async () => {
    const made = await makeStore(backend);
    const { old } = await makeBranches(made);
    await expect(old.migrateState({ dryRun: true })).rejects.toEqual(agstateError("SCHEMA_NEEDED"));
    const workflow = await openedWith(made, SCHEMA);
    await expect(workflow.migrateState({ branches: ["c/none"] })).rejects.toEqual(
      agstateError("REF_NOT_FOUND"),
    );
    await old.complete();
    // A handle that was opened before learns it when it writes.
    await expect(workflow.migrateState()).rejects.toEqual(agstateError("WORKFLOW_COMPLETE"));
    const reopened = await openedWith(made, SCHEMA);
    await expect(reopened.migrateState()).rejects.toEqual(agstateError("WORKFLOW_COMPLETE"));
    const { branches } = await reopened.migrateState({ dryRun: true });
    expect(branches.map(({ status }) => status)).toEqual(["pending", "pending", "pending"]);
    expect(await reopened.stateAt("canonical:/places/first")).toBe(0);
  });

  it("lets a run that is under way go on, whose edits are of the migrated state then", async () => {
    const made = await makeStore(backend);
    const { workflow } = await makeBranches(made);
    const update = () => [{ op: "set", path: "/places/first", value: 7 }] as const;
    const run = await workflow.branch("b/old");
    await workflow.run(run, async (ctx) => {
      await ctx.step({ name: "first", action: "write" }, () => 1);
      // Between its intent and its seal.
      await ctx.step({ name: "second", action: "write", update }, () =>
        workflow.migrateState({ branches: ["b/old"] }).then(() => 1),
      );
    });
    const subjects = (await all(run.log({ limit: 4 }))).map(({ message }) => message);
    expect(subjects.slice(1, 3)).toEqual(["second: completed", "Migrate state 1 -> 3"]);
    expect(run.head.stateVersion).toBe(3);
    expect(await run.state("/places", { migrate: false })).toEqual({ second: 2, first: 7 });
    expect(run.head.inFlight).toEqual([]);
  });

  it("leaves what is withheld where it is, or where a migration puts it", async () => {
    const made = await makeStore(backend);
    const state = { seats: 1, user: { mail: "someone@example.com" } };
    const old = await made.store.createWorkflow("w", { state, isolation: ["/state/user/mail"] });
    await old.branch({ agent: "a", branch: "x" });
    await old.tag("kept", "canonical");
    await old.hold("canonical", { reason: "file 7", name: "case" });
    await old.releaseHold("case", { reason: "settled" });
    const moving: StateSchema = {
      version: 2,
      migrations: {
        1: (given) => {
          const { user, ...rest } = given as { user: { mail?: JsonValue } };
          return { ...rest, contact: { by: "mail", at: user.mail ?? null } };
        },
      },
    };
    const workflow = await openedWith(made, moving);
    expect(await workflow.stateAt("tags/kept:/contact/at")).toBe("someone@example.com");
    // Nor is what was read before told any more.
    await workflow.erase({ paths: ["/state/user/mail"], ...BY });
    const read = (await workflow.stateAt("tags/kept")) as { contact: { at: unknown } };
    expect(isWithheld(read.contact.at)).toBe(true);
    await expect(workflow.stateAt("tags/kept:/contact/at/x")).rejects.toEqual(
      agstateError("ERASED"),
    );
    await workflow.branch({ agent: "c", branch: "begun", from: "tags/kept" });
    const { branches } = await workflow.migrateState();
    expect(branches.map(({ status }) => status)).toEqual(["migrated", "migrated", "migrated"]);
    const stored = (await old.stateAt("c/begun")) as { contact: { at: unknown } };
    expect(isWithheld(stored.contact.at)).toBe(true);
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("seals what it makes by the keys of whom it belongs to", async () => {
    const keys = testKeys();
    const made = await makeStore(backend, { keys, region: "eu" });
    const people = { ann: `Ann ${"x".repeat(2500)}`, bob: "Bob" };
    const old = await made.store.createWorkflow("w", {
      classification: "regulated",
      storageRegion: "eu",
      subjects: ["/state/users/{subject}"],
      state: { people, n: 0 },
    });
    const branch = await old.branch({ agent: "a", branch: "x" });
    await branch.update([{ op: "set", path: "/people/cy", value: `Cy ${"y".repeat(2500)}` }]);
    await (await old.canonical()).update([{ op: "set", path: "/n", value: 1 }]);
    // Whose keys nobody has needed so far.
    const owning: StateSchema = {
      version: 2,
      migrations: {
        1: (state) => {
          const { people, ...rest } = state as Members;
          return { ...rest, users: people as JsonValue };
        },
      },
    };
    const workflow = await openedWith(made, owning);
    const dry = await workflow.migrateState({ dryRun: true });
    expect(dry.branches.map(({ status }) => status)).toEqual(["pending", "pending"]);
    expect((await workflow.merge(["a/x"])).status).toBe("merged");
    const again = await openedWith(made, undefined);
    expect(await again.stateAt("canonical")).toMatchObject({ n: 1, users: people });
    await again.destroyKey({ subject: "cy", reason: "request 3" });
    const left = (await again.stateAt("canonical")) as { users: Record<string, unknown> };
    expect(Object.entries(left.users).map(([name, user]) => [name, isWithheld(user)])).toEqual([
      ["ann", false],
      ["bob", false],
      ["cy", true],
    ]);
    expect((await again.fsck()).problems).toEqual([]);
  });

  it("leaves LangGraph's checkpoints alone, and is not asked about other workflows", async () => {
    const made = await makeStore(backend);
    const store = await made.another({ schema: (id) => (id === "w" ? SCHEMA : undefined) });
    const saver = new AgstateSaver(store);
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    const checkpoint = {
      v: 4,
      id: "1ef4f797-8335-6428-8001-8a1503f9b875",
      ts: "2026-01-01T00:00:00Z",
      channel_values: { messages: ["one"] },
      channel_versions: { messages: 1 },
      versions_seen: {},
    };
    await saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, { messages: 1 });
    expect((await saver.getTuple(config))?.checkpoint.channel_values).toEqual({
      messages: ["one"],
    });
    const thread = await store.workflow("t");
    const commits = await all(thread.log());
    expect(commits.length).toBeGreaterThan(0);
    expect(commits.map(({ stateVersion }) => stateVersion)).toEqual(commits.map(() => null));
  });
});

describe("migrating a state of which a part is in another region", () => {
  it("leaves that part there, and the catalogue without versions", async () => {
    const ground = await makeGround(["eu", "us"]);
    const first = (await ground.open()).regions;
    const customer = { card: `4000 1234 5678 9010 of Ada Lovelace ${"z".repeat(300)}` };
    await first.createWorkflow("w", {
      storageRegion: "eu",
      placement: [{ path: "/state/customer", region: "us" }],
      state: { customer, seats: 2 },
    });
    await first.close();
    const { regions } = await ground.open({ schema: SCHEMA });
    const workflow = await regions.workflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.update([{ op: "set", path: "/places/first", value: 1 }]);
    const { branches } = await workflow.migrateState();
    expect(branches.map(({ status }) => status)).toEqual(["current", "migrated"]);
    expect((await workflow.merge(["a/x"])).status).toBe("merged");
    const expected = { customer, places: { second: 2, first: 1 } };
    expect(await workflow.stateAt("canonical")).toEqual(expected);
    expect((await workflow.fsck()).problems).toEqual([]);
    // Who has the home alone is not told of it, and can still read and migrate the rest.
    const { us: _, ...home } = ground.config.regions;
    const alone = await ground.open({ schema: SCHEMA }, { ...ground.config, regions: home });
    const state = await (await alone.regions.workflow("w")).stateAt("canonical~1");
    expect(state).toMatchObject({ places: { second: 2, first: 0 } });
    expect(isWithheld((state as { customer: unknown }).customer)).toBe(true);
    const catalogue = await openStore(ground.config.catalogue as string, { create: false });
    for await (const { id } of catalogue.workflows()) {
      const places = await catalogue.workflow(id);
      for await (const { stateVersion } of places.log()) expect(stateVersion).toBeNull();
    }
    await catalogue.close();
  });
});

describe.each(ON_DISK)("what versions cost on %s", (backend) => {
  it("is nothing where they agree", async () => {
    const made = await makeStore(backend);
    const costs: Record<string, unknown> = {};
    for (const [name, schema] of [
      ["none", undefined],
      ["one", { version: 1, migrations: {} }],
    ] as const) {
      let counter: CountingStorage | undefined;
      const wrap = (storage: Storage) => {
        counter = counting(storage);
        return counter.storage;
      };
      const store = await made.another({ wrap, schema });
      const workflow = await store.createWorkflow(name, { state: { log: LOG, n: 0 } });
      const branch = await workflow.branch({ agent: "a", branch: "x" });
      const canonical = await workflow.canonical();
      const told: unknown[] = [];
      const count = async (work: () => Promise<unknown>) => {
        counter!.reset();
        await work();
        const { calls, objectsRead, objectsWritten } = counter!.counts();
        told.push({ calls, objectsRead, objectsWritten });
      };
      await count(() => branch.update([{ op: "append", path: "/log", value: "x" }]));
      await count(() => canonical.commit({ state: { log: LOG, n: 1 } }));
      await count(() => branch.state("/n"));
      await count(() => workflow.merge(["a/x"]));
      const cold = await (await made.another({ wrap, schema })).workflow(name);
      await count(() => cold.stateAt("canonical", "/n"));
      await count(() => cold.stateAt("canonical"));
      costs[name] = told;
    }
    expect(costs.one).toEqual(costs.none);
  });
});
