import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { parsePointer } from "../core/json-pointer.js";
import { checkIdentity, quoteForMessage } from "../core/names.js";
import { type Span, spanning } from "../core/telemetry.js";
import type { WorkflowKeys } from "../keys/workflow-keys.js";
import type { Change } from "../merge/diff.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { parseDataPolicy } from "../objects/data-policy.js";
import { decodeValue } from "../objects/decode.js";
import { compileIsolation } from "../objects/isolation.js";
import {
  agentRef,
  branchRef,
  CANONICAL_REF,
  holdsStates,
  parseAgentRef,
  refCandidates,
  shortRefName,
  tagRef,
} from "../refs/names.js";
import { parseRefPattern } from "../refs/pattern.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { RunContext } from "../steps/run.js";
import { BRANCHES, type Head, type Usage, type WorkflowRecord } from "../storage/port.js";
import type { AuditCheckpoint } from "./audit/checkpoint.js";
import { AuditTrail } from "./audit/trail.js";
import type { AuditOptions } from "./audit/types.js";
import type { AuditReport, VerifyAuditOptions } from "./audit/verify.js";
import type { BlameLine, BlameOptions } from "./blame.js";
import { Branch } from "./branch.js";
import type { CompleteOptions } from "./complete.js";
import type { DiscardOptions, LeftBehind } from "./discard.js";
import type { EraseReport, EraseRequest } from "./erase/types.js";
import type { FsckReport } from "./fsck.js";
import type { GcOptions, GcReport } from "./gc/collect.js";
import { type Gathering, type Granularity, gatheringOf } from "./granularity.js";
import type { Handoff } from "./handoff/info.js";
import type { SessionMark } from "./handoff/mark.js";
import type { HoldInfo, HoldOptions, ReleaseOptions } from "./holds.js";
import type {
  DestroyedKey,
  DestroyKeyOptions,
  RotatedKey,
  RotateKeyOptions,
  WorkflowKeyInfo,
} from "./keys/change.js";
import type { StoredMerge } from "./merge/merging.js";
import type {
  MergeOptions,
  MergePreview,
  MergeRecord,
  MergeResult,
  PickOptions,
  PickResult,
} from "./merge/types.js";
import type { PlacedParts } from "./placed.js";
import { type ReadFrom, readFrom } from "./primary.js";
import { logFrom, readReflog, readState } from "./read.js";
import type { DeclarationChange, RedeclareOptions } from "./redeclare.js";
import { Repository, type StoreContext } from "./repository.js";
import type { RetentionOptions, RetentionReport } from "./retention/types.js";
import type { Review, ReviewFilter } from "./reviews/review.js";
import type { MigrateStateOptions, StateMigrationReport } from "./schema/types.js";
import type { SideEffect } from "./side-effects.js";
import type { SpeculateOptions, SpeculateResult } from "./speculate.js";
import type { WorkflowStats } from "./stats.js";
import type { RunOptions } from "./steps/run.js";
import type {
  Commit,
  LogOptions,
  ReadStateOptions,
  Ref,
  ReflogLine,
  State,
  WorkflowInfo,
} from "./types.js";
import { toCommit, toRef, toWorkflowInfo } from "./views.js";
import { Moves, type WatchOptions } from "./watch.js";

export interface BranchOptions {
  /** Whose branch it is; with `branch` it names `refs/heads/agents/<agent>/<branch>`. */
  readonly agent: string;
  readonly branch: string;
  /** Where a new branch begins; default `canonical`. */
  readonly from?: string;
  /**
   * `if-absent` (default) opens the branch and creates it when it does not
   * exist; `always` throws `REF_EXISTS` when it does, `never` `REF_NOT_FOUND`
   * when it does not.
   */
  readonly create?: "if-absent" | "always" | "never";
  /** Who writes on the handle; default the agent. */
  readonly author?: string;
  /** How often commits of the handle go to the store; default `every-step`. */
  readonly granularity?: Granularity;
}

/** How a branch is opened that is named. */
export type OpenOptions = Pick<BranchOptions, "author" | "granularity">;

export interface RefChangeOptions {
  /** Who does it; default `agstate`. */
  readonly actor?: string;
  readonly reason?: string;
  /** The commit that the ref must be at. */
  readonly expected?: string;
}

export interface ResetOptions extends RefChangeOptions, DiscardOptions {}

export interface DeleteBranchOptions extends RefChangeOptions, DiscardOptions {
  /** Counts the steps that this revision has not; default those that no other branch has. */
  readonly since?: string;
}

/** A branch that is gone. */
export interface DeletedBranch extends LeftBehind {
  /** The commit that it was at. */
  readonly id: string;
}

/** Where a branch is after it was reset. */
export interface ResetBranch extends Ref, LeftBehind {}

/** What a handle is opened with, checked. */
interface Opened {
  readonly author: string;
  readonly gathering: Gathering | null;
}

