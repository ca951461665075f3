import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { type Attributes, NO_SPAN, type Span, spanning } from "../../core/telemetry.js";
import { contestId } from "../../merge/contest.js";
import {
  type MergeInput,
  type MergeOutcome,
  mergeCommits,
  type PartContest,
  resultObjects,
} from "../../merge/merge-commits.js";
import { planMerge } from "../../merge/plan.js";
import { type Policies, PolicyScope } from "../../merge/policy.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { parseAgentRef, shortRefName } from "../../refs/names.js";
import { movedRow, type RefUpdate, type UpdateBatch } from "../../refs/ref-store.js";
import type { RefRow } from "../../storage/port.js";
import { Checkpoint, spansOf, whereOf } from "../checkpoint.js";
import { isHandedOff } from "../handoff/gate.js";
import type { Repository } from "../repository.js";
import { historyDropped } from "../retention/records.js";
import { statesToMerge, type VersionedStates } from "../schema/merged-states.js";
import { prepareCommit } from "../write-commit.js";
import { ConflictTeller } from "./conflicts.js";
import { mergeMessage, mergeReason } from "./message.js";
import { policiesOf } from "./policies.js";
import { readValuesAhead } from "./read-ahead.js";
import { type MergeRequest, type NamedCommit, resolverVersions } from "./request.js";
import { both, type Resolved, type Settled, settle } from "./settle.js";
import type { Conflict, Contribution, MergeRecord } from "./types.js";

/** A source that takes part, with what its change is counted from. */
interface Step {
  readonly source: NamedCommit;
  readonly theirs: LoadedCommit | null;
  readonly bases: readonly ObjectId[];
}

/** One attempt at a merge, made against the target as it was then. */
export interface Attempt {
  readonly row: RefRow;
  readonly target: LoadedCommit;
  readonly kind: "up-to-date" | "fast-forward" | "merge";
  readonly steps: readonly Step[];
  /** Null when nothing had to be merged. */
  readonly outcome: MergeOutcome | null;
  /** All contests; those in `settled` have what they were settled to. */
  readonly contests: readonly PartContest[];
  readonly settled: Settled | null;
  readonly policies: Policies;
  readonly states: VersionedStates;
}

/** A merge that landed, or needed nothing, or was kept from landing. */
export interface Finished {
  readonly attempt: Attempt;
  /** The target's new head; the old one when nothing was to be done; null when conflicts are open. */
  readonly commit: LoadedCommit | null;
  readonly attempts: number;
}

/** The longest pause between attempts, in milliseconds. */
const PAUSE_MAX_MS = 1000;

const RETRY = { "agstate.operation": "merge" };

/**
 * Merges by compare-and-swap: reads the target, merges, and swaps; when
 * somebody else was faster, all of it again, against what the target is then.
 */
export class MergeRun {
  #row: RefRow | undefined;
  /** What was migrated for one attempt is there for the next. */
  #migrated: VersionedStates | undefined;
  private span: Span = NO_SPAN;

  constructor(
    private readonly repository: Repository,
    private readonly request: MergeRequest,
  ) {
    this.#row = request.row;
  }

  /**
   * @param withIt further moves that happen with the target's, or not at all
   * @throws AgstateError `REF_CONFLICT` when others won every time
   */
  land(withIt: readonly RefUpdate[] = []): Promise<Finished> {
    const { into, operation } = this.request;
    const { context, workflow } = this.repository;
    const attributes = {
      "workflow.id": workflow,
      branch: shortRefName(into),
      "agent.id": parseAgentRef(into)?.agent ?? this.request.author,
      "agstate.merge.operation": operation,
    };
    return spanning(
      context.telemetry,
      "merge",
      { attributes, traceparent: this.request.write.trace },
      async (span) => {
        this.span = span;
        const finished = await this.landed(withIt);
        const open = this.open(finished.attempt).length;
        const conflicts = finished.commit === null ? open : 0;
        if (conflicts > 0) context.telemetry.count("agstate.merge.conflicts", conflicts);
        if (span.isRecording) span.set(told(finished, conflicts));
        return finished;
      },
    );
  }

