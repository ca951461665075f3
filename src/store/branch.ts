import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { checkIdentity, isOneLine } from "../core/names.js";
import type { Attributes } from "../core/telemetry.js";
import type { Policies, Strategy } from "../merge/policy.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import type { StateOperation } from "../objects/draft/operations.js";
import type { Link } from "../objects/encode.js";
import { normalize } from "../objects/normalize.js";
import type { ObjectSink } from "../objects/sink.js";
import { shortRefName } from "../refs/names.js";
import { StepExecution } from "../steps/execute.js";
import type { StepFailure } from "../steps/record.js";
import { classified, type StepSpec, type Tool } from "../steps/spec.js";
import type { RefRow } from "../storage/port.js";
import { type Beside, BranchHead } from "./branch-head.js";
import { Checkpoint, type CheckpointOptions, whereOf } from "./checkpoint.js";
import type { Gathering } from "./granularity.js";
import type { Boundary } from "./handoff/boundaries.js";
import { encodeEnvelope } from "./handoff/envelope.js";
import type { FreshnessOptions } from "./handoff/freshness.js";
import type { HandoffOptions } from "./handoff/handoff.js";
import type { Handoff } from "./handoff/info.js";
import type { FreshnessReport, ResumeOptions, ResumeReport } from "./handoff/resume.js";
import type { EnvelopeWrite } from "./handoff/write.js";
import type { AcquireOptions, LeaseInfo } from "./lease/acquire.js";
import type { Lease } from "./lease/lease.js";
import { changedPolicies, policiesOf } from "./merge/policies.js";
import { type Guard, type GuardOptions, guardBranch } from "./pressure/guard.js";
import type { UnaskedFor } from "./pressure/types.js";
import { logFrom, readReflog, readState } from "./read.js";
import type { Repository } from "./repository.js";
import { useApproval } from "./reviews/approval.js";
import { usedMeanwhile } from "./reviews/desk.js";
import { hooksOn } from "./reviews/hooks.js";
import { type NewState, StateWriter } from "./state-writer.js";
import type { StepAppend } from "./steps/handle.js";
import { BranchJournal } from "./steps/journal.js";
import { listSteps, type StepDetails, type StepFilter, sealStep } from "./steps/list.js";
import type {
  Commit,
  CommitOptions,
  LogOptions,
  ReadStateOptions,
  ReflogLine,
  State,
  WriteOptions,
} from "./types.js";
import { toCommit } from "./views.js";
import { type PreparedCommit, prepareCommit } from "./write-commit.js";

/**
 * A handle on a branch, at the commit that it last read or wrote.
 *
 * It writes by compare-and-swap: when somebody else moved the branch, a write
 * throws `REF_CONFLICT` and changes nothing, until `refresh` is called. Calls on
 * one handle run one after another.
 */
export class Branch {
  /** Full ref name. */
  readonly ref: string;
  /** As people see it, such as `agents/booker/try-1`. */
  readonly name: string;
  readonly #head: BranchHead;
  readonly #states: StateWriter;
  #last: Promise<unknown> = Promise.resolve();
  #journal: BranchJournal | undefined;
  #lease: Lease | undefined;
  /** What is told of where commits stand, made once. */
  #where: { incarnation: string; author: string; attributes: Attributes } | undefined;

