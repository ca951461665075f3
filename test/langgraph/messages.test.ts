import { isDeepStrictEqual } from "node:util";
import * as messages from "@langchain/core/messages";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { messageForm, messagePayload } from "../../src/langgraph/message-form.js";
import { isStandard, restoreMessage } from "../../src/langgraph/messages.js";
import { jsonValues } from "../support/json.js";
import { usually } from "../support/runs.js";

const serde = new JsonPlusSerializer();

async function written(message: object): Promise<JsonValue> {
  const [, data] = await serde.dumpsTyped(message);
  return JSON.parse(new TextDecoder().decode(data)) as JsonValue;
}

async function restored(payload: JsonValue): Promise<object> {
  return serde.loadsTyped("json", JSON.stringify(payload));
}

/** What both make of it must be the same to anybody who looks: class, own keys and their order, values. */
function expectSame(ours: object, theirs: object) {
  expect(Object.getPrototypeOf(ours)).toBe(Object.getPrototypeOf(theirs));
  expect(Reflect.ownKeys(ours)).toEqual(Reflect.ownKeys(theirs));
  expect(isDeepStrictEqual(ours, theirs)).toBe(true);
  expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs));
}

const { AIMessage, HumanMessage, SystemMessage, ToolMessage, ChatMessage, FunctionMessage } =
  messages;
const call = { name: "look_up", args: { order: 7, deep: [{ a: null }] }, id: "call-1" };

const USUAL: readonly object[] = [
  new HumanMessage("hello"),
  new HumanMessage({ content: [{ type: "text", text: "hello" }], name: "user", id: "1" }),
  new SystemMessage({ content: "be brief", additional_kwargs: { cache_control: { type: "x" } } }),
  new AIMessage({ content: "", tool_calls: [{ ...call, type: "tool_call" }] }),
  new AIMessage({
    content: "done",
    response_metadata: { model_name: "m", finish_reason: "stop" },
    usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  } as object as messages.AIMessageFields),
  new messages.AIMessageChunk({ content: "do", id: "2" }),
  new messages.AIMessageChunk({
    content: "",
    tool_call_chunks: [{ name: "look_up", args: '{"order":7}', id: "call-1", index: 0 }],
  }),
  new messages.HumanMessageChunk("hel"),
  new messages.SystemMessageChunk("be"),
  new ToolMessage({ content: "found", tool_call_id: "call-1", status: "success", artifact: [1] }),
  new ChatMessage({ content: "as somebody", role: "critic" }),
  new FunctionMessage({ content: "found", name: "look_up" }),
];

const json = jsonValues({ maxDepth: 4 });
/** Among others keys that a serializer takes for its own. */
const key = fc.oneof(
  fc.constantFrom(
    "constructor",
    "lc",
    "id",
    "type",
    "__proto__",
    "__lc_escaped__",
    "snake_case",
    "with space",
  ),
  fc.string(),
);
const tagged = fc.constantFrom<object>(
  { lc: 1, type: "constructor", id: ["langchain_core", "messages", "HumanMessage"], kwargs: {} },
  { lc: 2, type: "undefined" },
  { __lc_escaped__: { lc: 1 } },
);
const kwargs = fc.dictionary(key, fc.oneof({ weight: 5, arbitrary: json }, tagged), { maxKeys: 4 });

