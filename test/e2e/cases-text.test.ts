import { describe, expect, it } from "vitest";
import type { Store, Workflow } from "../../src/index.js";
import { agstateError, BACKENDS, makeStore, snapshot } from "../support/stores.js";

/** What UTF-8, or one line of text, cannot hold. */
const LONE = { high: "\ud83d", low: "\ude00", reversed: "\ude00\ud83d" };

/** Every text that a caller may give beside the state; each call puts `bad` into one of them. */
const TEXT_FIELDS: Record<string, (wf: Workflow, store: Store, bad: string) => Promise<unknown>> = {
  "workflow id": (_, store, bad) => store.createWorkflow(bad),
  "workflow author": (_, store, bad) => store.createWorkflow("other", { author: bad }),
  "workflow to open": (_, store, bad) => store.workflow(bad),
  agent: (wf, _, bad) => wf.branch({ agent: bad, branch: "b" }),
  branch: (wf, _, bad) => wf.branch({ agent: "a", branch: bad }),
  "branch to open": (wf, _, bad) => wf.branch(`a/${bad}`),
  "branch to delete": (wf, _, bad) => wf.deleteBranch(`a/${bad}`),
  "author of a handle": (wf, _, bad) => wf.branch({ agent: "a", branch: "b", author: bad }),
  "author of canonical": (wf, _, bad) => wf.canonical({ author: bad }),
  tag: (wf, _, bad) => wf.tag(bad, "canonical"),
  "actor of a tag": (wf, _, bad) => wf.tag("t", "canonical", { actor: bad }),
  "reason of a tag": (wf, _, bad) => wf.tag("t", "canonical", { reason: bad }),
  "tag to delete": (wf, _, bad) => wf.deleteTag(bad),
  "reason of a deletion": (wf, _, bad) => wf.deleteBranch("a/x", { reason: bad }),
  "commit message": async (wf, _, bad) =>
    (await wf.canonical()).commit({ state: { n: 1 }, message: bad }),
  "commit author": async (wf, _, bad) =>
    (await wf.canonical()).commit({ state: { n: 1 }, author: bad }),
  "commit reason": async (wf, _, bad) =>
    (await wf.canonical()).commit({ state: { n: 1 }, reason: bad }),
  "commit external id": async (wf, _, bad) =>
    (await wf.canonical()).commit({ state: { n: 1 }, externalId: bad }),
  "commit trace": async (wf, _, bad) =>
    (await wf.canonical()).commit({ state: { n: 1 }, trace: bad }),
  "update message": async (wf, _, bad) =>
    (await wf.canonical()).update([{ op: "set", path: "/n", value: 1 }], { message: bad }),
};

/** The fields of {@link TEXT_FIELDS} that may have several lines. */
const MANY_LINES = ["commit message", "update message"];

