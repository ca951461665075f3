import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { formatPointer } from "../../core/json-pointer.js";
import { checkIdentity, quoteForMessage } from "../../core/names.js";
import { resultObjects } from "../../merge/merge-commits.js";
import { checkPolicies, type Policies } from "../../merge/policy.js";
import type { CustomResolvers, Resolution } from "../../merge/resolvers.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { checkRefComponent, shortRefName } from "../../refs/names.js";
import { movedRow, type RefUpdate } from "../../refs/ref-store.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { prepareCommit } from "../write-commit.js";
import { mergeMessage } from "./message.js";
import { DEFAULT_MAX_ATTEMPTS, type MergeRequest } from "./request.js";
import { type Attempt, MergeRun } from "./run.js";
import { type StoredResolution, storedResolution, toStored } from "./settle.js";
import type { MergePolicyOptions, MergeRecord } from "./types.js";

const MERGES = "refs/merges/";

/** What a stored merge keeps in its commit: the request, and the resolutions made so far. */
interface StoredRequest {
  readonly pending: true;
  readonly operation: MergeRecord["operation"];
  readonly into: string;
  readonly sources: readonly { readonly branch: string; readonly head: ObjectId }[];
  readonly mainline?: number;
  readonly author: string;
  readonly message?: string;
  readonly trace?: string;
  /** Milliseconds. */
  readonly date?: number;
  readonly allowUnrelated: boolean;
  readonly allowOpenIntents: boolean;
  readonly policies: Policies;
  readonly resolutions: readonly StoredResolution[];
}

/** A merge on `refs/merges/<name>` as it was read. */
export interface StoredMergeState {
  readonly name: string;
  readonly row: RefRow;
  readonly commit: LoadedCommit;
  readonly stored: StoredRequest;
}

function mergeRef(name: string): string {
  return MERGES + checkRefComponent("merge", name);
}

/** Reads all stored merges, sorted by name. */
export async function listStored(repository: Repository): Promise<StoredMergeState[]> {
  const rows = await repository.refs.list(MERGES);
  const states: StoredMergeState[] = [];
  for (const row of rows) states.push(await load(repository, row));
  return states;
}

/**
 * Reads a stored merge by its name; without one, the only one there is.
 *
 * @throws AgstateError `MERGE_NOT_FOUND`, `INVALID_ARGUMENT` when there are several
 */
