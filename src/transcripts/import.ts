import { AgstateError } from "../core/errors.js";
import { parsePointer } from "../core/json-pointer.js";
import type { StateOperation } from "../objects/draft/operations.js";
import { normalize } from "../objects/normalize.js";
import { agentRef } from "../refs/names.js";
import type { Branch } from "../store/branch.js";
import type { Workflow } from "../store/workflow.js";
import { Place } from "./place.js";
import type { Conversation, Transcript } from "./types.js";

export { readTranscript } from "./read.js";

/** How many branches are written at once; the store groups their commits. */
const CONCURRENT_BRANCHES = 16;

export interface ImportOptions {
  /** Puts each conversation on its own branch; else the file's only one goes onto `canonical`. */
  readonly agents: boolean;
  /** Called after each commit. */
  readonly onProgress?: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  /** Full name of the branch that was written. */
  readonly ref: string;
  /** Commits written so far, and in all. */
  readonly commits: number;
  readonly total: number;
}

export interface ImportResult {
  /** In the order of the file. */
  readonly branches: readonly { readonly ref: string; readonly commits: number }[];
  readonly commits: number;
}

/**
 * Writes a transcript into a workflow, a commit for each step.
 *
 * The first commit on a branch replaces the state that it began with by the
 * conversation's own. Everything is checked before anything is written; when
 * the store fails in the middle, commits written until then stay.
 *
 * @throws AgstateError `INVALID_TRANSCRIPT`, `LIMIT_EXCEEDED`, `REF_EXISTS`, `REF_CONFLICT`
 */
export async function importTranscript(
  workflow: Workflow,
  transcript: Transcript,
  options: ImportOptions,
): Promise<ImportResult> {
  const { conversations } = transcript;
  if (!options.agents && conversations.length !== 1) {
    throw new Place(transcript.file).error(
      `the file holds ${conversations.length} conversations, and canonical takes one; use --agents to put each on its own branch`,
      { details: { conversations: conversations.length } },
    );
  }
  const maxBytes = workflow.internals.context.limits.stateMaxBytes;
  for (const conversation of conversations) checkValues(conversation, maxBytes);
  if (options.agents) await refuseExisting(workflow, conversations);

  const total = conversations.reduce((sum, { steps }) => sum + steps.length, 0);
  let commits = 0;
  const branches = await inParallel(conversations, CONCURRENT_BRANCHES, async (conversation) => {
    const branch = options.agents
      ? await workflow.branch({ ...conversation.name, create: "always" })
      : await workflow.canonical();
    await write(branch, conversation, () => {
      commits++;
      options.onProgress?.({ ref: branch.ref, commits, total });
    });
    return { ref: branch.ref, commits: conversation.steps.length };
  });
  return { branches, commits };
}

async function write(
  branch: Branch,
  conversation: Conversation,
  onCommit: () => void,
): Promise<void> {
  let before: StateOperation[] = [{ op: "set", path: "", value: conversation.initial }];
  for (const { operations, place: _, ...commit } of conversation.steps) {
    await branch.update([...before, ...operations], { ...commit, reason: "import" });
    before = [];
    onCommit();
  }
}

/** Holds every value against the rules for states, so that no write fails for its content. */
function checkValues(conversation: Conversation, maxBytes: number): void {
  conversation.place.checking(() => normalize(conversation.initial, { maxBytes }));
  for (const { operations, step, place } of conversation.steps) {
    place.checking(() => {
      for (const operation of operations) checkOperation(operation, maxBytes);
      if (step !== undefined) normalize(step.record, { maxBytes, what: "step record" });
    });
  }
}

function checkOperation(operation: StateOperation, maxBytes: number): void {
  const path = parsePointer(operation.path);
  const at = operation.op === "set" ? path : [...path, "-"];
  if ("value" in operation) normalize(operation.value, { maxBytes, at });
  if ("values" in operation) {
    for (const value of operation.values ?? []) normalize(value, { maxBytes, at });
  }
}

/** @throws AgstateError `REF_EXISTS` */
async function refuseExisting(
  workflow: Workflow,
  conversations: readonly Conversation[],
): Promise<void> {
  const existing = new Set((await workflow.refs("refs/heads/agents/")).map((ref) => ref.name));
  for (const { name } of conversations) {
    const ref = agentRef(name.agent, name.branch);
    if (!existing.has(ref)) continue;
    throw new AgstateError(
      "REF_EXISTS",
      `agents/${name.agent}/${name.branch} exists already; import into a new workflow, or delete the branch first`,
      { ref },
    );
  }
}

/**
 * Maps items with at most `width` at work at a time; keeps their order.
 *
 * After a failure nothing more begins, and it throws only when what was at work
 * is over.
 */
async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  let failed = false;
  const worker = async () => {
    for (const [i, item] of queue) {
      if (failed) return;
      try {
        results[i] = await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = Array.from({ length: Math.min(width, items.length) }, worker);
  for (const outcome of await Promise.allSettled(workers)) {
    if (outcome.status === "rejected") throw outcome.reason;
  }
  return results;
}
