import { describe, expect, it } from "vitest";
import type { JsonValue, Workflow } from "../../src/index.js";
import { canonicalText } from "../../src/objects/canonical.js";
import { hashObject } from "../../src/objects/hash.js";
import { compileIsolation, type Isolation, isolationOfKey } from "../../src/objects/isolation.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

/** Whether a workflow stores a value as an object of its own. */
async function standsAlone(workflow: Workflow, value: JsonValue): Promise<boolean> {
  const id = hashObject("blob", Buffer.from(canonicalText(value)));
  const [stored] = await workflow.internals.storage.readObjects(workflow.id, [id]);
  return stored !== undefined;
}

/** How many stored objects hold a text. */
async function holders(workflow: Workflow, text: string): Promise<number> {
  const { storage } = workflow.internals;
  const { rows } = await storage.scanObjects(workflow.id, null, 10_000);
  const commits = await storage.scanCommits(workflow.id, null, 10_000);
  const bodies = [...rows, ...commits.rows.flatMap((commit) => [commit, ...commit.inline])];
  return bodies.filter((o) => "body" in o && Buffer.from(o.body).includes(text)).length;
}

describe.each(BACKENDS)("isolated values, on %s", (backend) => {
  it("are objects of their own, whatever their size and however they came", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      isolation: ["/state/user/email", "/state/messages/*", "/state/tenants/*/key"],
      state: { user: { email: "a@b", name: "n" }, messages: ["hello", { m: 2 }], tenants: {} },
    });
    const branch = await workflow.canonical();
    await branch.update([
      { op: "append", path: "/messages", value: "third" },
      { op: "set", path: "/tenants/one", value: { key: "k-1", plan: "free" } },
      { op: "set", path: "/plain", value: "in the crowd" },
    ]);
    for (const value of ["a@b", "hello", { m: 2 }, "third", "k-1"]) {
      expect(await standsAlone(workflow, value), canonicalText(value)).toBe(true);
    }
    await branch.update([{ op: "set", path: "/user/email", value: "c@d" }]);
    expect(await standsAlone(workflow, "c@d")).toBe(true);
    const state = (await branch.state()) as { [key: string]: JsonValue };
    await branch.commit({ state: { ...state, user: { name: "n", email: "e@f" } } });
    expect(await standsAlone(workflow, "e@f")).toBe(true);
    expect(await workflow.stateAt("canonical", "/user")).toEqual({ name: "n", email: "e@f" });
    expect(await branch.state("/messages")).toEqual(["hello", { m: 2 }, "third"]);
    expect(await workflow.diff("canonical~1", "canonical")).toEqual([
      { kind: "changed", path: "/user/email", before: "c@d", after: "e@f" },
    ]);
    // Nowhere else, so that erasing one object erases the value.
    for (const text of ["a@b", "hello", "third", "k-1", "c@d", "e@f"]) {
      expect(await holders(workflow, text), text).toBe(1);
    }
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("are apart in step records, too, and never in the commit's row", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { isolation: ["/step/output"] });
    const branch = await workflow.canonical();
    const { id } = await branch.commit({
      step: { action: "read", record: { name: "n", output: "a secret" } },
    });
    expect(await standsAlone(workflow, "a secret")).toBe(true);
    expect(await holders(workflow, "a secret")).toBe(1);
    expect(await workflow.stepRecord(id)).toEqual({ name: "n", output: "a secret" });
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("are the only ones: a small state without them is one object", async () => {
    const { store } = await makeStore(backend);
    const state = { user: { email: "a@b" } };
    const plain = await store.createWorkflow("plain", { state });
    expect(await standsAlone(plain, "a@b")).toBe(false);
    expect(await standsAlone(plain, state)).toBe(true);
    const other = await store.createWorkflow("other", { state, isolation: ["/state/user/phone"] });
    expect(await standsAlone(other, "a@b")).toBe(false);
  });

  it("take * for any key and any element, but no index", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      isolation: ["/state/*/id", "/state/list/0"],
      state: { a: { id: "one" }, list: ["element"], b: { id: { deep: 1 }, c: { id: "inner" } } },
    });
    expect(await standsAlone(workflow, "one")).toBe(true);
    expect(await standsAlone(workflow, { deep: 1 })).toBe(true);
    expect(await standsAlone(workflow, "inner")).toBe(false);
    expect(await standsAlone(workflow, "element")).toBe(false);
    await expect(store.createWorkflow("other", { isolation: ["/state"] })).rejects.toThrow(
      agstateError("INVALID_PATH", { path: "/state" }),
    );
  });
});

describe.each(BACKENDS)("values of subjects, on %s", (backend) => {
  it("are objects of their own, under the key that says whose they are and nowhere else", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      subjects: ["/state/users/{subject}", "/state/orders/{subject}/*"],
      state: {
        users: { ann: { n: 1 } },
        orders: { ann: { total: 5 } },
        other: { ann: "not hers" },
      },
    });
    const branch = await workflow.canonical();
    await branch.update([{ op: "set", path: "/users/bob", value: "bob's" }]);
    for (const value of [{ n: 1 }, 5, "bob's"]) {
      expect(await standsAlone(workflow, value), canonicalText(value)).toBe(true);
    }
    for (const value of [{ total: 5 }, "not hers"]) {
      expect(await standsAlone(workflow, value), canonicalText(value)).toBe(false);
    }
    expect(await branch.state("/users")).toEqual({ ann: { n: 1 }, bob: "bob's" });
  });
});

describe("a policy of subjects", () => {
  const state = isolationOfKey(
    compileIsolation(
      ["/state/*/plain"],
      [
        "/state/users/{subject}",
        "/state/orders/{subject}/*/total",
        "/state/{subject}/mail",
        "/state/x/{subject}/a",
        "/state/{subject}/y/b/c",
      ],
    ),
    "state",
  );
  const at = (...tokens: string[]) =>
    tokens.reduce((policy: Isolation | null, token) => isolationOfKey(policy, token), state);

  it("says whose a value is, by the key in the place of its subject", () => {
    expect(at("users", "ann")).toMatchObject({ isolated: true, owned: true, owner: "ann" });
    expect(at("orders", "bob", "1", "total")).toMatchObject({ owned: true, owner: "bob" });
    expect(at("orders", "bob", "1")).toMatchObject({ owned: false, isolated: false });
    expect(at("cid", "mail")).toMatchObject({ owned: true, owner: "cid" });
    expect(at("cid", "plain")).toMatchObject({ isolated: true, owned: false });
    // Two paths say whose it is: the nearer one counts.
    expect(at("users", "mail")).toMatchObject({ owned: true, owner: "mail" });
    // Each says it of its own values alone.
    expect(at("x", "y", "a")).toMatchObject({ owned: true, owner: "y" });
    expect(at("x", "y", "b", "c")).toMatchObject({ owned: true, owner: "x" });
  });

  it("takes what is called like its token for a key in other paths", () => {
    const plain = isolationOfKey(compileIsolation(["/state/{subject}"]), "state");
    expect(isolationOfKey(plain, "{subject}")?.isolated).toBe(true);
    expect(isolationOfKey(plain, "ann")).toBeNull();
  });
});
