import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { formatPointer } from "../../core/json-pointer.js";
import { checkIdentity } from "../../core/names.js";
import { diffLinks } from "../../merge/diff.js";
import { checkPolicies } from "../../merge/policy.js";
import type { Resolution } from "../../merge/resolvers.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import type { Link } from "../../objects/encode.js";
import type { ObjectReader } from "../../objects/reader.js";
import { branchRef, shortRefName } from "../../refs/names.js";
import type { Repository } from "../repository.js";
import type { Commit } from "../types.js";
import { toCommit } from "../views.js";
import {
  DEFAULT_MAX_ATTEMPTS,
  DEFAULT_MERGER,
  type MergeRequest,
  nameCommits,
  nameSources,
} from "./request.js";
import { type Attempt, changesNothing, type Finished, MergeRun } from "./run.js";
import {
  listStored,
  readStored,
  removal,
  requestOf,
  resolveStored,
  type StoredMergeState,
  storeAttempt,
  withResolvers,
} from "./stored.js";
import type {
  Conflict,
  MergeOptions,
  MergePreview,
  MergeRecord,
  MergeResult,
  PickOptions,
  PickResult,
  StoredMergeInfo,
} from "./types.js";

/** Merges branches into another, by compare-and-swap; see {@link MergeOptions}. */
export async function merge(
  repository: Repository,
  sources: readonly string[],
  options: MergeOptions,
): Promise<MergeResult> {
  const request = await mergeRequest(repository, sources, options);
  const run = new MergeRun(repository, request);
  const finished = await run.land();
  const conflicts = await openConflicts(run, finished.attempt);
  const stored = await storeIfAsked(repository, run, request, finished, options.onConflict);
  return {
    status: statusOf(finished),
    commit: finished.commit && toCommit(finished.commit),
    target: toCommit(finished.attempt.target),
    conflicts,
    attempts: finished.attempts,
    contributions: await run.contributions(finished.attempt),
    stored,
  };
}

/** Merges without writing. */
export async function preview(
  repository: Repository,
  sources: readonly string[],
  options: MergeOptions,
): Promise<MergePreview> {
  const request = await mergeRequest(repository, sources, options);
  const run = new MergeRun(repository, request);
  const attempt = await run.attempt();
  const { outcome, kind, target, steps } = attempt;
  const open = run.open(attempt);
  const head = kind === "fast-forward" ? steps[0]?.theirs : target;
  const { reader, before, link } =
    outcome === null
      ? await forwarded(repository, attempt, head)
      : {
          reader: outcome.reader,
          before: outcome.target.state,
          link: outcome.root.state,
        };
  const changes = [];
  for await (const change of diffLinks(reader, before, link)) changes.push(change);
  return {
    status: statusOf({ attempt, commit: open.length > 0 ? null : target, attempts: 1 }),
    commit: outcome === null && head ? toCommit(head) : null,
    target: toCommit(target),
    conflicts: await openConflicts(run, attempt),
    contributions: await run.contributions(attempt),
    changes,
    state: async () => {
      if (link !== undefined) return decodeValue(reader, link);
      throw new AgstateError("PATH_NOT_FOUND", "the merge would leave no state", { path: "" });
    },
  };
}

/** The states between which a target is moved without a merge. */
async function forwarded(
  repository: Repository,
  { states, target }: Attempt,
  head: LoadedCommit | null | undefined,
): Promise<{ reader: ObjectReader; before: Link | undefined; link: Link | undefined }> {
  // Without a schema there is nothing to bring them to one version by, and nothing is merged.
  const of = (commit: LoadedCommit) =>
    repository.schema === null ? commit.root.state : states.of(commit);
  const before = await of(target);
  const link = head ? await of(head) : undefined;
  const { made } = states;
  const reader =
    made.size === 0
      ? repository.objects
      : repository.objects.with({ get: (id) => made.get(id)?.decoded });
  return { reader, before, link };
}

async function mergeRequest(
  repository: Repository,
  revisions: readonly string[],
  options: MergeOptions,
): Promise<MergeRequest> {
  if (revisions.length === 0) {
    throw new AgstateError("INVALID_ARGUMENT", "name at least one branch to merge");
  }
  const { into = "canonical", fastForward = "auto" } = options;
  const base = requestBase(repository, "merge", into, options);
  return {
    ...base,
    ...(await nameSources(repository, revisions, base.into)),
    fastForward: checkOneOf("fastForward", fastForward, ["auto", "never", "only"]),
    allowUnrelated: options.allowUnrelated ?? false,
    allowOpenIntents: options.allowOpenIntents ?? false,
  };
}