/** Who acts on refs when nobody is named. */
const DEFAULT_ACTOR = "agstate";

/** A workflow: the repository that one run of agents shares. */
export class Workflow {
  readonly id: string;
  private readonly repository: Repository;

  /** @internal Use `store.workflow` or `store.createWorkflow`. */
  constructor(
    context: StoreContext,
    private record: WorkflowRecord,
    keys: WorkflowKeys,
    placed: PlacedParts | null = null,
  ) {
    this.id = record.id;
    const { isolation, subjects, placement } = parseDataPolicy(record.isolation);
    const policy = compileIsolation(isolation, subjects, placement);
    this.repository = new Repository(context, record.id, policy, keys, placed);
  }

  /** What the workflow declared when it was created, and whether it was completed when it was opened. */
  get info(): WorkflowInfo {
    return toWorkflowInfo(this.record);
  }

  /** Opens the canonical branch. */
  canonical(options: OpenOptions = {}): Promise<Branch> {
    return this.openRef(CANONICAL_REF, DEFAULT_ACTOR, options);
  }

  /**
   * Opens an agent's branch, creating it when it does not exist; or opens a
   * branch by its name, such as `canonical` or `agents/booker/try-1`.
   *
   * @throws AgstateError `INVALID_NAME`, `REF_EXISTS`, `REF_NOT_FOUND`, `REVISION_NOT_FOUND`
   */
  async branch(options: BranchOptions | string, how: OpenOptions = {}): Promise<Branch> {
    if (typeof options === "string") {
      const ref = branchRef(options);
      return this.openRef(ref, parseAgentRef(ref)?.agent ?? DEFAULT_ACTOR, how);
    }
    const ref = agentRef(options.agent, options.branch);
    const opened = {
      author: checkIdentity("author", options.author ?? options.agent),
      gathering: gatheringOf(options.granularity),
    };
    const create = options.create ?? "if-absent";
    if (create !== "always") {
      const head = await this.repository.refs.head(ref);
      if (head !== undefined && head.row.id !== null) return this.handle(head, opened);
      if (create === "never") throw refNotFound(ref);
    }
    return this.createBranch(ref, options.from ?? "canonical", opened, create === "always");
  }

  private async createBranch(
    ref: string,
    from: string,
    opened: Opened,
    mustBeNew: boolean,
  ): Promise<Branch> {
    await this.repository.mustBePrimary("create a branch");
    const { author, gathering } = opened;
    const { id } = await this.repository.revisions.resolve(from);
    const head = await this.repository.commits.read(id);
    const update: RefUpdate = {
      ref,
      expect: { kind: "absent" },
      target: id,
      note: { actor: author, reason: `branch: created from ${quoteForMessage(from)}` },
    };
    const [answer] = await this.repository.refs.apply({ updates: [update] });
    if (answer?.outcome === "conflict" && answer.actual !== null) {
      if (mustBeNew) throw refExists(ref, answer.actual.id);
      // Somebody else created it in the meantime; that is the branch, then.
      return this.handle({ row: answer.actual, commit: undefined }, opened);
    }
    return new Branch(this.repository, movedRow(update, answer), head, author, gathering);
  }

  private async openRef(ref: string, by: string, options: OpenOptions): Promise<Branch> {
    const opened = {
      author: checkIdentity("author", options.author ?? by),
      gathering: gatheringOf(options.granularity),
    };
    const head = await this.repository.refs.head(ref);
    if (head === undefined || head.row.id === null) throw refNotFound(ref);
    return this.handle(head, opened);
  }

  private async handle({ row, commit }: Head, { author, gathering }: Opened): Promise<Branch> {
    const { commits } = this.repository;
    const head =
      commit === undefined ? await commits.read(row.id as ObjectId) : commits.prime(commit);
    return new Branch(this.repository, row, head, author, gathering);
  }

  /** Refs that exist, sorted by name; those below a prefix when one is given. */
  async refs(prefix = "refs/"): Promise<Ref[]> {
    return (await this.repository.refs.list(prefix)).map(toRef);
  }

  /** The id of the commit that a revision means, such as `canonical~2`. */
  async resolve(revision: string): Promise<string> {
    return (await this.repository.revisions.resolve(revision)).id;
  }

  /** Reads the commit that a revision means. */
  async commitAt(revision: string): Promise<Commit> {
    return toCommit(await this.repository.commitAt(revision));
  }

  /**
   * Reads the state at a revision, or the value at a JSON Pointer in it; the
   * pointer may also follow the revision: `canonical~2:/messages/0`. By the store's schema; what refs that are neither
   * branches, tags, holds nor stored merges lead to are records of agstate's, and read as they are.
   *
   * @throws AgstateError `REVISION_NOT_FOUND`, `PATH_NOT_FOUND`, `STATE_TOO_NEW`, `MIGRATION_FAILED`
   */
  async stateAt(
    revision: string,
    pointer?: string,
    { migrate = true }: ReadStateOptions = {},
  ): Promise<State> {
    const { repository } = this;
    return repository.revisions.using([revision], async ([resolved]) => {
      const { id, ref } = resolved!;
      const path = pointer ?? resolved!.pointer ?? "";
      const { commit, objects } = await repository.withState(id, path === "");
      const options = { migrate: migrate && (ref === null || holdsStates(ref.name)) };
      return readState(repository, commit, path, revision, objects, options);
    });
  }

