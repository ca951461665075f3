import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonValue, Withheld, type Workflow } from "../../src/index.js";
import type { DataKeys } from "../../src/keys/data-keys.js";
import { testKeys } from "../support/keys.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

const DECLARED = {
  classification: "regulated",
  storageRegion: "eu",
  subjects: ["/state/users/{subject}", "/step/input/customers/{subject}/*"],
} as const;

const big = (of: string) => ({
  list: Array.from({ length: 120 }, (_, i) => `${of} ${i} ${"x".repeat(i % 30)}`),
  text: `${of} ${"words ".repeat(700)}`,
  fan: Object.fromEntries(Array.from({ length: 280 }, (_, i) => [`k${i}`, `${of} ${i}`])),
});

/** How the objects that a state is made of are sealed: by the tag of each blob, 0 for the workflow's own key. */
async function sealsOf(workflow: Workflow, revision: string, pointer: string): Promise<string[]> {
  const { repository, seals } = { repository: workflow.internals, seals: new Set<string>() };
  const commit = await repository.commitAt(revision);
  let links = [commit.root.state!];
  for (const token of pointer.split("/").slice(1)) {
    const entries = await repository.objects.tree(links[0]!.id);
    links = entries.filter(({ name }) => name === token);
  }
  for (const link of links) {
    const stored = (await repository.storage.readObjects(workflow.id, [link.id]))[0];
    if (link.type === "tree") links.push(...(await repository.objects.tree(link.id)));
    else if (stored !== undefined && "body" in stored) {
      seals.add(
        stored.body[0] === 1
          ? "workflow"
          : Buffer.from(stored.body.subarray(1, 17)).toString("hex"),
      );
    }
  }
  return [...seals];
}

async function begin(backend: (typeof BACKENDS)[number], state: JsonValue = {}) {
  const keys = testKeys();
  const { store, another } = await makeStore(backend, { region: "eu", keys });
  const workflow = await store.createWorkflow("w", { ...DECLARED, state });
  const again = async () => (await another({ region: "eu", keys })).workflow("w");
  return { workflow, again };
}

