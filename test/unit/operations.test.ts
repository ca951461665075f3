import { describe, expect, it } from "vitest";
import type { JsonValue, StateOperation } from "../../src/index.js";
import { agstateError, BACKENDS, makeStore, snapshot } from "../support/stores.js";

const LONG = "line\n".repeat(1000);
const many = (n: number): JsonValue[] => Array.from({ length: n }, (_, i) => `element ${i}`);

/** Edits that do something: the state before, the operations, the state after. */
const EDITS: Record<string, [before: JsonValue, operations: StateOperation[], after: JsonValue]> = {
  "set a new key": [{}, [{ op: "set", path: "/a", value: 1 }], { a: 1 }],
  "set a key anew": [{ a: 1 }, [{ op: "set", path: "/a", value: [2] }], { a: [2] }],
  "set the empty key": [{}, [{ op: "set", path: "/", value: 1 }], { "": 1 }],
  "set an element": [[1, 2], [{ op: "set", path: "/1", value: null }], [1, null]],
  "set behind the end": [{ l: [1] }, [{ op: "set", path: "/l/-", value: 2 }], { l: [1, 2] }],
  "set the root": [{ a: 1 }, [{ op: "set", path: "", value: "all" }], "all"],
  "set within an element": [
    { l: many(500) },
    [
      { op: "set", path: "/l/250", value: { a: 1 } },
      { op: "set", path: "/l/250/b", value: 2 },
    ],
    { l: many(500).map((e, i) => (i === 250 ? { a: 1, b: 2 } : e)) },
  ],
  "the key - of an object": [{ o: {} }, [{ op: "set", path: "/o/-", value: 1 }], { o: { "-": 1 } }],
  "a number as a key": [{ o: { 0: "a" } }, [{ op: "delete", path: "/o/0" }], { o: {} }],
  "delete a key": [{ a: 1, b: 2 }, [{ op: "delete", path: "/a" }], { b: 2 }],
  "delete an element": [many(300), [{ op: "delete", path: "/0" }], many(300).slice(1)],
  "delete all but one": [
    { a: LONG, b: many(300), c: 1 },
    [
      { op: "delete", path: "/a" },
      { op: "delete", path: "/b" },
    ],
    { c: 1 },
  ],
  "append one": [{ l: [1] }, [{ op: "append", path: "/l", value: [2] }], { l: [1, [2]] }],
  "append many": [{ l: [1] }, [{ op: "append", path: "/l", values: [2, 3] }], { l: [1, 2, 3] }],
  "append none": [{ l: [1] }, [{ op: "append", path: "/l", values: [] }], { l: [1] }],
  "append makes the list": [{}, [{ op: "append", path: "/l", value: 1 }], { l: [1] }],
  "append to the root": [[], [{ op: "append", path: "", value: 1 }], [1]],
  "append to a long list": [
    many(999),
    [{ op: "append", path: "", value: "element 999" }],
    many(1000),
  ],
  "splice in": [[1, 4], [{ op: "splice", path: "", index: 1, values: [2, 3] }], [1, 2, 3, 4]],
  "splice out": [
    many(500),
    [{ op: "splice", path: "", index: 0, deleteCount: 499 }],
    ["element 499"],
  ],
  "splice everything out": [
    { l: many(500) },
    [{ op: "splice", path: "/l", index: 0, deleteCount: 500 }],
    { l: [] },
  ],
  "splice at the end": [[1], [{ op: "splice", path: "", index: 1, values: [2] }], [1, 2]],
  "text-append": [{ t: "a" }, [{ op: "text-append", path: "/t", text: "b" }], { t: "ab" }],
  "text-append makes the text": [{}, [{ op: "text-append", path: "/t", text: "b" }], { t: "b" }],
  "text-append to a long text": [
    { t: LONG },
    [{ op: "text-append", path: "/t", text: "end" }],
    { t: `${LONG}end` },
  ],
  "text-append to an element": [["a"], [{ op: "text-append", path: "/0", text: "b" }], ["ab"]],
  "one after another": [
    {},
    [
      { op: "set", path: "/a", value: {} },
      { op: "append", path: "/a/l", value: 1 },
      { op: "append", path: "/a/l", value: 2 },
      { op: "delete", path: "/a/l/0" },
      { op: "text-append", path: "/a/t", text: "x" },
    ],
    { a: { l: [2], t: "x" } },
  ],
};