  /** The record of the step that a commit records; null when it records none. */
  async stepRecord(revision: string): Promise<State> {
    const commit = await this.repository.commitAt(revision);
    const link = commit.root.step;
    return link === undefined ? null : decodeValue(this.repository.objectsOf(commit), link);
  }

  /**
   * What a commit says of a session of its branch, such as a tag of `branch.handoff`; null when it says nothing of that.
   *
   * @throws AgstateError `REVISION_NOT_FOUND`
   */
  async sessionAt(revision: string): Promise<SessionMark | null> {
    const { sessionAt } = await import("./handoff/mark.js");
    return sessionAt(this.repository, revision);
  }

  /** Branches that were handed off and wait to be taken up, by their names; those whose envelopes are not told are left out. */
  async handoffs(): Promise<{ readonly ref: Ref; readonly handoff: Handoff }[]> {
    const { refs, commits } = this.repository;
    const rows = await refs.list(BRANCHES);
    const heads = await commits.readAll(rows.map(({ id }) => id as ObjectId));
    // Few branches have an envelope, and nothing more is read, or loaded, for the others.
    const enveloped = rows.flatMap((row, i) => {
      const head = heads[i] as LoadedCommit;
      return head.root.envelope === undefined ? [] : [{ row, head }];
    });
    if (enveloped.length === 0) return [];
    const { handoffsAmong } = await import("./handoff/mark.js");
    return handoffsAmong(this.repository, enveloped);
  }

  /** Commits with this external id, oldest first. */
  async findExternal(externalId: string): Promise<Commit[]> {
    const ids = await this.repository.storage.findExternal(this.id, externalId);
    return (await this.repository.commits.readAll(ids)).map(toCommit);
  }

  /** Commits reachable from the revisions (default: all refs), children before parents, as `git log --topo-order`. */
  async *log(
    options: LogOptions & { revisions?: readonly string[] } = {},
  ): AsyncGenerator<Commit, void, undefined> {
    const { refs, revisions, history } = this.repository;
    const tips =
      options.revisions === undefined
        ? (await refs.list()).map((row) => row.id as ObjectId)
        : await revisions.using(options.revisions, async (resolved) => {
            const ids = resolved.map(({ id }) => id);
            await history.load(ids);
            return ids;
          });
    yield* logFrom(this.repository, tips, options);
  }

  /**
   * The differences between the states at two revisions, in the order of their
   * paths; only what differs is read.
   */
  async diff(older: string, newer: string, pointer = ""): Promise<Change[]> {
    const changes: Change[] = [];
    const prefix = parsePointer(pointer).length > 0 ? pointer : "";
    for await (const change of this.changes(older, newer)) {
      const { path } = change;
      if (prefix === "" || path === prefix || path.startsWith(`${prefix}/`)) changes.push(change);
    }
    return changes;
  }

  /** Like `diff`, one change after another. */
  async *changes(older: string, newer: string): AsyncGenerator<Change, void, undefined> {
    const { revisions, commits } = this.repository;
    const [a, b] = await revisions.using([older, newer], async (both) => {
      const ids = both.map(({ id }) => id);
      await this.repository.loadAhead(ids, ["state"], false);
      return commits.readAll(ids);
    });
    // Loaded when asked for: most runs of the command line compare nothing.
    const { diffLinks } = await import("../merge/diff.js");
    const { objects } = this.repository;
    const states = [a!.root.state, b!.root.state] as const;
    if (objects.readsAhead) {
      const { COMPARED, readVersions } = await import("../merge/versions.js");
      await readVersions(objects, [states.map((link) => link?.id)], COMPARED);
    }
    yield* diffLinks(objects, ...states);
  }

  /**
   * Which commits last wrote the value at a JSON Pointer: a line for a scalar or
   * text, a line a member for an object, a line for each stretch of elements with
   * one writer for a list.
   *
   * @throws AgstateError `REVISION_NOT_FOUND`, `PATH_NOT_FOUND`
   */
  async blame(
    revision: string,
    pointer?: string,
    options: BlameOptions = {},
  ): Promise<BlameLine[]> {
    const { blame } = await import("./blame.js");
    return blame(this.repository, revision, pointer, options);
  }

  /** How many commits a branch has that `base` has not, and the other way round. */
  async aheadBehind(branch: string, base: string): Promise<{ ahead: number; behind: number }> {
    const { revisions, history } = this.repository;
    return revisions.using([branch, base], ([a, b]) => history.aheadBehind(a!.id, b!.id));
  }

