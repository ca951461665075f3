import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import type { HistoryReader } from "../../merge/history.js";
import type { CommitFields } from "../../objects/commit.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeAt } from "../../objects/decode.js";
import type { ObjectReader } from "../../objects/reader.js";
import type { RefStore } from "../../refs/ref-store.js";
import type { CommitRecord } from "../../storage/port.js";

/** Of a workflow's repository what reading records takes, so that the repository can make use of them itself. */
export interface RecordSource {
  readonly refs: Pick<RefStore, "row">;
  readonly history: Pick<HistoryReader, "firstParentWalk">;
  load(
    nodes: AsyncIterable<{ readonly id: ObjectId }>,
    limit: number,
  ): AsyncGenerator<LoadedCommit, void, undefined>;
  objectsOf(commit: LoadedCommit): ObjectReader;
}

/** Where retention is on record, each application as commits on top of those before. */
export const RETENTION_REF = "refs/audit/retention";

/** The version of the record that this code writes. */
export const RETENTION_RECORD_VERSION = 1;

/** A run of a branch that begins or ends with a commit whose record is over. */
export interface RunMark {
  readonly commit: ObjectId;
  readonly run: string;
  readonly mark: "begins" | "ends";
}

/** A commit whose parents were dropped: what they were, and which runs began below them on the line of first parents. */
export interface BoundaryRecord {
  readonly parents: readonly ObjectId[];
  readonly runs: readonly string[];
}

/** What a record tells of all of its kind; the rest is read as it is needed. */
export interface RetentionRecord {
  readonly commit: LoadedCommit;
  readonly kind: "payload" | "history";
  readonly status: "begun" | "done";
  readonly policy: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** Goes through the records of retention, newest first; what is of another form is passed over. */
async function* retentionRecords(
  repository: RecordSource,
): AsyncGenerator<RetentionRecord, void, undefined> {
  const row = await repository.refs.row(RETENTION_REF);
  if (row === undefined || row.id === null) return;
  const line = repository.history.firstParentWalk(row.id);
  for await (const commit of repository.load(line, Number.POSITIVE_INFINITY)) {
    const [kind, status, policy, at] = await Promise.all(
      ["kind", "status", "policy", "at"].map((key) => readPart(repository, commit, [key])),
    );
    if (kind !== "payload" && kind !== "history") continue;
    if (status !== "begun" && status !== "done") continue;
    if (typeof policy === "string" && typeof at === "number") {
      yield { commit, kind, status, policy, at };
    }
  }
}

/** Every commit whose parents were dropped, and what they were, as records tell. */
export async function recordedBoundaries(
  repository: RecordSource,
): Promise<Map<string, BoundaryRecord>> {
  const found = new Map<string, BoundaryRecord>();
  for await (const { commit } of retentionRecords(repository)) {
    const boundaries = await readPart(repository, commit, ["boundaries"]);
    if (!isJsonObject(boundaries)) continue;
    for (const [id, value] of Object.entries(boundaries)) {
      if (!found.has(id)) found.set(id, value as unknown as BoundaryRecord);
    }
  }
  return found;
}

/** Those of some commits that records tell of as dropped. */
export async function recordedDrops(
  repository: RecordSource,
  commits: ReadonlySet<string>,
): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const { commit } of retentionRecords(repository)) {
    if (found.size === commits.size) break;
    const dropped = await readPart(repository, commit, ["dropped"]);
    if (!Array.isArray(dropped)) continue;
    for (const id of dropped) if (typeof id === "string" && commits.has(id)) found.add(id);
  }
  return found;
}

/**
 * What is wrong with the parents in a commit's row: they are those of its body, or none, where it is on record that they
 * were dropped.
 */
export function rowProblem(
  body: Pick<CommitFields, "parents">,
  row: Pick<CommitRecord, "parents">,
  recorded: BoundaryRecord | undefined,
): string | undefined {
  if (body.parents.join() === row.parents.join()) return undefined;
  const onRecord = recorded?.parents.join() === body.parents.join();
  if (onRecord && row.parents.length === 0) return undefined;
  return "its row names other parents than its body";
}

/** What records tell of runs whose marks are over. */
export async function recordedRuns(repository: RecordSource): Promise<RunMark[]> {
  const marks: RunMark[] = [];
  for await (const { commit } of retentionRecords(repository)) {
    const runs = await readPart(repository, commit, ["runs"]);
    if (Array.isArray(runs)) marks.push(...(runs as unknown as RunMark[]));
  }
  return marks;
}

/** The record that tells of a commit's parents that they were dropped; undefined where none does. */
export async function recordOfBoundary(
  repository: RecordSource,
  id: ObjectId,
): Promise<(RetentionRecord & { readonly boundary: BoundaryRecord }) | undefined> {
  for await (const record of retentionRecords(repository)) {
    const boundary = await readPart(repository, record.commit, ["boundaries", id]);
    if (isJsonObject(boundary)) {
      return { ...record, boundary: boundary as unknown as BoundaryRecord };
    }
  }
  return undefined;
}

/** Says that, when and why the history below a commit was dropped; undefined where nobody recorded that. */
export async function explainBoundary(
  repository: RecordSource,
  id: ObjectId,
): Promise<string | undefined> {
  const record = await recordOfBoundary(repository, id);
  if (record === undefined) return undefined;
  const { at, policy, commit } = record;
  return `the history below ${id} was dropped on ${new Date(at).toISOString().slice(0, 10)} by ${commit.author}, under the retention policy ${policy} (record ${commit.id})`;
}

/** The error of what would need a commit's parents, which were dropped. */
export async function historyDropped(
  repository: RecordSource,
  id: ObjectId,
): Promise<AgstateError> {
  const why = (await explainBoundary(repository, id)) ?? `the history below ${id} is not stored`;
  return new AgstateError("REVISION_NOT_FOUND", `what ${id} changed is not known: ${why}`, { id });
}

/** A part of a record; undefined where it is not there. */
async function readPart(
  repository: RecordSource,
  commit: LoadedCommit,
  path: readonly string[],
): Promise<JsonValue | undefined> {
  const { state } = commit.root;
  if (state === undefined) return undefined;
  try {
    return await decodeAt(repository.objectsOf(commit), state, path);
  } catch (error) {
    // A record that was tampered with is what verification tells of.
    if (isAgstateError(error, "MISSING_OBJECT", "CORRUPT_OBJECT", "ERASED", "WITHHELD")) return;
    throw error;
  }
}

/** Counts and cut-off of a record, for the audit: no ids. */
export async function factsOf(
  repository: RecordSource,
  commit: LoadedCommit,
): Promise<JsonObject | null> {
  const { state } = commit.root;
  if (state === undefined) return null;
  const facts: Record<string, JsonValue> = {};
  for (const key of ["kind", "status", "policy", "before", "counts"]) {
    const part = await readPart(repository, commit, [key]);
    if (isJsonObject(part)) Object.assign(facts, part);
    else if (part !== undefined) facts[key] = part;
  }
  return facts;
}
