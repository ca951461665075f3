import { join } from "node:path";
import Database from "better-sqlite3";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { blameLines, withValues } from "../../src/cli/render/blame.js";
import { createPaint } from "../../src/cli/render/paint.js";
import type { ObjectId } from "../../src/core/ids.js";
import { setOwn } from "../../src/core/json.js";
import type { Branch, JsonValue, StateOperation, Workflow } from "../../src/index.js";
import { blameValue, lastWriters } from "../../src/merge/blame.js";
import { createObjectCache, ObjectReader } from "../../src/objects/reader.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { blame } from "../../src/store/blame.js";
import { createStoreContext, Repository } from "../../src/store/repository.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

const set = (path: string, value: unknown): StateOperation => ({ op: "set", path, value });
const splice = (index: number, deleteCount: number, ...values: unknown[]): StateOperation => ({
  op: "splice",
  path: "/list",
  index,
  deleteCount,
  values,
});

/** Blames, and gives the message of the commit for each path or range. */
async function who(workflow: Workflow, pointer: string, revision = "canonical") {
  const lines = await blame(workflow.internals, revision, pointer);
  return lines.map(({ path, from, to, commit }) =>
    from === null ? `${path} ${commit.message}` : `${from}-${to} ${commit.message}`,
  );
}

/** The repository as a process that has just begun sees it, with its reads counted. */
function cold(workflow: Workflow) {
  const { context, keys } = workflow.internals;
  const counted = counting(context.storage);
  const fresh = createStoreContext({ ...context, storage: counted.storage });
  return { counted, repository: new Repository(fresh, workflow.id, null, keys) };
}

const long = (text: string) => `${text} ${"x".repeat(300)}`;

