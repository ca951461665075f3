import { beforeEach, describe, expect, it } from "vitest";
import { isWithheld, openStore, type Store, Withheld, type Workflow } from "../../src/index.js";
import { KeyTable } from "../../src/objects/draft/key-table.js";
import type { Link } from "../../src/objects/encode.js";
import { StoredSequence } from "../../src/objects/sequence-edit.js";
import type { Storage } from "../../src/storage/port.js";

const LONG = "a line that is part of a longer text\n".repeat(200);

/** A state with something of each kind, every member a large one, so that each is an object of its own. */
function sample(): Record<string, unknown> {
  return {
    user: { email: "someone@example.com", name: "Someone", about: "x".repeat(3000) },
    text: LONG,
    list: Array.from({ length: 300 }, (_, i) => ({ i, says: `message ${i} ${"y".repeat(40)}` })),
    many: Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`key${i}`, i])),
    rest: "z".repeat(2500),
  };
}

describe("what is withheld", () => {
  let storage: Storage;
  let store: Store;
  let workflow: Workflow;

  beforeEach(async () => {
    store = await openStore("memory:", {
      wrap: (given) => {
        storage = given;
        return given;
      },
    });
    workflow = await store.createWorkflow("w", {
      state: sample(),
      isolation: ["/state/user/email"],
    });
  });

  async function linkAt(...keys: string[]): Promise<Link> {
    const { root } = await workflow.internals.commitAt("canonical");
    let link = root.state as Link;
    for (const key of keys) {
      link = (await (await KeyTable.stored(workflow.internals.objects, link.id)).get(key)) as Link;
    }
    return link;
  }

  async function bury(...links: Link[]): Promise<void> {
    const tombstone = Buffer.from('{"reason":"erased"}');
    const tombstones = links.map(({ id, type }) => ({ id, type, tombstone }));
    await storage.redact("w", { tombstones, inline: [], grafts: [] });
    workflow.internals.context.objectCache.clear();
  }

  async function state(revision = "canonical"): Promise<ReturnType<typeof sample>> {
    return (await workflow.stateAt(revision)) as ReturnType<typeof sample>;
  }

  it("stands at its place in a value, and the rest is told", async () => {
    const email = await linkAt("user", "email");
    await bury(email);
    const { user, ...rest } = await state();
    const { user: _, ...expected } = sample();
    expect(rest).toEqual(expected);
    const hidden = (user as { email: unknown }).email as Withheld;
    expect(hidden).toBeInstanceOf(Withheld);
    expect(JSON.parse(JSON.stringify(hidden))).toEqual({
      $agstate: "withheld",
      reason: "erased",
      object: email.id,
    });
    expect(await workflow.stateAt("canonical", "/user/name")).toBe("Someone");
    expect(isWithheld(await workflow.stateAt("canonical", "/user/email"))).toBe(true);
    await expect(workflow.stateAt("canonical", "/user/email/host")).rejects.toMatchObject({
      code: "ERASED",
    });
  });

  it("is a whole text, and a whole object, of which a part is gone, and each element of a run", async () => {
    const { objects } = workflow.internals;
    const list = await StoredSequence.open(objects, (await linkAt("list")).id);
    const run = (await list.entryAt(100)) as { entry: Link; start: number; end: number };
    const piece = (await (await StoredSequence.open(objects, (await linkAt("text")).id)).entryAt(0))
      .entry;
    const bucket = (await objects.tree((await linkAt("many")).id))[0] as Link;
    await bury(run.entry, piece, bucket);
    const read = await state();
    expect(isWithheld(read.text)).toBe(true);
    expect(isWithheld(read.many)).toBe(true);
    const elements = read.list as unknown[];
    expect(elements).toHaveLength(300);
    const before = sample().list as unknown[];
    elements.forEach((element, i) => {
      if (i >= run.start && i < run.end) expect(isWithheld(element)).toBe(true);
      else expect(element).toEqual(before[i]);
    });
  });

  it("stays what it is in later commits, moved or not, and goes when it is replaced", async () => {
    const email = await linkAt("user", "email");
    await bury(email);
    const canonical = await workflow.canonical();
    const read = (await canonical.state()) as ReturnType<typeof sample>;
    await canonical.commit({
      state: { ...read, rest: "short", moved: (read.user as { email: unknown }).email },
    });
    const next = await state();
    expect(email).toMatchObject((next.user as { email: Withheld }).email.link);
    expect(email).toMatchObject((next.moved as Withheld).link);
    await canonical.update([{ op: "set", path: "/user/email", value: "other@example.com" }]);
    await canonical.update([{ op: "delete", path: "/moved" }]);
    expect((await state()).user).toMatchObject({ email: "other@example.com", name: "Someone" });
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("of a list stays in place while others are added, removed and changed around it", async () => {
    const { objects } = workflow.internals;
    const list = await StoredSequence.open(objects, (await linkAt("list")).id);
    const { entry, start, end } = await list.entryAt(100);
    await bury(entry);
    const canonical = await workflow.canonical();
    await canonical.update([
      { op: "delete", path: `/list/${start}` },
      { op: "splice", path: "/list", index: 0, deleteCount: 1, values: ["first"] },
      { op: "append", path: "/list", value: "last" },
    ]);
    const elements = (await state()).list as unknown[];
    expect(elements).toHaveLength(300);
    expect([elements[0], elements.at(-1)]).toEqual(["first", "last"]);
    expect(elements.filter(isWithheld)).toHaveLength(end - start - 1);
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("is shown by diff, and merged by its id", async () => {
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.update([{ op: "set", path: "/rest", value: "theirs" }]);
    const canonical = await workflow.canonical();
    await canonical.update([{ op: "set", path: "/added", value: 1 }]);
    const before = await workflow.resolve("canonical");
    const email = await linkAt("user", "email");
    await canonical.update([{ op: "delete", path: "/user/email" }]);
    await bury(email);
    const changes = await workflow.diff(before, "canonical");
    expect(changes).toMatchObject([{ kind: "removed", path: "/user/email" }]);
    expect(isWithheld((changes[0] as { before: unknown }).before)).toBe(true);
    expect((await workflow.merge(["a/b"])).status).toBe("merged");
    const merged = await state();
    expect(merged).toMatchObject({ rest: "theirs", added: 1, user: { name: "Someone" } });
    expect(merged.user).not.toHaveProperty("email");
    expect(await workflow.blame("canonical", "/user")).toHaveLength(2);
  });

  it("as a merge base counts as none, member by member", async () => {
    const small = await store.createWorkflow("w2", { state: { a: 1, secret: "s" } });
    const branch = await small.branch({ agent: "a", branch: "b" });
    const base = (await small.internals.commitAt("canonical")).root.state as Link;
    await branch.commit({ state: { a: 1, b: 2 } });
    await (await small.canonical()).commit({ state: { a: 1, c: 3 } });
    const tombstone = Buffer.from('{"reason":"erased"}');
    await storage.redact("w2", { tombstones: [{ ...base, tombstone }], inline: [], grafts: [] });
    small.internals.context.objectCache.clear();
    expect((await small.merge(["a/b"])).status).toBe("merged");
    expect(await small.stateAt("canonical")).toEqual({ a: 1, b: 2, c: 3 });
  });

  it("is refused as JSON, and in another workflow", async () => {
    await bury(await linkAt("user", "email"));
    const canonical = await workflow.canonical();
    const read = (await canonical.state()) as ReturnType<typeof sample>;
    const copy = JSON.parse(JSON.stringify(read)) as ReturnType<typeof sample>;
    await expect(canonical.commit({ state: copy })).rejects.toMatchObject({
      code: "INVALID_VALUE",
      details: { path: "/user/email" },
    });
    const other = await store.createWorkflow("other");
    const there = await other.canonical();
    await expect(there.commit({ state: read })).rejects.toMatchObject({ code: "INVALID_VALUE" });
    await there.commit({ state: { own: 1 } });
  });
});
