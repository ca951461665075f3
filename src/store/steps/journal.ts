import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import type { Attributes, Place, Telemetry } from "../../core/telemetry.js";
import type { StepAction } from "../../objects/commit.js";
import { elsewhereAt } from "../../objects/isolation.js";
import { parseAgentRef } from "../../refs/names.js";
import type { Journal, JournalEntry, Landed, StepQuestion } from "../../steps/journal.js";
import { continuedKey, idempotencyKey } from "../../steps/key.js";
import type { Reliance, StepRecord } from "../../steps/record.js";
import type { Probed } from "../../steps/spec.js";
import { mayBegin } from "../handoff/gate.js";
import { mayTakeMemory } from "../pressure/gate.js";
import type { Repository } from "../repository.js";
import { askWhatBecame } from "../reviews/in-doubt.js";
import type { Commit } from "../types.js";
import type { StepAppend, StepBranch } from "./handle.js";
import { recordOf } from "./read.js";

/** How many commits one move brings at most. */
const MOVE_MAX_COMMITS = 64;
/** How often entries are put on top of a branch that others move before they fail. */
const ATTEMPTS = 20;
const PAUSE_MAX_MS = 20;
/** How far back it is looked who moved the branch. */
const LOOK_BACK_MAX = 10_000;

const RETRY = { "agstate.operation": "step" };

interface Pending {
  readonly entry: JournalEntry;
  /** Where it was asked for. */
  readonly at: Place;
  readonly resolve: (landed: Landed) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
  /** A seal of a step that is open still: it lands whoever has gone on with the branch. */
  onTop: boolean;
}

/**
 * The step log of a branch: entries that come while a move is under way go out together in the next,
 * as a line of commits.
 *
 * The branch's compare-and-swap is the fence, against the commit that is known here: a handle that
 * was refreshed meanwhile does not open it. When somebody else has moved it, without a step, as
 * an update or a merge does, the entries go on top of that; when somebody else has written a step,
 * that one goes on with the branch, and everything here fails but seals of steps that are open still.
 * Such a seal, of a step that was begun here anew meanwhile, is no step of somebody who goes on: what it says is taken
 * for what came out, so that of all who go on with a branch the last to begin a step is never stopped by those before.
 */
export class BranchJournal implements Journal {
  readonly workflow: string;
  readonly branch: string;
  readonly maxBytes: number;
  readonly now: () => number;
  /** Of the branch that this is the log of: one that was made anew has another. */
  readonly incarnation: string;
  readonly telemetry: Telemetry;
  readonly where: Attributes;
  private queue: Pending[] = [];
  private running = false;
  /** The commit up to which the branch's steps are known here, wherever the handle is. */
  known: string;
  private runs = 0;
  /** Steps that were begun here and are not sealed. */
  private readonly begun = new Set<number>();
  /** What somebody else has sealed some of them with. */
  private readonly sealed = new Map<number, StepRecord>();
  private lastKey = { number: 0, key: "" };
  /** What was relied on and is on record nowhere yet, in the order in which it was. */
  carried: readonly Reliance[] = [];

  constructor(
    private readonly repository: Repository,
    private readonly handle: StepBranch,
  ) {
    this.workflow = repository.workflow;
    this.branch = handle.name;
    this.maxBytes = repository.context.limits.stateMaxBytes;
    this.now = repository.context.now;
    this.incarnation = handle.incarnation;
    this.telemetry = repository.context.telemetry;
    const agent = parseAgentRef(handle.ref)?.agent ?? handle.author;
    this.where = {
      "workflow.id": this.workflow,
      "agent.id": agent,
      branch: this.branch,
      "agstate.branch.incarnation": this.incarnation,
      "gen_ai.agent.id": agent,
      "gen_ai.conversation.id": this.workflow,
    };
    this.known = handle.head.id;
  }

  /** Takes the handle's head for known, as a step begins that stands by itself; nothing while a run is under way. */
  begin(): void {
    if (this.runs > 0 || this.queue.length > 0 || this.running) return;
    this.known = this.handle.head.id;
    this.begun.clear();
    this.sealed.clear();
  }

