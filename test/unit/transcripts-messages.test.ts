import { describe, expect, it } from "vitest";
import { readTranscript } from "../../src/transcripts/read.js";
import { readFixture, readingError } from "../support/transcripts.js";

const hello = { role: "user", content: "Hello" };
const read = (text: string) => readTranscript(text, "messages", "chat.json").conversations;

describe("the forms of a messages file", () => {
  const object = { task_id: 1, reward: 0.5, messages: [hello] };
  const initial = { task_id: 1, reward: 0.5, messages: [] };

  it.each([
    ["a list of messages", JSON.stringify([hello]), [{ messages: [] }]],
    ["an object", JSON.stringify(object, null, 2), [initial]],
    ["a list of objects", JSON.stringify([object, object]), [initial, initial]],
    ["a list over many lines", JSON.stringify([object, object], null, 2), [initial, initial]],
    [
      "JSON lines",
      `${JSON.stringify(object)}\r\n\n${JSON.stringify(object)}\n`,
      [initial, initial],
    ],
    ["one JSON line", `\ufeff\n${JSON.stringify(object)}\n`, [initial]],
    [
      "JSON lines of lists",
      "[$]\n[$]".replaceAll("$", JSON.stringify(hello)),
      [{ messages: [] }, { messages: [] }],
    ],
  ])("read %s", (_, text, states) => {
    const conversations = read(text);
    expect(conversations.map((c) => c.initial)).toEqual(states);
    for (const { steps } of conversations) {
      expect(steps.map((s) => s.operations)).toEqual([
        [{ op: "append", path: "/messages", value: hello }],
      ]);
    }
  });
});

describe("the steps of a conversation", () => {
  it("are a commit for each message, with the agent's own as step records", () => {
    const [conversation] = readFixture("weather.jsonl", "messages").conversations;
    expect(conversation?.name).toEqual({ agent: "task-3", branch: "trial-0" });
    const steps = conversation?.steps.map(({ message, author, step }) => ({
      message,
      author,
      step,
    }));
    const input = { city: "Oslo" };
    expect(steps).toEqual([
      { message: "system: You report the weather. Use the tools; never guess.", author: "system" },
      { message: "user: What is the weather in Oslo? 🌦️", author: "user" },
      {
        message: "assistant: call get_weather",
        author: "task-3",
        step: {
          action: "inference",
          record: {
            name: "assistant",
            input: { messages: [0, 2] },
            tool_calls: [{ id: "call_1", name: "get_weather", arguments: input }],
          },
        },
      },
      {
        message: 'tool get_weather: {"city":"Oslo","celsius":4}',
        author: "task-3",
        step: {
          action: "execute",
          record: {
            name: "get_weather",
            input,
            output: '{"city":"Oslo","celsius":4}',
            tool_call_id: "call_1",
          },
        },
      },
      {
        message: "assistant: It is 4 degrees in Oslo.",
        author: "task-3",
        step: {
          action: "inference",
          record: {
            name: "assistant",
            input: { messages: [0, 4] },
            response: "It is 4 degrees in Oslo.",
          },
        },
      },
      { message: "user: Thanks!", author: "user" },
    ]);
  });

  it("have a message for contents that are lists, and for none", () => {
    const [conversation] = readFixture("chat.json", "messages").conversations;
    expect(conversation?.name).toEqual({ agent: "chat", branch: "conversation-1" });
    expect(conversation?.steps.map((s) => s.message)).toEqual([
      "developer: Answer briefly.",
      "user: What is in the picture? [image_url]",
      "assistant: A cat.",
    ]);
    expect(read('[{"role":"user","content":[]}]')[0]?.steps[0]?.message).toBe("user: (empty)");
  });

  it("match a tool's message to the last call of its id, and to the older function calls", () => {
    const call = (name: string, args: unknown, id = "c") => ({
      role: "assistant",
      tool_calls: [{ id, function: { name, arguments: args } }],
    });
    const tool = { role: "tool", tool_call_id: "c", content: "ok" };
    const records = read(
      JSON.stringify({
        model: "some-model",
        messages: [
          call("first", '{"n":1}'),
          tool,
          call("second", '{"n":'),
          tool,
          call("third", '{"id":9007199254740993}'),
          tool,
          call("fourth", '{"a":"\\ud800"}'),
          tool,
          call("fifth", { parsed: true }),
          tool,
          call("sixth", "[".repeat(255) + "]".repeat(255)),
          tool,
          { role: "tool", tool_call_id: "other", content: null },
          { role: "assistant", content: "x", function_call: { name: "old", arguments: "[]" } },
          { role: "function", name: "old", content: "ok" },
        ],
      }),
    )[0]?.steps.map((s) => s.step?.record as Record<string, unknown>);
    const of = (index: number) => [records?.[index]?.name, records?.[index]?.input];
    expect(of(0)[0]).toBe("some-model");
    expect([1, 3, 5, 7, 9, 11].map(of)).toEqual([
      ["first", { n: 1 }],
      ["second", '{"n":'],
      ["third", '{"id":9007199254740993}'],
      ["fourth", '{"a":"\\ud800"}'],
      ["fifth", { parsed: true }],
      ["sixth", "[".repeat(255) + "]".repeat(255)],
    ]);
    expect(records?.[12]).toEqual({ name: "tool", output: null, tool_call_id: "other" });
    expect(records?.[13]?.tool_calls).toEqual([{ name: "old", arguments: [] }]);
    expect(records?.[14]).toEqual({ name: "old", output: "ok" });
  });
});