  private async landed(withIt: readonly RefUpdate[]): Promise<Finished> {
    const { maxAttempts, signal } = this.request;
    for (let attempts = 1; ; attempts++) {
      const since = performance.now();
      const attempt = await this.attempt();
      if (this.open(attempt).length > 0) return { attempt, commit: null, attempts };
      const commit = await this.swap(attempt, withIt);
      if (commit !== null) return { attempt, commit, attempts };
      if (attempts >= maxAttempts) throw this.outrun(attempts);
      this.repository.context.telemetry.count("agstate.cas.retries", 1, RETRY);
      // As long as an attempt takes, or several, at random: racing supervisors fall out of step.
      const pause = Math.min(PAUSE_MAX_MS, (performance.now() - since) * Math.min(attempts, 8));
      await sleep(Math.random() * pause, undefined, signal === undefined ? {} : { signal });
    }
  }

  private outrun(attempts: number): AgstateError {
    const { into } = this.request;
    return new AgstateError(
      "REF_CONFLICT",
      `${shortRefName(into)} was moved by others in each of ${attempts} attempts to merge; try again, or raise maxAttempts`,
      { ref: into, attempts, limit: attempts },
    );
  }

  /** Merges against the target as it is now; writes nothing. */
  async attempt(): Promise<Attempt> {
    const { repository, request } = this;
    request.signal?.throwIfAborted();
    const row = this.#row ?? (await repository.refs.row(request.into));
    this.#row = undefined;
    if (row === undefined || row.id === null) {
      throw new AgstateError(
        "REF_NOT_FOUND",
        `there is no ${shortRefName(request.into)} to merge into; see agstate branch for what there is`,
        { ref: request.into },
      );
    }
    const target = await repository.commits.read(row.id);
    const policies = { ...(await policiesOf(repository, target)), ...request.policies };
    const { kind, steps } = await this.plan(target);
    const states = this.states();
    const base = { row, target, kind, steps, policies, states };
    if (kind !== "merge") return { ...base, outcome: null, contests: [], settled: null };
    if (repository.objects.readsAhead) await readValuesAhead(repository, target, steps);

    resolverVersions(policies, request.resolvers);
    const input = {
      reader: repository.objects,
      newSink: () => repository.newSink(),
      commits: repository.commits,
      states,
      history: repository.history,
      isolation: repository.statePolicy,
      maxBytes: repository.context.limits.stateMaxBytes,
      target,
      steps,
      policies: PolicyScope.of(policies),
      resolvers: request.resolvers,
      signal: request.signal,
    };
    const merge = (more: Partial<MergeInput> = {}) =>
      repository.keys.encoding(() => mergeCommits({ ...input, ...more }));
    let outcome = await merge();
    let settled: Settled | null = null;
    // What a path was settled to may make a later source conflict anew, which is settled as well:
    // each source may add to what is contested once, and then it is seen whether all is settled.
    for (let pass = 0; pass <= steps.length; pass++) {
      const { contests } = outcome;
      const more = await this.settle({ ...base, outcome, contests, settled });
      if (more === null) break;
      settled = settled === null ? more : both(settled, more);
      outcome = await merge({ settlements: settled.settlements });
    }
    return { ...base, outcome, contests: outcome.contests, settled };
  }

  private states(): VersionedStates {
    const { repository } = this;
    if (repository.schema === null) return statesToMerge(repository);
    this.#migrated ??= statesToMerge(repository);
    return this.#migrated;
  }

  /** Settles what is open; null when nothing of it can be. */
  private async settle(attempt: Attempt): Promise<Settled | null> {
    const { repository, request } = this;
    if (request.resolve === undefined && request.resolutions.length === 0) return null;
    const open = this.open(attempt);
    if (open.length === 0) return null;
    let told: Map<PartContest, readonly Conflict[]> | undefined;
    const settled = await settle(open, {
      resolutions: request.resolutions,
      resolve: request.resolve,
      author: request.author,
      branchOf: (source) => (attempt.steps[source] as Step).source.branch,
      conflictsOf: async (contest) => {
        told ??= new Map((await this.tell(attempt, open)).map(([c, conflicts]) => [c, conflicts]));
        return told.get(contest) ?? [];
      },
      maxBytes: repository.context.limits.stateMaxBytes,
    });
    return settled.resolved.size === 0 ? null : settled;
  }

