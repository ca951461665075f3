import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentRef } from "../../src/refs/names.js";
import { ConversationNames, nameOfFile } from "../../src/transcripts/names.js";
import { oneLine } from "../../src/transcripts/one-line.js";

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc.string({ unit: fc.constantFrom(".", "-", "/", "a", "\ud83d", "🌦️", "é", "@{", ".lock") }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((c) => String.fromCharCode(c)) }),
);

describe("oneLine", () => {
  it.each([
    ["control characters", "  What is\r\n\tin\u0000 it?\u001b[31m ", "What is in it? [31m"],
    ["invisible characters", "a\u202eb\ufeffc\u200bd", "abcd"],
    ["a full line", "x".repeat(72), "x".repeat(72)],
    ["one character too many", "x".repeat(73), `${"x".repeat(69)}...`],
    ["pairs of surrogates", "🌦".repeat(80), `${"🌦".repeat(69)}...`],
    ["much white space", `${" ".repeat(5000)}x`, "..."],
    ["nothing", "", ""],
  ])("puts %s on one line", (_, text, line) => {
    expect(oneLine(text)).toBe(line);
  });

  it("gives one well-formed, printable line of at most 72 characters for any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const line = oneLine(text);
        expect(line.isWellFormed()).toBe(true);
        expect(Array.from(line).length).toBeLessThanOrEqual(72);
        expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e]/u);
        expect(line).toBe(line.trim());
      }),
      { numRuns: 1000 },
    );
  });
});

describe("names of branches", () => {
  it("come from task and trial, else from the file and the order", () => {
    const names = new ConversationNames("runs/My chats.jsonl");
    expect(names.next({ task_id: 3, trial: 0 })).toEqual({ agent: "task-3", branch: "trial-0" });
    expect(names.next({ task_id: "a/b: c", trial: "x" })).toEqual({
      agent: "task-a-b-c",
      branch: "trial-x",
    });
    expect(names.next({ task_id: 3, trial: 0 })).toEqual({ agent: "task-3", branch: "trial-0-2" });
    expect(names.next({ task_id: 3, trial: "0-2" })).toEqual({
      agent: "task-3",
      branch: "trial-0-2-2",
    });
    expect(names.next({ task_id: 3, trial: 0 }).branch).toBe("trial-0-3");
    expect(names.next({ task_id: null, trial: {} })).toEqual({
      agent: "My-chats",
      branch: "conversation-6",
    });
  });

  it.each([
    ["runs/marshmallow-1867.traj.json", "marshmallow-1867"],
    ["C:\\runs\\a.traj", "a"],
    ["deadbeef.json", "transcript-deadbeef"],
    ["HEAD", "transcript-HEAD"],
    ["-", "transcript"],
    ["x.lock.json", "x-lock"],
  ])("of the file %s is %s", (file, name) => {
    expect(nameOfFile(file)).toBe(name);
  });

  it("are cut to what a ref may hold, and do not depend on how accents are written", () => {
    const names = new ConversationNames("x");
    const { agent, branch } = names.next({ task_id: "🌦é".repeat(900), trial: "ü".repeat(900) });
    expect(agentRef(agent, branch)).toContain("agents/task-é-é");
    expect(names.next({ task_id: "e\u0301" }).agent).toBe("task-\u00e9");
  });

  it("are valid and different whatever the file says", () => {
    const field = fc.option(fc.oneof(anyText, fc.double(), fc.constantFrom("0", "0-2", "0-3")), {
      nil: undefined,
    });
    fc.assert(
      fc.property(anyText, fc.array(fc.tuple(field, field)), (file, list) => {
        const names = new ConversationNames(file);
        const refs = list.map(([task_id, trial]) => {
          const { agent, branch } = names.next({
            ...(task_id === undefined ? {} : { task_id }),
            ...(trial === undefined ? {} : { trial }),
          });
          return agentRef(agent, branch);
        });
        expect(new Set(refs).size).toBe(refs.length);
      }),
      { numRuns: 500 },
    );
  });
});
