import { MAX_COMMIT_SECONDS } from "../core/clock.js";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import { checkIdentity, checkOneLine, checkText, quoteForMessage } from "../core/names.js";
import { canonicalText } from "../objects/canonical.js";
import { type CommitStep, encodeCommit, STEP_ACTIONS, type StepStatus } from "../objects/commit.js";
import { type LoadedCommit, ROOT_PARTS, type RootLinks } from "../objects/commit-reader.js";
import { type Encoded, encodeValue, type Link, toLink } from "../objects/encode.js";
import { hashObject } from "../objects/hash.js";
import type { Isolation } from "../objects/isolation.js";
import { normalize } from "../objects/normalize.js";
import type { ObjectSink, WrittenObject } from "../objects/sink.js";
import { encodeTree, type TreeEntry } from "../objects/tree.js";
import type { CommitRecord, ObjectRecord } from "../storage/port.js";
import type { Checkpoint } from "./checkpoint.js";
import { withSubjects } from "./erase/subjects.js";
import type { Repository } from "./repository.js";
import type { StepToRecord, WriteOptions } from "./types.js";

/** Longest external id and traceparent, in bytes. */
const HEADER_MAX_BYTES = 512;

/** A commit that is ready to be written. */
export interface PreparedCommit {
  readonly record: CommitRecord;
  readonly loaded: LoadedCommit;
  readonly objects: readonly WrittenObject[];
  /** The step number that it gives, 0 when it records none. */
  readonly maxStep: number;
  /** What is told of it. */
  readonly told: Checkpoint | undefined;
}

export interface CommitPlan {
  readonly sink: ObjectSink;
  /** First parent first; none for a root. */
  readonly parents: readonly LoadedCommit[];
  /** The root tree's entries without the step. */
  readonly root: RootLinks;
  /** The version of the state's schema; left out, the first parent's for that very state, else none. */
  readonly stateVersion?: number | undefined;
  readonly author: string;
  /** The least number that the next step may take. */
  readonly minStep: number;
  /** What a merge was made by, kept with its commit. */
  readonly merge?: JsonValue;
  /** What an outside framework's checkpoint has beside its state; encoded into the plan's sink. */
  readonly checkpoint?: Encoded;
  readonly options: Omit<WriteOptions, "step"> & { readonly step?: StepEntry };
  /** Why it is made, where nobody's work asks for it. */
  readonly reason?: string | undefined;
  /** What tells of it; gives it a traceparent. */
  readonly told?: Checkpoint;
}

/** What a commit may say of a step: that it is over, as callers record it; or, from the step log, that it began. */
export interface StepEntry extends Omit<StepToRecord, "status"> {
  /** Default `completed`. */
  readonly status?: StepStatus;
  /** Of a step that has its number already; left out, it takes the next one. */
  readonly number?: number;
  /** Its idempotency key, made from its number. */
  readonly key?: (number: number) => string;
}

/** Builds a commit's bytes and everything that lands with it; writes nothing. */
export function prepareCommit(repository: Repository, plan: CommitPlan): PreparedCommit {
  const { options, sink } = plan;
  const { context } = repository;
  const parents: ObjectId[] = [];
  let nextStep = plan.minStep;
  let generation = 1;
  for (const parent of plan.parents) {
    parents.push(parent.id);
    nextStep = Math.max(nextStep, parent.nextStep);
    generation = Math.max(generation, parent.generation + 1);
  }
  const before = plan.parents[0]?.inFlight ?? [];
  const { subjects } = options;
  if (subjects !== undefined && subjects.length > 0) refuseWithoutStep(options.step);
  const step =
    options.step && prepareStep(repository, sink, options.step, nextStep, before, subjects);
  const merge = plan.merge === undefined ? undefined : recordObjects(sink, plan.merge, null);
  const checkpoint = plan.checkpoint && placeRecord(sink, plan.checkpoint);
  const { state, envelope, policy } = plan.root;
  const root: RootLinks = {
    state,
    envelope,
    policy,
    step: step?.link,
    merge: merge?.link,
    checkpoint: checkpoint?.link,
  };
  const inline = [rootTree(root)];
  if (step?.inline !== undefined) inline.push(step.inline);
  if (merge?.inline !== undefined) inline.push(merge.inline);
  if (checkpoint?.inline !== undefined) inline.push(checkpoint.inline);
  const tree = (inline[0] as WrittenObject).record.id;
  const time = commitSeconds(options.date?.getTime() ?? context.now());
  const author = checkIdentity("author", options.author ?? plan.author);
  const message = options.message ?? "";
  const { trace, externalId } = options;
  // One shape for all commits, and no copies: this is on the path of every write.
  const loaded: Mutable<LoadedCommit> = {
    id: tree,
    generation,
    root,
    inline: new Map(inline.map(({ record, decoded }) => [record.id, decoded])),
    tree,
    parents,
    author,
    committer: author,
    workflow: repository.workflow,
    authorTime: time,
    committerTime: time,
    nonce: context.randomHex(16),
    nextStep: step ? Math.max(nextStep, step.header.number + 1) : nextStep,
    inFlight: step ? step.inFlight : before,
    stateVersion: versionOf(plan),
    step: step?.header,
    trace:
      trace === undefined ? plan.told?.traceparent : checkOneLine("trace", trace, HEADER_MAX_BYTES),
    externalId:
      externalId === undefined
        ? undefined
        : checkOneLine("externalId", externalId, HEADER_MAX_BYTES),
    reason: plan.reason,
    message: checkText("message", message, context.limits.messageMaxBytes),
  };
  const body = encodeCommit(loaded);
  loaded.id = hashObject("commit", body);
  const prepared: PreparedCommit = {
    record: {
      id: loaded.id,
      body,
      parents,
      generation,
      time,
      externalId: externalId ?? null,
      inline: inline.map((object) => object.record),
    },
    loaded,
    objects: sink.all(),
    maxStep: step?.header.number ?? 0,
    told: plan.told,
  };
  plan.told?.made(prepared, stepName(options.step));
  return prepared;
}