  private async plan(target: LoadedCommit): Promise<Pick<Attempt, "kind" | "steps">> {
    const { repository, request } = this;
    if (request.operation !== "merge") return { kind: "merge", steps: [await this.pick()] };
    const ids = request.sources.map(({ commit }) => commit.id);
    const plan = await planMerge(repository.history, target.id, ids, request.signal);
    const steps = plan.sources.map(({ index, bases }): Step => {
      const source = request.sources[index] as NamedCommit;
      return { source, theirs: source.commit, bases };
    });
    for (const { source, bases } of steps) {
      if (bases.length === 0 && !request.allowUnrelated) throw unrelated(request, source);
      if (source.commit.inFlight.length > 0 && !request.allowOpenIntents) throw openIntents(source);
    }
    const { fastForward } = request;
    if (plan.kind === "merge" && fastForward === "only") throw notForward(request);
    if (plan.kind !== "fast-forward" || fastForward === "only") return { kind: plan.kind, steps };
    const isForward = fastForward !== "never" && !(await this.bringsHandoff(target, steps));
    return { kind: isForward ? "fast-forward" : "merge", steps };
  }

  /** Whether moving the target to its source would have the target handed off, as the source is. */
  private async bringsHandoff(target: LoadedCommit, steps: readonly Step[]): Promise<boolean> {
    const { commit } = (steps[0] as Step).source;
    if (commit.root.envelope?.id === target.root.envelope?.id) return false;
    return isHandedOff(this.repository, commit);
  }