describe("restoring messages", () => {
  it.each(USUAL.map((message) => [message.constructor.name, message] as const))(
    "makes of a usual %s what the serializer makes of it",
    async (_, message) => {
      const payload = await written(message);
      const ours = restoreMessage(payload);
      expect(ours).toBeDefined();
      expectSame(ours as object, await restored(payload));
    },
  );

  it("leaves to the serializer what it would not make the same", async () => {
    const names = fc.constantFrom("HumanMessage", "AIMessage", "ToolMessage", "RemoveMessage");
    await fc.assert(
      fc.asyncProperty(names, kwargs, kwargs, async (name, additional, fields) => {
        const payload = {
          lc: 1,
          type: "constructor",
          id: ["langchain_core", "messages", name],
          kwargs: { content: "", tool_call_id: "1", ...fields, additional_kwargs: additional },
        } as unknown as JsonValue;
        const theirs = await restored(payload).catch(() => undefined);
        const ours = restoreMessage(payload);
        if (ours === undefined) return;
        expect(theirs).toBeDefined();
        expectSame(ours, theirs as object);
      }),
      { numRuns: usually(1000, 20_000) },
    );
  });

  it("shares nothing between two of one payload", async () => {
    const payload = await written(new AIMessage({ content: [{ type: "text", text: "a" }] }));
    const [one, two] = [
      restoreMessage(payload),
      restoreMessage(payload),
    ] as (typeof AIMessage.prototype)[];
    (one!.content as { text: string }[])[0]!.text = "changed";
    expect(two!.content).toEqual([{ type: "text", text: "a" }]);
    expect((restoreMessage(payload) as typeof AIMessage.prototype).content).toEqual(two!.content);
  });

  it("is for LangGraph's own serializer only", () => {
    expect(isStandard(serde)).toBe(true);
    const own = new (class extends JsonPlusSerializer {
      override async loadsTyped(type: string, data: Uint8Array | string) {
        return super.loadsTyped(type, data);
      }
    })();
    expect(isStandard(own)).toBe(false);
    const inner = new (class extends JsonPlusSerializer {
      override _dumps(value: unknown) {
        return super._dumps(value);
      }
    })();
    expect(isStandard(inner)).toBe(false);
  });
});

describe("the form in which messages are stored", () => {
  const name = fc.constantFrom("AIMessage", "HumanMessage", "ToolMessage", "AIMessageChunk", "x");
  const field = fc.constantFrom(
    ..."additional_kwargs response_metadata tool_calls invalid_tool_calls content id".split(" "),
  );
  const held = fc.oneof(fc.constantFrom<JsonValue[]>({}, [], null, { a: 1 }, [1]), json);

  it("is taken only of what can be made of it again", () => {
    let forms = 0;
    fc.assert(
      fc.property(name, fc.dictionary(field, held), fc.boolean(), (of, some, whole) => {
        const usual = {
          additional_kwargs: {},
          response_metadata: {},
          ...(of === "AIMessage" && { tool_calls: [], invalid_tool_calls: [] }),
        };
        const kwargs = { ...(whole && usual), ...some } as JsonValue;
        const id = ["langchain_core", "messages", of];
        const payload = { lc: 1, type: "constructor", id, kwargs };
        const form = messageForm(payload);
        if (form === undefined) return;
        forms++;
        expect(messagePayload(form)).toEqual(payload);
      }),
    );
    expect(forms).toBeGreaterThan(10);
  });

  it("leaves out what is empty in nearly every message", async () => {
    const ai = await written(new AIMessage({ content: "done", id: "1" }));
    expect(messageForm(ai)).toEqual({ $agstate: "AIMessage", content: "done", id: "1" });
    const asked = await written(USUAL[3] as object);
    expect(Object.keys(messageForm(asked) ?? {})).toContain("tool_calls");
    expect(messageForm(await written(USUAL[5] as object))).toBeUndefined();
  });

  it("is not taken of what only resembles what the serializer wrote", async () => {
    const payload = (await written(new HumanMessage("x"))) as { [key: string]: JsonValue };
    expect(messageForm(payload)).toBeDefined();
    const others: JsonValue[] = [
      null,
      [],
      { ...payload, more: 1 },
      { ...payload, lc: 2 },
      { ...payload, type: "secret" },
      { ...payload, kwargs: { content: "x" } },
      { ...payload, kwargs: null },
      { ...payload, kwargs: { ...(payload.kwargs as object), $agstate: "x" } },
      { ...payload, id: ["langchain_core", "messages"] },
      { ...payload, id: ["langchain_core", "messages", "HumanMessage", "x"] },
      { ...payload, id: ["langchain", "messages", "HumanMessage"] },
      { ...payload, id: ["langchain_core", "messages", "constructor"] },
    ];
    for (const other of others) expect(messageForm(other)).toBeUndefined();
  });
});