  /** Takes the handle's head for known, once for a whole run, until what it answers is called. */
  beginRun(): () => void {
    this.begin();
    this.runs++;
    return () => {
      this.runs--;
    };
  }

  keyOf(number: number, origin?: string): string {
    const { workflow, incarnation } = this;
    const branch = { workflow, ref: this.handle.ref, incarnation };
    if (origin !== undefined) return continuedKey(branch, number, origin);
    // A step asks for its key more than once.
    if (this.lastKey.number !== number) {
      this.lastKey = { number, key: idempotencyKey(branch, number) };
    }
    return this.lastKey.key;
  }

  hidesInputs(action: StepAction): boolean {
    const policy = this.repository.policyOfStep(action, { input: null });
    return elsewhereAt(policy, ["input"]) !== null;
  }

  mayBegin(): Promise<void> | undefined {
    const waits = mayTakeMemory(this.branch);
    if (waits !== undefined) return waits.then(() => this.mayBegin());
    return mayBegin(this.repository, this.handle.loadedHead, this.branch);
  }

  async relianceOf(given: unknown, signal: AbortSignal | undefined): Promise<Reliance> {
    const { relianceOf } = await import("../handoff/resources.js");
    const { checkers, now } = this.repository.context;
    return relianceOf(given, { checkers, now, signal });
  }

  carry(reliances: readonly Reliance[]): void {
    this.carried = [...this.carried, ...reliances];
  }

  /** An entry with what was relied on since the last by work that records nothing. */
  private withCarried(entry: JournalEntry): JournalEntry {
    const { carried } = this;
    if (carried.length === 0 || entry.status === "started") return entry;
    this.carried = [];
    const { record } = entry;
    return { ...entry, record: { ...record, reliesOn: [...carried, ...(record.reliesOn ?? [])] } };
  }

  ask(question: StepQuestion): Promise<Probed<JsonValue | undefined> | { review: string }> {
    return askWhatBecame(this.repository, this.handle, question);
  }