  /** A cherry-pick takes the change from a commit's parent to it, a revert the way back. */
  private async pick(): Promise<Step> {
    const { repository, request } = this;
    const source = request.sources[0] as NamedCommit;
    const { commit } = source;
    const { parents } = commit;
    if (commit.cut !== undefined) throw await historyDropped(repository, commit.id);
    const mainline = request.mainline ?? (parents.length > 1 ? 0 : 1);
    if (mainline === 0 || (request.mainline !== undefined && mainline > parents.length)) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `commit ${commit.id} has ${parents.length} parents; say with mainline (--mainline) from which (1 to ${parents.length}) its change is counted`,
        { commit: commit.id, parents: parents.length, mainline: request.mainline ?? null },
      );
    }
    const parent = parents[mainline - 1];
    if (request.operation === "cherry-pick") {
      return { source, theirs: commit, bases: parent === undefined ? [] : [parent] };
    }
    const before = parent === undefined ? null : await repository.commits.read(parent);
    return { source, theirs: before, bases: [commit.id] };
  }

  /** Contests that nothing has settled. */
  open({ contests, settled }: Attempt): readonly PartContest[] {
    if (settled === null) return contests;
    return contests.filter(({ contest }) => !settled.resolved.has(contestId(contest)));
  }

  /** All contests of an attempt as conflicts, those of one contest together. */
  async tell(
    attempt: Attempt,
    contests: readonly PartContest[] = attempt.contests,
  ): Promise<[PartContest, Conflict[]][]> {
    if (attempt.outcome === null) return [];
    const teller = new ConflictTeller(
      this.repository,
      attempt.outcome,
      {
        target: { branch: shortRefName(this.request.into), commit: attempt.target },
        sources: attempt.steps.map(({ source }) => source),
      },
      this.request.signal,
    );
    const told = await teller.tell(contests);
    return contests.map((contest, i) => [contest, told[i] as Conflict[]]);
  }

  /** What each of the sources brought, in the order in which they were given. */
  async contributions(attempt: Attempt): Promise<Contribution[]> {
    const { history } = this.repository;
    const conflicts = new Map<Step, number>();
    for (const { contest } of this.open(attempt)) {
      for (const { source } of contest.claims) {
        const step = attempt.steps[source] as Step;
        conflicts.set(step, (conflicts.get(step) ?? 0) + 1);
      }
    }
    const contributions: Contribution[] = [];
    for (const { branch, commit } of this.request.sources) {
      const step = attempt.steps.find((s) => s.source.branch === branch && s.theirs === commit);
      const { ahead } =
        step === undefined ? { ahead: 0 } : await history.aheadBehind(commit.id, attempt.target.id);
      const open = step === undefined ? 0 : (conflicts.get(step) ?? 0);
      const merged = attempt.kind === "fast-forward" ? "fast-forward" : "merged";
      contributions.push({
        branch,
        head: commit.id,
        status: step === undefined ? "contained" : open > 0 ? "conflict" : merged,
        commits: ahead,
        conflicts: open,
      });
    }
    return contributions;
  }

  /**
   * Moves the target.
   *
   * @returns its new head; null when somebody else moved it since the attempt began
   */
  private async swap(attempt: Attempt, withIt: readonly RefUpdate[]): Promise<LoadedCommit | null> {
    const { repository, request } = this;
    const { row, target, outcome, kind } = attempt;
    if (kind !== "merge" || outcome === null) {
      const head = kind === "fast-forward" ? (attempt.steps[0] as Step).source.commit : target;
      const trace = request.write.trace ?? this.span.traceparent;
      const forward = { ...this.move(attempt, trace), target: head.id };
      const updates = [...(kind === "fast-forward" ? [forward] : []), ...withIt];
      if (updates.length === 0) return head;
      return (await this.apply(updates)) ? head : null;
    }
    if (request.operation !== "merge" && changesNothing(attempt)) {
      if (withIt.length === 0) return target;
      return (await this.apply(withIt)) ? target : null;
    }
    const { into, author } = request;
    const { context, workflow } = repository;
    const where = whereOf(workflow, { ref: into, incarnation: row.incarnation }, author);
    const checkpoint = new Checkpoint(context.telemetry, where, { trace: request.write.trace });
    try {
      const moved = await checkpoint.span.within(() =>
        this.commit(attempt, outcome, checkpoint, withIt),
      );
      if (moved === null) checkpoint.failed(movedMeanwhile(into));
      else checkpoint.landed();
      return moved;
    } catch (error) {
      checkpoint.failed(error);
      throw error;
    }
  }

  /** Commits what was merged; null when somebody else has moved the target. */
  private async commit(
    attempt: Attempt,
    outcome: MergeOutcome,
    told: Checkpoint,
    withIt: readonly RefUpdate[],
  ): Promise<LoadedCommit | null> {
    const { repository, request } = this;
    const { row, target } = attempt;
    const merged = attempt.steps.map(({ source }) => source.commit);
    const prepared = prepareCommit(repository, {
      sink: resultObjects(outcome),
      parents: request.operation === "merge" ? [target, ...merged] : [target],
      root: { ...outcome.root, envelope: target.root.envelope },
      stateVersion: attempt.states.version,
      author: request.author,
      minStep: row.maxStep + 1,
      merge: this.record(attempt),
      options: { ...request.write, message: request.write.message ?? mergeMessage(request) },
      told,
    });
    const update: RefUpdate = {
      ...this.move(attempt, prepared.loaded.trace),
      target: prepared.record.id,
      commits: [prepared.record],
    };
    const objects = prepared.objects.map((object) => object.record);
    // A merge has its sources as parents; what is picked may be linked to as well.
    const { theirs } = attempt.steps[0] as Step;
    const needs = request.operation === "merge" || theirs === null ? [] : [theirs.id];
    const spans = spansOf([prepared]);
    if (!(await this.apply([update, ...withIt], { objects, needs, spans }))) return null;
    repository.objects.prime(prepared.objects);
    return prepared.loaded;
  }

  private move(attempt: Attempt, trace: string | undefined) {
    const { request } = this;
    const { row, target } = attempt;
    return {
      ref: request.into,
      expect: { kind: "id", id: target.id, seq: row.seq } as const,
      note: { actor: request.author, reason: mergeReason(request, attempt), trace },
    };
  }

  /** Applies moves, all or none; false when the target had moved. */
  private async apply(
    updates: readonly RefUpdate[],
    rest: Omit<UpdateBatch, "updates"> = {},
  ): Promise<boolean> {
    const answers = await this.repository.refs.apply({ updates, ...rest });
    const lost = (i: number) => answers[i]?.outcome === "conflict";
    if (updates[0]?.ref === this.request.into && lost(0)) return false;
    updates.forEach((update, i) => {
      if (lost(i)) movedRow(update, answers[i]);
    });
    updates.forEach((update, i) => {
      // A ref that is removed has no row to look at.
      if (update.target !== null) movedRow(update, answers[i]);
    });
    return true;
  }

  /** Everything that decided how the merge came out, as it is kept with its commit. */
  record(attempt: Attempt): MergeRecord & { readonly [key: string]: never } {
    const { request } = this;
    const { policies, settled, steps, states, target } = attempt;
    const versions = resolverVersions(policies, request.resolvers);
    const record: MergeRecord = {
      operation: request.operation,
      into: shortRefName(request.into),
      sources: steps.map(({ source, bases }) => ({
        branch: source.branch,
        head: source.commit.id,
        bases,
        ...migratedFrom(states, source.commit),
      })),
      ...(states.version === undefined ? {} : { stateVersion: states.version }),
      ...migratedFrom(states, target),
      policies,
      ...(Object.keys(request.policies).length === 0 ? {} : { callPolicies: request.policies }),
      ...(Object.keys(versions).length === 0 ? {} : { resolvers: versions }),
      ...(settled === null ? {} : { resolved: resolvedOf(attempt, settled) }),
    };
    return record as MergeRecord & { readonly [key: string]: never };
  }
}

