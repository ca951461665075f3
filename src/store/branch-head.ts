import { AgstateError, isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import type { DecodedObject, ObjectReader } from "../objects/reader.js";
import type { WrittenObject } from "../objects/sink.js";
import { shortRefName } from "../refs/names.js";
import { type MoveNote, movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { MoveAnswer, ObjectRecord, RefRow } from "../storage/port.js";
import { spansOf } from "./checkpoint.js";
import { bodyBytes } from "./commit-size.js";
import { GATHERED_MAX_BYTES, type Gathering } from "./granularity.js";
import { isMemoryShort } from "./pressure/gate.js";
import type { Repository } from "./repository.js";
import type { PreparedCommit } from "./write-commit.js";

/** How commits go on top of a head. */
export interface PutOptions {
  readonly note: MoveNote;
  /** Whether they may wait for others, where the handle gathers. */
  readonly mayWait: boolean;
  /** What lands in the same write or not at all. */
  readonly beside?: readonly Beside[];
}

/** A move of another ref that lands with a branch's. */
export interface Beside {
  readonly update: RefUpdate;
  readonly objects: readonly WrittenObject[];
  /** The error of that move's having lost, by which nothing of the write lands. */
  readonly lost: () => AgstateError;
}

/**
 * Where a handle on a branch is: the ref as it was last read or written, and what was put on top of it
 * since and has not landed. Nothing here is safe to call before the call before has ended.
 */
export class BranchHead {
  /** The commit that the ref is at, by what was last read or written. */
  private landed: LoadedCommit;
  private waiting: PreparedCommit[] = [];
  private waitingObjects = new Map<ObjectId, DecodedObject>();
  private waitingBytes = 0;
  private note: MoveNote | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Why what was gathered could not land, until somebody is told. */
  private untold: AgstateError | undefined;

  constructor(
    private readonly repository: Repository,
    public row: RefRow,
    /** The head, with what has not landed. */
    public commit: LoadedCommit,
    private readonly gathering: Gathering | null,
    /** Call `landQuietly`, and `land`, when the calls under way have ended. */
    private readonly later: {
      readonly landQuietly: () => Promise<void>;
      readonly land: () => Promise<unknown>;
    },
  ) {
    this.landed = commit;
  }

  /** How many commits have not landed. */
  get gathered(): number {
    return this.waiting.length;
  }

  /** Reads objects, those that have not landed as well. */
  get objects(): ObjectReader {
    const { objects } = this.repository;
    return this.waiting.length === 0 ? objects : objects.with(this.waitingObjects);
  }

  /** Reads objects of the head. */
  get headObjects(): ObjectReader {
    const { commit, waitingObjects } = this;
    const get = (id: ObjectId) => commit.inline.get(id) ?? waitingObjects.get(id);
    return this.repository.objects.with({ get });
  }

  /** Takes the head to what was read of the ref. */
  reset(row: RefRow, commit: LoadedCommit): void {
    this.row = row;
    this.commit = commit;
    this.landed = commit;
  }

  /**
   * Puts commits on top, each on the one before, and lands them with all that has waited; or lets them wait.
   *
   * @throws AgstateError `REF_CONFLICT` when the branch was moved, with the number of gathered commits that
   *   are lost by it in `details.gathered`; `APPROVAL_NEEDED`
   */
  put(prepared: readonly PreparedCommit[], options: PutOptions): Promise<void> {
    this.tellLost();
    const { note, mayWait, beside = [] } = options;
    if (mayWait && this.gathering !== null) return this.gather(prepared, note, this.gathering);
    // When this fails, what has waited still waits, and what was to come on top never was.
    return this.move([...this.waiting, ...prepared], note, beside);
  }

  private async gather(
    prepared: readonly PreparedCommit[],
    note: MoveNote,
    limits: Gathering,
  ): Promise<void> {
    await this.checkCopies(prepared, note);
    if (this.wait(prepared, note, limits)) this.commit = (prepared.at(-1) as PreparedCommit).loaded;
    else await this.move([...this.waiting, ...prepared], note, []);
  }

  /** Lands what has waited. */
  async land(): Promise<void> {
    this.tellLost();
    if (this.waiting.length > 0) await this.move(this.waiting, this.note as MoveNote, []);
  }

  /** Like `land`, but whoever calls next is told what went wrong. */
  async landQuietly(): Promise<void> {
    try {
      await this.land();
    } catch (error) {
      if (!isAgstateError(error)) throw error;
      // What can still land is tried again by whoever calls next, who is told then.
      if (this.waiting.length === 0) {
        this.untold = error;
        this.repository.context.gathering.add(this.later.land);
      } else if (!isAgstateError(error, "STORE_CLOSED")) this.startTimer();
    }
  }

  private tellLost(): void {
    const { untold } = this;
    if (untold === undefined) return;
    this.untold = undefined;
    this.repository.context.gathering.delete(this.later.land);
    throw untold;
  }

  /** What may not be written at all does not wait, as all that waits with it would be lost. */
  private async checkCopies(prepared: readonly PreparedCommit[], note: MoveNote): Promise<void> {
    const { context, workflow } = this.repository;
    const last = prepared.at(-1) as PreparedCommit;
    const log = { ...note, time: 0, trace: note.trace ?? "" };
    const expect = { kind: "id", id: this.landed.id } as const;
    const commits = prepared.map(({ record }) => record);
    const at = { ref: this.row.name, expect, target: last.record.id };
    const move = { ...at, incarnation: "", maxStep: 0, commits, log };
    const objects = prepared.flatMap((each) => each.objects.map(({ record }) => record));
    try {
      await context.foreign?.check({ workflow, objects, moves: [move], atomic: true });
    } catch (error) {
      await context.refused?.(this.repository, error);
      throw error;
    }
  }

  /** Lets commits wait; false when there would be too many, which then land. */
  private wait(prepared: readonly PreparedCommit[], note: MoveNote, limits: Gathering): boolean {
    const bytes = prepared.reduce((sum, each) => sum + bodyBytes(each), this.waitingBytes);
    const isFull = this.waiting.length + prepared.length >= limits.maxCommits;
    // What only memory holds would be lost if the process were killed for want of it.
    if (isMemoryShort()) return false;
    if (isFull || bytes >= GATHERED_MAX_BYTES) return false;
    this.waitingBytes = bytes;
    for (const each of prepared) {
      this.waiting.push(each);
      for (const { record, decoded } of each.objects) this.waitingObjects.set(record.id, decoded);
    }
    this.note = note;
    this.repository.context.gathering.add(this.later.land);
    if (this.timer === undefined) this.startTimer(limits.maxMs);
    return true;
  }

  /** Until it rings the process stays alive, so that what is gathered lands. */
  private startTimer(ms = this.gathering?.maxMs): void {
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.later.landQuietly();
    }, ms);
  }

  /** Moves the ref, and tells how it came out of each commit that does not wait any more. */
  private async move(
    commits: readonly PreparedCommit[],
    note: MoveNote,
    beside: readonly Beside[],
  ): Promise<void> {
    const { repository, row, landed } = this;
    const last = commits.at(-1) as PreparedCommit;
    const update: RefUpdate = {
      ref: row.name,
      expect: { kind: "id", id: landed.id, seq: row.seq },
      target: last.record.id,
      commits: commits.map(({ record }) => record),
      maxStep: Math.max(...commits.map(({ maxStep }) => maxStep)),
      note,
    };
    const objects = [...commits, ...beside].flatMap((each) => each.objects);
    try {
      const [answer, ...others] = await repository.refs.apply({
        updates: [update, ...beside.map((each) => each.update)],
        objects: commits.length > 1 ? distinct(objects) : objects.map(({ record }) => record),
        spans: spansOf(commits),
      });
      const lost = others.findIndex(({ outcome }) => outcome === "conflict");
      if (answer?.outcome === "skipped" && lost >= 0) throw (beside[lost] as Beside).lost();
      this.row = this.moved(update, answer);
    } catch (error) {
      const known = this.withGathered(error);
      for (const each of commits) if (!this.waiting.includes(each)) each.told?.failed(known);
      throw known;
    }
    for (const { told } of commits) told?.landed();
    this.forget();
    this.landed = last.loaded;
    this.commit = last.loaded;
    repository.objects.prime(objects);
  }

  /** The row after a move; what was gathered is lost when another has moved the ref. */
  private moved(update: RefUpdate, answer: MoveAnswer | undefined): RefRow {
    try {
      return movedRow(update, answer);
    } catch (error) {
      const gathered = this.waiting.length;
      if (gathered === 0) throw error;
      this.forget();
      this.commit = this.landed;
      throw isAgstateError(error, "REF_CONFLICT") ? lostWith(error, update.ref, gathered) : error;
    }
  }

  /** An error, with what was gathered and is lost by it. */
  private withGathered(error: unknown): unknown {
    const gathered = this.waiting.length;
    if (gathered === 0 || !isAgstateError(error, "RESIDENCY_REFUSED")) return error;
    // A payload came after what was gathered: that can never land.
    this.forget();
    this.commit = this.landed;
    return new AgstateError(error.code, error.message, { ...error.details, gathered });
  }

  private forget(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.repository.context.gathering.delete(this.later.land);
    if (this.waiting.length === 0) return;
    this.waiting = [];
    this.waitingObjects = new Map();
    this.waitingBytes = 0;
  }
}

/** Each object once: commits that were made one after another may have made the same ones. */
function distinct(objects: readonly WrittenObject[]): ObjectRecord[] {
  return [...new Map(objects.map(({ record }) => [record.id, record])).values()];
}

function lostWith(error: AgstateError, ref: string, gathered: number): AgstateError {
  return new AgstateError(
    "REF_CONFLICT",
    `${shortRefName(ref)} was moved by somebody else, and ${gathered} gathered ${
      gathered === 1 ? "commit" : "commits"
    } on top of where it was did not land: refresh, and make them again`,
    { ...error.details, gathered },
    { cause: error },
  );
}
