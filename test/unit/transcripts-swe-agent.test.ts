import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { readTranscript } from "../../src/transcripts/read.js";
import type { Conversation } from "../../src/transcripts/types.js";
import { fixture, readFixture, readingError } from "../support/transcripts.js";

const source = JSON.parse(readFileSync(fixture("build.traj"), "utf8"));

function read(run: unknown): Conversation {
  const [conversation] = readTranscript(JSON.stringify(run), "swe-agent", "run.traj").conversations;
  return conversation as Conversation;
}

/** What the operations on `/messages` leave there. */
function messagesOf({ steps }: Conversation): JsonValue[] {
  const list: JsonValue[] = [];
  for (const operation of steps.flatMap((s) => s.operations)) {
    if (operation.path !== "/messages") continue;
    if (operation.op === "set") list.splice(0, list.length, ...(operation.value as JsonValue[]));
    else if ("values" in operation) list.push(...(operation.values as JsonValue[]));
  }
  return list;
}

const step = (action: string, more: object = {}) => ({ action, observation: "done", ...more });
const text = (content: string) => ({ role: "user", content });

describe("a run of SWE-agent", () => {
  const [run] = readFixture("build.traj", "swe-agent").conversations;

  it("is one conversation, a step for each action", () => {
    expect(run?.name).toEqual({ agent: "swe-agent", branch: "build" });
    expect(run?.initial).toEqual({ environment: "main", replay_config: null, messages: [] });
    expect(run?.steps.map((s) => s.message)).toEqual([
      "ls -F",
      "open setup.py",
      "python -m build",
      "submit",
    ]);
    expect(run?.steps[1]?.step).toEqual({
      action: "execute",
      record: {
        name: "open",
        input: { action: "open setup.py" },
        thought: "I run open setup.py.",
        response: "I run open setup.py.",
        output: source.trajectory[1].observation,
        execution_time: 1.25,
      },
    });
  });

  it("stores only what each step adds, and of the state what changed", () => {
    expect(run?.steps[1]?.operations).toEqual([
      { op: "set", path: "/open_file", value: "/repo/setup.py" },
      { op: "append", path: "/messages", values: source.history.slice(4, 6) },
    ]);
    expect(run?.steps[2]?.operations).toEqual([
      { op: "append", path: "/messages", values: source.history.slice(6, 8) },
    ]);
    expect(run?.steps[3]?.operations).toEqual([
      { op: "delete", path: "/open_file" },
      { op: "append", path: "/messages", values: source.history.slice(8) },
      { op: "set", path: "/info", value: source.info },
    ]);
    expect(messagesOf(run as Conversation)).toEqual(source.history);
  });

  it("may keep prompts without their answers", () => {
    const history = ["system", "a1", "o1", "a2", "o2"].map(text);
    const trajectory = [
      step("one", { query: history.slice(0, 1) }),
      step("two", { query: history.slice(0, 3) }),
    ];
    expect(messagesOf(read({ trajectory, history }))).toEqual(history);
    // Without any prompt, the history comes with the last step.
    expect(messagesOf(read({ trajectory: [step("one")], history }))).toEqual(history);
  });

  it("may lose old messages from its prompts, or begin anew", () => {
    const prompts = (...lists: string[][]) =>
      read({ trajectory: lists.map((list) => step("x", { messages: list.map(text) })) });
    const left = (...lists: string[][]) =>
      messagesOf(prompts(...lists)).map((m) => (m as { content: string }).content);
    expect(left(["a", "b", "c"], ["b", "c", "d"], ["c", "d", "e"])).toEqual([..."abcde"]);
    expect(left(["a", "b", "c"], ["a", "b", "c"])).toEqual([..."abc"]);
    expect(left(["a", "b", "c"], ["x", "y"], ["x", "y", "z"])).toEqual([..."xyz"]);
    const operations = prompts(["a", "b", "c"], ["x", "y"], ["x", "y", "z"]).steps;
    expect(operations.flatMap((s) => s.operations.map((o) => o.op))).toEqual([
      "append",
      "set",
      "append",
    ]);
    expect(left(["a", "b"], [])).toEqual([..."ab"]);
    // The same text may come again.
    expect(left(["a", "b"], ["a", "b", "c", "b"])).toEqual([..."abcb"]);
  });

  it("may write a step's state as JSON in a text, and leave out the rest", () => {
    const { steps } = read({
      trajectory: [
        step("ls", { state: '{"open_file":"n/a"}\n' }),
        { action: " \n", observation: null, thought: "I am stuck.", extra_info: { n: 1 } },
      ],
    });
    expect(steps[0]?.operations).toEqual([{ op: "set", path: "/open_file", value: "n/a" }]);
    expect(steps[1]?.operations).toEqual([]);
    expect(steps[1]?.message).toBe("(no action) I am stuck.");
    expect(steps[1]?.step?.record).toEqual({
      name: "none",
      input: { action: " \n" },
      thought: "I am stuck.",
      output: null,
      extra_info: { n: 1 },
    });
  });

  it.each([
    ["", "", "empty"],
    ["[]", "", "trajectory"],
    ['{"messages":[]}', "", "messages"],
    ['{"trajectory":[]}', "/trajectory", "no steps"],
    ['{"trajectory":[5]}', "/trajectory/0", "a number"],
    ['{"trajectory":[{"observation":""}]}', "/trajectory/0", "missing"],
    ['{"trajectory":[{"action":"x","state":5}]}', "/trajectory/0/state", "a number"],
    ['{"trajectory":[{"action":"x","state":"{"}]}', "/trajectory/0/state", "JSON"],
    [
      '{"trajectory":[{"action":"x","state":{"messages":1}}]}',
      "/trajectory/0/state/messages",
      "as well",
    ],
    ['{"trajectory":[{"action":"x","messages":{}}]}', "/trajectory/0", "a list"],
    ['{"trajectory":[{"action":"x"}],"history":5}', "/history", "a number"],
    ['{"trajectory":[{"action":"x"},]}', "", "line 1, column 31"],
  ])("%s is refused, with the place", (run, path, words) => {
    const error = readingError(run, "swe-agent");
    expect(error.code).toBe("INVALID_TRANSCRIPT");
    expect(error.details).toMatchObject({ file: "file.json", ...(run === "" ? {} : { path }) });
    expect(error.message).toContain(words);
  });
});
