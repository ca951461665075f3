import { isDeepStrictEqual } from "node:util";
import * as messages from "@langchain/core/messages";
import {
  type Checkpoint,
  emptyCheckpoint,
  JsonPlusSerializer,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { AgstateSaver } from "../../src/langgraph/saver.js";
import { toStored } from "../../src/langgraph/values.js";
import { normalize } from "../../src/objects/normalize.js";
import { openStore, type Store } from "../../src/store.js";
import { jsonValues } from "../support/json.js";
import { usually } from "../support/runs.js";

const { AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage } = messages;
const serde = new JsonPlusSerializer();
/** Writes the same, but is not LangGraph's own as it is: of what goes through it nothing is remembered. */
const forgetful = new (class extends JsonPlusSerializer {
  override async dumpsTyped(value: unknown) {
    return super.dumpsTyped(value);
  }
})();

type Fields = Record<string, unknown>;

class Note extends HumanMessage {
  override get lc_attributes() {
    return { note: this.name ?? "none" };
  }
}

class Plain {
  constructor(readonly member: unknown) {}
}

const LIMITS = { maxBytes: 1e9 };

/** A message with fields that its type does not know. */
function human(fields: object): messages.HumanMessage {
  return new HumanMessage(fields as messages.HumanMessageFields);
}

/** What is stored of a value, or the code of the error. */
async function outcome(
  through: JsonPlusSerializer,
  value: unknown,
  previous?: JsonValue,
): Promise<{ stored?: JsonValue; error?: unknown }> {
  try {
    const stored = normalize(await toStored(through, value, []), { ...LIMITS, previous });
    return { stored: through === forgetful ? inForms(stored) : stored };
  } catch (error) {
    const { code, name } = error as { code?: string; name: string };
    return { error: code ?? name };
  }
}

const EMPTY: Record<string, unknown> = {
  additional_kwargs: {},
  response_metadata: {},
  tool_calls: [],
  invalid_tool_calls: [],
};
const FORMS: Record<string, string[]> = {
  AIMessage: Object.keys(EMPTY),
  ...Object.fromEntries(
    ["Chat", "Function", "Human", "System", "Tool"].map((name) => [
      `${name}Message`,
      ["additional_kwargs", "response_metadata"],
    ]),
  ),
};

/** Puts messages that stand as the serializer wrote them into the form in which LangGraph's own are stored. */
function inForms(stored: JsonValue): JsonValue {
  if (typeof stored !== "object" || stored === null) return stored;
  if (Array.isArray(stored)) return stored.map(inForms);
  const { $agstate: tag } = stored as { $agstate?: JsonValue[] };
  if (tag?.[0] === "serde" && tag[1] === "json") {
    const { id, kwargs } = tag[2] as { id?: unknown; kwargs?: Fields };
    const [home, kind, name = "", ...more] = (Array.isArray(id) ? id : []) as string[];
    const empties = FORMS[name] ?? [];
    const whole = empties.length > 0 && empties.every((field) => kwargs && field in kwargs);
    if (!whole || more.length > 0 || home !== "langchain_core" || kind !== "messages")
      return stored;
    const isLeftOut = ([field, value]: [string, unknown]) =>
      empties.includes(field) && isDeepStrictEqual(value, EMPTY[field]);
    const left = Object.entries(kwargs as Fields).filter((entry) => !isLeftOut(entry));
    if ("$agstate" in (kwargs as Fields)) return stored;
    return { $agstate: name, ...Object.fromEntries(left) } as JsonValue;
  }
  return Object.fromEntries(Object.entries(stored).map(([key, each]) => [key, inForms(each)]));
}

const json = jsonValues({ maxDepth: 3, noUnicodeString: false });
/** What JSON does not hold, or the serializer writes in another way. */
const odd = fc.constantFrom<() => unknown>(
  () => undefined,
  () => Number.NaN,
  () => -0,
  () => 1n,
  () => "half \ud800",
  () => new Date(0),
  () => new Map([["a", { b: 1 }]]),
  () => new Set([1]),
  () => /x/g,
  () => new Uint8Array([1, 2]),
  () => new Plain(1),
  () => () => 1,
  () => Object.assign(new Array(3), { 2: 1 }),
  () => ({ lc: 1, type: "secret", id: ["A"] }),
  () => ({ lc: 2, type: "undefined" }),
  () => ({ __lc_escaped__: { a: 1 } }),
  () => ({ lg_name: "Send", node: "a", args: {} }),
  () => ({ toJSON: () => "other" }),
  () => new HumanMessage("inner"),
  () => Object.create(null, { a: { value: 1, enumerable: true } }),
  () => Object.create({ inherited: 1 }),
);
const value: fc.Arbitrary<() => unknown> = fc.oneof(
  { weight: 4, arbitrary: json.map((given) => () => structuredClone(given)) },
  { weight: 1, arbitrary: odd },
);

const key = fc.constantFrom(
  "content",
  "id",
  "name",
  "additional_kwargs",
  "response_metadata",
  "tool_calls",
  "invalid_tool_calls",
  "usage_metadata",
  "artifact",
  "status",
  "tool_call_id",
  "camelCase",
  "__proto__",
  "contentBlocks",
  "lc",
);

const create: fc.Arbitrary<() => object> = fc.oneof(
  fc.constantFrom<() => object>(
    () => new HumanMessage("hello"),
    () => new HumanMessage({ content: [{ type: "text", text: "hello" }], id: "1", name: "user" }),
    () =>
      new AIMessage({
        content: "done",
        id: "2",
        tool_calls: [
          { name: "look_up", args: { deep: [{ a: null }] }, id: "c", type: "tool_call" },
        ],
        response_metadata: { model_name: "m", usage: { tokens: 1 } },
      }),
    () =>
      new AIMessageChunk({
        content: "",
        tool_call_chunks: [{ name: "look_up", args: '{"order":7}', id: "c", index: 0 }],
      }),
    () => new ToolMessage({ content: "found", tool_call_id: "c", artifact: { rows: [1, 2] } }),
    () => new RemoveMessage({ id: "1" }),
    () => human({ content: "x", custom: { a: 1 } }),
    () => new Note("noted"),
  ),
  fc
    .record({ additional_kwargs: fc.dictionary(fc.string(), value, { maxKeys: 3 }) })
    .map(({ additional_kwargs: given }) => () => {
      const made = Object.entries(given).map(([name, make]) => [name, make()]);
      return new HumanMessage({ content: "x", additional_kwargs: Object.fromEntries(made) });
    }),
);

/** Ways to change a message in place; each takes what it may use. */
type Change = (message: Fields, use: { key: string; value: unknown; pick: number }) => void;

/** All plain objects and lists that a message is made of. */
function inside(message: object): object[] {
  const found = new Set<object>();
  const walk = (at: unknown) => {
    if (typeof at !== "object" || at === null || found.has(at)) return;
    const prototype = Object.getPrototypeOf(at);
    if (at !== message && prototype !== Object.prototype && !Array.isArray(at)) return;
    found.add(at);
    for (const member of Object.values(at)) walk(member);
  };
  walk(message);
  found.delete(message);
  return [...found];
}

function define(object: object, name: string, member: unknown, enumerable = false): void {
  Object.defineProperty(object, name, {
    value: member,
    enumerable,
    writable: true,
    configurable: true,
  });
}

const HIDDEN = ["toJSON", "lc", "lc_serializable", "__lc_escaped__", "lg_name"];
const OWN = ["toJSON", "lc_id", "constructor", "lc_namespace", "lc_serializable", "lc_attributes"];

const CHANGES: Record<string, Change> = {
  nothing: () => {},
  field: (message, use) => define(message, use.key, use.value, true),
  fieldGiven: (message, use) => {
    define(message, use.key, use.value, true);
    define(message.lc_kwargs as object, use.key, use.value, true);
  },
  given: (message, use) => define(message.lc_kwargs as object, use.key, use.value, true),
  notGiven: (message, use) => {
    delete (message.lc_kwargs as Fields)[use.key];
  },
  gone: (message, use) => {
    delete message[use.key];
  },
  allGiven: (message, use) => {
    message.lc_kwargs = use.value;
  },
  appended: (message, use) => {
    message.content = `${String(message.content)}${use.key}`;
  },
  nested: (message, use) => {
    const parts = inside(message);
    const part = parts[use.pick % parts.length];
    if (Array.isArray(part)) part.push(use.value);
    else if (part !== undefined) define(part, use.key, use.value, true);
  },
  nestedGone: (message, use) => {
    const parts = inside(message);
    const part = parts[use.pick % parts.length] as Fields | undefined;
    if (Array.isArray(part)) part.pop();
    else if (part !== undefined) delete part[Object.keys(part)[0] ?? ""];
  },
  nestedReplaced: (message, use) => {
    const parts = inside(message);
    const part = parts[use.pick % parts.length] as Fields | undefined;
    const name = part && Object.keys(part)[use.pick % 3];
    if (part !== undefined && name !== undefined) part[name] = use.value;
  },
  nestedHidden: (message, use) => {
    const parts = inside(message);
    const part = parts[use.pick % parts.length];
    const name = HIDDEN[use.pick % HIDDEN.length] as string;
    if (part !== undefined) define(part, name, name === "toJSON" ? () => "hidden" : true);
  },
  nestedConcealed: (message, use) => {
    const parts = inside(message);
    const part = parts[use.pick % parts.length];
    const name = part && Object.keys(part)[0];
    if (name !== undefined && !Array.isArray(part))
      define(part as object, name, (part as Fields)[name]);
  },
  nestedClass: (message, use) => {
    const parts = inside(message);
    const part = parts[use.pick % parts.length];
    if (part !== undefined && !Array.isArray(part)) Object.setPrototypeOf(part, Plain.prototype);
  },
  nestedGetter: (message, use) => {
    const get = () => use.value;
    const target = message.additional_kwargs;
    if (typeof target === "object" && target !== null)
      Object.defineProperty(target, use.key, { get, enumerable: true, configurable: true });
  },
  own: (message, use) => {
    const name = OWN[use.pick % OWN.length] as string;
    const members: Fields = {
      toJSON: () => ({ other: use.key }),
      lc_id: ["other", use.key],
      constructor: messages.SystemMessage,
      lc_namespace: use.pick % 5 === 0 ? 7 : ["other"],
      lc_serializable: use.pick % 4 === 0,
      lc_attributes: { other: use.key },
    };
    define(message, name, members[name], use.pick % 4 === 1);
  },
  class: (message, use) => {
    const classes = [AIMessage, messages.SystemMessage, Note, Plain, HumanMessage];
    const next = classes[use.pick % classes.length] as { prototype: object };
    Object.setPrototypeOf(message, next.prototype);
  },
  cycle: (message) => {
    const target = message.additional_kwargs;
    if (typeof target === "object" && target !== null) (target as Fields).self = message;
  },
  tangled: (message) => {
    const knot: Fields = {};
    knot.knot = knot;
    message.content = [knot];
  },
};

const change = fc.record({
  at: fc.nat(),
  how: fc.constantFrom(...Object.keys(CHANGES)),
  key,
  value,
  pick: fc.nat(1000),
});

const round = fc.record({
  changes: fc.array(change, { maxLength: 2 }),
  added: fc.option(create, { nil: undefined }),
  removed: fc.option(fc.nat(), { nil: undefined, freq: 6 }),
});

/** Plays rounds on a list of messages, and calls after each of them. */
async function play(
  rounds: readonly (typeof round extends fc.Arbitrary<infer Round> ? Round : never)[],
  after: (list: readonly object[]) => Promise<void>,
): Promise<void> {
  const list: object[] = [new HumanMessage({ content: "first", id: "0" })];
  await after(list);
  for (const { changes, added, removed } of rounds) {
    for (const { at, how, key: name, value: make, pick } of changes) {
      const message = list[at % list.length] as Fields;
      try {
        (CHANGES[how] as Change)(message, { key: name, value: make(), pick });
      } catch {
        // Some cannot be done to some messages any more.
      }
    }
    if (added !== undefined) list.push(added());
    if (removed !== undefined && list.length > 1) list.splice(removed % list.length, 1);
    await after(list);
  }
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("messages that were stored before", () => {
  it("are stored as if each were serialized anew, however they were changed in place", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 8 }), async (rounds) => {
        let previous: JsonValue | undefined;
        await play(rounds, async (list) => {
          const expected = await outcome(forgetful, list);
          const ours = await outcome(serde, list, previous);
          expect(ours).toStrictEqual(expected);
          previous = ours.stored ?? previous;
        });
      }),
      { numRuns: usually(1500, 50_000) },
    );
  });

  it("come back from a store as if each were serialized anew", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 4 }), async (rounds) => {
        const [ours, theirs] = [await openStore("memory:"), await openStore("memory:")];
        const savers = [new AgstateSaver(ours), new AgstateSaver(theirs)] as const;
        savers[1].serde = forgetful;
        const configs: [object, object] = [
          { configurable: { thread_id: "t", checkpoint_ns: "" } },
          { configurable: { thread_id: "t", checkpoint_ns: "" } },
        ];
        let step = 0;
        await play(rounds, async (list) => {
          const checkpoint: Checkpoint = {
            ...emptyCheckpoint(),
            id: `checkpoint-${String(++step).padStart(3, "0")}`,
            channel_values: { messages: list },
            channel_versions: { messages: step },
          };
          const read = await Promise.all(
            savers.map(async (saver, i) => {
              try {
                configs[i] = await saver.put(
                  configs[i] as object,
                  checkpoint,
                  { source: "loop", step, parents: {} },
                  { messages: step },
                );
                await saver.putWrites(configs[i] as object, [["messages", list.at(-1)]], "task");
                // By another one, which has nothing at hand.
                const reader = new AgstateSaver([ours, theirs][i] as Store);
                reader.serde = saver.serde;
                const tuple = await reader.getTuple(configs[i] as object);
                return [tuple?.checkpoint.channel_values, tuple?.pendingWrites];
              } catch (error) {
                return (error as { code?: string }).code ?? (error as Error).name;
              }
            }),
          );
          expect(read[0]).toStrictEqual(read[1]);
        });
        await Promise.all([ours.close(), theirs.close()]);
      }),
      { numRuns: usually(100, 2000) },
    );
  });

  const usual = () => [
    new HumanMessage({ content: [{ type: "text", text: "hello" }], id: "1" }),
    human({ content: "hello", name: undefined }),
    new AIMessage({
      content: "done",
      tool_calls: [{ name: "look_up", args: { deep: [{ a: null }] }, id: "c", type: "tool_call" }],
      usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    } as object as messages.AIMessageFields),
    new AIMessageChunk({
      content: "",
      tool_call_chunks: [{ name: "look_up", args: '{"order":7}', id: "c", index: 0 }],
    }),
    new ToolMessage({ content: "found", tool_call_id: "c", artifact: { rows: [1, undefined] } }),
    new messages.SystemMessage("be brief"),
    new messages.ChatMessage({ content: "as somebody", role: "critic" }),
  ];

  it("do not go through the serializer again, and are the very objects of before", async () => {
    const given = usual();
    const expected = await outcome(forgetful, given);
    const first = (await outcome(serde, given)).stored as JsonValue[];
    expect(first).toStrictEqual(expected.stored);
    const dumps = vi.spyOn(JsonPlusSerializer.prototype, "dumpsTyped");
    // Of those classes it was seen, so that it is not needed for another one either.
    const list = [...given, new HumanMessage({ content: "next", id: "2" })];
    const second = (await outcome(serde, list, first)).stored as JsonValue[];
    for (const [i, stored] of first.entries()) expect(second[i]).toBe(stored);
    // As of a state that was read again: equal, but other objects.
    const reread = structuredClone(second);
    const third = (await outcome(serde, list, reread)).stored;
    expect(third).toBe(reread);
    expect((await outcome(serde, list, third)).stored).toBe(third);
    expect(await outcome(serde, usual())).toStrictEqual(expected);
    expect(dumps).not.toHaveBeenCalled();
  });

  it("go through any other serializer each time", async () => {
    const message = new HumanMessage({ content: "hello", additional_kwargs: { a: [1] } });
    const before = await outcome(serde, [message]);
    const sealing = new (class extends JsonPlusSerializer {
      override async dumpsTyped(given: unknown): Promise<[string, Uint8Array]> {
        const [type, data] = await super.dumpsTyped(given);
        return [`sealed-${type}`, data.map((byte) => byte ^ 1)];
      }
    })();
    const [, data] = await sealing.dumpsTyped(message);
    const sealed = { $agstate: ["serde", "sealed-json", Buffer.from(data).toString("base64")] };
    for (let i = 0; i < 2; i++) {
      expect((await outcome(sealing, [message])).stored).toEqual([sealed]);
      expect(await outcome(serde, [message])).toStrictEqual(before);
    }
    expect((await outcome(sealing, [new HumanMessage("new")])).stored).not.toEqual(
      (await outcome(serde, [new HumanMessage("new")])).stored,
    );
  });

  it("hold nothing of what all objects inherit", async () => {
    const made = () => new HumanMessage({ content: "hello", additional_kwargs: { a: {} } });
    const bare = made();
    Object.setPrototypeOf(bare.lc_kwargs, null);
    const given = [made(), made(), bare];
    const before = await outcome(serde, given.slice(0, 1));
    let stored: unknown;
    define(Object.prototype, "everywhere", 1, true);
    try {
      stored = await toStored(serde, given, []);
    } finally {
      Reflect.deleteProperty(Object.prototype, "everywhere");
    }
    const [one] = before.stored as JsonValue[];
    expect(JSON.parse(JSON.stringify(stored))).toEqual([one, one, one]);
  });

  it("go through the serializer until it was seen to write such fields as they are", async () => {
    const dumps = vi.spyOn(JsonPlusSerializer.prototype, "dumpsTyped");
    const calls = async (name: string) => {
      dumps.mockClear();
      const message = Object.assign(human({ content: "x", [name]: 1 }), { [name]: 1 });
      const { stored } = await outcome(serde, [message]);
      const times = dumps.mock.calls.length;
      expect(stored).toStrictEqual((await outcome(forgetful, [message])).stored);
      return times;
    };
    expect([await calls("unseen"), await calls("unseen")]).toEqual([1, 0]);
    expect([await calls("otherName"), await calls("otherName")]).toEqual([1, 1]);
  });

  const block = { type: "text", text: "hello" };
  it.each<[string, object, (message: Fields) => void]>([
    [
      "is not to be serialized any more",
      human({ content: "x" }),
      (message) => {
        message.lc_serializable = false;
      },
    ],
    [
      "was given a list",
      Object.assign(human({ content: "x" }), { lc_kwargs: {} }),
      (message) => {
        message.lc_kwargs = [];
      },
    ],
    [
      "was given a field that it does not have",
      human({ content: "x", custom: undefined }),
      ({ lc_kwargs: given }) => {
        (given as Fields).custom = 2;
      },
    ],
    [
      "has a list of another class",
      human({ content: [block] }),
      ({ content }) => {
        class Other extends Array {
          toJSON() {
            return "other";
          }
        }
        Object.setPrototypeOf(content, Other.prototype);
      },
    ],
    [
      "has something within that serializes itself",
      human({ content: "x", additional_kwargs: { inner: { a: 1 } } }),
      ({ additional_kwargs: given }) => {
        const { inner } = given as Fields;
        define(inner as object, "toJSON", () => "other");
        define(inner as object, "lc_serializable", true);
      },
    ],
    [
      "has something undefined",
      human({ content: [{ ...block }] }),
      ({ content }) => {
        ((content as Fields[])[0] as Fields).text = undefined;
      },
    ],
    [
      "has a hole",
      human({ content: [{ ...block }, { ...block }] }),
      ({ content }) => {
        delete (content as Fields[])[0];
      },
    ],
  ])("go again when a message %s now", async (_, message, act) => {
    const before = await outcome(serde, [message]);
    expect(await outcome(serde, [message], before.stored)).toStrictEqual(before);
    act(message as Fields);
    const after = await outcome(forgetful, [message]);
    expect(after).not.toEqual(before);
    expect(await outcome(serde, [message], before.stored)).toStrictEqual(after);
  });

  it("go again when anything is unlike what messages usually are", async () => {
    const dumps = vi.spyOn(JsonPlusSerializer.prototype, "dumpsTyped");
    for (const unusual of [
      new Note("by a class of somebody else's"),
      new HumanMessage({ content: "x", additional_kwargs: { at: new Date(0) } }),
      human({ content: "x", camelCase: 1 }),
    ]) {
      dumps.mockClear();
      const first = await outcome(serde, [unusual]);
      expect(await outcome(serde, [unusual])).toStrictEqual(first);
      expect(dumps).toHaveBeenCalledTimes(2);
    }
  });
});