describe("a malformed messages file", () => {
  const line = (messages: unknown) => JSON.stringify({ messages });
  it.each([
    ["", {}, "empty"],
    [" \n ", {}, "empty"],
    ["[]", { path: "" }, "no messages"],
    ["{}", { path: "" }, "missing"],
    ["7", { path: "" }, "a number"],
    ['{"trajectory":[]}', { path: "" }, "swe-agent"],
    ['{"messages":[{"role":"user"}', { path: "", line: 1, column: 29 }, "line 1, column 29"],
    [`${line([hello])}\n${line([hello, 5])}`, { line: 2, path: "/messages/1" }, "line 2"],
    [`${line([hello])}\n{"messages":[}`, { line: 2, column: 14, path: "" }, "line 2, column 14"],
    [`${line([hello])}\n\n${line([])}`, { line: 3, path: "/messages" }, "no messages"],
    [line([{ content: "x" }]), { path: "/messages/0" }, "role"],
    [line([{ role: "", content: "x" }]), { path: "/messages/0" }, "empty"],
    [line([{ role: "user", content: 5 }]), { path: "/messages/0/content" }, "a number"],
    [line([{ role: "assistant", tool_calls: {} }]), { path: "/messages/0/tool_calls" }, "a list"],
    [line([{ role: "assistant", tool_calls: [{}] }]), { path: "/messages/0/tool_calls/0" }, "call"],
    [line([{ role: "tool", tool_call_id: 5 }]), { path: "/messages/0/tool_call_id" }, "a number"],
    [JSON.stringify([{ messages: [hello] }, hello]), { path: "/1" }, "messages"],
    ['[{"role":"user","id":9007199254740993}]', { path: "/0/id" }, "9007199254740993"],
    ['{"messages":[],"messages":[]}', { path: "/messages" }, "twice"],
  ])("%j is refused, with the place", (text, details, words) => {
    const error = readingError(text, "messages");
    expect(error.code).toBe("INVALID_TRANSCRIPT");
    expect(error.details).toMatchObject({ file: "file.json", ...details });
    expect(error.message).toContain("file.json");
    expect(error.message).toContain(words);
  });

  it("names a line only where lines are conversations", () => {
    const one = line([hello]);
    for (const text of ["7", one.replace("user", ""), `[\n${one},\n7]`]) {
      expect(readingError(text, "messages").details).not.toHaveProperty("line");
    }
    expect(readingError(`${one}\n7\n`, "messages").details).toMatchObject({ line: 2, path: "" });
  });

  it("of another encoding, too deep or of an unknown format is refused", () => {
    const latin1 = Buffer.from('[{"role":"user","content":"ü"}]', "latin1");
    expect(() => readTranscript(latin1, "messages", "f")).toThrow(
      expect.objectContaining({ code: "INVALID_TRANSCRIPT" }),
    );
    expect(readingError("[".repeat(100_000) + "]".repeat(100_000), "messages").code).toBe(
      "LIMIT_EXCEEDED",
    );
    expect(readingError("[]", "other" as "messages").code).toBe("INVALID_ARGUMENT");
  });
});
