import { describe, expect, it } from "vitest";
import { openStore, Withheld, type Workflow } from "../../src/index.js";
import { hashObject } from "../../src/objects/hash.js";
import { rotateKey } from "../../src/store/keys/change.js";
import { testKeys } from "../support/keys.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const DECLARED = {
  classification: "sensitive",
  storageRegion: "eu",
  subjects: ["/state/users/{subject}"],
  state: { n: 1, users: { ann: "hers" } },
} as const;

async function objectIds(workflow: Workflow): Promise<string[]> {
  const { storage } = workflow.internals;
  const { rows } = await storage.scanObjects(workflow.id, null, 10_000);
  return rows.map(({ id }) => id).sort();
}

describe.each(BACKENDS)("a workflow's key, on %s", (backend) => {
  it("is wrapped anew without any object changing, and is needed in its new wrapping", async () => {
    const keys = testKeys();
    const { store, another } = await makeStore(backend, { region: "eu", keys });
    const workflow = await store.createWorkflow("w", DECLARED);
    const before = { ids: await objectIds(workflow), key: await workflow.keyInfo() };
    const rotated = await workflow.rotateKey({ to: "other", actor: "ops" });
    expect(rotated.from).toEqual({ keyName: "default", version: before.key?.version });
    expect(await workflow.keyInfo()).toMatchObject({ ...rotated.to, readable: true });
    const after = await objectIds(workflow);
    expect(after).toEqual(expect.arrayContaining(before.ids));
    // What the audit tells of it.
    expect(after.length).toBe(before.ids.length + 1);

    // Who has it open goes on.
    await (await workflow.canonical()).update([{ op: "set", path: "/users/bob", value: "his" }]);
    if (backend !== "memory") {
      const { AGSTATE_KEY_DEFAULT } = keys.environment;
      delete keys.environment.AGSTATE_KEY_DEFAULT;
      const opened = await (await another({ region: "eu", keys })).workflow("w");
      expect(await opened.stateAt("canonical")).toEqual({
        n: 1,
        users: { ann: "hers", bob: "his" },
      });
      // Another version of the same name.
      keys.environment.AGSTATE_KEY_OTHER += `,${AGSTATE_KEY_DEFAULT}`;
      const again = await opened.rotateKey();
      expect(again.to.keyName).toBe("other");
      expect(again.to.version).not.toBe(again.from.version);
      keys.environment.AGSTATE_KEY_OTHER = AGSTATE_KEY_DEFAULT as string;
      const last = await (await another({ region: "eu", keys })).workflow("w");
      expect(await last.stateAt("canonical:/users/bob")).toBe("his");
      keys.environment.AGSTATE_KEY_OTHER = "";
      const none = await (await another({ region: "eu", keys })).workflow("w");
      expect(await none.stateAt("canonical:/n").catch((e) => e.code)).toMatchObject({
        reason: "key",
      });
      await expect(none.rotateKey()).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
    }
    const events = await all(workflow.audit({ refs: "audit/events" }));
    expect(events[0]).toMatchObject({
      kind: "key-rotated",
      actor: "ops",
      facts: { fromKey: "default", toKey: "other", toVersion: rotated.to.version },
    });
    expect((await workflow.verifyAudit()).problems).toEqual([]);
  });

  it("erases everything when it is destroyed, and the graph stays whole", async () => {
    const keys = testKeys();
    const { store, another } = await makeStore(backend, { region: "eu", keys });
    const workflow = await store.createWorkflow("w", DECLARED);
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.update([{ op: "set", path: "/n", value: 2 }], {
      message: "Two",
      step: { action: "write", record: { name: "t", input: 1 } },
    });
    await expect(workflow.destroyKey({ reason: " " })).rejects.toThrow(
      agstateError("INVALID_VALUE"),
    );
    await workflow.destroyKey({ reason: "contract ended", actor: "dpo" });
    const again = await (await another({ region: "eu", keys })).workflow("w");
    for (const gone of [workflow, again]) {
      const n = await gone.stateAt("canonical:/n");
      expect(n).toBeInstanceOf(Withheld);
      expect(n).toMatchObject({ reason: "erased" });
      expect(await gone.stepRecord("agents/a/b")).toMatchObject({ reason: "erased" });
      expect(await gone.keyInfo()).toMatchObject({
        keyName: null,
        destroyed: { by: "dpo" },
        readable: false,
      });
      expect((await gone.fsck()).problems).toEqual([]);
      expect(await all(gone.log({ revisions: ["agents/a/b"] }))).toHaveLength(2);
      const changes = await gone.diff("agents/a/b~1", "agents/a/b");
      expect(changes.map(({ path }) => path)).toEqual(["/n"]);
      const handle = await gone.branch("agents/a/b");
      await expect(handle.update([{ op: "set", path: "/n", value: 3 }])).rejects.toThrow(
        agstateError("ERASED"),
      );
      await expect(gone.rotateKey()).rejects.toThrow(agstateError("ERASED"));
    }
    const { storage } = workflow.internals;
    const rows = await storage.readPending("w", ["keys/"]);
    expect(rows.map(({ key }) => key)).toEqual(["keys/workflow"]);
    const events = await all(workflow.audit({ refs: "audit/events" }));
    expect(events).toMatchObject([
      { kind: "key-destroyed", facts: { key: "keys/workflow", why: "contract ended" } },
    ]);
  });

  it("is not destroyed while anything is held", async () => {
    const keys = testKeys();
    const { store } = await makeStore(backend, { region: "eu", keys });
    const workflow = await store.createWorkflow("w", DECLARED);
    await workflow.hold("canonical", { name: "case-7", reason: "lawsuit" });
    for (const subject of [{}, { subject: "ann" }]) {
      await expect(workflow.destroyKey({ ...subject, reason: "x" })).rejects.toThrow(
        agstateError("HELD", { holds: ["case-7"] }),
      );
    }
    expect(await workflow.stateAt("canonical")).toEqual(DECLARED.state);
    await workflow.releaseHold("case-7", { reason: "over" });
    await workflow.destroyKey({ subject: "ann", reason: "x" });
    expect(await workflow.stateAt("canonical:/n")).toBe(1);
  });
});

