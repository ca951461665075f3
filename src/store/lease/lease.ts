import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import type { LeaseRecord } from "./record.js";
import { moveLease } from "./stored.js";

/** How many signs of life a holder gives while its lease lasts. */
const BEATS = 3;

/** What a lease needs of the branch that it is for. */
export interface LeasedBranch {
  readonly ref: string;
  readonly name: string;
  readonly author: string;
  /** The number of the last log entry that the handle read or wrote. */
  readonly seq: number;
}

/**
 * A lease on a branch: who holds it goes on with the branch, and others know it before they begin.
 *
 * It saves work and money, and nothing rests on it: what fences is the compare-and-swap of each
 * step's intent. The holder gives a sign of life three times in `ttlMs`, for which its steps count as well.
 * When the lease is lost, `signal` aborts, and steps on the branch's handle are refused.
 */
export class Lease {
  private readonly lost = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private aliveAt = performance.now();
  private seenSeq: number;
  private beating: Promise<void> | undefined;
  private over = false;

  /** @internal Use `branch.acquire`. */
  constructor(
    private readonly repository: Repository,
    private readonly branch: LeasedBranch,
    private readonly record: LeaseRecord,
    private row: RefRow,
    /**
     * The fencing token: greater than that of everybody who held the lease before. A resource that
     * is given it with each call can refuse those with a smaller one than it has seen.
     */
    readonly token: number,
  ) {
    this.seenSeq = branch.seq;
    this.timer = setInterval(() => {
      this.beating ??= this.beat().finally(() => {
        this.beating = undefined;
      });
    }, record.ttlMs / BEATS);
    // It does not keep the process alive.
    this.timer.unref();
  }

  /** Aborts when the lease is lost, with `LEASE_LOST`; not when it is released. */
  get signal(): AbortSignal {
    return this.lost.signal;
  }

  get ttlMs(): number {
    return this.record.ttlMs;
  }

  get holder(): string {
    return this.record.holder;
  }

  /** Whether it is neither lost nor released. */
  get held(): boolean {
    return !this.over;
  }

  /** Gives the lease back, so that the next one need not wait. Calling it again does nothing. */
  async release(): Promise<void> {
    if (this.over) return;
    this.end();
    await this.beating;
    const { repository, branch, row } = this;
    const note = { actor: branch.author, reason: "lease: released" };
    await moveLease(repository, { ref: row.name, row }, null, note);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** One sign of life, unless a step of the branch was one; finds out as well whether the lease is still held. */
  private async beat(): Promise<void> {
    const { repository, branch, record, token } = this;
    const before = performance.now();
    try {
      if (branch.seq !== this.seenSeq) {
        this.seenSeq = branch.seq;
        const row = await repository.refs.row(this.row.name);
        if (row?.seq !== this.row.seq) return this.lose();
      } else {
        const note = { actor: branch.author, reason: "lease: held" };
        const at = { ref: this.row.name, row: this.row };
        const row = await moveLease(repository, at, { ...record, token }, note);
        if (row === null) return this.lose();
        this.row = row;
      }
      this.aliveAt = before;
    } catch (error) {
      if (isAgstateError(error, "STORE_CLOSED")) return this.end();
      // Others may take a holder for dead that has not been heard of for so long.
      if (performance.now() - this.aliveAt >= record.ttlMs) this.lose(error);
    }
  }

  private lose(cause?: unknown): void {
    if (this.over) return;
    this.end();
    const { name } = this.branch;
    this.lost.abort(
      new AgstateError(
        "LEASE_LOST",
        `the lease on ${name} (token ${this.token}) is lost: ${
          cause === undefined ? "somebody else took it" : "the store could not be told in time"
        }; whoever holds it goes on with the branch`,
        { branch: name, token: this.token },
        cause === undefined ? {} : { cause },
      ),
    );
  }

  private end(): void {
    this.over = true;
    clearInterval(this.timer);
  }
}
