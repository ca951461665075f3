import { AIMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type ChannelVersions,
  type Checkpoint,
  type CheckpointMetadata,
  DeltaSnapshot,
  emptyCheckpoint,
  JsonPlusSerializer,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { latestRef } from "../../src/langgraph/names.js";
import { CheckpointParts } from "../../src/langgraph/parts.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage, WriteBatch } from "../../src/storage/port.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const META: CheckpointMetadata = { source: "loop", step: 0, parents: {} };

function thread(id: string, namespace = "", checkpoint?: string): RunnableConfig {
  return {
    configurable: { thread_id: id, checkpoint_ns: namespace, checkpoint_id: checkpoint },
  };
}

function idOf(config: RunnableConfig): string {
  return config.configurable?.checkpoint_id as string;
}

let clock = 0;

function checkpointOf(values: Record<string, unknown>, versions: ChannelVersions): Checkpoint {
  clock++;
  return {
    ...emptyCheckpoint(),
    id: uuid6(clock),
    channel_values: values,
    channel_versions: versions,
  };
}

/** Puts a checkpoint in which every channel is new. */
async function put(saver: AgstateSaver, config: RunnableConfig, values: Record<string, unknown>) {
  const versions = Object.fromEntries(Object.keys(values).map((name) => [name, ++clock]));
  return saver.put(config, checkpointOf(values, versions), META, versions);
}

async function valuesAt(saver: AgstateSaver, config: RunnableConfig) {
  return (await saver.getTuple(config))?.checkpoint.channel_values;
}

async function idsOf(saver: AgstateSaver, config: RunnableConfig) {
  return (await all(saver.list(config))).map((tuple) => tuple.checkpoint.id);
}

type Write = Storage["write"];

/** A storage whose `write` does something else, with the real one at hand. */
function wrapWrite(act: (batch: WriteBatch, write: Write) => ReturnType<Write>) {
  return (storage: Storage): Storage => {
    const write = storage.write.bind(storage);
    return { ...forward(storage), write: async (batch) => act(batch, write) };
  };
}

/** A storage whose batches are kept for a look. */
function recordWrites() {
  const batches: WriteBatch[] = [];
  const wrap = wrapWrite((batch, write) => {
    batches.push(batch);
    return write(batch);
  });
  return { batches, wrap };
}

describe.each(BACKENDS)("AgstateSaver, on %s", (backend) => {
  async function begin() {
    const made = await makeStore(backend);
    const { store } = made;
    const reopened = async () => new AgstateSaver(await made.another());
    return { ...made, store, saver: new AgstateSaver(store), reopened };
  }

  it("keeps the values of two forks that share channel versions apart", async () => {
    const { saver, reopened } = await begin();
    const before = { messages: 7_000_000, other: 7_000_000 };
    const first = checkpointOf({ messages: ["start"], other: 1 }, before);
    const root = await saver.put(thread("t"), first, META, before);
    const versions = { messages: 7_000_001, other: 7_000_000 };
    const forks = [];
    for (const word of ["left", "right"]) {
      const values = { messages: ["start", word], other: 1 };
      const checkpoint = checkpointOf(values, versions);
      forks.push(await saver.put(root, checkpoint, META, { messages: 7_000_001 }));
    }
    const cold = await reopened();
    for (const [i, word] of ["left", "right"].entries()) {
      const config = forks[i] as RunnableConfig;
      const tuple = await cold.getTuple(config);
      expect(tuple?.checkpoint.channel_values).toEqual({ messages: ["start", word], other: 1 });
      expect(idOf(tuple?.parentConfig as RunnableConfig)).toBe(idOf(root));
      const next = await put(cold, config, { messages: ["start", word, "more"] });
      expect(await valuesAt(cold, next)).toEqual({ messages: ["start", word, "more"] });
    }
    expect(await valuesAt(cold, thread("t"))).toEqual({ messages: ["start", "right", "more"] });
    expect(await idsOf(cold, thread("t"))).toHaveLength(5);
  });

  it("copies a checkpoint beside it, with the values of the very fork that was copied", async () => {
    const { saver, reopened } = await begin();
    const root = await put(saver, thread("t"), { n: 0 });
    const versions = { n: 8_000_001 };
    for (const n of [1, 2]) await saver.put(root, checkpointOf({ n }, versions), META, versions);
    const copy = await (await reopened()).put(root, checkpointOf({ n: 1 }, versions), META, {});
    expect(await valuesAt(await reopened(), copy)).toEqual({ n: 1 });
  });

  it("keeps the first normal write of an index and the last special one", async () => {
    const { saver, reopened } = await begin();
    const at = await put(saver, thread("t"), {});
    const write = async (by: AgstateSaver) => {
      await by.putWrites(at, [["foo", 1]], "task");
      await by.putWrites(at, [["__interrupt__", "x"]], "task");
    };
    await write(saver);
    const expected = [
      ["task", "__interrupt__", "x"],
      ["task", "foo", 1],
    ];
    expect((await saver.getTuple(at))?.pendingWrites).toEqual(expected);
    const cold = await reopened();
    await write(cold);
    expect((await cold.getTuple(at))?.pendingWrites).toEqual(expected);
    await cold.putWrites(
      at,
      [
        ["foo", 2],
        ["constructor", 3],
      ],
      "task",
    );
    await cold.putWrites(at, [["__interrupt__", "y"]], "task");
    expect((await saver.getTuple(at))?.pendingWrites).toEqual([
      ["task", "__interrupt__", "y"],
      ["task", "foo", 1],
      ["task", "constructor", 3],
    ]);
  });

  it("loses none of twenty parallel writes, of twenty tasks or of one", async () => {
    const { saver, reopened } = await begin();
    const savers = [saver, await reopened()];
    const at = thread("t", "", uuid6(0));
    const numbers = Array.from({ length: 20 }, (_, i) => i);
    const by = (i: number) => savers[i % 2] as AgstateSaver;
    await Promise.all(numbers.map((i) => by(i).putWrites(at, [["c", i]], `task-${i}`)));
    const specials = ["__error__", "__scheduled__", "__interrupt__", "__resume__"];
    await Promise.all(specials.map((name, i) => by(i).putWrites(at, [[name, i]], "one")));
    // Writes may come before the checkpoint that they belong to.
    await saver.put(thread("t"), { ...emptyCheckpoint(), id: idOf(at) }, META, {});
    const writes = (await (await reopened()).getTuple(at))?.pendingWrites ?? [];
    expect(
      writes
        .filter(([, name]) => name === "c")
        .map(([, , i]) => i)
        .sort((a, b) => Number(a) - Number(b)),
    ).toEqual(numbers);
    expect(
      writes
        .filter(([task]) => task === "one")
        .map(([, name]) => name)
        .sort(),
    ).toEqual(specials.sort());
  });

  it("puts a checkpoint only when the writes below its parent are there", async () => {
    const happened: string[] = [];
    let delay: Promise<void> | undefined;
    const wrap = wrapWrite(async (batch, write) => {
      if (batch.moves.length === 0) await delay;
      const answer = await write(batch);
      if (batch.workflow === "t") happened.push(batch.moves.length === 0 ? "writes" : "checkpoint");
      return answer;
    });
    const { store } = await makeStore(backend, { wrap });
    const saver = new AgstateSaver(store);
    const at = await put(saver, thread("t"), { n: 0 });
    happened.length = 0;
    let go = () => {};
    delay = new Promise((resolve) => {
      go = resolve;
    });
    const writing = saver.putWrites(at, [["n", 1]], "task");
    // They have gone out when the checkpoint comes.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const putting = put(saver, at, { n: 1 });
    await put(saver, thread("other"), { n: 0 });
    expect(happened).toEqual([]);
    go();
    await Promise.all([writing, putting]);
    expect(happened.slice(-2)).toEqual(["writes", "checkpoint"]);
  });

  it("takes writes along with the checkpoint that is put in the same turn, in one call", async () => {
    const { batches, wrap } = recordWrites();
    const { store } = await makeStore(backend, { wrap });
    const saver = new AgstateSaver(store);
    const at = await put(saver, thread("t"), { n: 0 });
    batches.length = 0;
    const writes = ["a", "b"].map((task) => saver.putWrites(at, [["n", task]], task));
    const [next] = await Promise.all([put(saver, at, { n: 1 }), ...writes]);
    expect(batches.map(({ moves, pending }) => [moves.length, pending?.length])).toEqual([[1, 2]]);
    expect((await saver.getTuple(at))?.pendingWrites).toEqual([
      ["a", "n", "a"],
      ["b", "n", "b"],
    ]);
    expect((await saver.getTuple(next))?.pendingWrites).toEqual([]);
  });

  it("waits with a checkpoint for writes that are being serialized", async () => {
    const { batches, wrap } = recordWrites();
    const { store } = await makeStore(backend, { wrap });
    const saver = new AgstateSaver(store);
    const at = await put(saver, thread("t"), { n: 0 });
    const { dumpsTyped } = saver.serde;
    saver.serde.dumpsTyped = async (value) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return dumpsTyped.call(saver.serde, value);
    };
    const writing = saver.putWrites(at, [["n", new HumanMessage("slow")]], "task");
    const next = await put(saver, at, { n: 1 });
    expect(batches.at(-1)?.pending?.length).toBe(1);
    await writing;
    expect((await saver.getTuple(next))?.checkpoint.channel_values).toEqual({ n: 1 });
    expect((await saver.getTuple(at))?.pendingWrites?.length).toBe(1);
  });

  it("keeps writes whose checkpoint is refused, and those whose checkpoint cannot be written", async () => {
    let broken = false;
    const wrap = wrapWrite((batch, write) => {
      if (broken && batch.moves.length > 0) throw new Error("the disk says no");
      return write(batch);
    });
    const { store } = await makeStore(backend, { wrap });
    const saver = new AgstateSaver(store, { concurrentPuts: "refuse" });
    const at = await put(saver, thread("t"), { n: 0 });
    const latest = await put(saver, at, { n: 1 });
    const refused = await Promise.allSettled([
      saver.putWrites(at, [["n", 1]], "one"),
      put(saver, at, { n: 2 }),
    ]);
    expect(refused.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    broken = true;
    const failed = await Promise.allSettled([
      saver.putWrites(at, [["n", 2]], "two"),
      saver.putWrites(at, [["n", 3]], "three"),
      put(saver, latest, { n: 3 }),
    ]);
    expect(failed.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect((await saver.getTuple(at))?.pendingWrites).toEqual([
      ["one", "n", 1],
      ["three", "n", 3],
      ["two", "n", 2],
    ]);
  });

  it("declares of the workflow of a thread that is begun what it is told to", async () => {
    const { store, reopened } = await begin();
    const isolation = ["/state/secret"];
    const saver = new AgstateSaver(store, {
      declaration: (id) =>
        id === "t" ? { classification: "public", retentionPolicy: "P90D", isolation } : {},
    });
    const at = await put(saver, thread("t"), { secret: "s", n: 1 });
    await put(saver, at, { secret: "t", n: 1 });
    await put(saver, thread("other"), { n: 1 });
    const { info, internals } = await store.workflow("t");
    expect(info).toMatchObject({ classification: "public", retentionPolicy: "P90D", isolation });
    expect((await store.workflow("other")).info.classification).toBe("internal");
    const { root } = await internals.commitAt("langgraph/latest");
    const entries = await internals.objects.tree((root.state as { id: ObjectId }).id);
    expect(entries.map(({ name }) => name)).toEqual(["n", "secret"]);
    expect(await valuesAt(await reopened(), thread("t"))).toEqual({ secret: "t", n: 1 });
    const wrong = new AgstateSaver(store, { declaration: { classification: "none" as "public" } });
    await expect(put(wrong, thread("new"), { n: 1 })).rejects.toThrow(
      agstateError("INVALID_ARGUMENT"),
    );
  });

  it("goes through another serializer if it is given one, and tells what it does not know", async () => {
    const { store } = await begin();
    const sealing = new (class extends JsonPlusSerializer {
      override async dumpsTyped(given: unknown): Promise<[string, Uint8Array]> {
        const [type, data] = await super.dumpsTyped(given);
        return [`sealed-${type}`, data.map((byte) => byte ^ 1)];
      }
      override async loadsTyped(type: string, data: Uint8Array | string) {
        const bytes = (data as Uint8Array).map((byte) => byte ^ 1);
        return super.loadsTyped(type.replace("sealed-", ""), bytes);
      }
    })();
    const saver = new AgstateSaver(store, { serde: sealing });
    const message = new HumanMessage({ content: "hidden", id: "1" });
    const at = await put(saver, thread("t"), { messages: [message] });
    await saver.putWrites(at, [["messages", message]], "task");
    const tuple = await saver.getTuple(at);
    expect(tuple?.checkpoint.channel_values).toEqual({ messages: [message] });
    expect(tuple?.pendingWrites).toEqual([["task", "messages", message]]);
    const state = await (await store.workflow("t")).stateAt("langgraph/latest");
    expect(JSON.stringify(state)).not.toContain("hidden");
    await expect(new AgstateSaver(store).getTuple(at)).rejects.toThrow();
  });

  it("makes one call to the storage for a put at the latest checkpoint, and one for a task's writes", async () => {
    const calls: string[] = [];
    const wrap = (storage: Storage): Storage =>
      new Proxy(storage, {
        get(target, name) {
          const member = Reflect.get(target, name);
          if (typeof member !== "function") return member;
          return (...args: unknown[]) => {
            calls.push(String(name));
            return Reflect.apply(member, target, args);
          };
        },
      });
    const { store } = await makeStore(backend, { wrap });
    const saver = new AgstateSaver(store);
    let at = await put(saver, thread("t"), { messages: ["x".repeat(3000)], n: 0 });
    at = await put(saver, at, { messages: ["x".repeat(3000), "y".repeat(3000)], n: 1 });
    calls.length = 0;
    at = await put(saver, at, { messages: ["x".repeat(3000), "y".repeat(3000), "z"], n: 2 });
    expect(calls).toEqual(["write"]);
    await saver.putWrites(
      at,
      [
        ["n", 3],
        ["messages", "m"],
      ],
      "task",
    );
    expect(calls).toEqual(["write", "write"]);
  });

  it("returns all channels when each checkpoint changes one, and stores what is the same once", async () => {
    const { saver, store, reopened } = await begin();
    const values: Record<string, unknown> = { big: "x".repeat(1_000_000), n: 0 };
    const versions: ChannelVersions = { big: 1, n: 1 };
    let at = await saver.put(thread("t"), checkpointOf(values, versions), META, versions);
    const workflow = await store.workflow("t");
    const before = await workflow.usage();
    for (let step = 0; step < 200; step++) {
      const name = ["a", "b", "n"][step % 3] as string;
      values[name] = step;
      versions[name] = step + 2;
      const changed = { [name]: step + 2 };
      const checkpoint = checkpointOf({ ...values }, { ...versions });
      at = await saver.put(at, checkpoint, META, changed);
    }
    expect(await valuesAt(await reopened(), at)).toEqual({ ...values });
    expect((await workflow.usage()).bytes - before.bytes).toBeLessThan(1_000_000);
  });

  it("gives two writers on one checkpoint a fork each", async () => {
    const { saver, reopened } = await begin();
    const root = await put(saver, thread("t"), { n: 0 });
    const savers = [saver, await reopened(), await reopened()];
    for (const each of savers) await each.getTuple(thread("t"));
    const forks = await Promise.all(
      Array.from({ length: 9 }, (_, n) => put(savers[n % 3] as AgstateSaver, root, { n })),
    );
    const cold = await reopened();
    for (const [n, fork] of forks.entries()) expect(await valuesAt(cold, fork)).toEqual({ n });
    expect(new Set(await idsOf(cold, thread("t")))).toEqual(new Set([root, ...forks].map(idOf)));
    expect(forks.map(idOf)).toContain((await cold.getTuple(thread("t")))?.checkpoint.id);
  });

  it("refuses the later of two writers on one checkpoint where it is told to, and lets time travel fork", async () => {
    const { store, another } = await begin();
    const refuse = { concurrentPuts: "refuse" } as const;
    const one = new AgstateSaver(store, refuse);
    const two = new AgstateSaver(await another(), refuse);
    const root = await put(one, thread("t"), { n: 0 });
    for (const saver of [one, two]) await saver.getTuple(thread("t"));
    await two.getTuple(root);
    const won = await put(one, root, { n: 1 });
    const lost = checkpointOf({ n: 2 }, { n: 2 });
    const conflict = { thread: "t", namespace: "", checkpoint: lost.id, actual: idOf(won) };
    for (const saver of [two, one]) {
      await expect(saver.put(root, lost, META, { n: 2 })).rejects.toEqual(
        agstateError("REF_CONFLICT", { ...conflict, expected: idOf(root) }),
      );
    }
    await expect(two.put(thread("t"), lost, META, { n: 2 })).rejects.toEqual(
      agstateError("REF_CONFLICT", { ...conflict, expected: null }),
    );
    expect((await idsOf(two, thread("t"))).sort()).toEqual([root, won].map(idOf).sort());

    // The same once more is no conflict, nor is what knows that it is not at the latest.
    await one.put(
      thread("t"),
      checkpointOf({ n: 1 }, { n: 1 }),
      { ...META, source: "fork" },
      { n: 1 },
    );
    await two.put(root, { ...checkpointOf({ n: 1 }, { n: 1 }), id: idOf(won) }, META, { n: 1 });
    await two.getTuple(root);
    const fork = await two.put(root, lost, META, { n: 2 });
    expect((await two.getTuple(thread("t")))?.config).toEqual(fork);
    expect(await valuesAt(two, won)).toEqual({ n: 1 });
    expect(() => new AgstateSaver(store, { concurrentPuts: "lose" as "fork" })).toThrow(
      agstateError("INVALID_ARGUMENT") as Error,
    );
  });

  it("takes the last put for the latest, whatever its id, and one that is put again for its new contents", async () => {
    const { saver, reopened } = await begin();
    const first = checkpointOf({ n: 1 }, { n: 1 });
    const later = checkpointOf({ n: 2 }, { n: 2 });
    const at = await saver.put(thread("t"), later, META, { n: 2 });
    await saver.put(at, first, META, { n: 1 });
    expect((await (await reopened()).getTuple(thread("t")))?.checkpoint.id).toBe(first.id);
    const again = { ...later, channel_values: { n: 3 } };
    await (await reopened()).put(thread("t"), again, { ...META, step: 5 }, { n: 2 });
    const cold = await reopened();
    expect(await valuesAt(cold, at)).toEqual({ n: 3 });
    expect((await cold.getTuple(at))?.parentConfig).toBeUndefined();
    expect(await idsOf(cold, thread("t"))).toEqual([later.id, first.id]);
    expect((await all(cold.list(thread("t"), { filter: { step: 5 } }))).length).toBe(1);
  });

  it("begins a deleted thread anew, and lets collection remove what was there", async () => {
    const { saver, store, reopened } = await begin();
    const other = await reopened();
    const old = await put(saver, thread("t"), { secret: "s".repeat(5000) });
    await put(saver, thread("t", "child"), { n: 1 });
    await put(saver, thread("u"), { n: 1 });
    await saver.putWrites(old, [["n", 1]], "task");
    await other.getTuple(thread("t"));
    const workflow = await store.workflow("t");
    const before = await workflow.usage();
    await saver.deleteThread("t");
    await saver.deleteThread("never there");
    for (const each of [saver, other]) {
      for (const config of [old, thread("t"), thread("t", "child")])
        expect(await each.getTuple(config)).toBeUndefined();
      expect(await idsOf(each, thread("t"))).toEqual([]);
      expect(
        (await all(each.list({}))).map(({ config }) => config.configurable?.thread_id),
      ).toEqual(["u"]);
    }
    const fresh = await put(other, thread("t"), { n: 2 });
    expect(await saver.getTuple(old)).toBeUndefined();
    expect((await saver.getTuple(thread("t")))?.parentConfig).toBeUndefined();
    await workflow.gc({ graceMs: 0 });
    expect((await workflow.usage()).bytes).toBeLessThan(before.bytes / 2);
    expect(await valuesAt(await reopened(), fresh)).toEqual({ n: 2 });
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("keeps forks and writes through a collection", async () => {
    const { saver, store, reopened } = await begin();
    const root = await put(saver, thread("t"), { n: 0 });
    const forks = [];
    for (const n of [1, 2, 3]) {
      const fork = await put(saver, root, { n });
      await saver.putWrites(fork, [["n", n]], "task");
      forks.push(fork);
    }
    await (await store.workflow("t")).gc({ graceMs: 0 });
    const cold = await reopened();
    for (const [i, fork] of forks.entries()) {
      const tuple = await cold.getTuple(fork);
      expect(tuple?.checkpoint.channel_values).toEqual({ n: i + 1 });
      expect(tuple?.pendingWrites).toEqual([["task", "n", i + 1]]);
    }
  });

  it("takes any text for the name of a thread, a namespace, a checkpoint, a task or a channel", async () => {
    const { saver, reopened } = await begin();
    const names = [
      "a:b|c:d",
      "a%3Ab%7Cc%3Ad",
      " edge ",
      "é<>%\n\u0000",
      "__proto__",
      "..",
      "x.lock",
      "y".repeat(5000),
      `${"y".repeat(5000)}z`,
      "deadbeef",
    ];
    const channels = ["__proto__", "a/b~c", "$agstate", "$$agstate", "branch:to:x"];
    const values: Record<string, unknown> = Object.create(null);
    for (const [n, name] of channels.entries()) values[name] = n;
    for (const [n, name] of names.entries()) {
      const at = await put(saver, thread(name, name), {
        ...Object.assign(Object.create(null), values),
        n,
      });
      await saver.putWrites(at, [[name.isWellFormed() ? name : "c", n]], name);
    }
    const cold = await reopened();
    for (const [n, name] of names.entries()) {
      const tuple = await cold.getTuple(thread(name, name));
      expect(tuple?.checkpoint.channel_values.n).toBe(n);
      for (const [i, channel] of channels.entries())
        expect(
          Object.getOwnPropertyDescriptor(tuple?.checkpoint.channel_values, channel)?.value,
        ).toBe(i);
      expect(tuple?.pendingWrites?.map(([task, , value]) => [task, value])).toEqual([[name, n]]);
      expect(tuple?.config.configurable).toMatchObject({ thread_id: name, checkpoint_ns: name });
    }
    const listed = (await all(cold.list({}))).map(({ config }) => config.configurable?.thread_id);
    expect(listed.sort()).toEqual([...names].sort());
  });

  it("refuses what names no thread or no checkpoint", async () => {
    const { saver } = await begin();
    const refused = agstateError("INVALID_ARGUMENT");
    for (const id of ["", 5, null, "\ud800"]) {
      const config = { configurable: { thread_id: id } };
      await expect(put(saver, config, {})).rejects.toEqual(refused);
      await expect(saver.getTuple(config)).rejects.toEqual(refused);
    }
    await expect(saver.putWrites(thread("t"), [["a", 1]], "task")).rejects.toEqual(refused);
  });

  it("restores every kind of value, in channels, writes and metadata alike", async () => {
    const { saver, reopened } = await begin();
    const value = {
      list: [undefined, null, -0, 0, Number.NaN, Number.NEGATIVE_INFINITY, 12n, "\ud800", "é"],
      date: new Date(5),
      never: new Date(Number.NaN),
      map: new Map<unknown, unknown>([["k", new Map([[new Date(1), new Set([1n])]])]]),
      set: new Set([undefined, "a"]),
      bytes: new Uint8Array([0, 255]),
      pattern: /a\/b/giu,
      error: new RangeError("no"),
      missing: undefined,
      $agstate: ["date", 5],
      $$agstate: { $agstate: 1 },
      raw: { lc: 1, type: "constructor", id: ["x"], kwargs: {} },
      old: { lc: 2, type: "undefined" },
      delta: new DeltaSnapshot([new Date(2)]),
    };
    const messages = [new HumanMessage({ content: "hi", id: "1" }), new AIMessage("there")];
    const given = { value, messages, nothing: undefined, zero: null };
    const versions = { value: 1, messages: 1, nothing: 1, zero: 1 };
    const metadata = { ...META, value } as CheckpointMetadata;
    const at = await saver.put(thread("t"), checkpointOf(given, versions), metadata, versions);
    await saver.putWrites(at, [["value", value]], "task");
    const tuple = await (await reopened()).getTuple(at);
    expect(tuple?.checkpoint.channel_values).toStrictEqual(given);
    expect(tuple?.checkpoint.channel_values.messages).toEqual([
      expect.any(HumanMessage),
      expect.any(AIMessage),
    ]);
    expect(tuple?.metadata).toStrictEqual(metadata);
    expect(tuple?.pendingWrites).toStrictEqual([["task", "value", value]]);
  });

  it("refuses what it could not restore, names the place, and leaves the thread as it was", async () => {
    const { saver } = await begin();
    const at = await put(saver, thread("t"), { n: 0 });
    class Point {
      readonly x = 1;
    }
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const bad: unknown[] = [
      new Point(),
      () => 1,
      Symbol("s"),
      cycle,
      new URL("http://a/"),
      new Float32Array(2),
    ];
    for (const value of bad) {
      const path = value === cycle ? "/channel_values/c/0/self" : "/channel_values/c/0";
      await expect(put(saver, at, { c: [value] })).rejects.toEqual(
        agstateError("INVALID_VALUE", { path }),
      );
      const writing = saver.putWrites(at, [["c", [value]]], "task");
      await expect(writing).rejects.toEqual(agstateError("INVALID_VALUE"));
    }
    const tuple = await saver.getTuple(thread("t"));
    expect(tuple?.checkpoint.channel_values).toEqual({ n: 0 });
    expect(tuple?.pendingWrites).toEqual([]);
  });

  it("raises when a stored tag is not one it knows, and never answers null", async () => {
    const { saver, store, reopened } = await begin();
    const at = await put(saver, thread("t"), { when: new Date(5) });
    const { internals: repository } = await store.workflow("t");
    const parts = new CheckpointParts(repository);
    const { id } = (await repository.refs.row(latestRef("")))!;
    const below = await parts.load(await parts.open(id!));
    for (const tag of [["dote", 5], ["date"], ["date", "5"], "date", ["map", 5], []]) {
      const record = { ...below.record, channels: { when: { $agstate: tag } } };
      const { message } = below.commit;
      const { commit } = await parts.prepare(record, below, { message, externalId: idOf(at) });
      const [answer] = await repository.refs.apply({
        updates: [
          {
            ref: latestRef(""),
            expect: { kind: "any" },
            target: commit.record.id,
            commits: [commit.record],
            note: { actor: "langgraph", reason: "a newer version's" },
          },
        ],
        objects: commit.objects.map((object) => object.record),
      });
      expect(answer?.outcome).toBe("moved");
      const cold = await reopened();
      await expect(cold.getTuple(at)).rejects.toEqual(agstateError("UNSUPPORTED_ENCODING"));
      await expect(all(cold.list(thread("t")))).rejects.toEqual(
        agstateError("UNSUPPORTED_ENCODING"),
      );
    }
  });

  it("shows a thread to everything else that agstate has", async () => {
    const { saver, store } = await begin();
    const root = await put(saver, thread("t"), { messages: ["a"] });
    await put(saver, root, { messages: ["a", "b"] });
    await put(saver, root, { messages: ["a", "c"] });
    const workflow = await store.workflow("t");
    const changes = await workflow.diff("langgraph/latest~1", "langgraph/latest");
    expect(changes.map(({ path }) => path)).toEqual(["/messages/1"]);
    const branches = (await workflow.refs()).map(({ name }) => name);
    expect(branches.filter((name) => name.includes("langgraph"))).toHaveLength(2);
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
    // A commit of somebody else's on top is not a checkpoint, and hides none.
    await (await workflow.branch("langgraph/latest")).commit({ state: {}, message: "note" });
    expect(await valuesAt(saver, thread("t"))).toEqual({ messages: ["a", "c"] });
    const next = await put(saver, (await saver.getTuple(thread("t")))?.config as RunnableConfig, {
      n: 1,
    });
    expect(await idsOf(saver, thread("t"))).toHaveLength(4);
    expect(await valuesAt(saver, next)).toEqual({ n: 1 });
  });
});
