import { describe, expect, it } from "vitest";
import { type JsonValue, type Store, Withheld, type Workflow } from "../../src/index.js";
import { ENCODING } from "../../src/storage/port.js";
import { testKeys } from "../support/keys.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const SENSITIVE = { classification: "sensitive", storageRegion: "eu" } as const;

/** All objects of a workflow: those of their own, and those in commits' rows. */
async function objectsOf(workflow: Workflow) {
  const { storage } = workflow.internals;
  const { rows } = await storage.scanObjects(workflow.id, null, 10_000);
  const commits = await storage.scanCommits(workflow.id, null, 10_000);
  return [...rows, ...commits.rows.flatMap((commit) => commit.inline)];
}

/** Everything that a store holds of a workflow, as one text. */
async function everything(workflow: Workflow): Promise<string> {
  const { storage } = workflow.internals;
  const { rows } = await storage.scanObjects(workflow.id, null, 10_000);
  const commits = await storage.scanCommits(workflow.id, null, 10_000);
  const pending = await storage.scanPending(workflow.id, null, 10_000);
  const bodies = [...rows, ...commits.rows.flatMap((c) => [c, ...c.inline]), ...pending.rows];
  return bodies.map((o) => ("body" in o ? Buffer.from(o.body).toString("latin1") : "")).join("\n");
}

const long = (text: string) => `${text} ${"words and ".repeat(400)}`;

/** A workflow with a state of every form: a large list, a long text, a fan-out, small things. */
function stateOf(mark: string): JsonValue {
  return {
    small: `${mark}-small`,
    list: Array.from({ length: 200 }, (_, i) => `${mark}-${i} ${"x".repeat(i % 40)}`),
    text: long(`${mark}-text`),
    fan: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, `${mark}-${i}`])),
    n: 42,
  };
}

async function inEncrypted(
  backend: (typeof BACKENDS)[number],
  work: (workflow: Workflow, again: (how?: object) => Promise<Store>) => Promise<void>,
  more: object = {},
) {
  const keys = testKeys();
  const { store, another } = await makeStore(backend, { region: "eu", keys });
  const workflow = await store.createWorkflow("w", { ...SENSITIVE, ...more });
  await work(workflow, (how) => another({ region: "eu", keys, ...how }));
}