describe.each(BACKENDS)("blame (%s)", (backend) => {
  async function start(): Promise<{ workflow: Workflow; canonical: Branch }> {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    return { workflow, canonical: await workflow.canonical() };
  }

  it("has one line for a scalar, a text, an empty object and an empty list", async () => {
    const { workflow, canonical } = await start();
    const values = { n: 1, s: "text", t: "line\n".repeat(1000), o: {}, l: [], z: null };
    await canonical.commit({ state: values, message: "one" });
    await canonical.update([set("/other", 2)], { message: "two" });
    for (const key of Object.keys(values)) {
      expect(await who(workflow, `/${key}`)).toEqual([`/${key} one`]);
    }
    expect(await blame(workflow.internals, "canonical:/n")).toMatchObject([
      { path: "/n", from: null, to: null, boundary: false, commit: { author: "agstate" } },
    ]);
  });

  it("has a line a member for an object, sorted, each taken as a whole", async () => {
    const { workflow, canonical } = await start();
    await canonical.commit({ state: { b: { x: 1, y: [1] }, a: 1, c: long("c") }, message: "1" });
    await canonical.update([set("/b/x", 2)], { message: "2" });
    await canonical.update([set("/a~1b", 3)], { message: "3" });
    expect(await who(workflow, "")).toEqual(["/a 1", "/a~1b 3", "/b 2", "/c 1"]);
    expect(await who(workflow, "/b")).toEqual(["/b/x 2", "/b/y 1"]);
    expect(await who(workflow, "", "canonical~1")).toEqual(["/a 1", "/b 2", "/c 1"]);
  });

  it("does not take growth for a write: a member that gets an object of its own is as before", async () => {
    const { workflow, canonical } = await start();
    await canonical.commit({ state: { a: 1, list: ["x", long("y").repeat(4)] }, message: "1" });
    await canonical.update([set("/pad", long("p").repeat(8))], { message: "2" });
    await canonical.update([{ op: "delete", path: "/pad" }], { message: "3" });
    expect(await who(workflow, "")).toEqual(["/a 1", "/list 1"]);
    expect(await who(workflow, "/list")).toEqual(["0-2 1"]);
  });

  it("counts a value written twice alike from the first time, one written again from the second", async () => {
    const { workflow, canonical } = await start();
    await canonical.update([set("/a", 1), set("/b", 1)], { message: "1" });
    await canonical.update([set("/a", 1)], { message: "2", allowEmpty: true });
    await canonical.update([{ op: "delete", path: "/b" }], { message: "3" });
    await canonical.update([set("/b", 1)], { message: "4" });
    expect(await who(workflow, "")).toEqual(["/a 1", "/b 4"]);
  });

  it("says who removed a value that is not there, and whether there ever was one", async () => {
    const { workflow, canonical } = await start();
    await canonical.update([set("/a", { b: 1 })], { message: "1", author: "writer" });
    const { id } = await canonical.update([{ op: "delete", path: "/a" }], { author: "cleaner" });
    await canonical.update([set("/c", 1)]);
    const gone = blame(workflow.internals, "canonical", "/a/b");
    await expect(gone).rejects.toThrow(
      agstateError("PATH_NOT_FOUND", { path: "/a/b", removedBy: id }),
    );
    await expect(gone).rejects.toThrow(/cleaner removed it in/);
    await expect(blame(workflow.internals, "canonical", "/never")).rejects.toThrow(
      agstateError("PATH_NOT_FOUND", { removedBy: null }),
    );
    const tip = canonical.head.id as ObjectId;
    const [answers] = await lastWriters(workflow.internals, [tip], [["a"], ["never"], ["c"]]);
    expect(answers).toMatchObject([
      { kind: "removed", commit: { id } },
      null,
      { kind: "wrote", commit: { id: tip } },
    ]);
  });

  it("says who removed an element, by the index that it had", async () => {
    const { workflow, canonical } = await start();
    await canonical.update([set("/list", [{ x: 1 }, 1, 2, 3])]);
    const { id } = await canonical.update([splice(2, 2)]);
    const tip = (await canonical.update([splice(0, 0, {})])).id as ObjectId;
    const paths = ["3", "4", "-", "0/x"].map((path) => ["list", ...path.split("/")]);
    const [answers] = await lastWriters(workflow.internals, [tip], paths);
    // The element that is first now was not there before: nobody took its member away.
    expect(answers).toMatchObject([{ kind: "removed", commit: { id } }, null, null, null]);
  });

  it("goes to the parent of a merge that has the value, the first of several", async () => {
    const { workflow, canonical } = await start();
    await canonical.commit({ state: { a: 0, b: 0, c: 0, d: 0, list: ["base"] }, message: "base" });
    const other = await workflow.branch({ agent: "x", branch: "y" });
    await canonical.update([set("/a", 1), set("/c", 1), splice(0, 0, "ours")], { message: "ours" });
    await other.update([set("/b", 1), set("/c", 1), splice(1, 0, "theirs")], { message: "theirs" });
    await canonical.commit({
      state: { a: 1, b: 1, c: 1, d: 2, list: ["ours", "base", "theirs", "made"] },
      mergeParents: ["x/y"],
      message: "merge",
    });
    expect(await who(workflow, "")).toEqual([
      "/a ours",
      "/b theirs",
      "/c ours",
      "/d merge",
      "/list merge",
    ]);
    expect(await who(workflow, "/list")).toEqual([
      "0-1 ours",
      "1-2 base",
      "2-3 theirs",
      "3-4 merge",
    ]);
  });

  it.each(["small", "large"])("follows the elements of a %s list through edits", async (size) => {
    const { workflow, canonical } = await start();
    const item = (name: string, n = 0) => ({ name: size === "large" ? long(name) : name, n });
    const list = ["a", "b", "c", "d", "e", "f"].map((name) => item(name));
    await canonical.commit({ state: { list }, message: "1" });
    await canonical.update([splice(0, 0, item("new 1"), item("new 2"))], { message: "2" });
    await canonical.update([splice(4, 1)], { message: "3" });
    await canonical.update([set("/list/3/n", 7)], { message: "4" });
    await canonical.update([splice(7, 0, item("last"))], { message: "5" });
    expect(await who(workflow, "/list")).toEqual(["0-2 2", "2-3 1", "3-4 4", "4-7 1", "7-8 5"]);
    expect(await who(workflow, "/list/5")).toEqual(["/list/5/n 1", "/list/5/name 1"]);
    expect(await who(workflow, "/list/3")).toEqual(["/list/3/n 4", "/list/3/name 1"]);
    expect(await who(workflow, "/list/3/name")).toEqual(["/list/3/name 1"]);
    expect(await who(workflow, "/list/1/n")).toEqual(["/list/1/n 2"]);
    await expect(who(workflow, "/list/8")).rejects.toThrow(agstateError("PATH_NOT_FOUND"));
  });

  it("follows elements of lists inside of lists and a list that comes and goes", async () => {
    const { workflow, canonical } = await start();
    await canonical.commit({ state: { list: [["a"], ["b", "c"]] }, message: "1" });
    await canonical.update([splice(0, 0, ["front"])], { message: "2" });
    await canonical.update([set("/list/2/0", "B")], { message: "3" });
    expect(await who(workflow, "/list/2")).toEqual(["0-1 3", "1-2 1"]);
    await canonical.update([set("/list", "no list")], { message: "4" });
    await canonical.update([set("/list", ["a"])], { message: "5" });
    expect(await who(workflow, "/list")).toEqual(["0-1 5"]);
    expect(await who(workflow, "/list/0")).toEqual(["/list/0 5"]);
  });

  it("answers for many tips at once, also those that share their history", async () => {
    const { workflow, canonical } = await start();
    const first = await canonical.update([set("/a", 1), set("/b", 1)], { message: "1" });
    const second = await canonical.update([set("/b", 2)], { message: "2" });
    const tips = [first.id, second.id, first.id] as ObjectId[];
    const rows = await lastWriters(workflow.internals, tips, [["a"], ["b"]]);
    expect(rows.map((row) => row.map((answer) => answer?.commit.message))).toEqual([
      ["1", "1"],
      ["1", "2"],
      ["1", "1"],
    ]);
  });

  it("ends when it is told to", async () => {
    const { workflow, canonical } = await start();
    for (let i = 0; i < 40; i++) await canonical.update([set("/n", i)]);
    const stop = new AbortController();
    const running = blame(workflow.internals, "canonical", "", { signal: stop.signal });
    stop.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
  });
});

