import { digestText } from "../objects/hash.js";

/** The agent whose branches hold the checkpoints of a thread's root namespace. */
const AGENT = "langgraph";
const HEADS = `refs/heads/agents/${AGENT}`;

/** What the refs of a thread begin with; others may as well. */
export const THREAD_PREFIX = HEADS;

/** The keys of all that tasks wrote begin with one of these. */
export const WRITES_PREFIXES = [`${AGENT}/`, `${AGENT}.`] as const;

/** How much of a long name stays readable, in bytes; its hash follows. */
const READABLE_BYTES = 100;

/** What fits into a name of at most 200 bytes beside what comes before it. */
const ENCODED_MAX_BYTES = 180;

/**
 * Writes any text so that it can be a component of a ref or a key: what is not an ASCII letter, a digit, `-` or
 * `_` becomes `%` and two hex digits for each byte of its UTF-8.
 *
 * Two texts never share a form. A long one is cut, and goes on with `+`, which nothing else has, and its hash.
 */
export function component(text: string): string {
  return shorten(text, text.replace(/[^A-Za-z0-9_-]/gu, percent));
}

/**
 * The id of the workflow that a thread is: the thread's own id, with what an id cannot hold
 * percent-encoded, and shortened like a component when it is long.
 */
export function workflowOf(threadId: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const bad = /[%+<>:\u0000-\u001f\u007f-\u009f\u2028\u2029]|^\s|\s$/gu;
  return shorten(threadId, threadId.replace(bad, percent));
}

function percent(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`)
    .join("");
}

function shorten(text: string, encoded: string): string {
  if (Buffer.byteLength(encoded) <= ENCODED_MAX_BYTES) return encoded;
  const start = new TextDecoder().decode(Buffer.from(encoded).subarray(0, READABLE_BYTES));
  return `${start.replace(/\ufffd+$/, "")}+${digestText(text)}`;
}

/** The agent of a checkpoint namespace: `langgraph` of the root, `langgraph.NAME` of any other. */
function agentOf(namespace: string): string {
  return namespace === "" ? AGENT : `${AGENT}.${component(namespace)}`;
}

/** The ref that is at the checkpoint which was put last into the namespace. */
export function latestRef(namespace: string): string {
  return `refs/heads/agents/${agentOf(namespace)}/latest`;
}

/** The ref of a fork's tip that is no longer the latest. */
export function forkRef(namespace: string, checkpointId: string): string {
  return `refs/heads/agents/${agentOf(namespace)}/at-${component(checkpointId)}`;
}

/** The key of what a task wrote below a checkpoint. */
export function writesKey(namespace: string, checkpointId: string, taskId: string): string {
  return `${writesPrefix(namespace, checkpointId)}${component(taskId)}`;
}

/** What the keys of all writes below a checkpoint begin with, up to the task. */
export function writesPrefix(namespace: string, checkpointId: string): string {
  return `${agentOf(namespace)}/${component(checkpointId)}/`;
}

/** Whether a ref is a branch of a thread: of the root namespace, or any other. */
export function isThreadHead(ref: string): boolean {
  return ref.startsWith(`${HEADS}/`) || ref.startsWith(`${HEADS}.`);
}

/** Whether a ref is a branch of this namespace. */
export function isHeadOf(ref: string, namespace: string): boolean {
  return ref.startsWith(headsPrefix(namespace));
}

/** What the branches of this namespace, and no other refs, begin with. */
export function headsPrefix(namespace: string): string {
  return `refs/heads/agents/${agentOf(namespace)}/`;
}
