import { beforeAll, describe, expect, it } from "vitest";
import {
  openStore,
  type StateOperation,
  type Store,
  Withheld,
  type Workflow,
} from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { newSchema, withClient } from "../support/postgres.js";
import { all } from "../support/stores.js";

const STEPS = 300;
const BRANCHES = 64;

/** A newcomer to a store: what its calls cost, from the moment that the workflow is open. */
async function asNewcomer<T>(
  url: string,
  work: (workflow: Workflow, counter: CountingStorage) => Promise<T>,
): Promise<{ answer: T; roundTrips: number; bytesRead: number; objectsRead: number }> {
  let counter: CountingStorage | undefined;
  const wrap = (storage: Parameters<typeof counting>[0]) => {
    counter = counting(storage);
    return counter.storage;
  };
  const store = await openStore(url, { create: false, wrap });
  try {
    const workflow = await store.workflow("w");
    counter!.reset();
    const answer = await work(workflow, counter!);
    return { answer, ...counter!.counts() };
  } finally {
    await store.close();
  }
}

const message = (n: number) => ({
  role: "user",
  content: `message ${n}: ${"word ".repeat(n % 90)}`,
});

describe("a conversation of 300 steps in PostgreSQL", () => {
  const { url, drop } = newSchema();
  const ids: string[] = [];

  beforeAll(async () => {
    const store = await openStore(url);
    const workflow = await store.createWorkflow("w", { state: { messages: [] } });
    const branch = await workflow.branch({ agent: "a", branch: "talk" });
    for (let n = 0; n < STEPS; n++) {
      const operation = { op: "append", path: "/messages", value: message(n) } as const;
      ids.push((await branch.update([operation])).id);
    }
    await store.close();
    return drop;
  });

  const expected = (step: number) => ({
    messages: Array.from({ length: step + 1 }, (_, n) => message(n)),
  });

  it("gives the state at any commit in one call by its id, and in three at most by any revision", async () => {
    for (const step of [0, 1, 9, 50, 149, 250, STEPS - 1]) {
      const back = STEPS - 1 - step;
      const revisions = [
        [ids[step]!, 1],
        [ids[step]!.slice(0, 16), 2],
        [`a/talk~${back}`, 3],
        [`a/talk@{${back}}`, 3],
      ] as const;
      for (const [revision, most] of revisions) {
        const { answer, roundTrips } = await asNewcomer(url, (w) => w.stateAt(revision));
        expect(answer).toEqual(expected(step));
        expect(roundTrips, revision).toBeLessThanOrEqual(most);
      }
    }
    const { answer, roundTrips } = await asNewcomer(url, async (w) =>
      (await w.branch("a/talk")).state(),
    );
    expect(answer).toEqual(expected(STEPS - 1));
    expect(roundTrips).toBe(2);
  });

  it("is read state by state by one handle with a call each, and no part twice", async () => {
    const { answer, roundTrips, bytesRead } = await asNewcomer(url, async (w) => {
      const states = [];
      for (const id of ids.slice(-40)) states.push(await w.stateAt(id));
      return states;
    });
    expect(answer.at(-1)).toEqual(expected(STEPS - 1));
    expect(answer[0]).toEqual(expected(STEPS - 40));
    expect(roundTrips).toBe(40);
    expect(bytesRead).toBeLessThan(3 * JSON.stringify(expected(STEPS - 1)).length);
  });

  it("gives one message without reading all of them", async () => {
    const { answer, roundTrips } = await asNewcomer(url, (w) =>
      w.stateAt(ids[250]!, "/messages/0"),
    );
    expect(answer).toEqual(message(0));
    expect(roundTrips).toBeLessThanOrEqual(3);
  });

  it("says of an id that is no commit what it said before", async () => {
    const { answer: blobId } = await asNewcomer(url, async (w) => {
      const page = await w.internals.storage.scanObjects("w", null, 100);
      return page.rows.find(({ type }) => type === "blob")!.id;
    });
    for (const ask of ["stateAt", "commitAt"] as const) {
      await asNewcomer(url, async (w) => {
        await expect(w[ask](blobId)).rejects.toMatchObject({
          code: "REVISION_NOT_FOUND",
          message: expect.stringContaining("is a blob, not a commit"),
        });
        await expect(w[ask]("f".repeat(64))).rejects.toMatchObject({
          code: "REVISION_NOT_FOUND",
          message: expect.stringContaining("there is no commit with this id"),
        });
      });
    }
  });

  it("gives a page of its log in two calls, one more to find where it begins", async () => {
    for (const firstParent of [true, false]) {
      const page = (revision: string) =>
        asNewcomer(url, (w) => all(w.log({ revisions: [revision], limit: 20, firstParent })));
      const byId = await page(ids[200]!);
      expect(byId.answer.map(({ id }) => id)).toEqual(ids.slice(181, 201).reverse());
      expect(byId.roundTrips).toBe(2);
      expect((await page("a/talk")).roundTrips).toBe(3);
    }
  });

  it("answers about ancestors in one call, one more to find where to begin", async () => {
    const [old, recent] = [ids[80]!, ids[STEPS - 1]!];
    const asked = [
      await asNewcomer(url, (w) => w.isAncestor(old, recent)),
      await asNewcomer(url, async (w) => (await w.mergeBases(old, recent))[0] === old),
      await asNewcomer(url, async (w) => (await w.aheadBehind(recent, old)).ahead === 219),
    ];
    for (const { answer, roundTrips } of asked) {
      expect(answer).toBe(true);
      expect(roundTrips).toBe(1);
    }
    const named = await asNewcomer(url, (w) => w.isAncestor(old, "a/talk"));
    expect([named.answer, named.roundTrips]).toEqual([true, 2]);
  });

  it("compares two states in one call where they are small", async () => {
    const { answer, roundTrips } = await asNewcomer(url, (w) => w.diff(ids[10]!, ids[12]!));
    expect(answer.map(({ path }) => path)).toEqual(["/messages/11", "/messages/12"]);
    expect(roundTrips).toBe(1);
  });
});

