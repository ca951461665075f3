import { describe, expect, it } from "vitest";
import { openStore } from "../../src/store.js";
import { type ImportProgress, importTranscript } from "../../src/transcripts/import.js";
import { readTranscript } from "../../src/transcripts/read.js";
import { readFixture } from "../support/transcripts.js";

async function newWorkflow(limits = {}) {
  const store = await openStore("memory:", { limits });
  return store.createWorkflow("imported", { state: { before: true } });
}

const weather = () => readFixture("weather.jsonl", "messages");

describe("importTranscript", () => {
  it("puts each conversation on its own branch and says how far it is", async () => {
    const workflow = await newWorkflow();
    const progress: ImportProgress[] = [];
    const result = await importTranscript(workflow, weather(), {
      agents: true,
      onProgress: (p) => progress.push(p),
    });
    const refs = ["task-3/trial-0", "task-3/trial-1", "task-13/trial-0"].map(
      (name) => `refs/heads/agents/${name}`,
    );
    expect(result).toEqual({ branches: refs.map((ref) => ({ ref, commits: 6 })), commits: 18 });
    expect(progress.map((p) => p.commits)).toEqual(Array.from({ length: 18 }, (_, i) => i + 1));
    expect(new Set(progress.map((p) => p.ref))).toEqual(new Set(refs));
    expect(progress.every((p) => p.total === 18)).toBe(true);

    const branch = await workflow.branch("task-3/trial-1");
    expect(branch.head).toMatchObject({ author: "user", message: "user: Thanks!", nextStep: 4 });
    expect(await workflow.stateAt("task-3/trial-1~5")).toMatchObject({
      task_id: 3,
      trial: 1,
      messages: [{ role: "system" }],
    });
    expect(await workflow.stateAt("canonical")).toEqual({ before: true });
    const [entry] = await branch.reflog({ limit: 1 });
    expect(entry?.reason).toBe("import");
  });

  it("puts a file's only conversation onto canonical, in place of the state there", async () => {
    const workflow = await newWorkflow();
    const transcript = readFixture("chat.json", "messages");
    const result = await importTranscript(workflow, transcript, { agents: false });
    expect(result).toEqual({
      branches: [{ ref: "refs/heads/canonical", commits: 3 }],
      commits: 3,
    });
    const state = (await workflow.stateAt("canonical")) as { messages: unknown[] };
    expect(Object.keys(state)).toEqual(["messages"]);
    expect(state.messages).toHaveLength(3);
    expect(await workflow.refs("refs/heads/")).toHaveLength(1);
  });

  it("refuses several conversations for canonical, and says what to do", async () => {
    const workflow = await newWorkflow();
    const before = await workflow.resolve("canonical");
    const importing = importTranscript(workflow, weather(), { agents: false });
    await expect(importing).rejects.toMatchObject({
      code: "INVALID_TRANSCRIPT",
      details: { conversations: 3 },
      message: expect.stringMatching(/3 conversations.*--agents/),
    });
    expect(await workflow.resolve("canonical")).toBe(before);
  });

  it("refuses to write onto branches that exist, and writes none", async () => {
    const workflow = await newWorkflow();
    await workflow.branch({ agent: "task-13", branch: "trial-0" });
    await expect(importTranscript(workflow, weather(), { agents: true })).rejects.toMatchObject({
      code: "REF_EXISTS",
      details: { ref: "refs/heads/agents/task-13/trial-0" },
    });
    expect(await workflow.refs("refs/heads/agents/")).toHaveLength(1);
  });

  const user = (x: string) => `{"role":"user","x":${x}}`;
  it.each([
    ["half a character", user('"\\ud83d"'), "INVALID_TRANSCRIPT", {}],
    // The list of messages stands one level deeper in the state than in the file.
    ["too deep", user("[".repeat(254) + "]".repeat(254)), "LIMIT_EXCEEDED", {}],
    ["too large", user(`"${"x".repeat(5000)}"`), "LIMIT_EXCEEDED", { stateMaxBytes: 4000 }],
  ])("writes nothing when one value is %s", async (_, message, code, limits) => {
    const workflow = await newWorkflow(limits);
    const before = await workflow.resolve("canonical");
    const transcript = readTranscript(`[${user("1")},${message}]`, "messages", "a.json");
    for (const agents of [true, false]) {
      await expect(importTranscript(workflow, transcript, { agents })).rejects.toMatchObject({
        code,
        details: { file: "a.json", path: "/1" },
        message: expect.stringContaining('at "/1"'),
      });
    }
    expect(await workflow.refs("refs/heads/agents/")).toEqual([]);
    expect(await workflow.resolve("canonical")).toBe(before);
  });

  it("checks the other fields of a conversation too", async () => {
    const workflow = await newWorkflow();
    const good = `{"messages":[${user("1")}]}`;
    const text = `${good}\n{"note":"\\ude00","messages":[${user("1")}]}`;
    const transcript = readTranscript(text, "messages", "a.jsonl");
    await expect(importTranscript(workflow, transcript, { agents: true })).rejects.toMatchObject({
      code: "INVALID_TRANSCRIPT",
      details: { file: "a.jsonl", line: 2 },
    });
    expect(await workflow.refs("refs/heads/agents/")).toEqual([]);
  });

  it("begins nothing more after a failure, and ends when what was at work is over", async () => {
    const lines = Array.from({ length: 40 }, (_, i) =>
      JSON.stringify({
        task_id: i,
        messages: Array.from({ length: 5 }, () => ({ role: "user", content: `${i}` })),
      }),
    );
    const workflow = await newWorkflow();
    const transcript = readTranscript(lines.join("\n"), "messages", "a.jsonl");
    let failedRef: string | undefined;
    const importing = importTranscript(workflow, transcript, {
      agents: true,
      onProgress: ({ ref }) => {
        if (failedRef !== undefined) return;
        failedRef = ref;
        throw new Error("stopped");
      },
    });
    await expect(importing).rejects.toThrow("stopped");
    const begun = await workflow.refs("refs/heads/agents/");
    expect(begun.length).toBeLessThanOrEqual(16);
    expect(begun.length).toBeGreaterThan(1);
    for (const { name } of begun) {
      const { messages } = (await workflow.stateAt(name)) as { messages: unknown[] };
      expect(messages).toHaveLength(name === failedRef ? 1 : 5);
    }
  });
});