/** The version that a commit says of its state. */
function versionOf({ root: { state }, stateVersion, parents }: CommitPlan): number | undefined {
  if (state === undefined || stateVersion !== undefined) return state && stateVersion;
  const [parent] = parents;
  return parent?.root.state?.id === state.id ? parent.stateVersion : undefined;
}

function stepName(step: StepEntry | undefined): string | undefined {
  const name = (step?.record as { readonly name?: unknown } | null | undefined)?.name;
  return typeof name === "string" ? name : undefined;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A commit's root tree: an entry for each part that it has, kept in the commit's row. */
function rootTree(root: RootLinks): WrittenObject {
  const entries: TreeEntry[] = [];
  // In Git's order, which is that of the names.
  for (const name of ROOT_ORDER) {
    const link = root[name];
    if (link !== undefined) entries.push({ name, type: link.type, id: link.id });
  }
  const body = encodeTree(entries);
  const record: ObjectRecord = { id: hashObject("tree", body), type: "tree", body };
  return { record, decoded: { type: "tree", entries } };
}

const ROOT_ORDER = [...ROOT_PARTS].sort();

function prepareStep(
  repository: Repository,
  sink: ObjectSink,
  step: StepEntry,
  nextStep: number,
  before: readonly number[],
  subjects: readonly string[] | undefined,
): {
  header: CommitStep;
  link: Link;
  inline: WrittenObject | undefined;
  inFlight: readonly number[];
} {
  const { action, status = "completed", number = nextStep } = step;
  checkOneOf("action", action, STEP_ACTIONS);
  // Only the step log begins steps.
  checkOneOf("status", status, step.key === undefined ? SEALED : STEP_STATUSES);
  const others = before.filter((other) => other !== number);
  const maxBytes = repository.context.limits.stateMaxBytes;
  const given = normalize(step.record, { maxBytes, what: "step record" });
  const record = withSubjects(given, repository, subjects);
  const input = inputOf(record);
  const policy = repository.policyOfStep(action, record);
  return {
    header: {
      number,
      status,
      action,
      input: input === undefined ? undefined : repository.keys.digest(canonicalText(input)),
      key: step.key?.(number),
    },
    inFlight: status === "started" ? [...others, number].sort((a, b) => a - b) : others,
    ...recordObjects(sink, record, policy),
  };
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function refuseWithoutStep(step: StepEntry | undefined): void {
  if (step !== undefined) return;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    "a commit's subjects say whose its step is, and it records none; give the step as well",
    { field: "subjects" },
  );
}

/** Where a record that belongs to one commit is: in the commit's row, or among the objects. */
interface PlacedRecord {
  readonly link: Link;
  readonly inline: WrittenObject | undefined;
}

/** Maps a record that belongs to one commit. */
function recordObjects(
  sink: ObjectSink,
  record: JsonValue,
  policy: Isolation | null,
): PlacedRecord {
  const encoded = encodeValue(sink, record, policy);
  return policy?.isolated === true
    ? { link: toLink(sink, encoded), inline: undefined }
    : placeRecord(sink, encoded);
}

/**
 * Places a record that belongs to one commit.
 *
 * A small one is reached through this commit alone, so it lives in the commit's
 * row. It goes by the sink: part of the state may be the same blob, and
 * must be stored as well.
 */
function placeRecord(sink: ObjectSink, encoded: Encoded): PlacedRecord {
  if ("link" in encoded) return { link: encoded.link, inline: undefined };
  const inline = sink.blobObject(encoded.text);
  return { link: { type: "blob", id: inline.record.id }, inline };
}

/** How a step that is over ended. */
const SEALED = ["completed", "failed"] as const;
const STEP_STATUSES = ["started", ...SEALED] as const;

function checkOneOf(what: string, given: unknown, known: readonly string[]): void {
  if (known.includes(given as string)) return;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `a step's ${what} is ${quoteForMessage(String(given))}; there are ${known.join(", ")}`,
    { [what]: String(given) },
  );
}

function inputOf(record: JsonValue): JsonValue | undefined {
  if (typeof record !== "object" || record === null || Array.isArray(record)) return undefined;
  return (record as { readonly [key: string]: JsonValue }).input;
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function commitSeconds(milliseconds: number): number {
  const seconds = Math.floor(milliseconds / 1000);
  if (!(seconds >= 0 && seconds <= MAX_COMMIT_SECONDS)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `the date is ${seconds} seconds from 1970; a commit holds 0 to ${MAX_COMMIT_SECONDS}`,
      { seconds, limit: MAX_COMMIT_SECONDS },
    );
  }
  return seconds;
}