  /** The branches whose head is reachable from a revision. */
  async merged(into: string): Promise<Ref[]> {
    const target = (await this.repository.revisions.resolve(into)).id;
    const rows = await this.repository.refs.list("refs/heads/");
    const heads = rows.map((row) => row.id as ObjectId);
    const merged = await this.repository.history.mergedInto(heads, target);
    return rows.filter((row) => merged.has(row.id as ObjectId)).map(toRef);
  }

  /**
   * A ref's log of moves, newest first; also that of a deleted ref, by its name.
   *
   * @throws AgstateError `REF_NOT_FOUND`
   */
  async reflog(name: string, options: { limit?: number } = {}): Promise<ReflogLine[]> {
    const live = await this.repository.revisions.findRef(name);
    const ref = live?.name ?? (await this.deletedRef(name));
    return readReflog(this.repository, ref, options.limit);
  }

  /**
   * Tells of moves of refs as they happen, by this process or another: of one ref, by its name; of
   * those that a pattern such as `agents/booker/*` matches; or of all (default).
   *
   * @throws AgstateError `INVALID_NAME`, `INVALID_ARGUMENT`
   */
  watch(pattern = "*", options: WatchOptions = {}): Moves {
    return new Moves(this.repository.storage, this.id, parseRefPattern(pattern), options);
  }

  /**
   * Everything that happened to the workflow, as one stream: each entry of each ref's log, deleted refs included,
   * by time, with what its commit tells of steps, reviews and refusals, and no payload.
   *
   * @throws AgstateError `INVALID_NAME`, `INVALID_ARGUMENT`; later, `STORE_DAMAGED` where a log lacks an entry
   */
  audit(options: AuditOptions = {}): AuditTrail {
    return new AuditTrail(this.repository, options);
  }

  /**
   * Checks that the logs and commits are those that were written, and, against a checkpoint that was kept elsewhere, that
   * nothing it vouches for was made anew, taken away or put back. Nothing is changed.
   *
   * @throws AgstateError `CHECKPOINT_REFUSED`, `INVALID_ARGUMENT`
   */
  async verifyAudit(options: VerifyAuditOptions = {}): Promise<AuditReport> {
    const { verifyAudit } = await import("./audit/verify.js");
    return verifyAudit(this.repository, options);
  }

  /**
   * Signs where all logs stand now, with an Ed25519 key (PEM, PKCS#8). Kept where whoever can write to the store cannot, it is what
   * shows that a chain was computed anew. It signs what is there: verify first.
   *
   * @throws AgstateError `INVALID_ARGUMENT` for another key
   */
  async signAuditCheckpoint(privateKey: string): Promise<AuditCheckpoint> {
    const { signCheckpoint } = await import("./audit/checkpoint.js");
    return signCheckpoint(this.repository, privateKey);
  }

  private async deletedRef(name: string): Promise<string> {
    const names = refCandidates(name);
    const rows = await this.repository.storage.readRefs(this.id, { names });
    const row = rows[0];
    if (row === undefined) throw refNotFound(name);
    return row.name;
  }