  /** @internal Use `workflow.branch`. */
  constructor(
    private readonly repository: Repository,
    row: RefRow,
    headCommit: LoadedCommit,
    /** Who writes unless a call says otherwise. */
    readonly author: string,
    gathering: Gathering | null = null,
  ) {
    this.ref = row.name;
    this.name = shortRefName(row.name);
    this.#head = new BranchHead(repository, row, headCommit, gathering, {
      landQuietly: () => this.exclusive(() => this.#head.landQuietly()),
      land: () => this.flush(),
    });
    this.#states = new StateWriter(repository, this.#head);
  }

  /** The commit that the handle is at; of a handle that gathers commits, one that may not have landed yet. */
  get head(): Commit {
    return toCommit(this.#head.commit);
  }

  /** How many commits of this handle were gathered and have not landed. */
  get gathered(): number {
    return this.#head.gathered;
  }

  /** @internal The head with everything that its row holds. */
  get loadedHead(): LoadedCommit {
    return this.#head.commit;
  }

  /** 32 hex digits, drawn anew each time a branch of this name is created. */
  get incarnation(): string {
    return this.#head.row.incarnation;
  }

  /** @internal The number of the last log entry that the handle read or wrote. */
  get seq(): number {
    return this.#head.row.seq;
  }

  /** @internal Aborts when the lease that was acquired on this handle is lost. */
  get leaseSignal(): AbortSignal | undefined {
    return this.#lease?.signal;
  }

  /** @internal */
  get minStep(): number {
    return Math.max(this.#head.commit.nextStep, this.#head.row.maxStep + 1);
  }

  /**
   * Lands what the handle has gathered.
   *
   * @throws AgstateError `REF_CONFLICT` when somebody else has moved the branch: what was gathered is lost then
   */
  flush(): Promise<Commit> {
    return this.exclusive(async () => {
      await this.#head.land();
      return this.head;
    });
  }

  /** Reads where the branch is now, and takes the handle there, after what it has gathered has landed. */
  refresh(): Promise<Commit> {
    return this.exclusive(async () => {
      await this.#head.land();
      const { row, commit } = (await this.repository.refs.head(this.ref)) ?? {};
      if (row === undefined || row.id === null) {
        throw new AgstateError("REF_NOT_FOUND", `branch ${this.name} does not exist any more`, {
          ref: this.ref,
        });
      }
      const { commits } = this.repository;
      const at =
        row.id === this.#head.commit.id
          ? this.#head.commit
          : commit === undefined
            ? await commits.read(row.id)
            : commits.prime(commit);
      this.#head.reset(row, at);
      return this.head;
    });
  }

  /**
   * Commits a state.
   *
   * Only what differs from the parent's state is hashed and stored. When
   * nothing changed and neither a message nor a step nor a further parent asks
   * for a commit, it gives the head and writes nothing.
   *
   * @throws AgstateError `REF_CONFLICT`, `INVALID_VALUE`, `LIMIT_EXCEEDED`, `REVISION_NOT_FOUND`
   */
  commit(options: CommitOptions = {}): Promise<Commit> {
    return this.write(options, async (sink) =>
      // A state that is given but undefined is a mistake, not a wish to keep the old one.
      Object.hasOwn(options, "state") ? this.#states.fromValue(sink, options.state) : null,
    );
  }

  /**
   * Edits the state by path; neither reads nor writes what the operations do not touch.
   *
   * @throws AgstateError `REF_CONFLICT`, `PATH_NOT_FOUND`, `INVALID_PATH`, `INVALID_VALUE`, `INVALID_ARGUMENT`, `LIMIT_EXCEEDED`
   */
  update(operations: readonly StateOperation[], options: WriteOptions = {}): Promise<Commit> {
    return this.write(options, (sink) => this.#states.fromOperations(sink, operations));
  }

  /**
   * Sets or removes (null) the merge policies that act when this branch is merged into.
   *
   * @throws AgstateError `REF_CONFLICT`, `INVALID_POLICY`, `INVALID_PATH`
   */
  setPolicies(
    changes: Readonly<Record<string, Strategy | null>>,
    options: WriteOptions = {},
  ): Promise<Commit> {
    return this.write(
      options,
      async () => null,
      (sink) => changedPolicies(this.repository, this.#head.commit, sink, changes),
    );
  }

  /** The merge policies that act when this branch is merged into, by path. */
  policies(): Promise<Policies> {
    return policiesOf(this.repository, this.#head.commit);
  }

  /**
   * Reads the state at the handle's head, or the value at a JSON Pointer in it; by the store's schema.
   *
   * @throws AgstateError `PATH_NOT_FOUND`, `STATE_TOO_NEW`, `MIGRATION_FAILED`
   */
  state(pointer = "", options: ReadStateOptions = {}): Promise<State> {
    const { commit, headObjects } = this.#head;
    return readState(this.repository, commit, pointer, this.name, headObjects, options);
  }

  /** Commits from the head back, children before parents. */
  async *log(options: LogOptions = {}): AsyncGenerator<Commit, void, undefined> {
    await this.flush();
    yield* logFrom(this.repository, [this.#head.commit.id as ObjectId], options);
  }

  /** The branch's log of moves, newest first. */
  async reflog(options: { limit?: number } = {}): Promise<ReflogLine[]> {
    await this.flush();
    return readReflog(this.repository, this.ref, options.limit);
  }

  /**
   * Does a step: where it has a side effect, its intent lands before the tool is called, and its seal
   * after. What resumes after a crash is `workflow.run`.
   *
   * @throws StepError when the tool failed; AgstateError `STEP_FENCED`, `STEP_IN_DOUBT`, `INVALID_VALUE`, `LIMIT_EXCEEDED`
   */
  step<Output>(spec: StepSpec<Output>, tool: Tool<Output>): Promise<Output> {
    const hooks = hooksOn(this.repository, this);
    const classed = classified(hooks, spec);
    const journal = this.stepJournal();
    journal.begin();
    const execution = new StepExecution(journal, hooks, classed, undefined);
    return this.repository.mustBePrimary("do a step").then(() => execution.run(tool));
  }

  /** Steps on the branch's line of first parents, newest first. */
  async *steps(filter: StepFilter = {}): AsyncGenerator<StepDetails, void, undefined> {
    await this.flush();
    yield* listSteps(this.repository, this.#head.commit, filter);
  }

  /**
   * Says what became of a step that was begun and not sealed.
   *
   * The edits of the state that the step's code would have made with its seal are not made, since that code
   * does not run: they are given with `update`, and land with this seal.
   *
   * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_VALUE`, `STEP_FENCED`, and what `update` throws
   */
  async sealStep(
    number: number,
    outcome: { readonly output?: unknown } | { readonly error: StepFailure },
    options: { readonly author?: string; readonly update?: readonly StateOperation[] } = {},
  ): Promise<void> {
    await this.repository.mustBePrimary("seal a step");
    const { stateMaxBytes } = this.repository.context.limits;
    const author = checkIdentity("author", options.author ?? this.author);
    const by = { author, operations: options.update };
    if ("error" in outcome) return sealStep(this.repository, this, number, outcome, by);
    const output =
      outcome.output === undefined
        ? undefined
        : normalize(outcome.output, { maxBytes: stateMaxBytes, what: "step output" });
    return sealStep(this.repository, this, number, { output }, by);
  }

  /**
   * Acquires the lease on the branch, so that of several processes that would go on with it all but one
   * know early that they are not needed. The intent's compare-and-swap fences with and without it.
   *
   * A lease is taken over from a process that is known to have ended, or has given no sign of life for as
   * long as its lease lasts. While this handle's lease is lost, its steps are refused.
   *
   * @throws AgstateError `LEASE_HELD` when its holder lives, `INVALID_ARGUMENT`
   */
  async acquire(options: AcquireOptions = {}): Promise<Lease> {
    await this.repository.mustBePrimary("acquire a lease");
    const { acquireLease } = await import("./lease/acquire.js");
    const lease = await acquireLease(this.repository, this, options);
    this.#lease = lease;
    return lease;
  }

  /** Who holds the lease on the branch; null when nobody does. */
  async lease(): Promise<LeaseInfo | null> {
    const { leaseOn } = await import("./lease/acquire.js");
    return leaseOn(this.repository, this);
  }

  /** Reads, from the branch's head alone, the number of the next step and which are begun and not sealed. */
  async resumePoint(): Promise<{ readonly nextSeq: number; readonly inFlight: readonly number[] }> {
    await this.repository.mustBePrimary("resume");
    const { inFlight } = await this.refresh();
    return { nextSeq: this.minStep, inFlight };
  }

  /**
   * Hands the branch off: a commit that says where the work stands and what it relies on, and a tag on it. No step runs on
   * the branch then until somebody has taken it up with `resume`.
   *
   * @throws AgstateError `INVALID_VALUE`, `INVALID_NAME`, `LIMIT_EXCEEDED`, `REF_EXISTS` when the tag is taken, `REF_CONFLICT`
   */
  async handoff(options: HandoffOptions): Promise<Handoff> {
    await this.repository.mustBePrimary("hand off");
    const { handOff } = await import("./handoff/handoff.js");
    return handOff(this.repository, this, options);
  }

  /** The hand-off at the handle's head that nobody has taken up; null when there is none, or it is not told. */
  async handedOff(): Promise<Handoff | null> {
    if (this.#head.commit.root.envelope === undefined) return null;
    const { handedOffAt } = await import("./handoff/mark.js");
    return handedOffAt(this.repository, this.#head.commit);
  }

  /**
   * Asks whether everything that the branch's work relies on is as it was; nothing is written.
   *
   * @throws AgstateError `INVALID_VALUE`, `REVISION_NOT_FOUND`, `INVALID_ARGUMENT`
   */
  async freshness(
    options: FreshnessOptions & { readonly from?: string } = {},
  ): Promise<FreshnessReport> {
    // What a replica's head relies on may not be what work would go on from.
    await this.repository.mustBePrimary("check what work relies on");
    const { checkFreshness } = await import("./handoff/resume.js");
    return checkFreshness(this.repository, this, options);
  }

  /**
   * Takes the branch up, if everything that its work relies on is as it was, or if somebody has agreed that it may go on as it is
   * now; else asks for a review, and leaves the branch as it is (`ready` is false then).
   *
   * @throws AgstateError `INVALID_VALUE`, `REVISION_NOT_FOUND`, `INVALID_ARGUMENT`, `SIDE_EFFECTS_LEFT`, `REF_CONFLICT` when
   *   somebody else took it up or handed it off meanwhile
   */
  async resume(options: ResumeOptions = {}): Promise<ResumeReport> {
    await this.repository.mustBePrimary("resume");
    const { resume } = await import("./handoff/resume.js");
    return resume(this.repository, this, options);
  }

  /** The hand-offs on the branch, newest first, and what going on from each would do again. */
  async boundaries(): Promise<Boundary[]> {
    const { boundariesOf } = await import("./handoff/boundaries.js");
    await this.refresh();
    return boundariesOf(this.repository, this.loadedHead);
  }

  /**
   * Has the branch brought into the store before the kernel kills the process for want of memory, and when it is told to
   * end: what `state` gives, if that differs from the head's, and what the handle has gathered.
   *
   * A watch is started unless one is running (`watchPressure` starts one with other settings).
   */
  guard(options: GuardOptions = {}): Guard {
    return guardBranch(this.repository, this, options);
  }

  /**
   * Commits a state if it is another than the head's, and lands what the handle has gathered, without waiting for more.
   *
   * @internal Use `guard`.
   * @param state left out, only what was gathered lands
   */
  async putUnasked(made: UnaskedFor, state?: { readonly value: unknown }): Promise<Commit> {
    const { reason, message } = made;
    const options = { message, reason: `${reason}: ${message}` };
    if (state !== undefined) {
      await this.write(
        options,
        async (sink) => this.#states.fromValue(sink, state.value),
        undefined,
        made,
      );
    }
    return this.flush();
  }

  /** @internal A handle on another branch, which was just made at a commit. */
  onto(row: RefRow, head: LoadedCommit): Branch {
    return new Branch(this.repository, row, head, this.author);
  }

  /** @internal Use `handoff` or `resume`. */
  putEnvelope(make: (head: LoadedCommit) => Promise<EnvelopeWrite>): Promise<Commit> {
    let told: Checkpoint | undefined;
    const put = async () => {
      await this.#head.land();
      const head = this.#head.commit;
      const { repository } = this;
      const { envelope, message, author, trace, beside } = await make(head);
      told ??= this.checkpoint(author, { trace });
      const sink = repository.newSink();
      const { state, policy } = head.root;
      const prepared = prepareCommit(repository, {
        sink,
        parents: [head],
        root: { state, policy, envelope: encodeEnvelope(repository, sink, envelope) },
        author,
        minStep: this.minStep,
        options: { message, ...(trace !== undefined && { trace }) },
        told,
      });
      const { loaded } = prepared;
      await this.#head.put([prepared], {
        note: { actor: author, reason: reasonOf(message), trace: loaded.trace },
        mayWait: false,
        beside: beside?.(loaded) ?? [],
      });
      return this.head;
    };
    return this.exclusive(put, (error) => told?.failed(error));
  }

  /** @internal */
  stepJournal(): BranchJournal {
    if (this.#journal?.incarnation !== this.incarnation) {
      this.#journal = new BranchJournal(this.repository, this);
    }
    return this.#journal;
  }

  /**
   * Puts commits of the step log on top of the head, all of them in one move.
   *
   * @internal Use `step` or `workflow.run`.
   * @throws AgstateError `REF_CONFLICT`, and what `update` throws
   */
  appendSteps(entries: readonly StepAppend[], at: string): Promise<Commit[]> {
    let told: readonly Checkpoint[] = [];
    const append = async () => {
      if (this.#head.commit.id !== at) {
        throw new AgstateError("REF_CONFLICT", `${this.name} is not at ${at} any more`, {
          ref: this.ref,
          expected: at,
          actual: this.#head.commit.id,
        });
      }
      // An approval is bound to what others can see.
      if (entries.some(({ approval }) => approval !== undefined)) await this.#head.land();
      if (told.length === 0) {
        told = entries.map(({ at: place, trace, author = this.author }) =>
          this.checkpoint(author, { at: place, trace }),
        );
      }
      return this.putSteps(entries, told);
    };
    return this.exclusive(append, (error) => {
      for (const one of told) one.failed(error);
    });
  }

  private async putSteps(
    entries: readonly StepAppend[],
    told: readonly Checkpoint[],
  ): Promise<Commit[]> {
    const { repository } = this;
    const prepared: PreparedCommit[] = [];
    const beside: Beside[] = [];
    let head = this.#head.commit;
    let { minStep } = this;
    for (const [i, entry] of entries.entries()) {
      const { step, operations, message, approval, author = this.author } = entry;
      const sink = this.repository.newSink();
      const { envelope, policy } = head.root;
      const state =
        operations === undefined
          ? { link: head.root.state, version: head.stateVersion }
          : await this.#states.fromOperations(sink, operations);
      const next = prepareCommit(repository, {
        sink,
        parents: [head],
        root: { state: state.link, envelope, policy },
        stateVersion: state.version,
        author,
        minStep,
        options: { step, message, ...(entry.trace === undefined ? {} : { trace: entry.trace }) },
        told: told[i] as Checkpoint,
      });
      if (approval !== undefined) {
        const number = next.loaded.step?.number as number;
        const use = await useApproval(repository, this, approval, number);
        if (use !== null) beside.push({ ...use, lost: () => usedMeanwhile(approval) });
      }
      prepared.push(next);
      head = next.loaded;
      minStep = Math.max(minStep, next.maxStep + 1);
    }
    const reason = entries.at(-1)?.message ?? "";
    await this.#head.put(prepared, {
      note: { actor: head.committer, reason: reasonOf(reason), trace: head.trace },
      mayWait: entries.every(({ step }) => step.action === "read") && beside.length === 0,
      beside,
    });
    return prepared.map((each) => toCommit(each.loaded));
  }

  private checkpoint(author: string, options: CheckpointOptions): Checkpoint {
    const { incarnation, repository } = this;
    const { context, workflow } = repository;
    if (this.#where?.incarnation !== incarnation || this.#where.author !== author) {
      this.#where = { incarnation, author, attributes: whereOf(workflow, this, author) };
    }
    return new Checkpoint(context.telemetry, this.#where.attributes, options);
  }

  /**
   * Runs writes one after another, so that each sees what the one before did.
   *
   * @param work may be run again, when keys were missing
   */
  private exclusive<T>(
    work: () => Promise<T>,
    failed: (error: unknown) => void = () => undefined,
  ): Promise<T> {
    // What it encodes may be of subjects whose keys are not at hand: nothing is written before they are.
    const encoding = () => this.repository.keys.encoding(work);
    const run = this.#last.then(encoding, encoding);
    this.#last = run.catch(failed);
    return run;
  }

  private write(
    options: WriteOptions,
    makeState: (sink: ObjectSink) => Promise<NewState | null>,
    makePolicy?: (sink: ObjectSink) => Promise<Link | undefined>,
    unasked?: UnaskedFor,
  ): Promise<Commit> {
    let told: Checkpoint | undefined;
    const write = () => {
      told ??= this.checkpoint(this.author, { trace: options.trace });
      return this.writeTold(told, options, makeState, makePolicy, unasked);
    };
    return this.exclusive(write, (error) => told?.failed(error));
  }

  private async writeTold(
    told: Checkpoint,
    options: WriteOptions,
    makeState: (sink: ObjectSink) => Promise<NewState | null>,
    makePolicy?: (sink: ObjectSink) => Promise<Link | undefined>,
    unasked?: UnaskedFor,
  ): Promise<Commit> {
    const { repository } = this;
    await repository.mustBePrimary("commit");
    const before = this.#head.commit;
    const sink = repository.newSink();
    const state = await makeState(sink);
    const { root } = before;
    const policy = makePolicy === undefined ? root.policy : await makePolicy(sink);
    const parents = [before];
    if (options.mergeParents !== undefined) {
      parents.push(...(await this.mergeParents(options.mergeParents)));
    }
    const stateLink = state === null ? root.state : state.link;
    const needed =
      policy?.id !== root.policy?.id ||
      state?.raised === true ||
      this.isNeeded(unasked === undefined ? options : {}, stateLink, parents.length);
    // Nothing changed; but what was encoded anew must be in the store, whole, before that is said.
    if (!needed && (await this.#states.isStored(sink.all().map(({ record }) => record.id)))) {
      this.#states.keep(state);
      told.unchanged();
      return this.head;
    }
    const prepared = prepareCommit(repository, {
      sink,
      parents,
      root: { state: stateLink, envelope: root.envelope, policy },
      stateVersion: state === null ? before.stateVersion : state.version,
      author: this.author,
      minStep: this.minStep,
      options,
      reason: unasked?.reason,
      told,
    });
    const { loaded } = prepared;
    await this.#head.put([prepared], {
      note: {
        actor: loaded.committer,
        reason: options.reason ?? reasonOf(loaded.message),
        trace: loaded.trace,
      },
      mayWait:
        makePolicy === undefined &&
        parents.length === 1 &&
        options.externalId === undefined &&
        (options.step === undefined || options.step.action === "read"),
    });
    this.#states.keep(state);
    return this.head;
  }

  private isNeeded(options: WriteOptions, state: Link | undefined, parents: number): boolean {
    return (
      state?.id !== this.#head.commit.root.state?.id ||
      (options.message !== undefined && options.message !== "") ||
      options.step !== undefined ||
      options.externalId !== undefined ||
      options.allowEmpty === true ||
      parents > 1
    );
  }

  private async mergeParents(revisions: readonly string[]): Promise<LoadedCommit[]> {
    const parents: LoadedCommit[] = [];
    const seen = new Set<ObjectId>([this.#head.commit.id]);
    for (const revision of revisions) {
      const { id } = await this.repository.revisions.resolve(revision);
      if (seen.has(id)) continue;
      seen.add(id);
      parents.push(await this.repository.commits.read(id));
    }
    return parents;
  }
}

/** What the reflog says of a commit: the first line of its message, when that can stand in a log. */
function reasonOf(message: string): string {
  const subject = message.split("\n", 1)[0] as string;
  return subject !== "" && subject.length <= REASON_MAX_LENGTH && isOneLine(subject)
    ? subject
    : "commit";
}

const REASON_MAX_LENGTH = 200;
