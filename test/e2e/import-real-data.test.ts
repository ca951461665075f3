import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import type { Workflow } from "../../src/store/workflow.js";
import { openStore, type Store } from "../../src/store.js";
import { importTranscript, readTranscript } from "../../src/transcripts/import.js";
import { fixture } from "../support/transcripts.js";

/** Real transcripts where they lie beside the project; the small ones of the tests elsewhere. */
const data = fileURLToPath(new URL("../../../shared/data/", import.meta.url));
const isReal = existsSync(data);
const chats = isReal ? join(data, "airline-trajectories.jsonl") : fixture("weather.jsonl");
const run = isReal ? join(data, "swe-marshmallow-1867.traj.json") : fixture("build.traj");

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "agstate-import-"));
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

async function withWorkflow(
  url: string,
  work: (workflow: Workflow, store: Store) => Promise<void>,
) {
  const store = await openStore(
    url.startsWith("memory") ? url : `${url}${mkdtempSync(join(scratch, "s-"))}`,
  );
  try {
    await work(await store.createWorkflow("imported"), store);
  } finally {
    await store.close();
  }
}

describe.each(["memory:", "sqlite:"])("importing into %s", (url) => {
  it("keeps every conversation, message by message", async () => {
    const bytes = readFileSync(chats);
    const source = bytes
      .toString("utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { messages: JsonValue[] });
    const total = source.reduce((sum, { messages }) => sum + messages.length, 0);
    if (isReal) expect([source.length, total]).toEqual([20, 786]);

    await withWorkflow(url, async (workflow) => {
      const transcript = readTranscript(bytes, "messages", basename(chats));
      const { branches, commits } = await importTranscript(workflow, transcript, { agents: true });
      expect(commits).toBe(total);
      expect(branches).toHaveLength(source.length);
      expect(await workflow.refs("refs/heads/agents/")).toHaveLength(source.length);

      for (const [i, { ref }] of branches.entries()) {
        const { messages, ...fields } = source[i] as (typeof source)[number];
        const branch = await workflow.branch(ref);
        expect(await branch.state()).toEqual(source[i]);
        const half = messages.length >> 1;
        expect(await workflow.stateAt(`${ref}~${half}`)).toEqual({
          ...fields,
          messages: messages.slice(0, messages.length - half),
        });
        const lines: string[] = [];
        for await (const commit of branch.log()) lines.push(commit.message);
        // And the commit that canonical began with.
        expect(lines).toHaveLength(messages.length + 1);
        for (const line of lines) expect(line).toMatch(/^\S.{0,71}$/u);
      }

      expect((await workflow.fsck()).problems).toEqual([]);
      // Whole states, commit by commit, would be 11 MB of the real file's conversations.
      const { bytes: stored } = await workflow.usage();
      expect(stored).toBeLessThan(3 * bytes.length + 1024 * commits);
    });
  });

  it("keeps a coding agent's run, with its history instead of its prompts", async () => {
    const bytes = readFileSync(run);
    const { trajectory, history, ...others } = JSON.parse(bytes.toString("utf8"));
    await withWorkflow(url, async (workflow) => {
      const transcript = readTranscript(bytes, "swe-agent", basename(run));
      const { commits } = await importTranscript(workflow, transcript, { agents: false });
      expect(commits).toBe(trajectory.length);
      expect(await workflow.stateAt("canonical")).toEqual({
        ...others,
        ...trajectory.at(-1).state,
        messages: history,
      });
      for (const [i, step] of trajectory.entries()) {
        const revision = `canonical~${trajectory.length - 1 - i}`;
        expect(await workflow.stepRecord(revision)).toMatchObject({
          input: { action: step.action },
          output: step.observation,
          execution_time: step.execution_time,
        });
        expect(await workflow.stateAt(revision)).toMatchObject(step.state);
      }
      expect((await workflow.fsck()).problems).toEqual([]);
      const { bytes: stored } = await workflow.usage();
      expect(stored).toBeLessThan(bytes.length / 2 + 2048 * commits);
    });
  });
});