export async function readStored(repository: Repository, name?: string): Promise<StoredMergeState> {
  if (name === undefined) {
    const rows = await repository.refs.list(MERGES);
    if (rows.length === 1) return load(repository, rows[0] as RefRow);
    if (rows.length === 0) throw notFound("there is no stored merge");
    const names = rows.map((row) => row.name.slice(MERGES.length));
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `there are ${names.length} stored merges; name one of ${names.join(", ")}`,
      { merges: names },
    );
  }
  const row = await repository.refs.row(mergeRef(name.replace(/^(?:refs\/)?merges\//, "")));
  if (row === undefined || row.id === null) {
    throw notFound(`there is no stored merge ${quoteForMessage(name)}`);
  }
  return load(repository, row);
}

function notFound(what: string): AgstateError {
  return new AgstateError(
    "MERGE_NOT_FOUND",
    `${what}; a merge is stored when it has conflicts and onConflict is "store" (agstate merge does that)`,
  );
}

async function load(repository: Repository, row: RefRow): Promise<StoredMergeState> {
  const commit = await repository.commits.read(row.id as ObjectId);
  const link = commit.root.merge;
  const record = link && (await decodeValue(repository.objectsOf(commit), link));
  if ((record as { pending?: unknown } | undefined)?.pending !== true) {
    throw new AgstateError(
      "CORRUPT_OBJECT",
      `${shortRefName(row.name)} is at ${commit.id}, which holds no stored merge`,
      { ref: row.name, id: commit.id },
    );
  }
  const stored = record as unknown as StoredRequest;
  return { name: row.name.slice(MERGES.length), row, commit, stored };
}

/** The request that a stored merge was made by, to be tried again. */
export async function requestOf(
  repository: Repository,
  { stored }: StoredMergeState,
  options: Pick<MergePolicyOptions, "resolvers" | "resolve"> & {
    readonly author?: string;
    readonly message?: string;
    readonly maxAttempts?: number;
    readonly signal?: AbortSignal;
  } = {},
): Promise<MergeRequest> {
  const heads = stored.sources.map(({ head }) => head);
  const commits = await repository.commits.readAll(heads);
  const message = options.message ?? stored.message;
  return {
    operation: stored.operation,
    into: stored.into,
    sources: stored.sources.map(({ branch }, i) => ({
      branch,
      commit: commits[i] as LoadedCommit,
    })),
    mainline: stored.mainline,
    author: checkIdentity("author", options.author ?? stored.author),
    write: {
      ...(message === undefined ? {} : { message }),
      ...(stored.trace === undefined ? {} : { trace: stored.trace }),
      ...(stored.date === undefined ? {} : { date: new Date(stored.date) }),
    },
    // It had conflicts, so there is something to merge.
    fastForward: "auto",
    allowUnrelated: stored.allowUnrelated,
    allowOpenIntents: stored.allowOpenIntents,
    policies: checkPolicies(stored.policies),
    resolvers: withResolvers(repository, options.resolvers),
    resolve: options.resolve,
    resolutions: stored.resolutions,
    maxAttempts: options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
    signal: options.signal,
  };
}

export function withResolvers(repository: Repository, given?: CustomResolvers): CustomResolvers {
  return { ...repository.context.resolvers, ...given };
}

/**
 * Stores an attempt that has open conflicts under a new name: its parents keep
 * the target and the sources, its state is what is merged so far.
 *
 * @returns the name
 */
export async function storeAttempt(
  repository: Repository,
  request: MergeRequest,
  attempt: Attempt,
  open: number,
): Promise<string> {
  const { write } = request;
  const stored: StoredRequest = {
    pending: true,
    operation: request.operation,
    into: request.into,
    sources: request.sources.map(({ branch, commit }) => ({ branch, head: commit.id })),
    ...(request.mainline === undefined ? {} : { mainline: request.mainline }),
    author: request.author,
    ...(write.message === undefined ? {} : { message: write.message }),
    ...(write.trace === undefined ? {} : { trace: write.trace }),
    ...(write.date === undefined ? {} : { date: write.date.getTime() }),
    allowUnrelated: request.allowUnrelated,
    allowOpenIntents: request.allowOpenIntents,
    policies: request.policies,
    // Also what a function resolved, which is not at hand later.
    resolutions: attempt.settled === null ? [] : toStored(attempt.settled),
  };
  const name = `merge-${repository.context.randomHex(4)}`;
  await writeStored(repository, {
    ref: mergeRef(name),
    row: undefined,
    parents: [attempt.target, ...request.sources.map(({ commit }) => commit)],
    attempt,
    stored,
    actor: request.author,
    message: `${mergeMessage(request)}\n\nConflicts are open: ${open}.`,
    reason: `${request.operation}: stored with open conflicts`,
  });
  return name;
}

/**
 * Resolves a path of a stored merge by hand, and stores that.
 *
 * @throws AgstateError `PATH_NOT_FOUND` when nothing conflicts there, `INVALID_ARGUMENT`,
 *   `REF_CONFLICT` when somebody else changed the stored merge meanwhile
 */
export async function resolveStored(
  repository: Repository,
  state: StoredMergeState,
  given: { readonly path: string; readonly part?: string | undefined },
  resolution: Resolution,
  options: {
    readonly by?: string | undefined;
    readonly branch?: string | undefined;
    readonly resolvers?: CustomResolvers | undefined;
  },
): Promise<StoredMergeState> {
  const { resolvers } = options;
  const request = await requestOf(repository, state, resolvers === undefined ? {} : { resolvers });
  const run = new MergeRun(repository, request);
  const attempt = await run.attempt();
  const part = given.part ?? "state";
  const paths = attempt.contests.map(({ contest }) => contest.path);
  const at = (i: number) => formatPointer(paths[i] as readonly string[]);
  const index = attempt.contests.findIndex((c, i) => c.part === part && at(i) === given.path);
  if (index < 0) {
    throw new AgstateError(
      "PATH_NOT_FOUND",
      `nothing conflicts at ${quoteForMessage(given.path)} in ${state.name}; agstate conflicts shows what does`,
      { path: given.path, merge: state.name },
    );
  }
  const by = checkIdentity("author", options.by ?? request.author);
  const made = storedResolution(
    attempt.contests[index] as Attempt["contests"][number],
    resolution,
    {
      by,
      branch: options.branch,
      branchOf: (source) => attempt.steps[source]?.source.branch ?? "",
      maxBytes: repository.context.limits.stateMaxBytes,
    },
  );
  const others = state.stored.resolutions.filter(
    (r) => r.part !== made.part || r.path !== made.path,
  );
  const stored = { ...state.stored, resolutions: [...others, made] };
  const resolved = await new MergeRun(repository, {
    ...request,
    resolutions: stored.resolutions,
  }).attempt();
  const row = await writeStored(repository, {
    ref: state.row.name,
    row: state.row,
    parents: [state.commit],
    attempt: resolved,
    stored,
    actor: by,
    message: `Resolve ${quoteForMessage(given.path)}`,
    reason: `resolve ${quoteForMessage(given.path)}`,
  });
  return load(repository, row);
}

/** The removal of a stored merge, to happen with the move that finishes it. */
export function removal(state: StoredMergeState, actor: string, reason: string): RefUpdate {
  const { row } = state;
  return {
    ref: row.name,
    expect: { kind: "id", id: row.id as ObjectId, seq: row.seq },
    target: null,
    note: { actor, reason },
  };
}

async function writeStored(
  repository: Repository,
  given: {
    readonly ref: string;
    readonly row: RefRow | undefined;
    readonly parents: readonly LoadedCommit[];
    readonly attempt: Attempt;
    readonly stored: StoredRequest;
    readonly actor: string;
    readonly message: string;
    readonly reason: string;
  },
): Promise<RefRow> {
  const { ref, row, attempt } = given;
  const { outcome } = attempt;
  if (outcome === null) throw new AgstateError("INTERNAL", "a merge without an outcome was stored");
  const prepared = prepareCommit(repository, {
    sink: resultObjects(outcome),
    parents: given.parents,
    root: outcome.root,
    stateVersion: attempt.states.version,
    author: given.actor,
    minStep: 1,
    merge: given.stored as unknown as JsonValue,
    options: { message: given.message },
  });
  const update: RefUpdate = {
    ref,
    expect:
      row === undefined ? { kind: "absent" } : { kind: "id", id: row.id as ObjectId, seq: row.seq },
    target: prepared.record.id,
    commits: [prepared.record],
    note: { actor: given.actor, reason: given.reason },
  };
  const objects = prepared.objects.map((object) => object.record);
  const [answer] = await repository.refs.apply({ updates: [update], objects });
  const moved = movedRow(update, answer);
  repository.objects.prime(prepared.objects);
  return moved;
}
