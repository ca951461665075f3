import { isAgstateError } from "../../core/errors.js";
import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeAt, decodeValue } from "../../objects/decode.js";
import type { ObjectReader } from "../../objects/reader.js";
import { EVENTS_REF, GENESIS_REF, HOLDS } from "../../refs/names.js";
import { parseReviewRecord, type ReviewStatus } from "../../reviews/record.js";
import { BRANCHES, type StoredReflogEntry } from "../../storage/port.js";
import { ERASURES_REF, parseErasureRecord } from "../erase/record.js";
import { lineFrom } from "../line.js";
import { REDECLARED } from "../redeclare.js";
import type { Repository } from "../repository.js";
import { factsOf, RETENTION_REF } from "../retention/records.js";
import { toMove } from "../watch.js";
import { parseAuditRecord } from "./record.js";
import type { AuditEvent, AuditKind, AuditStep } from "./types.js";

/** The most commits that one move is looked through for steps. */
const LINE_MAX = 10_000;

const REVIEWS = "refs/reviews/";

const KIND_OF_REVIEW: Readonly<Record<ReviewStatus, AuditKind>> = {
  open: "review-requested",
  approved: "approved",
  used: "approval-used",
  discarded: "discarded",
  expired: "expired",
  lapsed: "lapsed",
  denied: "refused",
};

/** What an entry's ref and commit tell beyond the entry itself. */
type Told = Pick<AuditEvent, "kind" | "steps" | "facts">;

/** Tells of entries of logs what they were, reading their commits together. */
export async function describeEntries(
  repository: Repository,
  entries: readonly StoredReflogEntry[],
): Promise<AuditEvent[]> {
  const commits = await commitsThatAreThere(
    repository,
    entries.flatMap((entry) => [entry.new, entry.old]).filter((id) => id !== ZERO_ID),
  );
  const events: AuditEvent[] = [];
  for (const entry of entries) {
    const told = await tell(repository, entry, commits);
    events.push({ workflow: repository.workflow, ...toMove(entry), ...told });
  }
  return events;
}

async function tell(
  repository: Repository,
  entry: StoredReflogEntry,
  commits: ReadonlyMap<ObjectId, LoadedCommit>,
): Promise<Told> {
  const { ref } = entry;
  const gone = entry.new === ZERO_ID;
  if (ref.startsWith(BRANCHES)) return tellBranch(repository, entry, commits);
  if (ref === RETENTION_REF) return tellRetention(repository, commits.get(entry.new));
  if (ref === EVENTS_REF) return tellEvent(repository, commits.get(entry.new));
  if (ref === ERASURES_REF) return tellErasure(repository, commits.get(entry.new));
  if (ref === GENESIS_REF) return tellGenesis(repository, entry, commits.get(entry.new));
  if (ref.startsWith("refs/tags/")) return plain(gone ? "delete" : "tag");
  if (ref.startsWith(HOLDS)) return plain(gone ? "release" : "hold");
  if (ref.startsWith("refs/leases/")) return plain(gone ? "lease-ended" : "lease");
  if (ref.startsWith("refs/merges/")) return plain(gone ? "merge-settled" : "merge-stored");
  if (ref.startsWith(REVIEWS)) return tellReview(repository, ref, commits.get(entry.new));
  return plain("moved");
}

/** What became of a workflow as a whole: created, declared otherwise, completed. */
async function tellGenesis(
  repository: Repository,
  { old, reason }: StoredReflogEntry,
  commit: LoadedCommit | undefined,
): Promise<Told> {
  if (old === ZERO_ID) return plain("workflow");
  if (!reason.startsWith(REDECLARED)) return plain("completed");
  const state = commit?.root.state;
  const declared = state && (await ifReadable(() => decodeValue(repository.objects, state)));
  if (!isJsonObject(declared) || !isJsonObject(declared.changed)) return plain("redeclared");
  const { classification = null, retentionPolicy = null } = declared;
  const facts = { from: declared.changed.from ?? null, to: { classification, retentionPolicy } };
  return { kind: "redeclared", steps: [], facts };
}

function plain(kind: AuditKind): Told {
  return { kind, steps: [], facts: null };
}

async function tellBranch(
  repository: Repository,
  entry: StoredReflogEntry,
  commits: ReadonlyMap<ObjectId, LoadedCommit>,
): Promise<Told> {
  if (entry.new === ZERO_ID) return plain("delete");
  if (entry.old === ZERO_ID) return plain("branch");
  // Nothing else moves a branch to where it is.
  if (entry.new === entry.old) return plain("completed");
  const to = commits.get(entry.new);
  if (to === undefined) {
    const kind = entry.reason.startsWith("reset: ") ? "reset" : "commit";
    return { kind, steps: null, facts: null };
  }
  const line = await lineSince(repository, to, entry.old, commits.get(entry.old));
  if (line === "dropped") return { kind: "commit", steps: null, facts: null };
  if (line === null) return plain("reset");
  const steps: AuditStep[] = [];
  for (const { commit, objects } of line) {
    if (commit.step !== undefined) steps.push(await stepOf(commit, objects));
  }
  if (entry.reason.startsWith("reset: ")) return { kind: "reset", steps, facts: null };
  // A fast-forward has no commit of its own: only the log tells of it.
  const merges =
    entry.reason.startsWith("merge ") || line.some(({ commit }) => commit.parents.length > 1);
  const kind = merges ? "merge" : steps.length > 0 ? "step" : "commit";
  return { kind, steps, facts: null };
}

