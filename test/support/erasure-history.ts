import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect } from "vitest";
import type { Store, Workflow } from "../../src/index.js";
import { sealPending } from "../../src/objects/pending.js";
import { all } from "./stores.js";

const COMMITS = 50;
const BRANCHES = 5;

/** So many bytes in a row are never parted, where a server compresses what it stores. */
const PIECE = 8;

/** A text that is nowhere else, of letters that no id has. */
export function newMarker(): string {
  const letters = "GHJKLMNPQRSTUVWXYZghjkmnpqrstuvwxyz";
  return [...randomBytes(32)].map((byte) => letters[byte % letters.length]).join("");
}

/** A subject's data in 50 commits over 5 branches: at its path, and copied into lists, keys, texts, steps and pending rows. */
export async function fillWithSubject(store: Store, subject: string): Promise<Workflow> {
  const workflow = await store.createWorkflow("w", {
    state: { people: {}, messages: [] },
    subjects: ["/state/people/{subject}"],
  });
  for (let b = 0; b < BRANCHES; b++) {
    const branch = await workflow.branch({ agent: "a", branch: `b${b}` });
    const messages: string[] = [];
    for (let n = b; n < COMMITS; n += BRANCHES) {
      messages.push(n % 3 === 0 ? `mail of ${subject}` : randomBytes(20).toString("hex"));
      await branch.commit({
        state: {
          people: { [subject]: { email: `${subject}@example.org`, n }, other: { n } },
          messages,
          seen: { [`${subject}-${n % 4}`]: n },
          page: n % 5 === 0 ? `${randomBytes(2000).toString("hex")}\n${subject}\n`.repeat(2) : "",
        },
        message: `step ${n}`,
        step: {
          action: "write",
          record: { v: 1, name: "mail", attempt: 1, startedAt: n, input: { to: subject } },
        },
        subjects: [subject],
      });
    }
  }
  const writes = Array.from({ length: 20 }, (_, i) =>
    sealPending(`langgraph/c${i}/t`, 0, { channel: "messages", value: [`to ${subject}`, i] }),
  );
  await workflow.internals.refs.apply({ updates: [], pending: writes });
  return workflow;
}

/** Erases the subject, and looks whether all that works on histories still does. */
export async function eraseAndUse(workflow: Workflow, subject: string): Promise<void> {
  const report = await workflow.erase({ subject, by: "dpo", reason: "request 17" });
  expect(report).toMatchObject({ status: "done", residue: [], held: [], pending: 20 });
  expect(report.heads).toHaveLength(BRANCHES);
  const fsck = await workflow.fsck();
  expect(fsck).toMatchObject({ problems: [], warnings: [] });
  expect(fsck.erased).toBeGreaterThan(COMMITS);
  expect((await all(workflow.log())).length).toBeGreaterThan(COMMITS);
  expect(JSON.stringify(await workflow.diff("a/b0~5", "a/b1~2"))).not.toContain(subject);
  const merged = await workflow.merge(["a/b0"]);
  expect(["merged", "fast-forward"]).toContain(merged.status);
  expect(await workflow.stateAt("canonical", "/people")).toEqual({ other: { n: 45 } });
}

/** The files below a directory in which a marker, or a piece of one, stands. */
export function filesWith(directory: string, marker: string): string[] {
  const pieces = Array.from({ length: marker.length - PIECE + 1 }, (_, i) =>
    Buffer.from(marker.slice(i, i + PIECE)),
  );
  const found: string[] = [];
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    if (pieces.some((piece) => bytes.includes(piece))) found.push(relative(directory, path));
  }
  return found;
}
