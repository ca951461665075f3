import { ZERO_ID } from "../core/ids.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { parseDataPolicy } from "../objects/data-policy.js";
import { shortRefName } from "../refs/names.js";
import type { RefRow, StoredReflogEntry, WorkflowRecord } from "../storage/port.js";
import type { Commit, Ref, ReflogLine, WorkflowInfo } from "./types.js";

/** A loaded commit as the API gives it. */
export function toCommit(c: LoadedCommit): Commit {
  return {
    id: c.id,
    tree: c.tree,
    parents: c.parents,
    author: c.author,
    committer: c.committer,
    date: new Date(c.authorTime * 1000),
    message: c.message,
    step: c.step ?? null,
    nextStep: c.nextStep,
    inFlight: c.inFlight,
    stateVersion: c.stateVersion ?? null,
    generation: c.generation,
    trace: c.trace ?? null,
    externalId: c.externalId ?? null,
    checkpointReason: c.reason ?? null,
    ...(c.cut !== undefined && { boundary: true }),
  };
}

export function toRef(row: RefRow): Ref {
  return {
    name: row.name,
    shortName: shortRefName(row.name),
    id: row.id as string,
    seq: row.seq,
    incarnation: row.incarnation,
    maxStep: row.maxStep,
  };
}

export function toReflogLine(entry: StoredReflogEntry, lastSeq: number): ReflogLine {
  return {
    selector: `${shortRefName(entry.ref)}@{${lastSeq - entry.seq}}`,
    seq: entry.seq,
    old: entry.old === ZERO_ID ? null : entry.old,
    new: entry.new === ZERO_ID ? null : entry.new,
    actor: entry.actor,
    reason: entry.reason,
    date: new Date(entry.time),
    trace: entry.trace === "" ? null : entry.trace,
    incarnation: entry.incarnation,
    hash: entry.hash,
    previous: entry.previous,
  };
}

export function toWorkflowInfo(record: WorkflowRecord): WorkflowInfo {
  return {
    id: record.id,
    classification: record.classification,
    storageRegion: record.storageRegion,
    retentionPolicy: record.retentionPolicy,
    ...parseDataPolicy(record.isolation),
    createdAt: new Date(record.createdAt),
    completedAt: record.completedAt === null ? null : new Date(record.completedAt),
  };
}