describe("the cost of blame", () => {
  const COMMITS = 5000;

  async function longHistory() {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const members: { [key: string]: JsonValue } = {};
    for (let i = 0; i < 60; i++) setOwn(members, `key ${i}`, long(""));
    await canonical.commit({ state: { ...members, old: { er: 1 }, list: [] }, message: "first" });
    for (let i = 0; i < COMMITS; i++) {
      await canonical.update(
        [set("/n", i), { op: "append", path: "/list", value: `message ${i}` }],
        {
          message: `${i}`,
        },
      );
    }
    return { workflow, tip: canonical.head.id as ObjectId };
  }

  it("reads a history of 5,000 commits in pages, whatever is asked", async () => {
    const { workflow, tip } = await longHistory();
    const readsOf = async (paths: readonly string[][]) => {
      const { counted, repository } = cold(workflow);
      const [answers] = await lastWriters(repository, [tip], paths);
      const { calls, objectsRead } = counted.counts();
      // The walk reads each commit and, of each state, the nodes on the way: 3 objects a commit.
      expect(objectsRead).toBeLessThan(3 * COMMITS + 100);
      expect(calls.readGraph).toBeLessThan(30);
      expect(calls.readCommits).toBeLessThan(30);
      expect(calls.readObjects).toBeLessThan(30);
      return answers!.map((answer) => answer?.commit.message ?? null);
    };
    expect(await readsOf([["old", "er"]])).toEqual(["first"]);
    const many = Array.from({ length: 1000 }, (_, i) => ["old", `never ${i}`]);
    expect(await readsOf([...many, ["key 7"], ["n"]])).toEqual([
      ...many.map(() => null),
      "first",
      `${COMMITS - 1}`,
    ]);

    const { counted, repository } = cold(workflow);
    expect(await blame(repository, "canonical", "/n")).toHaveLength(1);
    expect(counted.counts().objectsRead).toBeLessThan(100);

    const list = cold(workflow);
    const lines = await blame(list.repository, "canonical", "/list");
    expect(lines.map(({ commit }) => commit.message)).toEqual(
      Array.from({ length: COMMITS }, (_, i) => `${i}`),
    );
    expect(list.counted.counts().objectsRead).toBeLessThan(8 * COMMITS);
    expect(list.counted.counts().calls.readObjects).toBeLessThan(200);
  });

  it("follows the change, not the size of a list or an object", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const list = Array.from({ length: 100_000 }, (_, i) => `message ${i}`);
    const big = Object.fromEntries(list.map((text, i) => [`key ${i}`, text]));
    await canonical.commit({ state: { big, list }, message: "first" });
    for (let i = 0; i < 5; i++) {
      await canonical.update([
        { op: "append", path: "/list", value: `new ${i}` },
        splice(i * 10_000, 1, `edited ${i}`),
        set(`/big/key ${i * 7}`, i),
      ]);
    }
    const inList = cold(workflow);
    const lines = await blame(inList.repository, "canonical", "/list");
    expect(lines.slice(0, 3).map(({ from, to }) => [from, to])).toEqual([
      [0, 1],
      [1, 10_000],
      [10_000, 10_001],
    ]);
    expect(lines).toHaveLength(15);
    expect(inList.counted.counts().objectsRead).toBeLessThan(300);

    const tip = canonical.head.id as ObjectId;
    for (const count of [5, 40]) {
      const inObject = cold(workflow);
      const paths = Array.from({ length: count }, (_, i) => ["big", `key ${i * 7}`]);
      const [answers] = await lastWriters(inObject.repository, [tip], paths);
      expect(answers?.map((answer) => answer?.commit.generation)).toEqual(
        paths.map((_, i) => (i < 5 ? i + 3 : 2)),
      );
      // Some objects for each change, and two buckets for each member where it began.
      expect(inObject.counted.counts().objectsRead).toBeLessThan(100 + 2 * count);
    }
  });

  it("looks at what changed of an object alone, and reads it ahead", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const keys = Array.from({ length: 2000 }, (_, i) => `key ${i}`);
    const big = { ...Object.fromEntries(keys.map((key) => [key, 0])), deep: { old: 1, list: [] } };
    await canonical.commit({ state: { big } });
    for (let i = 1; i <= 200; i++) {
      const append: StateOperation = { op: "append", path: "/big/deep/list", value: long("") };
      await canonical.update([set(`/big/key ${i}`, i), append]);
    }
    const tip = canonical.head.id as ObjectId;

    const { counted, repository } = cold(workflow);
    await lastWriters(repository, [tip], [["big", "deep", "old"]]);
    expect(counted.counts().calls.readObjects).toBeLessThan(25);

    let looks = 0;
    class CountingReader extends ObjectReader {
      override read(id: ObjectId) {
        looks++;
        return super.read(id);
      }
    }
    const cache = createObjectCache(1 << 26);
    const objects = new CountingReader(workflow.internals.storage, "w", cache);
    const parts = await blameValue(
      { graph: repository.graph, commits: repository.commits, objects },
      tip,
      ["big"],
    );
    expect(parts).toHaveLength(2001);
    expect(parts?.filter(({ commit }) => commit.generation > 2)).toHaveLength(201);
    // The 256 buckets some times over, and a handful of objects for each commit.
    expect(looks).toBeLessThan(4 * 256 + 200 * 10);
  });

  it("comes to each commit once where lines of history meet again and again", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    await canonical.commit({ state: { a: 0, b: 0 }, message: "first" });
    // Each line spoils what the other keeps, so that one question goes down each side.
    for (let i = 1; i <= 60; i++) {
      const other = await workflow.branch({ agent: "x", branch: `b${i}` });
      await canonical.update([set("/b", i)]);
      await other.update([set("/a", i)]);
      await canonical.commit({ state: { a: 0, b: 0 }, mergeParents: [`x/b${i}`] });
    }
    const { counted, repository } = cold(workflow);
    const tip = canonical.head.id as ObjectId;
    const [answers] = await lastWriters(repository, [tip], [["a"], ["b"]]);
    expect(answers?.map((answer) => answer?.commit.message)).toEqual(["first", "first"]);
    const { objectsRead, calls } = counted.counts();
    // 182 commits with their root trees, and their states.
    expect(objectsRead).toBeLessThan(3 * 182);
    // Pages of 16, 32, 64 and 128; none is read a second time.
    expect(calls.readGraph).toBe(4);
    expect(calls.readCommits).toBe(5);
  });
});

