import { beforeAll, describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { openStore, type StateOperation, type Workflow } from "../../src/index.js";
import { applyOperations } from "../../src/objects/draft/operations.js";
import { reconcile } from "../../src/objects/draft/reconcile.js";
import type { Draft, DraftContext } from "../../src/objects/draft/types.js";
import type { Link } from "../../src/objects/encode.js";
import { normalize } from "../../src/objects/normalize.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { ObjectStore } from "../support/object-store.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const MAX = { maxBytes: 1 << 30 };

/** What an edit, or the mean of several, writes and reads. */
interface Cost {
  written: number;
  bytesWritten: number;
  read: number;
  bytesRead: number;
}

/** A value in a store, of which edits are measured one by one. */
class Measured {
  private readonly store = new ObjectStore();
  private readonly value: JsonValue;
  private readonly link: Link;

  constructor(value: JsonValue) {
    this.value = normalize(value, MAX);
    this.link = this.store.write(this.value).link;
  }

  /** The mean cost of edits by path, each made of the first value with nothing cached. */
  byPath(edits: readonly StateOperation[]): Promise<Cost> {
    return this.mean(edits, (operation, context, draft) =>
      applyOperations(context, draft, [operation], MAX.maxBytes),
    );
  }

  /** The mean cost of changes given as whole values. */
  byValue(changes: readonly ((value: JsonValue) => JsonValue)[]): Promise<Cost> {
    return this.mean(changes, (change, context, draft) => {
      const after = normalize(change(this.value), { ...MAX, previous: this.value });
      return reconcile(context, draft, this.value, after);
    });
  }

  private async mean<Edit>(
    edits: readonly Edit[],
    apply: (edit: Edit, context: DraftContext, draft: Draft) => Promise<Draft | null>,
  ): Promise<Cost> {
    const { store } = this;
    const costs: Cost[] = [];
    for (const edit of edits) {
      store.reads = 0;
      store.readBytes = 0;
      const { sent, bytes } = await store.edit(this.link, (context, draft) =>
        apply(edit, context, draft),
      );
      costs.push({
        written: sent,
        bytesWritten: bytes,
        read: store.reads,
        bytesRead: store.readBytes,
      });
    }
    return mean(costs);
  }
}

function mean(costs: readonly Cost[]): Cost {
  const sum = (pick: (cost: Cost) => number) =>
    costs.reduce((total, cost) => total + pick(cost), 0) / costs.length;
  return {
    written: sum((c) => c.written),
    bytesWritten: sum((c) => c.bytesWritten),
    read: sum((c) => c.read),
    bytesRead: sum((c) => c.bytesRead),
  };
}

/**
 * Holds costs, measured at sizes that each are ten times the one before, to
 * `base + step` times the number of tenfold steps.
 */
function expectLogarithmic(costs: readonly Cost[], base: Cost, step: Cost): void {
  costs.forEach((cost, i) => {
    for (const key of Object.keys(base) as (keyof Cost)[]) {
      const label = `${key}, ${i} tenfold steps up`;
      expect(cost[key], label).toBeLessThanOrEqual(base[key] + i * step[key]);
    }
  });
}

const message = (i: number) => ({
  role: i % 2 === 0 ? "user" : "assistant",
  content: `message ${i} ${"and so on ".repeat(3 + ((Math.abs(i) * 7) % 20))}`,
});

/** Places spread over a sequence, its ends among them. */
function places(length: number): number[] {
  return [
    0,
    1,
    ...[0.1, 0.25, 0.33, 0.5, 0.71, 0.9].map((f) => Math.floor(f * length)),
    length - 1,
  ];
}

describe("edits of lists of 100 to 100,000 messages", () => {
  const sizes = [100, 1000, 10_000, 100_000];
  let lists: Measured[];
  beforeAll(() => {
    lists = sizes.map(
      (n) =>
        new Measured({ topic: "t", messages: Array.from({ length: n }, (_, i) => message(i)) }),
    );
  });
  const base: Cost = { written: 6, bytesWritten: 3500, read: 9, bytesRead: 9000 };
  const step: Cost = { written: 1, bytesWritten: 1500, read: 3, bytesRead: 4000 };
  const path = "/messages";

  const edits: Record<string, (length: number) => StateOperation[]> = {
    appends: (n) => [n, n + 1, n + 2].map((i) => ({ op: "append", path, value: message(i) })),
    "inserts anywhere": (n) =>
      places(n).map((index) => ({ op: "splice", path, index, values: [message(-index)] })),
    "inserts of three": (n) =>
      [0, n / 2].map((index) => ({
        op: "splice",
        path,
        index,
        values: Array.from({ length: 3 }, (_, i) => message(-i - index)),
      })),
    "removals anywhere": (n) => places(n).map((i) => ({ op: "delete", path: `${path}/${i}` })),
    "replacements anywhere": (n) =>
      places(n).map((i) => ({ op: "set", path: `${path}/${i}`, value: message(-i) })),
    "edits within an element": (n) =>
      places(n).map((i) => ({ op: "set", path: `${path}/${i}/role`, value: "system" })),
    "trims of the front": (n) =>
      [1, n / 10, n / 4].map((deleteCount) => ({ op: "splice", path, index: 0, deleteCount })),
    "trims of the end": (n) =>
      [1, n / 10, n / 4].map((deleteCount) => ({
        op: "splice",
        path,
        index: n - deleteCount,
        deleteCount,
      })),
    "cuts out of the middle": (n) => [
      { op: "splice", path, index: n / 4, deleteCount: n / 2 },
      { op: "splice", path, index: (n / 3) | 0, deleteCount: n / 4 },
    ],
  };
  it.each(Object.keys(edits))("cost as the logarithm of the length: %s", async (kind) => {
    const costs: Cost[] = [];
    for (const [i, n] of sizes.entries()) costs.push(await lists[i]!.byPath(edits[kind]!(n)));
    expectLogarithmic(costs, base, step);
  });

  it("cost as much when the whole new state is given", async () => {
    const change = (edit: (list: JsonValue[]) => void) => (value: JsonValue) => {
      const state = value as { messages: JsonValue[] };
      const list = [...state.messages];
      edit(list);
      return { ...state, messages: list };
    };
    const costs: Cost[] = [];
    for (const [i, n] of sizes.entries()) {
      costs.push(
        await lists[i]!.byValue([
          change((list) => list.push(message(-1))),
          change((list) => list.splice(n / 2, 0, message(-2))),
          change((list) => list.splice(n / 3, 1)),
          change((list) => list.splice(0, n / 4)),
          change((list) => {
            list[n / 2] = { ...(list[n / 2] as object), role: "tool" };
          }),
        ]),
      );
    }
    expectLogarithmic(costs, base, step);
  });
});

describe("edits of texts of 10 KB to 10 MB", () => {
  const sizes = [10, 100, 1000, 10_000].map((kilobytes) => kilobytes * 1000);
  const line = (i: number) => `${i} `.padEnd(49, "words in a line ").concat("\n");
  const base: Cost = { written: 6, bytesWritten: 4500, read: 9, bytesRead: 7000 };
  const step: Cost = { written: 1, bytesWritten: 1500, read: 3, bytesRead: 3000 };

  it.each([
    ["lines", (bytes: number) => Array.from({ length: bytes / 50 }, (_, i) => line(i)).join("")],
    [
      "paragraphs of two kilobytes",
      (bytes: number) =>
        Array.from(
          { length: bytes / 2000 },
          (_, i) => `${Array.from({ length: 40 }, (_, j) => line(i * 40 + j).trim()).join(" ")}\n`,
        ).join(""),
    ],
  ])("cost as the logarithm of the length: %s", async (_, make) => {
    const costs: { append: Cost; whole: Cost }[] = [];
    for (const bytes of sizes) {
      const text = make(bytes);
      const measured = new Measured({ text });
      const change = (at: number, remove: number, insert: string) => (value: JsonValue) => {
        const { text } = value as { text: string };
        const from = Math.floor(at * text.length);
        return { text: text.slice(0, from) + insert + text.slice(from + remove) };
      };
      costs.push({
        append: await measured.byPath([
          { op: "text-append", path: "/text", text: "a line more\n" },
          { op: "text-append", path: "/text", text: "a word" },
          { op: "text-append", path: "/text", text: "y".repeat(2000) },
        ]),
        whole: await measured.byValue([
          change(1, 0, "a line more\n"),
          change(0.5, 0, "a word "),
          change(0.3, 20, ""),
          change(0, bytes / 4, ""),
          change(0.6, 10, "\n\n"),
        ]),
      });
    }
    expectLogarithmic(
      costs.map((cost) => cost.append),
      base,
      step,
    );
    expectLogarithmic(
      costs.map((cost) => cost.whole),
      base,
      step,
    );
  });
});

describe("edits of objects of 100 to 100,000 keys", () => {
  const sizes = [100, 1000, 10_000, 100_000];
  // A table of 256 entries has some ten kilobytes; there is one a level.
  const base: Cost = { written: 3, bytesWritten: 12_000, read: 4, bytesRead: 12_000 };
  const step: Cost = { written: 1, bytesWritten: 6000, read: 1, bytesRead: 6000 };

  it("cost as the logarithm of the number of keys", async () => {
    const costs: Cost[] = [];
    for (const n of sizes) {
      const value = Object.fromEntries(
        Array.from({ length: n }, (_, i) => [`key-${i}`, `value ${i}`.padEnd(40, ".")]),
      );
      const measured = new Measured(value);
      const longer = (i: number) => `another value ${i}`.padEnd(50, ".");
      costs.push(
        await measured.byPath([
          ...[0, 7, n / 2, n - 1].map(
            (i): StateOperation => ({ op: "set", path: `/key-${i}`, value: longer(i) }),
          ),
          { op: "set", path: "/new", value: longer(n) },
          { op: "append", path: "/list", value: longer(n) },
        ]),
        await measured.byValue([
          (state) => ({ ...(state as object), "key-50": longer(50) }),
          (state) => ({ ...(state as object), added: longer(50) }),
        ]),
      );
    }
    expectLogarithmic(
      costs.filter((_, i) => i % 2 === 0),
      base,
      step,
    );
    expectLogarithmic(
      costs.filter((_, i) => i % 2 === 1),
      base,
      step,
    );
  });

  it("read no more than a blob could hold when they make an object smaller", async () => {
    for (const n of sizes) {
      const value = Object.fromEntries(
        Array.from({ length: n }, (_, i) => [`key-${i}`, `value ${i}`.padEnd(40, ".")]),
      );
      const { read, written } = await new Measured(value).byPath([
        { op: "delete", path: "/key-7" },
        { op: "set", path: "/key-50", value: 1 },
      ]);
      // To see whether all fits one blob again, its members are read: 2,048 bytes hold at most 409.
      expect(read).toBeLessThanOrEqual(409);
      if (n > 409) expect(read).toBeLessThanOrEqual(10);
      expect(written).toBeLessThanOrEqual(4);
    }
  });
});

describe("edits of what is stored", () => {
  const messages = Array.from({ length: 1000 }, (_, i) => message(i));
  const text = messages.map((m) => `${m.content}\n`).join("");
  const state: JsonValue = { messages, text, small: { a: 1 } };
  const edits: StateOperation[] = [
    { op: "append", path: "/messages", value: message(-1) },
    ...places(1000).flatMap((i): StateOperation[] => [
      { op: "delete", path: `/messages/${i}` },
      { op: "splice", path: "/messages", index: i, values: [message(-i)] },
      { op: "set", path: `/messages/${i}/role`, value: "system" },
      // The same again: nothing is new at all.
      { op: "set", path: `/messages/${i}`, value: message(i) },
    ]),
    { op: "splice", path: "/messages", index: 0, deleteCount: 500 },
    { op: "text-append", path: "/text", text: "one more\n" },
    { op: "set", path: "/small/b", value: 2 },
  ];

  it("send no object that was there before", async () => {
    const value = normalize(state, MAX);
    for (const operation of edits) {
      const store = new ObjectStore();
      const { link } = store.write(value);
      const result = await store.edit(link, (context, draft) =>
        applyOperations(context, draft, [operation], MAX.maxBytes),
      );
      // An object's own tree is built before it is seen to be the old one; such an edit is no commit.
      const allowed = result.link.id === link.id ? 1 : 0;
      expect(result.again, JSON.stringify(operation).slice(0, 60)).toBeLessThanOrEqual(allowed);
    }
  });
});

describe.each(BACKENDS)("round trips of the API, on %s", (backend) => {
  async function begin() {
    let counted: CountingStorage | undefined;
    const { store } = await makeStore(backend, {
      wrap: (storage) => {
        counted = counting(storage);
        return counted.storage;
      },
    });
    const messages = Array.from({ length: 2000 }, (_, i) => message(i));
    const workflow = await store.createWorkflow("w", { state: { n: 0, messages } });
    return { counts: counted!, workflow };
  }

  /** The calls that some work makes, those that are not made left out. */
  async function calls(counts: CountingStorage, work: () => Promise<unknown>) {
    counts.reset();
    await work();
    const made = Object.entries(counts.counts().calls).filter(([, times]) => times > 0);
    return Object.fromEntries(made);
  }

  it("are one write and no read for a commit on a warm handle", async () => {
    const { counts, workflow } = await begin();
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const state = (await branch.state()) as { n: number; messages: JsonValue[] };
    await branch.commit({ state: { ...state, n: 1 } });
    const step = {
      action: "inference",
      record: { name: "n", input: 1, output: "x".repeat(5000) },
    } as const;
    const commits: Record<string, () => Promise<unknown>> = {
      "a changed key": () => branch.commit({ state: { ...state, n: 2 } }),
      "an appended message": () =>
        branch.commit({ state: { n: 2, messages: [...state.messages, message(-1)] } }),
      "a step": () => branch.commit({ step, message: "m" }),
      "an update": () => branch.update([{ op: "set", path: "/n", value: 3 }]),
      "an append": () => branch.update([{ op: "append", path: "/messages", value: message(-2) }]),
      "another append": () =>
        branch.update([{ op: "append", path: "/messages", value: message(-3) }]),
      "an empty commit": () => branch.commit({ allowEmpty: true }),
    };
    for (const [name, commit] of Object.entries(commits)) {
      expect(await calls(counts, commit), name).toEqual({ write: 1 });
      expect(counts.counts().bytesWritten, name).toBeLessThan(20_000);
    }
    expect(await calls(counts, () => branch.commit())).toEqual({});
    expect(await calls(counts, () => branch.update([{ op: "set", path: "/n", value: 3 }]))).toEqual(
      {},
    );
  });

  it("are one each for what needs one, and few for the rest", async () => {
    const { counts, workflow } = await begin();
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    for (let i = 1; i <= 30; i++) await branch.update([{ op: "set", path: "/n", value: i }]);
    expect(await calls(counts, () => workflow.refs())).toEqual({ readRefs: 1 });
    expect(await calls(counts, () => branch.refresh())).toEqual({ readHead: 1 });
    expect(await calls(counts, () => workflow.resolve("a/x"))).toEqual({ readRefs: 1 });
    expect(await calls(counts, () => workflow.resolve("a/x~20"))).toEqual({
      readRefs: 1,
      readGraph: 1,
    });
    expect(await calls(counts, () => workflow.tag("t", "a/x"))).toEqual({ readRefs: 1, write: 1 });
    const created = await calls(counts, () => workflow.branch({ agent: "b", branch: "y" }));
    expect(created.write).toBe(1);
    expect(Object.values(created).reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(4);
  });
});

describe("round trips of a reader with cold caches", () => {
  it("are as many as a value has levels, whatever its size", async () => {
    const { store, another } = await makeStore("sqlite");
    const messages = Array.from({ length: 5000 }, (_, i) => message(i));
    await store.createWorkflow("w", { state: { messages } });
    const cold = async (read: (workflow: Workflow) => Promise<unknown>) => {
      let counts: CountingStorage | undefined;
      const opened = await another({
        wrap: (storage) => {
          counts = counting(storage);
          return counts.storage;
        },
      });
      const workflow = await opened.workflow("w");
      counts!.reset();
      await read(workflow);
      return counts!.counts();
    };
    // Root, list, two levels of nodes, runs.
    const whole = await cold((workflow) => workflow.stateAt("canonical"));
    expect(whole.calls).toMatchObject({ readRefs: 1, readCommits: 1, write: 0 });
    expect(whole.calls.readObjects).toBeLessThanOrEqual(6);
    expect(whole.objectsRead).toBeGreaterThan(500);
    const one = await cold((workflow) => workflow.stateAt("canonical", "/messages/2500/content"));
    expect(one.calls.readObjects).toBeLessThanOrEqual(8);
    expect(one.objectsRead).toBeLessThan(12);
    expect(one.bytesRead).toBeLessThan(15_000);
    const append = await cold(async (workflow) =>
      (await workflow.canonical()).update([
        { op: "append", path: "/messages", value: message(-1) },
      ]),
    );
    expect(append.calls.write).toBe(1);
    expect(append.calls.readObjects).toBeLessThanOrEqual(8);
    expect(append.bytesRead + append.bytesWritten).toBeLessThan(30_000);
  });
});

describe("a conversation of many steps", () => {
  async function grow(turns: number, how: (workflow: Workflow) => Promise<void>) {
    const store = await openStore("memory:");
    const workflow = await store.createWorkflow("w", {
      state: { system: "s".repeat(50_000), messages: [] },
    });
    const before = (await workflow.usage()).bytes;
    await how(workflow);
    const { bytes } = await workflow.usage();
    await store.close();
    return (bytes - before) / turns;
  }

  it("grows with what is said, not with the square of it (OPS-01)", async () => {
    const byUpdate = (turns: number) =>
      grow(turns, async (workflow) => {
        const branch = await workflow.canonical();
        for (let i = 0; i < turns; i++) {
          await branch.update([{ op: "append", path: "/messages", value: message(i) }]);
        }
      });
    const byCommit = (turns: number) =>
      grow(turns, async (workflow) => {
        const branch = await workflow.canonical();
        const state = (await branch.state()) as { system: string; messages: JsonValue[] };
        for (let i = 0; i < turns; i++) {
          state.messages = [...state.messages, message(i)];
          await branch.commit({ state });
        }
      });
    for (const way of [byUpdate, byCommit]) {
      expect(await way(100)).toBeLessThan(4500);
      expect(await way(1000)).toBeLessThan(5500);
    }
  });
});