/**
 * The commits of a line of first parents beyond one of them, the earliest first; null when that one is not on it, or too far,
 * "dropped" when the history may have gone on to it, and was dropped.
 */
async function lineSince(
  repository: Repository,
  to: LoadedCommit,
  old: ObjectId,
  from: LoadedCommit | undefined,
) {
  if (firstParentOf(to) === old) return [{ commit: to, objects: repository.objectsOf(to) }];
  if (from === undefined) return "dropped";
  if (to.generation <= from.generation) return null;
  const line: { commit: LoadedCommit; objects: ObjectReader }[] = [];
  try {
    const pageCommits = Math.min(to.generation - from.generation + 1, LINE_MAX);
    for await (const one of lineFrom(repository, to.id, "step", Math.min(pageCommits, 1000))) {
      if (one.commit.id === old) return line.reverse();
      if (one.commit.generation <= from.generation || line.length >= LINE_MAX) return null;
      line.push(one);
      if (one.commit.cut !== undefined) {
        return firstParentOf(one.commit) === old ? line.reverse() : "dropped";
      }
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  return null;
}

/** As it was before history was dropped. */
function firstParentOf({ parents, cut }: LoadedCommit): ObjectId | undefined {
  return (cut ?? parents)[0];
}

async function stepOf(commit: LoadedCommit, objects: ObjectReader): Promise<AuditStep> {
  const { number, action, status } = commit.step as NonNullable<LoadedCommit["step"]>;
  const link = commit.root.step;
  const name =
    link === undefined ? undefined : await ifReadable(() => decodeAt(objects, link, ["name"]));
  return {
    number,
    name: typeof name === "string" ? name : null,
    action,
    status,
    commit: commit.id,
  };
}

async function tellReview(
  repository: Repository,
  ref: string,
  commit: LoadedCommit | undefined,
): Promise<Told> {
  const record = parseReviewRecord((await stateOf(repository, commit)) ?? null);
  if (record === null) return { kind: "moved", steps: null, facts: null };
  const { kind, subject, decision, use } = record;
  return {
    kind: KIND_OF_REVIEW[record.status],
    steps: [],
    facts: {
      review: ref.slice(REVIEWS.length),
      of: kind,
      name: subject.name,
      branch: subject.branch,
      action: subject.action,
      number: use?.number ?? subject.number,
      askedBy: record.askedBy,
      ...(decision === null ? {} : { decidedBy: decision.by }),
    },
  };
}

async function tellRetention(
  repository: Repository,
  commit: LoadedCommit | undefined,
): Promise<Told> {
  const facts = commit && (await factsOf(repository, commit));
  return { kind: "retention", steps: facts ? [] : null, facts: facts ?? null };
}

async function tellEvent(repository: Repository, commit: LoadedCommit | undefined): Promise<Told> {
  const record = parseAuditRecord(await stateOf(repository, commit));
  if (record === null) return { kind: "moved", steps: null, facts: null };
  const { kind, facts, times } = record;
  return { kind, steps: [], facts: { ...facts, times } };
}

async function tellErasure(
  repository: Repository,
  commit: LoadedCommit | undefined,
): Promise<Told> {
  const record = parseErasureRecord(await stateOf(repository, commit));
  if (record === null) return { kind: "moved", steps: null, facts: null };
  const { id, kind, status, by, reason, erased } = record;
  const facts = { request: id, of: kind, status, by, reason, ...erased };
  return { kind: "erasure", steps: [], facts };
}

/** A commit's state, as a layer keeps its records; undefined when it is not there, or damaged. */
async function stateOf(
  repository: Repository,
  commit: LoadedCommit | undefined,
): Promise<JsonValue | undefined> {
  const link = commit?.root.state;
  if (commit === undefined || link === undefined) return undefined;
  const value = await ifReadable(() => decodeValue(repository.objectsOf(commit), link));
  return isJsonObject(value) ? value : undefined;
}

/** Reads commits in one call, or, where one of them is damaged, each by itself; those that cannot be read are left out. */
async function commitsThatAreThere(
  { storage, workflow, commits }: Repository,
  ids: readonly ObjectId[],
): Promise<Map<ObjectId, LoadedCommit>> {
  const found = new Map<ObjectId, LoadedCommit>();
  const unread: ObjectId[] = [];
  for (const id of new Set(ids)) {
    if (commits.has(id)) found.set(id, await commits.read(id));
    else unread.push(id);
  }
  const take = async (some: readonly ObjectId[]) => {
    for (const record of await storage.readCommits(workflow, some)) {
      // Not kept in the cache: a whole history would push out what is in use.
      if (record !== undefined) found.set(record.id, commits.load(record));
    }
  };
  if (unread.length === 0) return found;
  try {
    await take(unread);
  } catch (error) {
    if (!isDamage(error)) throw error;
    for (const id of unread) await ifReadable(() => take([id]));
  }
  return found;
}

async function ifReadable<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

/** Whether what was to be read is not there, erased, elsewhere or damaged: the stream tells the rest all the same. */
function isDamage(error: unknown): boolean {
  return isAgstateError(
    error,
    "MISSING_OBJECT",
    "CORRUPT_OBJECT",
    "ERASED",
    "WITHHELD",
    "UNSUPPORTED_ENCODING",
  );
}