describe("blame where history is not all there", () => {
  async function damaged(ids: (workflow: Workflow) => Promise<string[]>, how: "gone" | "erased") {
    const { store, directory, another } = await makeStore("sqlite");
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const list = Array.from({ length: 30 }, (_, i) => long(`${i}`));
    await canonical.commit({ state: { a: 1, list }, message: "1" });
    await canonical.update([set("/b", 1)], { message: "2" });
    await canonical.update([set("/c", 1), { op: "delete", path: "/b" }], { message: "3" });
    const db = new Database(join(directory, "store.db"));
    for (const id of await ids(workflow)) {
      const sql =
        how === "gone"
          ? "DELETE FROM objects WHERE id = ?"
          : "UPDATE objects SET kind = 1, body = 'why' WHERE id = ?";
      expect(db.prepare(sql).run(Buffer.from(id, "hex")).changes).toBe(1);
    }
    db.close();
    return (await another()).workflow("w");
  }

  it("names the oldest commit that is there as a boundary", async () => {
    const workflow = await damaged(async (w) => [await w.resolve("canonical~2")], "gone");
    const lines = await blame(workflow.internals, "canonical", "");
    expect(lines.map(({ path, boundary, commit }) => [path, boundary, commit.message])).toEqual([
      ["/a", true, "2"],
      ["/c", false, "3"],
      ["/list", true, "2"],
    ]);
    const source = workflow.internals;
    const tip = (await workflow.resolve("canonical")) as ObjectId;
    const [answers] = await lastWriters(source, [tip], [["never"], ["b"], ["list", "7"]]);
    expect(answers).toMatchObject([
      null,
      { kind: "removed", boundary: false, commit: { message: "3" } },
      { kind: "wrote", boundary: true, commit: { message: "2" } },
    ]);
  });

  it.each(["gone", "erased"] as const)("stops at a state that is %s", async (how) => {
    const stateId = async (w: Workflow) => [
      (await w.internals.commitAt("canonical~1")).root.state!.id,
    ];
    const workflow = await damaged(stateId, how);
    const lines = await blame(workflow.internals, "canonical", "/a");
    expect(lines).toMatchObject([{ boundary: true, commit: { message: "3" } }]);
  });

  it("refuses a tip that is not there", async () => {
    const workflow = await damaged(async () => [], "gone");
    const none = "0".repeat(64) as ObjectId;
    await expect(lastWriters(workflow.internals, [none], [["a"]])).rejects.toThrow(
      agstateError("MISSING_OBJECT"),
    );
  });
});

