import type { Database } from "better-sqlite3";
import { NO_TELEMETRY, type Place, type Telemetry } from "../../core/telemetry.js";
import type { WriteAnswer, WriteBatch } from "../port.js";
import { sizeOf } from "../rows/batch.js";
import type { Asked, RoundTrips } from "../rows/round-trips.js";
import { applyBatch, type WriteContext } from "./apply-batch.js";
import { busyError, isBusy, toStoreError } from "./errors.js";
import { retryPause } from "./retry.js";
import type { WalNoter } from "./wal-note.js";

/** The bytes after which a group takes no further member, so that one transaction stays bounded. */
const GROUP_MAX_BYTES = 32 * 1024 * 1024;
const GROUP_MAX_MEMBERS = 1024;

/** A connection that met another one this lately takes turns with it. */
const CONTENTION_MEMORY_MS = 100;

/** How long a turn is: commits in a row waste less than a change after each. */
const TURN_MS = 10;

/** The longest pause after a turn. */
const COURTESY_MS = 3;

const GROUPS_OF = { "db.system.name": "sqlite" };

interface Member {
  readonly batch: WriteBatch;
  /** Where it was asked for. */
  readonly at: Place;
  readonly resolve: (answer: WriteAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly since: number;
  /** Size of its bodies. */
  readonly bytes: number;
  /** Its group failed: it is tried again in a transaction of its own. */
  alone: boolean;
}

/**
 * Lands batches in groups: whatever was queued when the write lock is had goes
 * out in one transaction, each member judged alone, in the order of arrival.
 *
 * SQLite would block the event loop while it waits for the lock, and serves
 * waiters in no order. So nothing here waits inside SQLite: a busy lock is
 * tried again after a short random pause, and a connection that has met others
 * pauses a moment when it has had its turn, or it might take the lock again
 * and again before any of them wakes up.
 */
export class GroupWriter {
  readonly #telemetry: Telemetry;
  #queue: Member[] = [];
  #armed = false;
  #metOthersAt = Number.NEGATIVE_INFINITY;
  #turnEndsAt = Number.POSITIVE_INFINITY;
  #courtesyUntil = 0;
  #whenIdle: (() => void) | null = null;

  constructor(
    readonly db: Database,
    readonly context: WriteContext,
    readonly noter: WalNoter,
    readonly location: string,
    readonly busyTimeoutMs: number,
    readonly trips: RoundTrips,
  ) {
    this.#telemetry = context.options.telemetry ?? NO_TELEMETRY;
  }

  write(batch: WriteBatch): Promise<WriteAnswer> {
    return new Promise((resolve, reject) => {
      const [since, bytes] = [performance.now(), sizeOf(batch)];
      const at = this.#telemetry.place();
      this.#queue.push({ batch, at, resolve, reject, since, bytes, alone: false });
      this.#telemetry.queued(1);
      this.#arm();
    });
  }

  /** Does a piece of work in a write transaction of its own, at once; throws when the lock is taken. */
  transact<T>(work: () => T): T {
    const { statements } = this.context;
    statements.begin.run();
    try {
      const result = work();
      this.noter.note();
      statements.commit.run();
      return result;
    } catch (error) {
      this.#undo();
      throw error;
    }
  }

  /** Resolves when nothing is queued any more. */
  async drain(): Promise<void> {
    if (this.#queue.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  #arm(): void {
    if (this.#armed || this.#queue.length === 0) return;
    this.#armed = true;
    const courtesy = this.#courtesyUntil - performance.now();
    if (courtesy > 0) setTimeout(() => this.#flush(), courtesy);
    else setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#armed = false;
    try {
      this.context.statements.begin.run();
    } catch (error) {
      if (isBusy(error)) this.#waitForLock(error);
      else this.#rejectAll(error);
      return;
    }
    const group = this.#takeGroup();
    this.#telemetry.queued(-group.length);
    this.#telemetry.measure("agstate.group.size", group.length, GROUPS_OF);
    this.#land(group);
    this.#arm();
    if (this.#queue.length === 0) this.#whenIdle?.();
  }

  #waitForLock(error: unknown): void {
    const now = performance.now();
    this.#metOthersAt = now;
    this.#turnEndsAt = Number.POSITIVE_INFINITY;
    const expired = (member: Member) => now - member.since >= this.busyTimeoutMs;
    for (const member of this.#queue.filter(expired)) {
      this.#telemetry.queued(-1);
      member.reject(busyError(this.location, now - member.since, error));
    }
    this.#queue = this.#queue.filter((member) => !expired(member));
    const oldest = this.#queue[0];
    if (oldest === undefined) {
      this.#whenIdle?.();
      return;
    }
    this.#armed = true;
    setTimeout(() => this.#flush(), retryPause(now - oldest.since));
  }

  #rejectAll(error: unknown): void {
    const members = this.#queue;
    this.#queue = [];
    this.#telemetry.queued(-members.length);
    for (const member of members) member.reject(toStoreError(error, this.location));
    this.#whenIdle?.();
  }

  #takeGroup(): Member[] {
    if (this.#queue[0]!.alone) return this.#queue.splice(0, 1);
    let count = 0;
    let bytes = 0;
    while (
      count < Math.min(this.#queue.length, GROUP_MAX_MEMBERS) &&
      bytes < GROUP_MAX_BYTES &&
      !this.#queue[count]!.alone
    ) {
      bytes += this.#queue[count]!.bytes;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  #land(group: readonly Member[]): void {
    const { statements } = this.context;
    const answers: WriteAnswer[] = [];
    try {
      this.trips.runHere(bringing(group), () => {
        let changed = false;
        for (const { batch } of group) {
          const applied = applyBatch(this.context, batch, group.length === 1);
          answers.push(applied.answer);
          changed ||= applied.changed;
        }
        if (changed) this.noter.note();
        (changed ? statements.commit : statements.rollback).run();
      });
    } catch (error) {
      this.#undo();
      if (group.length === 1) {
        group[0]!.reject(toStoreError(error, this.location));
        return;
      }
      for (const member of group) member.alone = true;
      this.#queue.unshift(...group);
      this.#telemetry.queued(group.length);
      return;
    }
    this.#takeTurns();
    for (const [i, member] of group.entries()) member.resolve(answers[i]!);
  }

  /** Begins a turn with the first commit after a wait, and ends it with a pause. */
  #takeTurns(): void {
    const now = performance.now();
    if (now - this.#metOthersAt > CONTENTION_MEMORY_MS) return;
    if (this.#turnEndsAt === Number.POSITIVE_INFINITY) this.#turnEndsAt = now + TURN_MS;
    if (now < this.#turnEndsAt) return;
    this.#turnEndsAt = Number.POSITIVE_INFINITY;
    this.#courtesyUntil = now + Math.random() * COURTESY_MS;
  }

  #undo(): void {
    this.noter.forget();
    this.context.numbers.forget();
    if (this.db.inTransaction) this.context.statements.rollback.run();
  }
}

/** What is told of a transaction that brings batches; it is part of what asked for the first of them. */
function bringing(group: readonly Member[]): Asked {
  const spans = group.flatMap(({ batch }) => batch.spans ?? []);
  return { operation: "write", batch: group.length, spans, at: group[0]?.at };
}