describe.each(BACKENDS)("texts beside the state, on %s (SER-01, SER-05)", (backend) => {
  async function begin() {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    await workflow.branch({ agent: "a", branch: "x" });
    return { store, workflow };
  }

  it.each(Object.keys(TEXT_FIELDS))("refuses what is no text in: %s", async (field) => {
    const { store, workflow } = await begin();
    const before = await snapshot(workflow);
    const call = TEXT_FIELDS[field]!;
    const breaks = MANY_LINES.includes(field) ? [] : ["two\nlines", "two\rlines"];
    for (const bad of ["a\0b", "\0", ...breaks, ...Object.values(LONE).map((s) => `a${s}b`)]) {
      await expect(call(workflow, store, bad), JSON.stringify(bad)).rejects.toMatchObject({
        name: "AgstateError",
        code: expect.stringMatching(/^INVALID_(VALUE|NAME)$/),
        details: { field: expect.any(String) },
      });
    }
    expect(await snapshot(workflow)).toEqual(before);
    await expect(store.workflow("other")).rejects.toThrow(agstateError("WORKFLOW_NOT_FOUND"));
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("keeps other texts exactly, in whatever script", async () => {
    const { workflow } = await begin();
    const message = " one\n\ntwo \\u0000 😀\n\n";
    const branch = await workflow.branch({ agent: "агент", branch: "😀", author: "O'Née \\u0000" });
    const options = { externalId: 'run "7" \\u0000', trace: "00-a-b-01", reason: "weil 𝒟" };
    const { id } = await branch.commit({ state: { n: 1 }, message, ...options });
    expect(await workflow.commitAt(id)).toMatchObject({
      message,
      author: "O'Née \\u0000",
      externalId: options.externalId,
      trace: options.trace,
    });
    expect((await branch.reflog({ limit: 1 }))[0]).toMatchObject({
      actor: "O'Née \\u0000",
      reason: options.reason,
      trace: options.trace,
    });
    expect((await workflow.findExternal(options.externalId)).map((c) => c.id)).toEqual([id]);
    expect((await workflow.fsck()).problems).toEqual([]);
  });
});

const TEXTS = {
  nul: "a\u0000b",
  "nothing but nul": "\u0000",
  "the six characters of an escape": "a\\u0000b",
  "every control character": String.fromCharCode(...Array(32).keys(), 127, 128, 159),
  "line separators": "\u2028\u2029\u0085\r\n",
  "a byte order mark": "\ufeffx",
  "not normalised": "e\u0301 é",
  "beyond the first plane": "😀𝒟\u{10ffff}",
};

describe.each(BACKENDS)("strings and keys in the state, on %s (SER-01)", (backend) => {
  it.each(Object.entries(TEXTS))("round-trips, with one id everywhere: %s", async (_, text) => {
    const { store, another } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.canonical();
    // As a value, as a key, in a blob, in a text's tree, in an object's tree, in a step.
    const state = {
      note: text,
      [text]: [text],
      long: `${text}\n`.repeat(2000),
      wide: { [text]: "x".repeat(3000) },
    };
    const { id } = await branch.commit({
      state,
      step: { action: "read", record: { [text]: text, output: text.repeat(1500) } },
    });

    const reader = await (await another()).workflow("w");
    expect(await reader.stateAt(id)).toEqual(state);
    expect(await reader.stepRecord(id)).toEqual({ [text]: text, output: text.repeat(1500) });

    const other = await store.createWorkflow("w2");
    const byEdits = await other.canonical();
    for (const [key, value] of Object.entries(state).reverse()) {
      const token = key.replaceAll("~", "~0").replaceAll("/", "~1");
      await byEdits.update([{ op: "set", path: `/${token}`, value }]);
    }
    const [parts, ownParts] = await Promise.all(
      [other, reader].map(async (wf) => (await wf.internals.commitAt("canonical")).root.state?.id),
    );
    expect(parts).toBe(ownParts);
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("has the same id on every backend", async () => {
    const ids = [];
    for (const one of ["memory", ...BACKENDS] as const) {
      const { store } = await makeStore(one);
      const workflow = await store.createWorkflow("w", { state: TEXTS });
      ids.push((await workflow.internals.commitAt("canonical")).root.state?.id);
    }
    expect(new Set(ids).size).toBe(1);
  });
});

describe.each(BACKENDS)("halves of characters in the state, on %s (SER-05)", (backend) => {
  const cut = "a token limit cut this 😀".slice(0, -1);

  async function refused(write: (wf: Workflow) => Promise<unknown>, path: string) {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { list: [1], text: "t", o: {} } });
    const before = await snapshot(workflow);
    await expect(write(workflow), path).rejects.toThrow(agstateError("INVALID_VALUE", { path }));
    expect(await snapshot(workflow)).toEqual(before);
    expect(await workflow.stateAt("canonical")).toEqual({ list: [1], text: "t", o: {} });
  }

  it.each([...Object.values(LONE), cut])("refuses the value %j, naming its path", async (bad) => {
    await refused(async (wf) => (await wf.canonical()).commit({ state: { a: [0, bad] } }), "/a/1");
    await refused(
      async (wf) => (await wf.canonical()).update([{ op: "set", path: "/o/x", value: [bad] }]),
      "/o/x/0",
    );
    await refused(
      async (wf) => (await wf.canonical()).update([{ op: "append", path: "/list", value: bad }]),
      "/list/-",
    );
    await refused(
      async (wf) =>
        (await wf.canonical()).update([{ op: "text-append", path: "/text", text: bad }]),
      "/text",
    );
  });

  it.each([...Object.values(LONE), cut])("refuses the key %j in a value", async (bad) => {
    await refused(
      async (wf) => (await wf.canonical()).commit({ state: { a: { [bad]: 1 } } }),
      "/a",
    );
    await refused(
      async (wf) => (await wf.canonical()).update([{ op: "set", path: "/o", value: { [bad]: 1 } }]),
      "/o",
    );
  });

  it.each([
    { op: "set", path: "/o/\ud83d", value: 1 },
    { op: "set", path: "/\ude00/x", value: 1 },
    { op: "append", path: "/o/\ude00\ud83d", value: 1 },
    { op: "text-append", path: "/o/\udc00", text: "x" },
  ] as const)("refuses it as the key that an update makes: %j", async (operation) => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { o: {} } });
    const before = await snapshot(workflow);
    await expect((await workflow.canonical()).update([operation])).rejects.toMatchObject({
      name: "AgstateError",
      code: expect.stringMatching(/^INVALID_(VALUE|PATH)$|^PATH_NOT_FOUND$/),
    });
    expect(await snapshot(workflow)).toEqual(before);
  });

  it("never lets two keys become one", async () => {
    const { store } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const workflow = await store.createWorkflow("w", { state: { big: "x".repeat(3000) } });
    const branch = await workflow.canonical();
    const keys = ["\udc00", "\udc01", "\ufffd"];
    const kept: string[] = [];
    for (const key of keys) {
      const done = await branch
        .update([{ op: "set", path: `/${key}`, value: key.charCodeAt(0) }])
        .then(
          () => true,
          () => false,
        );
      if (done) kept.push(key);
    }
    const state = (await workflow.stateAt("canonical")) as Record<string, unknown>;
    expect(Object.keys(state).sort()).toEqual(["big", ...kept].sort());
    for (const key of kept) expect(state[key]).toBe(key.charCodeAt(0));
  });
});