  land(given: JournalEntry): Promise<Landed> {
    const entry = this.withCarried(given);
    this.repository.foresee(entry.action, entry.record as unknown as JsonValue);
    return new Promise((resolve, reject) => {
      const lease = this.handle.leaseSignal;
      // A seal tells of what has happened, which nobody else can.
      const seals = entry.number !== undefined && entry.status !== "started";
      if (lease?.aborted === true && !seals) return reject(lease.reason);
      const at = this.telemetry.place();
      this.queue.push({ entry, at, resolve, reject, attempts: 0, onTop: false });
      if (this.running) return;
      this.running = true;
      queueMicrotask(() => void this.run());
    });
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0) await this.move(this.take());
    this.running = false;
  }

  /**
   * The next entries; one that edits the state only as the first, since it is made from the head's;
   * one that needs an approval alone, since that may not hold any more.
   */
  private take(): Pending[] {
    const [first] = this.queue;
    if (first?.entry.approval !== undefined || first?.onTop === true) {
      return this.queue.splice(0, 1);
    }
    const edits = this.queue.findIndex(
      ({ entry, onTop }, i) =>
        i > 0 && (entry.operations !== undefined || entry.approval !== undefined || onTop),
    );
    const most = edits < 0 ? MOVE_MAX_COMMITS : Math.min(edits, MOVE_MAX_COMMITS);
    return this.queue.splice(0, most);
  }

  private async move(taken: readonly Pending[]): Promise<void> {
    const pending = taken.filter((one) => !this.isSealed(one));
    if (pending.length === 0) return;
    const onTop = pending[0]?.onTop === true;
    let commits: Commit[];
    try {
      if (this.handle.incarnation !== this.incarnation) throw this.fenced("was made anew");
      commits = await this.handle.appendSteps(
        pending.map(({ entry, at }) => ({ ...this.append(entry), at })),
        onTop ? this.handle.head.id : this.known,
      );
      // What is fenced off once stays so: the steps of others do not become known.
      if (!onTop) this.known = (commits.at(-1) as Commit).id;
    } catch (error) {
      if (isAgstateError(error, "REF_CONFLICT")) await this.again(pending, error);
      else if (isAgstateError(error, "RESIDENCY_REFUSED") && pending.length > 1) {
        // One of them holds what may not be written here: the others land.
        for (const one of pending) await this.move([one]);
      } else for (const { reject } of pending) reject(error);
      return;
    }
    pending.forEach(({ entry, resolve }, i) => {
      const commit = commits[i] as Commit;
      const number = commit.step?.number as number;
      if (entry.status === "started") this.begun.add(number);
      else this.begun.delete(number);
      resolve({ number, commit: commit.id });
    });
  }

  /** Answers an entry whose step somebody else has sealed. */
  private isSealed({ entry, resolve, reject }: Pending): boolean {
    const { number, status } = entry;
    const sealed = number === undefined ? undefined : this.sealed.get(number);
    if (number === undefined || sealed === undefined) return false;
    if (status === "started") reject(this.fenced(`has step ${number} sealed`));
    else resolve({ number, sealed });
    return true;
  }

  private append({
    action,
    status,
    record,
    number,
    keyed,
    key,
    operations,
    trace,
    author,
    approval,
  }: JournalEntry): StepAppend {
    return {
      step: {
        action,
        status,
        record,
        ...(number === undefined ? {} : { number }),
        ...(keyed ? { key: (n: number) => key ?? this.keyOf(n) } : {}),
      },
      operations,
      message: `${record.name}: ${status}`,
      trace,
      author,
      approval,
    };
  }

  /** Looks who was faster, and queues again what may still land. */
  private async again(pending: readonly Pending[], error: Error): Promise<void> {
    try {
      await sleep(Math.random() * PAUSE_MAX_MS);
      const head = await this.handle.refresh();
      if (this.handle.incarnation !== this.incarnation) throw this.fenced("was made anew");
      // Steps that this run has gone on from are gone with what was gathered.
      const gathered = isAgstateError(error) && error.details.gathered !== undefined;
      const other = gathered ? "others" : await this.stepSince(head.id, this.known);
      if (other === null) this.known = head.id;
      const back: Pending[] = [];
      for (const one of pending) {
        const { status, number } = one.entry;
        const open = status !== "started" && number !== undefined && head.inFlight.includes(number);
        if (other !== null && !open) {
          one.reject(gathered ? error : this.fenced(`has a step of ${other}`));
        } else if (++one.attempts >= ATTEMPTS) one.reject(error);
        else {
          this.telemetry.count("agstate.cas.retries", 1, RETRY);
          one.onTop = other !== null;
          back.push(one);
        }
      }
      this.queue.unshift(...back);
    } catch (failure) {
      for (const { reject } of pending) reject(failure);
    }
  }

  /**
   * Who wrote a step after a commit that this journal knew as the head, and goes on with the branch so;
   * null when nobody does.
   */
  private async stepSince(head: string, known: string): Promise<string | null> {
    const { repository } = this;
    const line = repository.history.firstParentWalk(head as ObjectId);
    const sealed = new Map<number, StepRecord>();
    for await (const commit of repository.load(line, LOOK_BACK_MAX)) {
      if (commit.id === known) {
        // Whoever handed the branch off, or took it up, is who goes on with it.
        if (this.handle.loadedHead.root.envelope?.id !== commit.root.envelope?.id) {
          return "another session";
        }
        for (const [number, record] of sealed) this.sealed.set(number, record);
        return null;
      }
      if (commit.step === undefined) continue;
      const { number, status } = commit.step;
      const isLate = status !== "started" && this.begun.has(number);
      const record = isLate ? await recordOf(commit, repository.objectsOf(commit)) : null;
      if (record === null) return `${commit.author}, ${number}`;
      // The walk goes back: what was said last comes first.
      if (!sealed.has(number)) sealed.set(number, record);
    }
    // The branch was moved to where the known head is not: whatever is there is not this run's.
    return "another line of history";
  }

  private fenced(why: string): AgstateError {
    return new AgstateError(
      "STEP_FENCED",
      `somebody else goes on with ${this.branch}: it ${why}; let that one finish, or stop it and run again`,
      { branch: this.branch },
    );
  }
}