function requestBase(
  repository: Repository,
  operation: MergeRequest["operation"],
  into: string,
  options: MergeOptions | PickOptions,
): Omit<MergeRequest, "sources"> {
  const { message, date, trace, maxAttempts = DEFAULT_MAX_ATTEMPTS } = options;
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `maxAttempts is ${maxAttempts}; it must be a whole number of 1 or more`,
      { maxAttempts },
    );
  }
  checkOneOf("onConflict", options.onConflict ?? "report", ["report", "store"]);
  return {
    operation,
    into: branchRef(into),
    author: checkIdentity("author", options.author ?? DEFAULT_MERGER),
    write: {
      ...(message === undefined ? {} : { message }),
      ...(date === undefined ? {} : { date }),
      ...(trace === undefined ? {} : { trace }),
    },
    fastForward: "never",
    allowUnrelated: true,
    allowOpenIntents: true,
    policies: checkPolicies(options.policies ?? {}),
    resolvers: withResolvers(repository, options.resolvers),
    resolve: options.resolve,
    resolutions: [],
    maxAttempts,
    signal: options.signal,
  };
}

function checkOneOf<T extends string>(what: string, given: T, known: readonly T[]): T {
  if (known.includes(given)) return given;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${what} is ${JSON.stringify(given)}; there are ${known.join(", ")}`,
    { [what]: given },
  );
}

function statusOf({ attempt, commit }: Finished): MergeResult["status"] {
  if (commit === null) return "conflict";
  return attempt.kind === "merge" ? "merged" : attempt.kind;
}

async function openConflicts(run: MergeRun, attempt: Attempt): Promise<Conflict[]> {
  const told = await run.tell(attempt, run.open(attempt));
  return told.flatMap(([, conflicts]) => conflicts);
}

async function storeIfAsked(
  repository: Repository,
  run: MergeRun,
  request: MergeRequest,
  { attempt, commit }: Finished,
  onConflict: MergeOptions["onConflict"],
): Promise<string | null> {
  if (commit !== null || onConflict !== "store") return null;
  return storeAttempt(repository, request, attempt, run.open(attempt).length);
}

/** Applies the change of one commit, or its inverse, to a branch. */
export async function pick(
  repository: Repository,
  operation: "cherry-pick" | "revert",
  revision: string,
  options: PickOptions,
): Promise<PickResult> {
  const [source] = await nameCommits(repository, [revision]);
  const request: MergeRequest = {
    ...requestBase(repository, operation, options.onto ?? "canonical", options),
    sources: source === undefined ? [] : [source],
    mainline: options.mainline,
  };
  const run = new MergeRun(repository, request);
  const finished = await run.land();
  const conflicts = await openConflicts(run, finished.attempt);
  const stored = await storeIfAsked(repository, run, request, finished, options.onConflict);
  return {
    status: pickStatus(finished),
    commit: finished.commit && toCommit(finished.commit),
    conflicts,
    attempts: finished.attempts,
    stored,
  };
}

function pickStatus({ attempt, commit }: Finished): PickResult["status"] {
  if (commit === null) return "conflict";
  return changesNothing(attempt) ? "up-to-date" : "applied";
}

/**
 * Merges one branch into canonical, and has no answer but the new head.
 *
 * @throws AgstateError `MERGE_CONFLICT`
 */
export async function promote(
  repository: Repository,
  branch: string,
  options: MergeOptions,
): Promise<Commit> {
  const result = await merge(repository, [branch], options);
  if (result.commit !== null) return result.commit;
  const paths = result.conflicts.map(({ path }) => path);
  const stored = result.stored === null ? "" : `; it is stored as ${result.stored}`;
  throw new AgstateError(
    "MERGE_CONFLICT",
    `${branch} conflicts with ${shortRefName(branchRef(options.into ?? "canonical"))} at ${paths.length} path(s), first ${JSON.stringify(paths[0])}${stored}; merge it with policies or a resolve function, or by hand`,
    { branch, paths, stored: result.stored },
  );
}

/** A merge that waits for its conflicts to be resolved. */
export class StoredMerge {
  /** @internal Use `workflow.storedMerge`. */
  constructor(
    private readonly repository: Repository,
    private current: StoredMergeState,
  ) {}

  get name(): string {
    return this.current.name;
  }

  get info(): StoredMergeInfo {
    const { name, commit, stored } = this.current;
    return {
      name,
      operation: stored.operation,
      into: shortRefName(stored.into),
      sources: stored.sources,
      author: stored.author,
      resolved: stored.resolutions.map(({ part, path, how, branch, by }) => ({
        ...{ part, path, how, by },
        ...(branch === undefined ? {} : { branch }),
      })),
      date: toCommit(commit).date,
      head: commit.id,
    };
  }

  /** The conflicts that are open, against the target as it is now. */
  async conflicts(options: { resolvers?: MergeOptions["resolvers"] } = {}): Promise<Conflict[]> {
    const request = await requestOf(this.repository, this.current, resolversOf(options));
    const run = new MergeRun(this.repository, request);
    return openConflicts(run, await run.attempt());
  }

  /** Where conflicts are open, without their values and writers: much cheaper than `conflicts`. */
  async openPaths(): Promise<Pick<Conflict, "part" | "path">[]> {
    const run = new MergeRun(this.repository, await requestOf(this.repository, this.current));
    const open = run.open(await run.attempt());
    return open.map(({ part, contest }) => ({ part, path: formatPointer(contest.path) }));
  }

  /**
   * Decides what a conflicting path is to hold.
   *
   * It holds as long as the same three values conflict there; when the target
   * or the policies change them, the path is open again.
   *
   * @param branch whose value `theirs` means, where several branches conflict
   * @throws AgstateError `PATH_NOT_FOUND`, `INVALID_ARGUMENT`, `INVALID_VALUE`, `REF_CONFLICT`
   */
  async resolve(
    path: string,
    resolution: Resolution,
    options: {
      by?: string;
      branch?: string;
      part?: "state" | "policy";
      resolvers?: MergeOptions["resolvers"];
    } = {},
  ): Promise<void> {
    await this.repository.mustBePrimary("resolve a conflict");
    this.current = await resolveStored(
      this.repository,
      this.current,
      { path, part: options.part },
      resolution,
      options,
    );
  }

  /**
   * Merges again, into the target as it is now, with the resolutions made so
   * far; when no conflict is open the target moves and the stored merge is gone.
   */
  async continue(
    options: Pick<
      MergeOptions,
      "author" | "message" | "resolvers" | "resolve" | "maxAttempts" | "signal"
    > = {},
  ): Promise<MergeResult> {
    const { repository, current } = this;
    await repository.mustBePrimary("continue a merge");
    const request = await requestOf(repository, current, options);
    const run = new MergeRun(repository, request);
    const gone = removal(current, request.author, `${request.operation}: finished`);
    const finished = await run.land([gone]);
    return {
      status: statusOf(finished),
      commit: finished.commit && toCommit(finished.commit),
      target: toCommit(finished.attempt.target),
      conflicts: await openConflicts(run, finished.attempt),
      attempts: finished.attempts,
      contributions: await run.contributions(finished.attempt),
      stored: finished.commit === null ? current.name : null,
    };
  }

  /** Gives the merge up; what was resolved stays reachable through the reflog. */
  async abort(options: { actor?: string } = {}): Promise<void> {
    const { current, repository } = this;
    await repository.mustBePrimary("abort a merge");
    const actor = options.actor ?? current.stored.author;
    const update = removal(current, actor, `${current.stored.operation}: aborted`);
    const [answer] = await repository.refs.apply({ updates: [update] });
    if (answer?.outcome === "conflict") {
      throw new AgstateError(
        "REF_CONFLICT",
        `stored merge ${current.name} was changed by somebody else; look at it again, then abort it`,
        { merge: current.name, actual: answer.actual?.id ?? null },
      );
    }
  }
}

function resolversOf(options: { resolvers?: MergeOptions["resolvers"] }) {
  return options.resolvers === undefined ? {} : { resolvers: options.resolvers };
}

export async function storedMerges(repository: Repository): Promise<StoredMerge[]> {
  return (await listStored(repository)).map((state) => new StoredMerge(repository, state));
}

export async function storedMerge(repository: Repository, name?: string): Promise<StoredMerge> {
  return new StoredMerge(repository, await readStored(repository, name));
}

/** What a merge commit keeps of how it was made; null when it is none. */
export async function mergeRecord(
  repository: Repository,
  id: ObjectId,
): Promise<MergeRecord | null> {
  const commit = await repository.commits.read(id);
  const link = commit.root.merge;
  if (link === undefined) return null;
  return (await decodeValue(repository.objectsOf(commit), link)) as unknown as MergeRecord;
}