describe.each(BACKENDS)("an encrypted workflow, on %s", (backend) => {
  it("comes back as it was, and holds no payload in clear", async () => {
    await inEncrypted(backend, async (workflow, again) => {
      expect(workflow.info.keyed).toBe("payloads");
      const branch = await workflow.branch({ agent: "a", branch: "b" });
      await branch.commit({ state: stateOf("first") });
      await branch.update([
        { op: "append", path: "/list", value: "first-appended" },
        { op: "text-append", path: "/text", text: long("first-more") },
        { op: "set", path: "/fan/k7", value: { deep: ["first-deep"] } },
      ]);
      await branch.update([], {
        step: { action: "write", record: { name: "t", input: "first-in", output: "first-out" } },
      });
      await branch.setPolicies({ "/n": "sum" });
      const opened = await (await again()).workflow("w");
      const state = (await opened.stateAt("agents/a/b")) as { list: string[]; text: string };
      expect(state.list).toHaveLength(201);
      expect(state.text).toBe(long("first-text") + long("first-more"));
      expect(await opened.stateAt("agents/a/b:/fan/k7")).toEqual({ deep: ["first-deep"] });
      expect(await opened.stepRecord("agents/a/b~1")).toMatchObject({ output: "first-out" });
      expect((await opened.fsck()).problems).toEqual([]);
      expect(await everything(opened)).not.toContain("first-");
      const blobs = (await objectsOf(opened)).filter((o) => o.type === "blob");
      const plain = blobs.filter((o) => (("encoding" in o && o.encoding) || 0) === ENCODING.plain);
      // What the workflow declares is for whoever has no key.
      expect(plain).toHaveLength(1);
      expect(Buffer.from((plain[0] as { body: Uint8Array }).body).toString()).toContain(
        '"cipher":"AES-SIV"',
      );
    });
  });

  it("gives equal values equal ids, whatever way led to them, and other workflows other ids", async () => {
    await inEncrypted(backend, async (workflow, again) => {
      const one = await workflow.branch({ agent: "a", branch: "one" });
      await one.commit({ state: stateOf("same") });
      const before = (await objectsOf(workflow)).length;
      const two = await workflow.branch({ agent: "a", branch: "two" });
      await two.commit({ state: { ...(stateOf("same") as object), list: ["other"], small: 1 } });
      const { list, small } = stateOf("same") as { list: string[]; small: string };
      await two.update([
        { op: "splice", path: "/list", index: 0, deleteCount: 1, values: list.slice(0, 50) },
        { op: "append", path: "/list", values: list.slice(50) },
        { op: "set", path: "/small", value: small },
      ]);
      const rootOf = async (w: Workflow, revision: string) =>
        (await w.internals.commitAt(revision)).root.state?.id;
      expect(await rootOf(workflow, "agents/a/two")).toBe(await rootOf(workflow, "agents/a/one"));
      expect((await objectsOf(workflow)).length - before).toBeLessThan(60);

      const third = await (await again()).createWorkflow("v", {
        ...SENSITIVE,
        state: stateOf("same"),
      });
      expect(await third.stateAt("canonical")).toEqual(stateOf("same"));
      const mine = new Set((await objectsOf(workflow)).map(({ id }) => id));
      const shared = (await objectsOf(third)).filter(({ id }) => mine.has(id));
      expect(shared).toEqual([]);
      expect(await rootOf(third, "canonical")).not.toBe(await rootOf(workflow, "agents/a/one"));
    });
  });

  it("merges, compares, blames, picks and reverts as any other", async () => {
    await inEncrypted(backend, async (workflow) => {
      const canonical = await workflow.canonical();
      await canonical.commit({ state: stateOf("base") });
      const one = await workflow.branch({ agent: "one", branch: "b" });
      const two = await workflow.branch({ agent: "two", branch: "b" });
      await one.update([
        { op: "append", path: "/list", value: "of one" },
        { op: "set", path: "/fan/k1", value: "one" },
      ]);
      await two.update([
        { op: "append", path: "/list", value: "of two" },
        { op: "set", path: "/n", value: 43 },
      ]);
      const merged = await workflow.merge(["agents/one/b", "agents/two/b"]);
      expect(merged.status).toBe("merged");
      const { list } = (await workflow.stateAt("canonical")) as { list: string[] };
      expect(list.slice(-2)).toEqual(["of one", "of two"]);
      expect(await workflow.diff("canonical~1", "canonical", "/n")).toEqual([
        { kind: "changed", path: "/n", before: 42, after: 43 },
      ]);
      const [line] = await workflow.blame("canonical", "/fan/k1");
      expect(line?.commit.author).toBe("one");

      await one.update([{ op: "set", path: "/small", value: "picked" }]);
      await workflow.cherryPick("agents/one/b");
      expect(await workflow.stateAt("canonical:/small")).toBe("picked");
      await workflow.revert("canonical");
      expect(await workflow.stateAt("canonical:/small")).toBe("base-small");

      await one.update([{ op: "set", path: "/n", value: 1 }]);
      await canonical.refresh();
      await canonical.update([{ op: "set", path: "/n", value: 2 }]);
      const conflict = await workflow.merge(["agents/one/b"], { onConflict: "store" });
      expect(conflict).toMatchObject({ status: "conflict" });
      const stored = await workflow.storedMerge();
      await stored.resolve("/n", { value: 77 });
      await stored.continue();
      expect(await workflow.stateAt("canonical:/n")).toBe(77);
      expect((await workflow.fsck()).problems).toEqual([]);
    });
  });

  it("tells without its key what is no payload, withholds what is, and is not written to", async () => {
    await inEncrypted(backend, async (workflow, again) => {
      const branch = await workflow.branch({ agent: "a", branch: "b" });
      await branch.commit({ state: stateOf("secret"), message: "One" });
      await branch.update([{ op: "set", path: "/n", value: 43 }], { message: "Two" });
      if (backend === "memory") return;
      const locked = await (await again({ keys: undefined })).workflow("w");
      expect(locked.info.keyed).toBe("payloads");
      expect(await locked.keyInfo()).toMatchObject({ keyName: "default", readable: false });
      const log = await all(locked.log({ revisions: ["agents/a/b"] }));
      expect(log.map(({ message }) => message)).toEqual(["Two", "One", "Create workflow w"]);
      expect(await locked.stateAt("audit/workflow:/encryption/keyName")).toBe("default");

      const state = (await locked.stateAt("agents/a/b")) as { [key: string]: unknown };
      expect(Object.keys(state)).toEqual(["fan", "list", "n", "small", "text"]);
      expect(state.n).toBeInstanceOf(Withheld);
      expect(state.n).toMatchObject({ reason: "key" });
      await expect(locked.stateAt("agents/a/b:/n/x")).rejects.toThrow(agstateError("WITHHELD"));
      const changes = await locked.diff("agents/a/b~1", "agents/a/b");
      expect(changes.map(({ path, kind }) => [path, kind])).toEqual([["/n", "changed"]]);
      expect((await locked.fsck()).problems).toEqual([]);
      expect((await locked.verifyAudit()).problems).toEqual([]);

      const before = await everything(locked);
      const handle = await locked.branch("agents/a/b");
      for (const write of [
        () => handle.update([{ op: "set", path: "/n", value: 44 }]),
        () => handle.commit({ state: { clear: "text" } }),
        () => handle.update([], { step: { action: "read", record: { input: 1 } } }),
        () => handle.setPolicies({ "/n": "sum" }),
      ]) {
        await expect(write()).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
      }
      expect(await everything(locked)).toBe(before);
      // Opened with its key again, everything is there.
      expect(await (await again()).workflow("w").then((w) => w.stateAt("agents/a/b:/n"))).toBe(43);
    });
  });

  it("shows without its key how a merge would come out, and moves a branch forward", async () => {
    if (backend === "memory") return;
    await inEncrypted(
      backend,
      async (workflow, again) => {
        for (const name of ["merge", "forward"]) {
          const branch = await workflow.branch({ agent: "a", branch: name });
          await branch.update([{ op: "set", path: `/${name}`, value: "new" }]);
        }
        const locked = await (await again({ keys: undefined })).workflow("w");
        const forward = await locked.merge(["agents/a/forward"]);
        expect(forward.status).toBe("fast-forward");
        const preview = await locked.preview(["agents/a/merge"]);
        expect(preview).toMatchObject({ status: "merged", conflicts: [] });
        expect(preview.changes.map(({ path }) => path)).toEqual(["/merge"]);
        await expect(locked.merge(["agents/a/merge"])).rejects.toThrow(
          agstateError("KEY_UNAVAILABLE"),
        );
        await workflow.merge(["agents/a/merge"]);
        expect(await workflow.stateAt("canonical:/forward")).toBe("new");
        expect(await workflow.stateAt("canonical:/merge")).toBe("new");
      },
      { state: stateOf("base") },
    );
  });

  it("opens by one call and one question to who holds the key, and asks once", async () => {
    const keys = testKeys();
    const { store, another } = await makeStore(backend, { region: "eu", keys });
    await store.createWorkflow("w", SENSITIVE);
    expect(keys.asked).toEqual({ wrap: 1, unwrap: 0 });
    const next = await another({ region: "eu", keys });
    for (let i = 0; i < 3; i++) await next.workflow("w");
    expect(keys.asked).toEqual({ wrap: 1, unwrap: backend === "memory" ? 0 : 1 });
  });
});