describe.each(BACKENDS)("keys of subjects, on %s", (backend) => {
  it("seal all of a subject's values, and nothing else, however they came", async () => {
    const { workflow, again } = await begin(backend, {
      users: { ann: big("ann"), bob: "small" },
      other: big("other"),
    });
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.update([
      { op: "append", path: "/users/ann/list", value: "ann more" },
      { op: "text-append", path: "/users/ann/text", text: " ann more".repeat(200) },
      { op: "set", path: "/users/ann/fan/k5", value: { deep: "ann" } },
      { op: "set", path: "/users/cid", value: big("cid") },
    ]);
    const tag = (subject: string) => (workflow.internals.keys as DataKeys).tagOf(subject);
    const sealsAt = (pointer: string) => sealsOf(workflow, "agents/a/b", pointer);
    expect(await sealsAt("/users/ann")).toEqual([tag("ann")]);
    expect(await sealsAt("/users/bob")).toEqual([tag("bob")]);
    expect(await sealsAt("/users/cid")).toEqual([tag("cid")]);
    expect(await sealsAt("/other")).toEqual(["workflow"]);

    const read = await again();
    const state = (await read.stateAt("agents/a/b")) as { users: { [name: string]: JsonValue } };
    expect(state.users).toMatchObject({ bob: "small", cid: big("cid") });
    expect((state.users.ann as { list: string[] }).list.at(-1)).toBe("ann more");
    expect(await read.stateAt("agents/a/b:/users/ann/fan/k5/deep")).toBe("ann");
    expect((await read.fsck()).problems).toEqual([]);
  });

  it("make a state's id a function of the state, too", async () => {
    const { workflow } = await begin(backend);
    const direct = await workflow.branch({ agent: "a", branch: "direct" });
    const edited = await workflow.branch({ agent: "a", branch: "edited" });
    const value = fc.oneof(
      fc.integer(),
      fc.string({ maxLength: 8 }),
      fc.array(fc.string({ maxLength: 60 }), { maxLength: 60 }),
      fc.dictionary(fc.constantFrom("a", "b", "c"), fc.string({ maxLength: 1200 })),
      fc.constantFrom("x".repeat(3000), "y\n".repeat(1500)),
    );
    const users = fc.dictionary(fc.constantFrom("ann", "bob", "cid"), value, { maxKeys: 3 });
    const rootOf = async (name: string) =>
      (await workflow.internals.commitAt(`agents/a/${name}`)).root.state?.id;
    await fc.assert(
      fc.asyncProperty(users, users, async (first, second) => {
        await edited.commit({ state: { users: first } });
        await edited.commit({ state: { users: second } });
        await direct.commit({ state: {} });
        await direct.update([{ op: "set", path: "/users", value: second }]);
        expect(await rootOf("edited")).toBe(await rootOf("direct"));
        expect(await edited.state()).toEqual({ users: second });
      }),
      { numRuns: backend === "memory" ? 60 : 10 },
    );
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("take no part in how merges come out", async () => {
    const { workflow } = await begin(backend, { users: { ann: { a: 1, b: 1, c: 1 } } });
    const one = await workflow.branch({ agent: "one", branch: "b" });
    const two = await workflow.branch({ agent: "two", branch: "b" });
    // It grows into a tree on one side, and stays one blob on the other.
    await one.update([{ op: "set", path: "/users/ann/long", value: "x".repeat(2500) }]);
    await two.update([
      { op: "set", path: "/users/ann/a", value: 2 },
      { op: "set", path: "/users/bob", value: "new" },
    ]);
    expect(await workflow.merge(["agents/one/b", "agents/two/b"])).toMatchObject({
      status: "merged",
      conflicts: [],
    });
    expect(await workflow.stateAt("canonical:/users")).toEqual({
      ann: { a: 2, b: 1, c: 1, long: "x".repeat(2500) },
      bob: "new",
    });
    expect(await sealsOf(workflow, "canonical", "/users/ann")).toEqual([
      (workflow.internals.keys as DataKeys).tagOf("ann"),
    ]);
  });

  it("erase one subject in all versions when they are destroyed, and keep it erased", async () => {
    const { workflow, again } = await begin(backend, { users: { ann: big("ann"), bob: "bob's" } });
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    const input = { customers: { ann: { card: "4111" }, bob: { card: "5500" } } };
    const { id } = await branch.update([{ op: "set", path: "/users/ann/text", value: "later" }], {
      step: { action: "write", record: { name: "pay", input } },
    });
    const destroyed = await workflow.destroyKey({
      subject: "ann",
      reason: "asked for",
      actor: "dpo",
    });
    expect(destroyed.existed).toBe(true);
    for (const read of [workflow, await again()]) {
      for (const revision of ["canonical", "agents/a/b"]) {
        const { users } = (await read.stateAt(revision)) as { users: { [name: string]: unknown } };
        expect(users.bob).toBe("bob's");
        const { list } = users.ann as { list: unknown[] };
        expect(list.length).toBe(120);
        for (const element of list) {
          expect(element).toBeInstanceOf(Withheld);
          expect((element as Withheld).reason).toBe("erased");
        }
      }
      const record = (await read.stepRecord(id)) as { input: typeof input };
      expect(record.input.customers.ann.card).toMatchObject({ reason: "erased" });
      expect(record.input.customers.bob.card).toBe("5500");
      expect((await read.fsck()).problems).toEqual([]);
      const writer = await read.branch("agents/a/b");
      await expect(
        writer.update([{ op: "set", path: "/users/ann", value: "back again" }]),
      ).rejects.toThrow(agstateError("ERASED"));
      await writer.update([{ op: "set", path: "/other", value: `${Math.random()}` }]);
    }
    await (await again())
      .branch("agents/a/b")
      .then((writer) => writer.update([{ op: "delete", path: "/users/ann" }]));
    expect(
      await workflow.stateAt("agents/a/b:/users").then((u) => Object.keys(u as object)),
    ).toEqual(["bob"]);
    const events = [];
    for await (const event of workflow.audit({ refs: "audit/events" })) events.push(event);
    expect(events).toMatchObject([
      { kind: "key-destroyed", actor: "dpo", facts: { why: "asked for", key: destroyed.key } },
    ]);
    expect(JSON.stringify(events)).not.toContain("ann");
    expect(await workflow.destroyKey({ subject: "ann", reason: "again" })).toMatchObject({
      existed: false,
    });
  });

  it("are made once by writers who meet a subject at the same time", async () => {
    const { workflow, again } = await begin(backend);
    const workflows = [workflow, await again(), await again(), await again()];
    const branches = await Promise.all(
      workflows.map((each, i) => each.branch({ agent: "a", branch: `b${i}` })),
    );
    await Promise.all(
      branches.map((branch, i) =>
        branch.update([{ op: "set", path: "/users", value: { ann: `from ${i}`, [`u${i}`]: i } }]),
      ),
    );
    const read = await again();
    for (const i of branches.keys()) {
      expect(await read.stateAt(`agents/a/b${i}:/users`)).toEqual({
        ann: `from ${i}`,
        [`u${i}`]: i,
      });
    }
  });
});

it("subjects have no key where nothing is encrypted", async () => {
  const { store } = await makeStore("memory", { region: "eu" });
  const workflow = await store.createWorkflow("w", { ...DECLARED, state: { users: { ann: 1 } } });
  expect(await workflow.stateAt("canonical:/users/ann")).toBe(1);
  await expect(workflow.destroyKey({ subject: "ann", reason: "x" })).rejects.toThrow(
    agstateError("INVALID_ARGUMENT"),
  );
});