  /**
   * Deletes an agent's branch, and tells the steps with side effects that no other branch has. Its history stays
   * reachable through its log.
   *
   * @throws AgstateError `REF_NOT_FOUND`, `REF_CONFLICT`, `INVALID_NAME`, `INVALID_ARGUMENT` for canonical;
   *   `SIDE_EFFECTS_LEFT` with `sideEffects: "refuse"`
   */
  async deleteBranch(name: string, options: DeleteBranchOptions = {}): Promise<DeletedBranch> {
    await this.repository.mustBePrimary("delete a branch");
    const ref = branchRef(name);
    if (ref === CANONICAL_REF) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "canonical is the agreed state; it cannot be deleted",
      );
    }
    const head = await this.headToLeave(ref, options);
    const { leftByDeletion } = await import("./discard.js");
    const sideEffects = await leftByDeletion(this.repository, { ref, head }, options);
    await this.deleteRef(ref, head, note(options, "branch: deleted"));
    return { id: head, sideEffects };
  }

  /**
   * Tags a commit.
   *
   * @throws AgstateError `REF_EXISTS`, `REVISION_NOT_FOUND`, `INVALID_NAME`
   */
  async tag(name: string, revision: string, options: RefChangeOptions = {}): Promise<Ref> {
    await this.repository.mustBePrimary("tag a commit");
    const ref = tagRef(name);
    const target = (await this.repository.revisions.resolve(revision)).id;
    const update: RefUpdate = {
      ref,
      expect: { kind: "absent" },
      target,
      note: note(options, `tag: ${quoteForMessage(revision)}`),
    };
    const [answer] = await this.repository.refs.apply({ updates: [update] });
    if (answer?.outcome === "conflict") throw refExists(ref, answer.actual?.id ?? null);
    return toRef(movedRow(update, answer));
  }

  /** @throws AgstateError `REF_NOT_FOUND`, `REF_CONFLICT`, `INVALID_NAME` */
  async deleteTag(name: string, options: RefChangeOptions = {}): Promise<{ id: string }> {
    await this.repository.mustBePrimary("delete a tag");
    const ref = tagRef(name);
    const id = await this.headToLeave(ref, options);
    await this.deleteRef(ref, id, note(options, "tag: deleted"));
    return { id };
  }

  /** The commit that a ref must be at when it is deleted: the one that is expected, else that where it is now. */
  private async headToLeave(ref: string, { expected }: RefChangeOptions): Promise<ObjectId> {
    const row = await this.repository.refs.row(ref);
    if (row === undefined || row.id === null) throw refNotFound(ref);
    return expected === undefined ? row.id : (await this.repository.revisions.resolve(expected)).id;
  }

  private async deleteRef(ref: string, id: ObjectId, why: RefUpdate["note"]): Promise<void> {
    const update: RefUpdate = { ref, expect: { kind: "id", id }, target: null, note: why };
    const [answer] = await this.repository.refs.apply({ updates: [update] });
    movedRow(update, answer);
  }

  /**
   * All best common ancestors of a commit and a merge of the others, as
   * `git merge-base --all`; none when the histories are unrelated.
   */
  async mergeBases(revision: string, ...others: readonly string[]): Promise<string[]> {
    const { revisions, history } = this.repository;
    return revisions.using([revision, ...others], ([one, ...more]) =>
      history.mergeBases(
        one!.id,
        more.map(({ id }) => id),
      ),
    );
  }

  /** Whether a commit is reached from another; each reaches itself. */
  async isAncestor(ancestor: string, descendant: string): Promise<boolean> {
    const { revisions, history } = this.repository;
    return revisions.using([ancestor, descendant], ([a, b]) => history.isAncestor(a!.id, b!.id));
  }

  /**
   * Merges branches into another (default canonical) by compare-and-swap, all
   * with one commit.
   *
   * When others move the target meanwhile, it reads and merges anew, after a
   * pause, `maxAttempts` times at most. Conflicts are an answer, not an error,
   * and the target has then not moved.
   *
   * @throws AgstateError `REF_NOT_FOUND`, `REVISION_NOT_FOUND`, `UNRELATED_HISTORIES`, `OPEN_INTENTS`,
   *   `INVALID_POLICY`, `RESOLVER_NOT_FOUND`, `RESOLVER_FAILED`, `REF_CONFLICT` when others won every time
   */
  async merge(branches: readonly string[], options: MergeOptions = {}): Promise<MergeResult> {
    await this.repository.mustBePrimary("merge");
    const { merge } = await import("./merge/merging.js");
    return merge(this.repository, branches, options);
  }

  /** What `merge` would do; nothing is written. */
  async preview(branches: readonly string[], options: MergeOptions = {}): Promise<MergePreview> {
    await this.repository.mustBePrimary("preview a merge");
    const { preview } = await import("./merge/merging.js");
    return preview(this.repository, branches, options);
  }

  /**
   * Merges one branch into canonical, and gives canonical's new head.
   *
   * @throws AgstateError `MERGE_CONFLICT`, and what `merge` throws
   */
  async promote(branch: string, options: MergeOptions = {}): Promise<Commit> {
    await this.repository.mustBePrimary("promote a branch");
    const { promote } = await import("./merge/merging.js");
    return promote(this.repository, branch, options);
  }

  /** Merges that wait for their conflicts to be resolved, sorted by name. */
  async storedMerges(): Promise<StoredMerge[]> {
    const { storedMerges } = await import("./merge/merging.js");
    return storedMerges(this.repository);
  }

  /**
   * Opens a stored merge by its name; without one, the only one there is.
   *
   * @throws AgstateError `MERGE_NOT_FOUND`, `INVALID_ARGUMENT` when there are several
   */
  async storedMerge(name?: string): Promise<StoredMerge> {
    const { storedMerge } = await import("./merge/merging.js");
    return storedMerge(this.repository, name);
  }

  /** What a merge commit keeps of how it was made: sources, policies, resolutions; null when it is none. */
  async mergeRecord(revision: string): Promise<MergeRecord | null> {
    const { mergeRecord } = await import("./merge/merging.js");
    return mergeRecord(this.repository, (await this.repository.revisions.resolve(revision)).id);
  }

  /**
   * Applies the change that one commit made to a branch (default canonical).
   *
   * When the commit's branch is merged there later, policies that count equal
   * changes twice (`sum`, `append`) count the change once more.
   *
   * @throws AgstateError as `merge`
   */
  async cherryPick(revision: string, options: PickOptions = {}): Promise<PickResult> {
    await this.repository.mustBePrimary("cherry-pick");
    const { pick } = await import("./merge/merging.js");
    return pick(this.repository, "cherry-pick", revision, options);
  }

  /** Undoes the change that one commit made, with a new commit on a branch (default canonical). */
  async revert(revision: string, options: PickOptions = {}): Promise<PickResult> {
    await this.repository.mustBePrimary("revert a commit");
    const { pick } = await import("./merge/merging.js");
    return pick(this.repository, "revert", revision, options);
  }

  /**
   * Points a branch to another commit, and tells the steps with side effects that this one has not. What it leaves stays
   * reachable through its reflog.
   *
   * @throws AgstateError `REF_NOT_FOUND`, `REF_CONFLICT`, `REVISION_NOT_FOUND`; `SIDE_EFFECTS_LEFT` with
   *   `sideEffects: "refuse"`
   */
  async reset(branch: string, revision: string, options: ResetOptions = {}): Promise<ResetBranch> {
    await this.repository.mustBePrimary("reset a branch");
    const ref = branchRef(branch);
    const row = await this.repository.refs.row(ref);
    if (row === undefined || row.id === null) throw refNotFound(ref);
    const target = (await this.repository.revisions.resolve(revision)).id;
    const expect =
      options.expected === undefined
        ? ({ kind: "id", id: row.id, seq: row.seq } as const)
        : ({
            kind: "id",
            id: (await this.repository.revisions.resolve(options.expected)).id,
          } as const);
    const { leftByReset } = await import("./discard.js");
    const move = { ref, head: expect.id, target };
    const sideEffects = await leftByReset(this.repository, move, options);
    const reason = `reset: moving to ${quoteForMessage(revision)}`;
    const update: RefUpdate = { ref, expect, target, note: note(options, reason) };
    const [answer] = await this.repository.refs.apply({ updates: [update] });
    return { ...toRef(movedRow(update, answer)), sideEffects };
  }

  /**
   * Runs strategies side by side on branches of their own, merges the one that
   * the judge names, and discards the others.
   */
  async speculate<Answer>(options: SpeculateOptions<Answer>): Promise<SpeculateResult<Answer>> {
    await this.repository.mustBePrimary("speculate");
    const { speculate } = await import("./speculate.js");
    return speculate(this, this.repository.context.randomHex, options);
  }

  /**
   * Steps of a branch, not reached from `since`, that wrote or executed something outside, or may have: by number, each once.
   *
   * @throws AgstateError `REVISION_NOT_FOUND`
   */
  async sideEffects(branch: string, since: string): Promise<SideEffect[]> {
    const [tip, base] = await this.repository.revisions.resolveAll([branch, since]);
    const { sideEffectsBetween } = await import("./side-effects.js");
    return sideEffectsBetween(this.repository, tip!.id, [base!.id]);
  }

  /**
   * Does a piece of work on a branch so that it can be killed at any instant and run again: steps
   * that are on record are not done again, and those that were under way are gone on with as
   * their `inDoubt` policy says. The work must do everything that may come out differently by its context.
   *
   * @returns what the work answered, in the form in which it is kept; of a run that has ended, from the record
   * @throws what the work throws; AgstateError `STEP_MISMATCH` when the code is not that which is on record,
   *   `STEP_FENCED` when somebody else goes on with the branch, `STEP_IN_DOUBT`
   */
  async run<Result>(
    branch: Branch,
    work: (ctx: RunContext) => Promise<Result>,
    options: RunOptions = {},
  ): Promise<Result> {
    await this.repository.mustBePrimary("run steps");
    const { runOn } = await import("./steps/run.js");
    return runOn(this.repository, branch, work, options);
  }

  /** Requests for decisions by a person, those asked for last first. */
  async reviews(filter: ReviewFilter = {}): Promise<Review[]> {
    const { reviewsOf } = await import("./reviews/review.js");
    return reviewsOf(this.repository, filter);
  }

  /** @throws AgstateError `REVIEW_NOT_FOUND`, `INVALID_NAME` */
  async review(id: string): Promise<Review> {
    const { reviewOf } = await import("./reviews/review.js");
    return reviewOf(this.repository, id);
  }

  /**
   * Completes the workflow: its branches take no more commits, and no new ones come up. What is there stays
   * readable; branches can be deleted, tags and reviews made. It cannot be taken back; a second time does nothing.
   *
   * @throws AgstateError `OPEN_INTENTS` while a step of a branch is begun and not sealed, `REF_CONFLICT`
   *   when its branches are written to all the time
   */
  async complete(options: CompleteOptions = {}): Promise<WorkflowInfo> {
    await this.repository.mustBePrimary("complete a workflow");
    const { completeWorkflow } = await import("./complete.js");
    const completedAt = await completeWorkflow(this.repository, options);
    this.record =
      completedAt === null
        ? ((await this.repository.storage.readWorkflow(this.id)) ?? this.record)
        : { ...this.record, completedAt };
    return this.info;
  }

  /**
   * Holds a commit: it and all that it reaches stay, whatever becomes of branches, until the hold is released. Holds on
   * one commit are independent of each other; who placed and released one, and why, is in the log of `refs/holds/<name>`.
   *
   * @throws AgstateError `REVISION_NOT_FOUND`, `REF_EXISTS`, `INVALID_NAME`, `INVALID_VALUE` without a reason
   */
  async hold(revision: string, options: HoldOptions): Promise<HoldInfo> {
    await this.repository.mustBePrimary("hold a commit");
    const { placeHold } = await import("./holds.js");
    return placeHold(this.repository, revision, options);
  }

  /** Holds that are not released, sorted by name. */
  async holds(): Promise<HoldInfo[]> {
    const { listHolds } = await import("./holds.js");
    return listHolds(this.repository);
  }

  /**
   * Releases a hold, and tells what it was. What nothing else reaches then stays for the grace period of `gc`.
   *
   * @throws AgstateError `REF_NOT_FOUND`, `REF_CONFLICT`, `INVALID_NAME`, `INVALID_VALUE` without a reason
   */
  async releaseHold(name: string, options: ReleaseOptions): Promise<HoldInfo> {
    await this.repository.mustBePrimary("release a hold");
    const { releaseHold } = await import("./holds.js");
    return releaseHold(this.repository, name, options);
  }

  /**
   * Changes what the workflow declares: its classification, its retention. Who did it, why, and what it was is kept on
   * `refs/audit/workflow`. Other handles and processes see it when they open the workflow again.
   *
   * @throws AgstateError `INVALID_ARGUMENT` for a change that what is stored does not allow, `INVALID_VALUE` without a reason,
   *   `STORE_READONLY` for who may not
   */
  async redeclare(change: DeclarationChange, options: RedeclareOptions): Promise<WorkflowInfo> {
    await this.repository.mustBePrimary("redeclare a workflow");
    const { redeclare } = await import("./redeclare.js");
    this.record = await redeclare(this.repository, change, options);
    return this.info;
  }

  /**
   * Migrates the states of branches to the version of the store's schema, each by a commit on top of its head; without it
   * states are migrated whenever they are read. A branch that fails is told, and the others go on. Tags, holds and stored
   * merges stay as they are, and a completed workflow takes a dry run alone.
   *
   * @throws AgstateError `SCHEMA_NEEDED`, `REF_NOT_FOUND`, `WORKFLOW_COMPLETE`, `STORE_READONLY`
   */
  async migrateState(options: MigrateStateOptions = {}): Promise<StateMigrationReport> {
    if (options.dryRun !== true) await this.repository.mustBePrimary("migrate states");
    const { migrateState } = await import("./schema/migrate-state.js");
    return migrateState(this.repository, this.record.completedAt !== null, options);
  }

  /** What is known of the key that encrypts the workflow's payloads; null when they are not encrypted. */
  async keyInfo(): Promise<WorkflowKeyInfo | null> {
    const { keyInfo } = await import("./keys/change.js");
    return keyInfo(this.repository);
  }

  /**
   * Wraps the workflow's data key anew, under the present version of the same or another key. No object changes.
   *
   * @throws AgstateError `INVALID_ARGUMENT` when the workflow is not encrypted, `ERASED`, `KEY_UNAVAILABLE`
   */
  async rotateKey(options: RotateKeyOptions = {}): Promise<RotatedKey> {
    await this.repository.mustBePrimary("rotate a key");
    const { rotateKey } = await import("./keys/change.js");
    return rotateKey(this.repository, options);
  }

  /**
   * Destroys the workflow's key, or that of one subject: what it encrypted cannot be read any more, here, in exports and in
   * backups that are made from now on. It cannot be taken back.
   *
   * @throws AgstateError `INVALID_ARGUMENT` when the workflow is not encrypted, `INVALID_VALUE` without a reason, `HELD`,
   *   `ERASED`, `KEY_UNAVAILABLE`
   */
  async destroyKey(options: DestroyKeyOptions): Promise<DestroyedKey> {
    await this.repository.mustBePrimary("destroy a key");
    const { destroyKey } = await import("./keys/change.js");
    return destroyKey(this.repository, options);
  }

  /**
   * Takes something out of all of the workflow's history: what stands at paths, what belongs to a subject, with the copies
   * that are found of it, or everything. Branches go on without it; what is gone leaves tombstones, so that ids and links
   * still verify. What holds keep is left and told. It may be run again, and must be after a hold is released or a backup restored.
   *
   * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_PATH`, `INVALID_NAME`, `INVALID_VALUE`; `HELD` for a whole workflow that
   *   is held in part; `REF_CONFLICT`, `STORE_READONLY`
   */
  async erase(request: EraseRequest): Promise<EraseReport> {
    if (request.dryRun !== true) await this.repository.mustBePrimary("erase");
    const { erase } = await import("./erase/erase.js");
    const report = await this.telling("erase", async (span) => {
      const erased = await erase(this.repository, request, this.info.subjects);
      span.set({
        "agstate.removed.objects": erased.objects + erased.inline,
        "agstate.removed.bytes": erased.bytes,
      });
      return erased;
    });
    this.record = (await this.repository.storage.readWorkflow(this.id)) ?? this.record;
    return report;
  }

  /** Checks every object, commit, link, ref and log of the workflow; nothing is changed. */
  async fsck(): Promise<FsckReport> {
    const { checkWorkflow } = await import("./fsck.js");
    return checkWorkflow(this.repository);
  }

  /**
   * Removes what neither refs nor the logs of the grace period reach, in small
   * transactions, beside any writers. Run again after an interruption, it goes on.
   *
   * @throws AgstateError `INVALID_ARGUMENT`; `MISSING_OBJECT`, `CORRUPT_OBJECT` when what is in use is
   *   damaged: nothing is removed then
   */
  async gc(options: GcOptions = {}): Promise<GcReport> {
    if (options.dryRun !== true) await this.repository.mustBePrimary("collect garbage");
    const { collectWorkflow } = await import("./gc/collect.js");
    return this.telling("gc", async (span) => {
      const report = await collectWorkflow(this.repository, options);
      span.set({
        "agstate.removed.commits": report.commits,
        "agstate.removed.objects": report.trees + report.blobs,
        "agstate.removed.bytes": report.bytes,
      });
      return report;
    });
  }

  /**
   * Tells what retention would take away now, and what keeps some of it: history first, then payload of the commits that
   * stay. Nothing is changed.
   *
   * @throws AgstateError `INVALID_ARGUMENT` when the workflow declares no policy, and none is given
   */
  async planRetention(options: RetentionOptions = {}): Promise<RetentionReport> {
    const { planRetention } = await import("./retention/plan.js");
    const { report } = await planRetention(this.repository, this.info.retentionPolicy, options);
    return report;
  }

  /**
   * Takes away what is over by the retention policy, beside any writers, and puts that on record first. Payload of old
   * commits becomes tombstones, unless a younger commit, a ref's commit or a hold needs it; old commits are dropped as a
   * prefix. Ids and links verify as before. Run again after an interruption, it goes on.
   *
   * @throws AgstateError `INVALID_ARGUMENT` when the workflow declares no policy, and none is given; `MISSING_OBJECT`,
   *   `CORRUPT_OBJECT` when what is in use is damaged: nothing is taken away then; `REF_CONFLICT`
   */
  async applyRetention(options: RetentionOptions = {}): Promise<RetentionReport> {
    await this.repository.mustBePrimary("apply retention");
    const { applyRetention } = await import("./retention/apply.js");
    return this.telling("retention", async (span) => {
      const { retentionPolicy } = this.info;
      const report = await applyRetention(this.repository, retentionPolicy, options);
      const { history, payload } = report;
      span.set({
        "agstate.removed.commits": history?.removed?.commits ?? 0,
        "agstate.removed.objects": (payload?.blobs ?? 0) + (payload?.trees ?? 0),
        "agstate.removed.bytes": payload?.bytes ?? 0,
      });
      return report;
    });
  }

  /**
   * Where reads come from: a replica is told with how far it has come, and marks what is read as stale. Asked before a read, and
   * kept beside what that answered, it says how old that may be: what was read is at least as new as the position.
   */
  readFrom(): Promise<ReadFrom> {
    return readFrom(this.repository.storage);
  }

  /** How much each agent's branches reach of the workflow, alone and with others. */
  async stats(): Promise<WorkflowStats> {
    const { workflowStats } = await import("./stats.js");
    return workflowStats(this.repository);
  }

  /** How much the workflow holds. */
  usage(): Promise<Usage> {
    return this.repository.storage.usage(this.id);
  }

  /** Does work of maintenance, and tells of it. */
  private telling<T>(
    name: "gc" | "retention" | "erase",
    work: (span: Span) => Promise<T>,
  ): Promise<T> {
    const attributes = { "workflow.id": this.id };
    return spanning(this.repository.context.telemetry, name, { attributes }, work);
  }

  /** @internal For the export to Git. */
  get internals(): Repository {
    return this.repository;
  }
}

function note(options: RefChangeOptions, reason: string): RefUpdate["note"] {
  return { actor: options.actor ?? DEFAULT_ACTOR, reason: options.reason ?? reason };
}

function refNotFound(ref: string): AgstateError {
  return new AgstateError(
    "REF_NOT_FOUND",
    `there is no ${shortRefName(ref)}; see agstate branch and agstate tag for what there is`,
    { ref },
  );
}

function refExists(ref: string, id: string | null): AgstateError {
  return new AgstateError(
    "REF_EXISTS",
    `${shortRefName(ref)} exists already, at ${id}; choose another name or delete it first`,
    { ref, id },
  );
}