function migratedFrom(states: VersionedStates, commit: LoadedCommit): { migratedFrom?: number } {
  const from = states.migratedFrom(commit);
  return from === null ? {} : { migratedFrom: from };
}

/** What was resolved and is still contested, in the order of the contests. */
function resolvedOf({ contests }: Attempt, { resolved }: Settled): Resolved[] {
  return contests
    .map(({ contest }) => resolved.get(contestId(contest)))
    .filter((each) => each !== undefined);
}

/** Whether a cherry-pick or revert would leave everything as it is. */
export function changesNothing({ outcome }: Attempt): boolean {
  return (
    outcome?.root.state?.id === outcome?.target.state?.id &&
    outcome?.root.policy?.id === outcome?.target.policy?.id
  );
}

/** What a span says of how a merge came out. */
function told({ attempt, commit, attempts }: Finished, conflicts: number): Attributes {
  const { kind, steps } = attempt;
  return {
    "agstate.merge.status": commit === null ? "conflict" : kind === "merge" ? "merged" : kind,
    "agstate.merge.sources": steps.map(({ source }) => source.commit.id),
    "agstate.merge.bases": [...new Set(steps.flatMap(({ bases }) => bases))],
    "agstate.merge.conflicts": conflicts,
    "agstate.merge.attempts": attempts,
    ...(commit !== null && { "checkpoint.commit": commit.id }),
  };
}

/** Why an attempt's commit did not land, as spans tell it; the merge goes on. */
function movedMeanwhile(ref: string): AgstateError {
  return new AgstateError("REF_CONFLICT", `${shortRefName(ref)} was moved meanwhile`, { ref });
}

function unrelated(request: MergeRequest, source: NamedCommit): AgstateError {
  const into = shortRefName(request.into);
  return new AgstateError(
    "UNRELATED_HISTORIES",
    `${source.branch} and ${into} have no commit in common; merge them with allowUnrelated (--allow-unrelated) if that is meant`,
    { branch: source.branch, into, head: source.commit.id },
  );
}

function openIntents(source: NamedCommit): AgstateError {
  const steps = source.commit.inFlight;
  return new AgstateError(
    "OPEN_INTENTS",
    `${source.branch} has steps that were started and not sealed (${steps.join(", ")}); finish them first, or merge with allowOpenIntents (--allow-open-intents)`,
    { branch: source.branch, steps },
  );
}

function notForward(request: MergeRequest): AgstateError {
  const into = shortRefName(request.into);
  return new AgstateError(
    "REF_CONFLICT",
    `${into} cannot be fast-forwarded: it has commits that ${request.sources.map(({ branch }) => branch).join(", ")} has not; merge without fastForward "only" (--ff-only)`,
    { ref: request.into },
  );
}
