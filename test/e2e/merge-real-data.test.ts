import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { importTranscript, readTranscript } from "../../src/transcripts/import.js";
import { BACKENDS, makeStore } from "../support/stores.js";
import { fixture } from "../support/transcripts.js";

/** Real transcripts where they lie beside the project; a small one elsewhere. */
const real = fileURLToPath(
  new URL("../../../shared/data/airline-trajectories.jsonl", import.meta.url),
);
const chats = existsSync(real) ? real : fixture("weather.jsonl");

interface Conversation {
  readonly messages: JsonValue[];
}

describe.each(BACKENDS)("merging imported conversations on %s", (backend) => {
  it("with append on messages holds every message, each conversation in its order", async () => {
    const bytes = readFileSync(chats);
    const source = bytes
      .toString("utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Conversation);
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("imported", {
      policies: { "/messages": "append", "/*": "theirs" },
    });
    const transcript = readTranscript(bytes, "messages", basename(chats));
    const { branches } = await importTranscript(workflow, transcript, { agents: true });
    if (chats === real) expect(branches).toHaveLength(20);

    const refs = branches.map(({ ref }) => ref);
    const result = await workflow.merge(refs);
    expect(result).toMatchObject({ status: "merged", conflicts: [], attempts: 1 });
    expect(result.commit?.parents).toHaveLength(branches.length + 1);
    // Parent order: the conversations follow each other, each as it was held.
    const all = source.flatMap(({ messages }) => messages);
    if (chats === real) expect(all).toHaveLength(786);
    expect(await workflow.stateAt("canonical", "/messages")).toEqual(all);

    // Everything that was imported is part of the agreed history.
    expect((await workflow.merged("canonical")).map(({ name }) => name)).toEqual(
      expect.arrayContaining(refs),
    );
    expect(await workflow.fsck()).toMatchObject({ problems: [], unreachable: 0 });
    expect((await workflow.merge(refs)).status).toBe("up-to-date");
  });

  it("without a policy conflicts at every field that two conversations give differently", async () => {
    const bytes = readFileSync(chats);
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("imported");
    const transcript = readTranscript(bytes, "messages", basename(chats));
    const { branches } = await importTranscript(workflow, transcript, { agents: true });
    const before = await workflow.refs();
    const { status, commit, conflicts } = await workflow.merge(branches.map(({ ref }) => ref));
    expect([status, commit]).toEqual(["conflict", null]);
    const messages = conflicts.filter(({ path }) => path === "/messages");
    expect(messages).toHaveLength(branches.length - 1);
    for (const { kind, theirs, base } of messages) {
      expect([kind, base.exists]).toEqual(["add/add", false]);
      // The last commit of the branch wrote the list as it is.
      expect(branches.map(({ ref }) => ref)).toContain(`refs/heads/${theirs.branch}`);
      expect(theirs.writer?.id).toBe(await workflow.resolve(theirs.branch));
    }
    expect(await workflow.refs()).toEqual(before);
  });
});