/** A store with a state of some size and branches that each changed a key and appended to a list. */
async function makeBranches(url: string, items: number, branches: number): Promise<string[]> {
  const store = await openStore(url);
  const text = (i: number) => `${i} `.repeat(200);
  const workflow = await store.createWorkflow("w", {
    state: {
      items: Object.fromEntries(Array.from({ length: items }, (_, i) => [`k${i}`, text(i)])),
      log: Array.from({ length: items }, (_, i) => `entry ${i} ${"x".repeat(100)}`),
      n: 0,
    },
    policies: { "/log": "append", "/n": "sum" },
  });
  const names: string[] = [];
  const change = (who: string, key: number): StateOperation[] => [
    { op: "set", path: `/items/k${key}`, value: `by ${who}` },
    { op: "append", path: "/log", value: `by ${who}` },
    { op: "set", path: "/n", value: 1 },
  ];
  for (let k = 0; k < branches; k++) {
    const branch = await workflow.branch({ agent: `a${k}`, branch: "b" });
    await branch.update(change(branch.name, k));
    names.push(branch.name);
  }
  await (await workflow.canonical()).update(change("canonical", items - 1));
  await store.close();
  return names;
}

describe("merging in PostgreSQL, with nothing at hand", () => {
  async function costOfMerge(items: number, branches: number) {
    const { url, drop } = newSchema();
    try {
      const names = await makeBranches(url, items, branches);
      const cost = await asNewcomer(url, (w) => w.merge(names));
      expect(cost.answer.status).toBe("merged");
      const { answer: state } = await asNewcomer(url, (w) => w.stateAt("canonical"));
      expect(state).toMatchObject({ n: 1 + branches, items: { k0: "by agents/a0/b" } });
      return cost;
    } finally {
      await drop();
    }
  }

  it("takes four calls for a branch of a small state", async () => {
    expect((await costOfMerge(20, 1)).roundTrips).toBe(4);
  });

  it("takes a call more for each level of a large one, and reads a small part of it", async () => {
    const { roundTrips, bytesRead } = await costOfMerge(5000, 1);
    expect(roundTrips).toBeLessThanOrEqual(10);
    expect(bytesRead).toBeLessThan(400_000);
  });

  it("takes no more calls for 64 branches than for one", async () => {
    const { roundTrips } = await costOfMerge(1000, BRANCHES);
    expect(roundTrips).toBeLessThanOrEqual(10);
  });
});

