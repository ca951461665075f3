import { AgstateError } from "../core/errors.js";
import { isObjectId, type ObjectId } from "../core/ids.js";

export const STEP_ACTIONS = ["read", "inference", "write", "execute"] as const;
export type StepStatus = "started" | "completed" | "failed";
export type StepAction = (typeof STEP_ACTIONS)[number];

/** What a commit's headers tell of the step that it records. */
export interface CommitStep {
  /** The step's number on its branch: 1 or more, never used twice. */
  readonly number: number;
  readonly status: StepStatus;
  readonly action: StepAction;
  /** Hash of the step's input. */
  readonly input?: string | undefined;
  /** The idempotency key that went out with the step's side effect. */
  readonly key?: string | undefined;
}

/** A commit's contents, as they stand in the Git commit object. */
export interface CommitFields {
  readonly tree: ObjectId;
  readonly parents: readonly ObjectId[];
  readonly author: string;
  readonly committer: string;
  /** The workflow, which stands in the e-mail part of author and committer. */
  readonly workflow: string;
  /** Whole seconds since the Unix epoch, of author and committer. */
  readonly authorTime: number;
  readonly committerTime: number;
  /** 32 hex digits, so that two writers never make one commit. */
  readonly nonce: string;
  /** The step cursor: the number that the next step on this line of history takes. */
  readonly nextStep: number;
  /** Numbers of the steps that were started and not sealed. */
  readonly inFlight: readonly number[];
  /** By which version of the state's schema the state is made; left out where nobody said one. */
  readonly stateVersion?: number | undefined;
  readonly step?: CommitStep | undefined;
  /** W3C traceparent. */
  readonly trace?: string | undefined;
  /** A foreign system's id of this commit. */
  readonly externalId?: string | undefined;
  /** Why it was made, where nobody's work asked for it, such as `memory-pressure`. */
  readonly reason?: string | undefined;
  readonly message: string;
}

/** Writes the body of the Git commit object. The values are checked where they enter. */
export function encodeCommit(c: CommitFields): Buffer {
  let text = `tree ${c.tree}\n`;
  for (const parent of c.parents) text += `parent ${parent}\n`;
  text += `author ${c.author} <${c.author}@${c.workflow}> ${c.authorTime} +0000\n`;
  text += `committer ${c.committer} <${c.committer}@${c.workflow}> ${c.committerTime} +0000\n`;
  text += `agstate-nonce ${c.nonce}\nagstate-next-step ${c.nextStep}\n`;
  if (c.inFlight.length > 0) text += `agstate-in-flight ${c.inFlight.join(",")}\n`;
  if (c.stateVersion !== undefined) text += `agstate-state-version ${c.stateVersion}\n`;
  if (c.step !== undefined) {
    const { number, status, action, input, key } = c.step;
    text += `agstate-step ${number}\nagstate-status ${status}\nagstate-action ${action}\n`;
    if (input !== undefined) text += `agstate-input ${input}\n`;
    if (key !== undefined) text += `agstate-key ${key}\n`;
  }
  if (c.trace !== undefined) text += `agstate-trace ${c.trace}\n`;
  if (c.externalId !== undefined) text += `agstate-external-id ${c.externalId}\n`;
  if (c.reason !== undefined) text += `agstate-reason ${c.reason}\n`;
  return Buffer.from(`${text}\n${c.message}\n`);
}

/** The highest version of a state's schema. */
export const STATE_VERSION_MAX = 999_999_999;
const STATE_VERSION = /^[1-9][0-9]{0,8}$/;

const PERSON = /^(.*) <(.*)> ([0-9]+) [+-][0-9]{4}$/;

/**
 * Reads the body of a Git commit object that agstate wrote; headers that it
 * does not know are passed over.
 *
 * @throws AgstateError `CORRUPT_OBJECT`
 */
export function decodeCommit(body: Uint8Array, id: ObjectId): CommitFields {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  const end = text.indexOf("\n\n");
  const headers = new Map<string, string>();
  const parents: ObjectId[] = [];
  for (const line of text.slice(0, end).split("\n")) {
    const space = line.indexOf(" ");
    const key = line.slice(0, space);
    const value = line.slice(space + 1);
    if (key === "parent") parents.push(value as ObjectId);
    else if (!headers.has(key)) headers.set(key, value);
  }
  const author = PERSON.exec(headers.get("author") ?? "");
  const committer = PERSON.exec(headers.get("committer") ?? "");
  const tree = headers.get("tree") ?? "";
  const version = headers.get("agstate-state-version");
  const isVersion = version === undefined || STATE_VERSION.test(version);
  if (
    !isVersion ||
    end < 0 ||
    author === null ||
    committer === null ||
    ![tree, ...parents].every(isObjectId)
  ) {
    throw new AgstateError("CORRUPT_OBJECT", `commit ${id} is malformed`, { id });
  }
  const message = text.slice(end + 2);
  const email = author[2] as string;
  return {
    tree: tree as ObjectId,
    parents,
    author: author[1] as string,
    committer: committer[1] as string,
    workflow: email.startsWith(`${author[1]}@`)
      ? email.slice((author[1] as string).length + 1)
      : email,
    authorTime: Number(author[3]),
    committerTime: Number(committer[3]),
    nonce: headers.get("agstate-nonce") ?? "",
    nextStep: Number(headers.get("agstate-next-step") ?? 1),
    inFlight: (headers.get("agstate-in-flight") ?? "").split(",").filter(Boolean).map(Number),
    ...(version !== undefined && { stateVersion: Number(version) }),
    ...decodeStep(headers),
    ...optional("trace", headers.get("agstate-trace")),
    ...optional("externalId", headers.get("agstate-external-id")),
    ...optional("reason", headers.get("agstate-reason")),
    message: message.endsWith("\n") ? message.slice(0, -1) : message,
  };
}

function decodeStep(headers: ReadonlyMap<string, string>): { step?: CommitStep } {
  const number = headers.get("agstate-step");
  if (number === undefined) return {};
  return {
    step: {
      number: Number(number),
      status: headers.get("agstate-status") as StepStatus,
      action: headers.get("agstate-action") as StepAction,
      ...optional("input", headers.get("agstate-input")),
      ...optional("key", headers.get("agstate-key")),
    },
  };
}

function optional<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: string });
}