it("a rotation that meets a destruction does not bring the key back", async () => {
  const keys = testKeys();
  let destroy: (() => Promise<unknown>) | null = null;
  const { provider } = keys;
  const slow = {
    ...keys,
    provider: {
      unwrap: provider.unwrap,
      wrap: async (...given: Parameters<typeof provider.wrap>) => {
        const wrapped = await provider.wrap(...given);
        await destroy?.();
        return wrapped;
      },
    },
  };
  const store = await openStore("memory:", { region: "eu", keys: slow });
  const workflow = await store.createWorkflow("w", DECLARED);
  destroy = () => workflow.destroyKey({ reason: "now" });
  await expect(rotateKey(workflow.internals, {})).rejects.toThrow(agstateError("ERASED"));
  const rows = await workflow.internals.storage.readPending("w", ["keys/"]);
  expect(rows.map(({ key, index }) => [key, index])).toEqual([["keys/workflow", 0]]);
  await store.close();
});

it("a key that comes or goes while a store is open is noticed when its workflow is opened again", async () => {
  const keys = testKeys();
  const { store, another } = await makeStore("sqlite", { region: "eu", keys });
  const workflow = await store.createWorkflow("w", DECLARED);
  const record = { name: "t", output: "small" };
  await (await workflow.canonical()).update([], { step: { action: "write", record } });
  const { AGSTATE_KEY_DEFAULT } = keys.environment;
  keys.environment.AGSTATE_KEY_DEFAULT = "";
  const other = await another({ region: "eu", keys });
  const read = async () => {
    const opened = await other.workflow("w");
    return [await opened.stateAt("canonical:/n"), await opened.stepRecord("canonical")];
  };
  expect(await read()).toMatchObject([{ reason: "key" }, { reason: "key" }]);
  keys.environment.AGSTATE_KEY_DEFAULT = AGSTATE_KEY_DEFAULT as string;
  expect(await read()).toEqual([1, record]);
  await workflow.destroyKey({ reason: "over" });
  expect(await read()).toMatchObject([{ reason: "erased" }, { reason: "erased" }]);
});

it("fsck tells of keys that are lost, of one that is back, and of what does not open", async () => {
  const keys = testKeys();
  const { store, another } = await makeStore("sqlite", { region: "eu", keys });
  const workflow = await store.createWorkflow("w", DECLARED);
  const { storage } = workflow.internals;
  const problems = async () => {
    const opened = await (await another({ region: "eu", keys })).workflow("w");
    return (await opened.fsck()).problems.map(({ kind, subject }) => [kind, subject]);
  };
  expect(await problems()).toEqual([]);
  const rows = await storage.readPending("w", ["keys/"]);
  const change = (dropPending: string[], pending: typeof rows = []) =>
    storage.write({
      ...{ workflow: "w", objects: [], moves: [], atomic: true },
      dropPending,
      pending,
    });
  const subject = rows.find(({ key }) => key.startsWith("keys/subject/"))!.key;
  await change([subject]);
  expect(await problems()).toEqual([["missing-key", subject]]);
  await change(["keys/"]);
  expect(await problems()).toEqual([
    ["missing-key", "keys/workflow"],
    ["missing-key", subject],
  ]);
  await change([], rows);
  expect(await problems()).toEqual([]);

  // Another workflow's key in its place.
  const other = await store.createWorkflow("other", DECLARED);
  await storage.write({
    ...{ workflow: "w", objects: [], moves: [], atomic: true },
    dropPending: ["keys/workflow"],
    pending: await storage.readPending("other", ["keys/workflow"]),
  });
  await expect(problems()).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
  await change(["keys/"], rows);

  await workflow.destroyKey({ reason: "over" });
  expect(await problems()).toEqual([]);
  await change([], rows);
  expect(await problems()).toEqual([["missing-key", "keys/workflow"]]);
  await other.destroyKey({ reason: "over" });
});

it("fsck finds a blob that hashes to its id and was not sealed by the workflow's key", async () => {
  const { store } = await makeStore("memory", { region: "eu", keys: testKeys() });
  const workflow = await store.createWorkflow("w", DECLARED);
  const { storage } = workflow.internals;
  const body = Buffer.from(`\u0001${"x".repeat(40)}`);
  const id = hashObject("blob", body);
  const branch = await workflow.canonical();
  const write = storage.write.bind(storage);
  storage.write = (batch) =>
    write({ ...batch, objects: [...batch.objects, { id, type: "blob", body, encoding: 2 }] });
  await branch.update([{ op: "set", path: "/n", value: 2 }]);
  storage.write = write;
  expect((await workflow.fsck()).problems).toMatchObject([
    { kind: "corrupt-object", subject: id, detail: expect.stringContaining("does not open") },
  ]);
});
