import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { checkIdentity, quoteForMessage } from "../../core/names.js";
import { diffLinks } from "../../merge/diff.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Link } from "../../objects/encode.js";
import { refuseWithheld } from "../../objects/reader.js";
import type { ObjectSink } from "../../objects/sink.js";
import { branchRef, shortRefName } from "../../refs/names.js";
import { movedRow, type RefUpdate } from "../../refs/ref-store.js";
import { BRANCHES, type RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { prepareCommit } from "../write-commit.js";
import type { CheckedSchema } from "./schema.js";
import { encodeMigrated } from "./states.js";
import type {
  BranchMigration,
  MigratedPath,
  MigrateStateOptions,
  StateMigrationReport,
} from "./types.js";

/** How many paths are told of each branch. */
const PATHS_SHOWN = 20;
/** How often a branch is tried that moves meanwhile. */
const ATTEMPTS = 100;
const PAUSE_MAX_MS = 20;

/** Brings the states of branches to the schema's version; see `workflow.migrateState`. */
export async function migrateState(
  repository: Repository,
  completed: boolean,
  options: MigrateStateOptions,
): Promise<StateMigrationReport> {
  const { schema, workflow } = repository;
  const { dryRun = false } = options;
  const author = checkIdentity("author", options.author ?? "agstate");
  if (schema === null) throw noSchema(workflow);
  if (completed && !dryRun) throw isComplete(workflow);
  const branches: BranchMigration[] = [];
  for (const row of await rowsOf(repository, options.branches)) {
    const made = await migrateBranch({ repository, schema, author, dryRun }, row);
    if (made !== null) branches.push(made);
  }
  return { workflow, version: schema.version, dryRun, branches };
}

async function rowsOf(
  { refs }: Repository,
  named: readonly string[] | undefined,
): Promise<RefRow[]> {
  const rows = await refs.list(BRANCHES);
  if (named === undefined) return rows;
  const wanted = new Set(named.map(branchRef));
  for (const ref of wanted) {
    if (rows.some(({ name }) => name === ref)) continue;
    throw new AgstateError(
      "REF_NOT_FOUND",
      `there is no ${shortRefName(ref)}; see agstate branch for what there is`,
      { ref },
    );
  }
  return rows.filter(({ name }) => wanted.has(name));
}

interface Job {
  readonly repository: Repository;
  readonly schema: CheckedSchema;
  readonly author: string;
  readonly dryRun: boolean;
}

/** Migrates one branch; null when it is deleted at this moment. */
async function migrateBranch(job: Job, first: RefRow): Promise<BranchMigration | null> {
  const { repository, schema } = job;
  let row: RefRow | undefined = first;
  for (let attempt = 1; row !== undefined && row.id !== null; attempt++) {
    const commit = await repository.commits.read(row.id);
    const base = {
      branch: shortRefName(row.name),
      from: commit.root.state === undefined ? null : schema.versionOf(commit),
      to: schema.version,
      head: commit.id,
      commit: null,
      changes: 0,
      paths: [],
      error: null,
    };
    try {
      const from = schema.migratesFrom(commit);
      if (from === null) return { ...base, status: "current" };
      const made = await prepare(repository, commit, from);
      const told = { ...base, changes: made.changes, paths: made.paths };
      if (job.dryRun) return { ...told, status: "pending" };
      const id = await land(job, row, commit, made, from);
      if (id !== null) return { ...told, status: "migrated", commit: id };
      if (attempt >= ATTEMPTS) throw outrun(row.name, attempt);
    } catch (error) {
      if (!isOfOneBranch(error)) throw error;
      return { ...base, status: "failed", error };
    }
    await sleep(Math.random() * PAUSE_MAX_MS);
    row = await repository.refs.row(row.name);
  }
  return null;
}

/** A migrated state that is not written yet, and where it differs from the one that is stored. */
interface Prepared {
  readonly link: Link;
  readonly sink: ObjectSink;
  readonly changes: number;
  readonly paths: readonly MigratedPath[];
}

async function prepare(
  repository: Repository,
  commit: LoadedCommit,
  from: number,
): Promise<Prepared> {
  const stored = commit.root.state as Link;
  const objects = repository.objectsOf(commit);
  // Of what is not told nobody can say that it is of another version now.
  const whole = await objects.read(stored.id);
  if (whole.type === "opaque") throw refuseWithheld(objects.withheld(stored.id, whole));
  const { link, sink } = await repository.keys.encoding(async () => {
    const fresh = repository.newSink();
    const older = { repository, commit, from, reader: objects };
    return { link: await encodeMigrated(older, fresh), sink: fresh };
  });
  sink.keepReachable([link.id]);
  const get = (id: ObjectId) => commit.inline.get(id) ?? sink.get(id);
  const reader = repository.objects.with({ get });
  const paths: MigratedPath[] = [];
  let changes = 0;
  for await (const { kind, path } of diffLinks(reader, stored, link)) {
    if (changes++ < PATHS_SHOWN) paths.push({ kind, path });
  }
  return { link, sink, changes, paths };
}

/**
 * Puts the commit of a migrated state on top of a branch's head.
 *
 * @returns its id; null when the branch has moved meanwhile
 */
async function land(
  { repository, schema, author }: Job,
  row: RefRow,
  commit: LoadedCommit,
  { link, sink }: Prepared,
  from: number,
): Promise<ObjectId | null> {
  const message = `Migrate state ${from} -> ${schema.version}`;
  const { envelope, policy } = commit.root;
  const prepared = prepareCommit(repository, {
    sink,
    parents: [commit],
    root: { state: link, envelope, policy },
    stateVersion: schema.version,
    author,
    minStep: row.maxStep + 1,
    options: { message },
  });
  const update: RefUpdate = {
    ref: row.name,
    expect: { kind: "id", id: commit.id, seq: row.seq },
    target: prepared.record.id,
    commits: [prepared.record],
    note: { actor: author, reason: message },
  };
  const objects = prepared.objects.map(({ record }) => record);
  const [answer] = await repository.refs.apply({ updates: [update], objects });
  if (answer?.outcome === "conflict") return null;
  movedRow(update, answer);
  repository.objects.prime(prepared.objects);
  return prepared.record.id;
}

/** Whether an error is about one branch, and not about the store or all of the workflow. */
function isOfOneBranch(error: unknown): error is AgstateError {
  if (!isAgstateError(error)) return false;
  const { code } = error;
  return !code.startsWith("STORE_") && code !== "WORKFLOW_COMPLETE" && code !== "KEY_UNAVAILABLE";
}

function noSchema(workflow: string): AgstateError {
  return new AgstateError(
    "SCHEMA_NEEDED",
    `nothing says which version the state of workflow ${quoteForMessage(workflow)} is to have; open the store with a schema (openStore's schema, or --migrations FILE)`,
    { workflow },
  );
}

function isComplete(workflow: string): AgstateError {
  return new AgstateError(
    "WORKFLOW_COMPLETE",
    `workflow ${quoteForMessage(workflow)} is complete, and its branches take no commits; its states are migrated when they are read, and a dry run (dryRun, --dry-run) tells how`,
    { workflow },
  );
}

function outrun(ref: string, attempts: number): AgstateError {
  return new AgstateError(
    "REF_CONFLICT",
    `${shortRefName(ref)} was moved by others each of ${attempts} times that its state was to be migrated; run it again when there is less going on`,
    { ref, attempts },
  );
}