describe("reading what was damaged in PostgreSQL", () => {
  async function damaged(change: string): Promise<{ url: string; store: Store }> {
    const { url } = newSchema();
    const store = await openStore(url);
    const workflow = await store.createWorkflow("w", {
      state: { kept: "k".repeat(3000), lost: "l".repeat(2000), small: 1 },
    });
    expect(await workflow.usage()).toMatchObject({ commits: 2 });
    const schema = new URL(url).searchParams.get("schema")!;
    await withClient(async (client) => {
      const { rowCount } = await client.query(
        `UPDATE ${client.escapeIdentifier(schema)}.objects SET ${change} WHERE type = 3 AND body = $1`,
        [Buffer.from(JSON.stringify("l".repeat(2000)))],
      );
      expect(rowCount).toBe(1);
    });
    return { url, store };
  }

  it.each([
    ["kind = 1, body = 'why'", "erased"],
    ["encoding = 2", "key"],
  ])("with %s is withheld (%s), and the rest is told", async (change, reason) => {
    const { url, store } = await damaged(change);
    try {
      await asNewcomer(url, async (w) => {
        const { lost, ...rest } = (await w.stateAt("canonical")) as Record<string, unknown>;
        expect(rest).toEqual({ kept: "k".repeat(3000), small: 1 });
        expect(lost).toMatchObject({ reason });
        expect(await w.stateAt("canonical", "/lost")).toBeInstanceOf(Withheld);
      });
    } finally {
      await store.close();
    }
  });

  it.each([
    ["body = 'something else'", "CORRUPT_OBJECT"],
    ["encoding = 3", "UNSUPPORTED_ENCODING"],
    ["kind = 7", "CORRUPT_OBJECT"],
  ])("with %s fails with %s, and only where it is needed", async (change, code) => {
    const { url, store } = await damaged(change);
    try {
      await asNewcomer(url, async (w) => {
        expect(await w.stateAt("canonical", "/small")).toBe(1);
        expect(await w.stateAt("canonical", "/kept")).toBe("k".repeat(3000));
        await expect(w.stateAt("canonical", "/lost")).rejects.toMatchObject({ code });
        await expect(w.stateAt("canonical")).rejects.toMatchObject({ code });
      });
    } finally {
      await store.close();
      await withClient(async (client) => {
        const schema = client.escapeIdentifier(new URL(url).searchParams.get("schema")!);
        await client.query(`DROP SCHEMA ${schema} CASCADE`);
      });
    }
  });
});

describe("a branch with 700 steps in PostgreSQL", () => {
  const { url, drop } = newSchema();
  const STEPS_MADE = 350;

  beforeAll(async () => {
    const store = await openStore(url);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({
      agent: "a",
      branch: "x",
      granularity: { every: { steps: 200 } },
    });
    const output = { text: "large ".repeat(1_000) };
    for (let n = 0; n < STEPS_MADE; n++) {
      await branch.step({ name: `look-${n}`, action: "read", memoize: true }, () => n);
      if (n % 50 === 0) await branch.update([{ op: "set", path: "/n", value: n }]);
      if (n % 50 === 1) await branch.step({ name: `book-${n}`, input: { n } }, () => output);
    }
    await store.close();
    return drop;
  });

  it("lists them in one read, with their inputs and outputs, in order", async () => {
    const { answer, roundTrips } = await asNewcomer(url, async (w, counter) => {
      const branch = await w.branch("a/x");
      counter.reset();
      return all(branch.steps());
    });
    expect(roundTrips).toBe(1);
    expect(answer).toHaveLength(357);
    expect(answer.map(({ number }) => number)).toEqual(
      Array.from({ length: 357 }, (_, i) => 357 - i),
    );
    const booked = answer.filter(({ action }) => action === "execute");
    expect(booked).toHaveLength(7);
    for (const { output } of booked) expect(output).toEqual({ text: "large ".repeat(1_000) });
  });

  it("lists the last few without reading the others", async () => {
    const { answer, roundTrips, bytesRead } = await asNewcomer(url, async (w, counter) => {
      const branch = await w.branch("a/x");
      counter.reset();
      return all(branch.steps({ limit: 3 }));
    });
    expect(roundTrips).toBe(1);
    expect(answer.map(({ number }) => number)).toEqual([357, 356, 355]);
    expect(bytesRead).toBeLessThan(64 * 1024);
  });

  it("goes on with a run in two reads, however long it is", async () => {
    const { answer } = await asNewcomer(url, async (w) => {
      const spec = { name: "look", action: "read", memoize: true } as const;
      return w.run(await w.branch("a/x"), async (ctx) => {
        for (let i = 0; i < 20; i++) await ctx.step(spec, () => i);
        return "first";
      });
    });
    expect(answer).toBe("first");
    const again = await asNewcomer(url, async (w, counter) => {
      const branch = await w.branch("a/x");
      counter.reset();
      return w.run(branch, async () => "not done again");
    });
    expect(again.answer).toBe("first");
    // Where the branch is now, and its line.
    expect(again.roundTrips).toBe(2);
  });
});
