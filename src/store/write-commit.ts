import { MAX_COMMIT_SECONDS } from "../core/clock.js";
import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { checkIdentity, checkOneLine, checkText } from "../core/names.js";
import { canonicalText } from "../objects/canonical.js";
import { type CommitFields, type CommitStep, encodeCommit } from "../objects/commit.js";
import type { LoadedCommit, RootPart } from "../objects/commit-reader.js";
import { type Encoded, encodeValue, type Link, toLink } from "../objects/encode.js";
import { digestText, hashObject } from "../objects/hash.js";
import { normalize } from "../objects/normalize.js";
import { type DecodedObject, decodeRecord } from "../objects/reader.js";
import type { ObjectSink } from "../objects/sink.js";
import { encodeTree } from "../objects/tree.js";
import type { CommitRecord, ObjectRecord } from "../storage/port.js";
import type { Repository } from "./repository.js";
import type { StepToRecord, WriteOptions } from "./types.js";

/** Longest external id and traceparent, in bytes. */
const HEADER_MAX_BYTES = 512;

/** A commit that is ready to be written. */
export interface PreparedCommit {
  readonly record: CommitRecord;
  readonly loaded: LoadedCommit;
  readonly objects: readonly ObjectRecord[];
  /** The step number that it gives, 0 when it records none. */
  readonly maxStep: number;
}

export interface CommitPlan {
  readonly sink: ObjectSink;
  /** First parent first; none for a root. */
  readonly parents: readonly LoadedCommit[];
  /** The root tree's entries without the step. */
  readonly root: Partial<Record<RootPart, Link>>;
  readonly author: string;
  /** The least number that the next step may take. */
  readonly minStep: number;
  readonly options: WriteOptions;
}

/** Builds a commit's bytes and everything that lands with it; writes nothing. */
export function prepareCommit(repository: Repository, plan: CommitPlan): PreparedCommit {
  const { options, sink } = plan;
  const [first] = plan.parents;
  const nextStep = Math.max(plan.minStep, ...plan.parents.map((p) => p.nextStep));
  const step = options.step && prepareStep(repository, sink, options.step, nextStep);
  const root: Partial<Record<RootPart, Link>> = { ...plan.root };
  if (step) root.step = step.link;
  const tree = rootTree(root);
  const inline = [tree, ...(step?.inline ? [step.inline] : [])];
  const time = commitSeconds(options.date?.getTime() ?? repository.context.now());
  const author = checkIdentity("author", options.author ?? plan.author);
  const fields: CommitFields = {
    tree: tree.id,
    parents: plan.parents.map((p) => p.id),
    author,
    committer: author,
    workflow: repository.workflow,
    authorTime: time,
    committerTime: time,
    nonce: repository.context.randomHex(16),
    nextStep: step ? nextStep + 1 : nextStep,
    inFlight: first?.inFlight ?? [],
    ...(step ? { step: step.header } : {}),
    ...(options.trace === undefined
      ? {}
      : { trace: checkOneLine("trace", options.trace, HEADER_MAX_BYTES) }),
    ...(options.externalId === undefined
      ? {}
      : { externalId: checkOneLine("externalId", options.externalId, HEADER_MAX_BYTES) }),
    message: checkText("message", options.message ?? "", repository.context.limits.messageMaxBytes),
  };
  const body = encodeCommit(fields);
  const generation = 1 + Math.max(0, ...plan.parents.map((p) => p.generation));
  const id = hashObject("commit", body);
  const atHand = new Map<ObjectRecord["id"], DecodedObject>();
  for (const o of inline) atHand.set(o.id, decodeRecord(o));
  return {
    record: {
      id,
      body,
      parents: fields.parents,
      generation,
      time,
      externalId: fields.externalId ?? null,
      inline,
    },
    loaded: { ...fields, id, generation, root, inline: atHand },
    objects: sink.objects(),
    maxStep: step ? nextStep : 0,
  };
}

/** A commit's root tree: at most four entries, kept in the commit's row. */
function rootTree(root: Partial<Record<RootPart, Link>>): ObjectRecord {
  const entries = Object.entries(root).map(([name, link]) => ({
    name,
    type: link.type,
    id: link.id,
  }));
  const body = encodeTree(entries);
  return { id: hashObject("tree", body), type: "tree", body };
}

function prepareStep(
  repository: Repository,
  sink: ObjectSink,
  step: StepToRecord,
  number: number,
): { header: CommitStep; link: Link; inline: ObjectRecord | undefined } {
  const maxBytes = repository.context.limits.stateMaxBytes;
  const record = normalize(step.record, { maxBytes, what: "step record" });
  const policy = repository.stepPolicy;
  const encoded: Encoded = encodeValue(sink, record, policy);
  const apart = policy?.isolated === true;
  const link = toLink(sink, encoded);
  // A small record is reached through this commit alone, so it lives in the commit's row.
  const inline = link.type === "blob" && !apart ? sink.take(link.id) : undefined;
  const input = inputOf(record);
  return {
    header: {
      number,
      status: step.status ?? "completed",
      action: step.action,
      ...(input === undefined ? {} : { input: digestText(canonicalText(input)) }),
    },
    link,
    inline,
  };
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