/** Edits that cannot be made of {@link BASE}. */
const BASE: JsonValue = {
  o: { k: 1 },
  l: [1, 2],
  t: "text",
  n: null,
  longs: many(300),
  longt: LONG,
};
const REFUSED: [
  operation: StateOperation,
  code: "PATH_NOT_FOUND" | "INVALID_ARGUMENT" | "INVALID_PATH",
][] = [
  [{ op: "set", path: "/x/y", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/l/2", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/l/00", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/l/-/x", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/l/x", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/t/0", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/longt/0", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/longs/300", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "/n/x", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "set", path: "x", value: 1 }, "INVALID_PATH"],
  [{ op: "set", path: "/~", value: 1 }, "INVALID_PATH"],
  [{ op: "set", path: undefined as never, value: 1 }, "INVALID_PATH"],
  [{ op: "delete", path: "/x" }, "PATH_NOT_FOUND"],
  [{ op: "delete", path: "/l/2" }, "PATH_NOT_FOUND"],
  [{ op: "delete", path: "/l/-" }, "PATH_NOT_FOUND"],
  [{ op: "delete", path: "/n/x" }, "PATH_NOT_FOUND"],
  [{ op: "append", path: "/o", value: 1 }, "INVALID_ARGUMENT"],
  [{ op: "append", path: "/t", value: 1 }, "INVALID_ARGUMENT"],
  [{ op: "append", path: "/n", value: 1 }, "INVALID_ARGUMENT"],
  [{ op: "append", path: "/l", values: 1 as never }, "INVALID_ARGUMENT"],
  [{ op: "append", path: "/l/-", value: 1 }, "PATH_NOT_FOUND"],
  [{ op: "splice", path: "/x", index: 0 }, "PATH_NOT_FOUND"],
  [{ op: "splice", path: "/o", index: 0 }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/l", index: 3 }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/l", index: -1 }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/l", index: 0.5 }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/l", index: Number.NaN }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/l", index: 1, deleteCount: 2 }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/longs", index: 299, deleteCount: 2 }, "INVALID_ARGUMENT"],
  [{ op: "splice", path: "/l", index: 0, deleteCount: -1 }, "INVALID_ARGUMENT"],
  [{ op: "text-append", path: "/l", text: "x" }, "INVALID_ARGUMENT"],
  [{ op: "text-append", path: "/n", text: "x" }, "INVALID_ARGUMENT"],
  [{ op: "text-append", path: "/t", text: 5 as never }, "INVALID_ARGUMENT"],
  [{ op: "rename", path: "/t" } as never, "INVALID_ARGUMENT"],
  [undefined as never, "INVALID_ARGUMENT"],
];

describe.each(BACKENDS)("edits by path, on %s", (backend) => {
  it("do what they say, and give the id that the same value has when given whole", async () => {
    const { store } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    for (const [name, [before, operations, after]] of Object.entries(EDITS)) {
      const workflow = await store.createWorkflow(name, { state: before });
      const branch = await workflow.canonical();
      await branch.update(operations);
      expect(await branch.state(), name).toEqual(after);
      const edited = (await workflow.internals.commitAt("canonical")).root.state;
      const whole = await workflow.branch({ agent: "a", branch: "whole" });
      await whole.commit({ state: after, allowEmpty: true });
      expect((await workflow.internals.commitAt("a/whole")).root.state?.id, name).toBe(edited?.id);
      expect((await workflow.fsck()).problems, name).toEqual([]);
    }
  });

  it("are refused with the reason, and leave all as it was", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: BASE });
    const branch = await workflow.canonical();
    const before = await snapshot(workflow);
    for (const [operation, code] of REFUSED) {
      const label = JSON.stringify(operation);
      await expect(branch.update([operation]), label).rejects.toThrow(agstateError(code));
      await expect(
        branch.update([{ op: "set", path: "/o/k", value: 2 }, operation]),
        label,
      ).rejects.toThrow(agstateError(code));
    }
    expect(await snapshot(workflow)).toEqual(before);
    expect(await branch.state()).toEqual(BASE);
  });

  it("name the path that is missing", async () => {
    const { store } = await makeStore(backend);
    const branch = await (await store.createWorkflow("w", { state: BASE })).canonical();
    await expect(branch.update([{ op: "set", path: "/o/x~1y/z/w", value: 1 }])).rejects.toThrow(
      agstateError("PATH_NOT_FOUND", { path: "/o/x~1y/z/w", missing: "/o/x~1y", op: "set" }),
    );
  });
});