describe("blame on a terminal", () => {
  async function lines(state: JsonValue, pointer: string, author = "agent") {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const date = new Date("2026-03-04T05:06:07Z");
    const { id } = await canonical.commit({ state, author, date });
    const found = await blame(workflow.internals, "canonical", pointer);
    const blamed = withValues(pointer, found, await workflow.stateAt("canonical", pointer));
    return { id, shown: blameLines(createPaint(false), pointer, blamed) };
  }

  it("is aligned and fits 80 columns, whatever the parts", async () => {
    const state = {
      a: 1,
      [`${"key".repeat(30)}`]: "v".repeat(500),
      宽: "宽".repeat(100),
      "\u001b[2J": "\u0007",
    };
    const { id, shown } = await lines(state, "", "a-very-long-name-of-an-agent");
    expect(shown).toHaveLength(4);
    for (const line of shown) {
      expect(line.startsWith(`${id.slice(0, 10)}  a-very-long-n...  2026-03-04 05:06  /`)).toBe(
        true,
      );
      expect(line).not.toContain("\u001b");
      expect(stringWidth(line)).toBeLessThanOrEqual(80);
    }
    expect(shown.join("\n")).toContain("/\\u001b[2J ");
    expect(shown.find((line) => line.includes("/a "))).toMatch(/\/a {18}1$/);
  });

  it("shows an element, and a range by its first value and how many more there are", async () => {
    const { shown } = await lines({ list: ["x", "y", "z"] }, "/list");
    expect(shown[0]).toMatch(/ {2}\/0-2 {2}"x" \(\+2\)$/);
    const one = await lines({ list: ["x", "y", "z"] }, "/list/1");
    expect(one.shown[0]).toMatch(/ {2}\/1 {2}"y"$/);
    const whole = await lines(7, "");
    expect(whole.shown[0]).toMatch(/ {2}\(all\) {2}7$/);
    const member = await lines({ only: { "": 7 } }, "/only");
    expect(member.shown[0]).toMatch(/ {2}\/ {2}7$/);
  });
});