describe("which workflows have keys", () => {
  it("is decided when they are created, by what they declare", async () => {
    const { store } = await makeStore("memory", { region: "eu", keys: testKeys() });
    for (const [classification, keyed] of [
      ["public", "nothing"],
      ["internal", "nothing"],
      ["sensitive", "payloads"],
      ["regulated", "payloads"],
    ] as const) {
      const declared = { classification, storageRegion: "eu" };
      const { info } = await store.createWorkflow(classification, declared);
      expect(info.keyed, classification).toBe(keyed);
    }
    const other = await makeStore("memory", { keys: testKeys({ encrypt: ["internal"] }) });
    expect((await other.store.createWorkflow("i")).info.keyed).toBe("payloads");
    const none = await makeStore("memory", { region: "eu" });
    expect((await none.store.createWorkflow("s", SENSITIVE)).info.keyed).toBe("hashes");
  });

  it("may not be left to a provider that is none, or to a word that is no classification", async () => {
    const { provider } = testKeys();
    for (const keys of [{ provider: {} }, { provider, encrypt: ["secret"] }] as never[]) {
      await expect(makeStore("memory", { keys })).rejects.toThrow(agstateError("INVALID_ARGUMENT"));
    }
    for (const keyName of ["", "a\nb"]) {
      const keys = { provider, keyName };
      await expect(makeStore("memory", { keys })).rejects.toThrow(agstateError("INVALID_VALUE"));
    }
  });

  it("leaves nothing behind when their key cannot be wrapped", async () => {
    const provider = {
      wrap: () => Promise.reject(new Error("the service is away")),
      unwrap: () => Promise.resolve(null),
    };
    const { store } = await makeStore("memory", { region: "eu", keys: { provider } });
    const failed = store.createWorkflow("w", SENSITIVE);
    await expect(failed).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
    await expect(failed).rejects.toThrow("the service is away");
    await expect(store.workflow("w")).rejects.toThrow(agstateError("WORKFLOW_NOT_FOUND"));
  });
});

describe("hashes that have keys", () => {
  const input = { card: "4111 1111 1111 1111" };
  const inputHash = async (store: Store, id: string, declared: object) => {
    const workflow = await store.createWorkflow(id, declared);
    const branch = await workflow.canonical();
    const record = { name: "pay", input };
    await branch.update([], { step: { action: "write", record } });
    await branch.update([], { step: { action: "write", record } });
    const [second, first] = await all(workflow.log({ revisions: ["canonical"] }));
    expect(second?.step?.input).toBe(first?.step?.input);
    return first?.step?.input;
  };

  it("differ between sensitive workflows, with and without encryption, and are plain in others", async () => {
    const hashes: (string | undefined)[] = [];
    for (const keys of [undefined, testKeys()]) {
      const { store } = await makeStore("memory", { region: "eu", ...(keys && { keys }) });
      hashes.push(await inputHash(store, "a", SENSITIVE), await inputHash(store, "b", SENSITIVE));
      const plain = await inputHash(store, "c", {});
      expect(await inputHash(store, "d", {})).toBe(plain);
      hashes.push(plain);
    }
    expect(hashes[2]).toBe(hashes[5]);
    expect(new Set(hashes).size).toBe(5);
    for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
  });
});
