import { spawnSync } from "node:child_process";
import { createCipheriv } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type JsonValue, openStore } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { agstateError, BACKENDS, makeStore, snapshot } from "../support/stores.js";

const MB = 1024 * 1024;

/** A text of one megabyte in lines of 63 characters, no two of them alike, unlike that of any other number. */
function megabyte(number: number): string {
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16, 7), Buffer.alloc(16, number));
  const bytes = cipher.update(Buffer.alloc(MB)).map((byte) => 0x20 | (byte & 0x5f));
  for (let end = 63; end < MB; end += 64) bytes[end] = 0x0a;
  return Buffer.from(bytes).toString("latin1");
}

/** A state of so many megabytes, in parts of which so many are unlike. */
function large(megabytes: number, unlike: number): { parts: string[]; notes: JsonValue } {
  const made = Array.from({ length: unlike }, (_, i) => megabyte(i));
  const parts = Array.from({ length: megabytes }, (_, i) => made[i % unlike]!);
  return { parts, notes: { n: 0 } };
}

function countingStore() {
  let counts: CountingStorage | undefined;
  const wrap = (storage: Parameters<typeof counting>[0]) => {
    counts = counting(storage);
    return counts.storage;
  };
  return { wrap, counted: () => counts! };
}

describe.each(BACKENDS)("large states, on %s (SER-10)", (backend) => {
  it("commits 1 MB in one string, and reads it back", async () => {
    const { store, another } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const text = Array.from({ length: MB / 8 }, (_, i) => i.toString().padStart(8)).join("");
    await store.createWorkflow("w", { state: { text } });
    const reader = await (await another()).workflow("w");
    expect((await reader.stateAt("canonical", "/text")) === text).toBe(true);
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("commits 100 MB and reads it back", async () => {
    const { store, another } = await makeStore(backend, { limits: { cacheMaxBytes: MB } });
    const state = large(100, backend === "sqlite" ? 100 : 10);
    const branch = await (await store.createWorkflow("w")).canonical();
    await branch.commit({ state });
    const reader = await (await another()).workflow("w");
    const { parts } = (await reader.stateAt("canonical")) as typeof state;
    expect(parts.length).toBe(100);
    expect(parts.every((part, i) => part === state.parts[i])).toBe(true);
  });

  it("writes and reads little for small edits of a 50 MB state", async () => {
    const { wrap, counted } = countingStore();
    const { store } = await makeStore(backend, { wrap });
    const state = large(50, 5);
    const workflow = await store.createWorkflow("w", { state });
    const counts = counted();

    const branch = await workflow.canonical();
    counts.reset();
    for (let i = 0; i < 20; i++) {
      await branch.update([
        { op: "set", path: "/notes/n", value: i + 1 },
        { op: "text-append", path: `/parts/${i}`, text: `added ${i}\n` },
      ]);
    }
    expect(counts.counts().calls.write).toBe(20);
    expect(counts.counts().bytesWritten).toBeLessThan(20 * 24 * 1024);
    expect(counts.counts().bytesRead).toBeLessThan(20 * 24 * 1024);

    // The same by whole values: compared with what the handle holds, not read again.
    const whole = await workflow.branch({ agent: "a", branch: "b" });
    const edited = structuredClone(await whole.state()) as typeof state;
    await whole.commit({ state: edited, allowEmpty: true });
    counts.reset();
    for (let i = 0; i < 3; i++) {
      edited.parts[i * 10] += "one more line\n";
      await whole.commit({ state: edited });
    }
    expect(counts.counts().calls.write).toBe(3);
    expect(counts.counts().bytesWritten).toBeLessThan(3 * 24 * 1024);
    expect(counts.counts().bytesRead).toBeLessThan(3 * 24 * 1024);
    expect((await workflow.stateAt("canonical", "/parts/7")) === `${state.parts[7]}added 7\n`).toBe(
      true,
    );
    expect(await workflow.stateAt("a/b", "/notes/n")).toBe(20);
  });

  it("refuses 600 MB with the size and the limit, before any write", async () => {
    const { wrap, counted } = countingStore();
    const { store } = await makeStore(backend, { wrap });
    const workflow = await store.createWorkflow("w", { state: { kept: true, list: [] } });
    const branch = await workflow.canonical();
    const one = "x".repeat(MB);
    const parts = new Array(600).fill(one);
    const limit = 512 * MB;
    const tooLarge = agstateError("LIMIT_EXCEEDED", { limit, atLeast: expect.any(Number) });
    counted().reset();
    const { head } = branch;
    await expect(branch.commit({ state: { parts } })).rejects.toThrow(tooLarge);
    await expect(branch.update([{ op: "set", path: "/parts", value: parts }])).rejects.toThrow(
      tooLarge,
    );
    await expect(branch.update([{ op: "append", path: "/list", values: parts }])).rejects.toThrow(
      agstateError("LIMIT_EXCEEDED", { limit }),
    );
    await expect(branch.commit({ step: { action: "read", record: parts } })).rejects.toThrow(
      tooLarge,
    );
    expect(counted().counts().calls.write).toBe(0);
    expect(branch.head.id).toBe(head.id);
    expect(await branch.state()).toEqual({ kept: true, list: [] });
    await branch.update([{ op: "set", path: "/kept", value: false }]);
  });
});

describe.each(BACKENDS)("the limit on the state's size, on %s (SER-10)", (backend) => {
  const limit = 10_000;

  async function begin(state: JsonValue) {
    const { store } = await makeStore(backend, { limits: { stateMaxBytes: limit } });
    const workflow = await store.createWorkflow("w", { state });
    return { store, workflow, branch: await workflow.canonical() };
  }

  it("counts bytes of UTF-8, and takes a state of just that size", async () => {
    const { branch, workflow } = await begin({});
    const text = "é".repeat((limit - '{"t":""}'.length) / 2);
    await branch.commit({ state: { t: text } });
    expect(Buffer.byteLength(JSON.stringify(await branch.state()))).toBe(limit);
    const before = await snapshot(workflow);
    await expect(branch.commit({ state: { t: `${text}x` } })).rejects.toThrow(
      agstateError("LIMIT_EXCEEDED", { limit }),
    );
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("is not passed by many appends to one text, each below it", async () => {
    const { branch, workflow } = await begin({ l: "" });
    const edits = async () => {
      for (let i = 0; i < 20; i++) {
        await branch.update([{ op: "text-append", path: "/l", text: "x".repeat(1500) }]);
      }
    };
    await expect(edits()).rejects.toThrow(agstateError("LIMIT_EXCEEDED", { limit }));
    const kept = await workflow.stateAt("canonical");
    expect(kept).toEqual({ l: "x".repeat(9000) });
    // What is kept can be written again.
    await branch.commit({ state: kept, message: "again" });
  });

  it.each([
    { op: "append", path: "/l", values: new Array(20).fill("x".repeat(1500)) },
    { op: "splice", path: "/l", index: 0, values: new Array(20).fill("x".repeat(1500)) },
  ] as const)("counts the values of one operation together: $op", async (operation) => {
    const { branch } = await begin({ l: [] });
    await expect(branch.update([operation])).rejects.toThrow(
      agstateError("LIMIT_EXCEEDED", { limit }),
    );
  });
});

describe("a small value that unfolds to a huge one (SER-10)", () => {
  it("is refused, and the process lives", () => {
    // Sixty arrays that each hold the one before twice. In a process of its own, which may run out of memory.
    const script = `
      import { openStore } from ${JSON.stringify(new URL("../../dist/index.js", import.meta.url).href)};
      const branch = await (await (await openStore("memory:")).createWorkflow("w")).canonical();
      let value = [];
      for (let i = 0; i < 60; i++) value = [value, value];
      const code = await branch.commit({ state: value }).then(() => "written", (e) => e.code);
      console.log(code, JSON.stringify(await branch.state()));
    `;
    const { stdout, status } = spawnSync(
      process.execPath,
      ["--max-old-space-size=512", "--input-type=module", "--eval", script],
      { encoding: "utf8" },
    );
    expect({ stdout, status }).toEqual({ stdout: "LIMIT_EXCEEDED {}\n", status: 0 });
  });
});

describe("limits given to openStore", () => {
  it.each([
    { stateMaxBytes: 0 },
    { stateMaxBytes: -1 },
    { stateMaxBytes: 1.5 },
    { messageMaxBytes: Number.NaN },
    { cacheMaxBytes: Number.POSITIVE_INFINITY },
    { busyTimeoutMs: "5" as unknown as number },
    { stateMaxByte: 5 } as never,
  ])("refuses %j, naming the limit", async (limits) => {
    const [limit] = Object.keys(limits);
    await expect(openStore("memory:", { limits })).rejects.toThrow(
      agstateError("INVALID_ARGUMENT", { limit }),
    );
  });

  it("holds messages to messageMaxBytes, in bytes", async () => {
    const { store } = await makeStore("memory", { limits: { messageMaxBytes: 101 } });
    const branch = await (await store.createWorkflow("w")).canonical();
    await expect(branch.commit({ message: "é".repeat(51) })).rejects.toThrow(
      agstateError("LIMIT_EXCEEDED", { field: "message", size: 102, limit: 101 }),
    );
    expect((await branch.commit({ message: "é".repeat(50) })).message).toBe("é".repeat(50));
    const usual = await makeStore("memory");
    const other = await (await usual.store.createWorkflow("w")).canonical();
    await expect(other.commit({ message: "x".repeat(MB + 1) })).rejects.toThrow(
      agstateError("LIMIT_EXCEEDED", { limit: MB }),
    );
    await other.commit({ message: "x".repeat(MB) });
  });

  it("leaves the defaults in place for limits that are undefined", async () => {
    const { store } = await makeStore("memory", {
      limits: { stateMaxBytes: undefined } as never,
    });
    await (await (await store.createWorkflow("w")).canonical()).commit({ state: { a: 1 } });
  });
});
