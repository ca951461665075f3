import { AgstateError, isAgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { shortRefName } from "../refs/names.js";
import type { RefMatcher } from "../refs/pattern.js";
import type { RefRow, Storage, StoredReflogEntry, Watch } from "../storage/port.js";
import type { ReflogLine } from "./types.js";
import { toReflogLine } from "./views.js";

/** How many entries of a log are read at once. */
const PAGE = 1000;

/** How long nobody may ask for the next move before the storage is asked no more to tell of moves, in milliseconds. */
const IDLE_MS = 30_000;

/** Longer than any timer runs. */
const FOR_EVER_MS = 2 ** 31 - 1;

/** By full name of a ref, the number of the last entry of its log that was told. */
export type Positions = Readonly<Record<string, number>>;

export interface WatchOptions {
  /** Ends the iteration, as `return()` does. */
  readonly signal?: AbortSignal;
  /**
   * Where to begin: `now` (default), `start` for all that the logs hold, or after
   * what was seen before, as `seen` gives it; refs that it does not name are new.
   */
  readonly from?: "now" | "start" | Positions;
}

/** A move of a ref: an entry of its log. */
export interface Move extends Omit<ReflogLine, "selector"> {
  /** The full name, such as `refs/heads/canonical`. */
  readonly ref: string;
  /** As people see it: `canonical`, `agents/booker/try-1`, `tags/v1`. */
  readonly shortName: string;
}

/**
 * The moves of refs as they happen, each exactly once, in the order of each ref's log.
 *
 * Moves are read from the logs when they are asked for: nothing piles up for a slow
 * consumer, and none is lost with a connection. While one is waited for, the
 * process stays alive. Ends by `break`, `return()`, the signal, or the store's `close`.
 */
export class Moves implements AsyncIterableIterator<Move> {
  readonly #seen = new Map<string, number>();
  readonly #moves: AsyncGenerator<Move, undefined, undefined>;
  readonly #stop = new AbortController();
  #started: Promise<void> | null = null;
  #watch: Watch | null = null;
  /** When the last watch is closed. */
  #unwatched: Promise<void> = Promise.resolve();
  /** Whether the store was open when it began: its close is then the end, and no error. */
  #begun = false;
  /** Whether refs may have moved since they were read. */
  #woken = false;
  #waiter: () => void = () => undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @internal Use `workflow.watch`. */
  constructor(
    private readonly storage: Storage,
    private readonly workflow: string,
    private readonly pattern: RefMatcher,
    private readonly options: WatchOptions,
  ) {
    checkFrom(options.from);
    this.#moves = this.#tell();
  }

  /** What was told until now, and what was there at the start: give it as `from` to go on from here. */
  get seen(): Positions {
    return Object.fromEntries(this.#seen);
  }

  /** Settles where the iteration begins; without it, that is settled when the first move is asked for. */
  start(): Promise<void> {
    this.#started ??= this.#readStart();
    return this.#started;
  }

  /** @throws AgstateError `STORE_DAMAGED` where a log lacks an entry, `INVALID_ARGUMENT`, and what reading raises */
  async next(): Promise<IteratorResult<Move, undefined>> {
    // A timer that never runs out: what tells of moves does not keep the process alive.
    const waiting = setInterval(() => undefined, FOR_EVER_MS);
    clearTimeout(this.#idle);
    try {
      return await this.#moves.next();
    } finally {
      clearInterval(waiting);
      this.#idle = setTimeout(() => void this.#unwatch(), IDLE_MS).unref();
    }
  }

  async return(): Promise<IteratorResult<Move, undefined>> {
    this.#end();
    await this.#moves.return(undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async *#tell(): AsyncGenerator<Move, undefined, undefined> {
    const { signal } = this.options;
    const end = () => this.#end();
    if (signal?.aborted) return;
    signal?.addEventListener("abort", end, { once: true });
    try {
      await this.start();
      while (!this.#stop.signal.aborted) {
        // Before reading, so that what lands after it wakes.
        this.#watch ??= await this.storage.watch(this.workflow, () => this.#wake());
        this.#begun = true;
        this.#woken = false;
        for (const row of await this.#readRefs()) yield* this.#tellOf(row);
        await this.#untilWoken();
      }
    } catch (error) {
      if (!isAgstateError(error, "STORE_CLOSED") || !this.#begun) throw error;
    } finally {
      signal?.removeEventListener("abort", end);
      clearTimeout(this.#idle);
      await this.#unwatch();
    }
  }

  /** Tells what a ref's log holds beyond what was told. */
  async *#tellOf(row: RefRow): AsyncGenerator<Move, undefined, undefined> {
    const { name } = row;
    let seq = this.#seen.get(name) ?? 0;
    if (seq > row.seq) throw seenTooMuch(name, seq, row.seq);
    while (seq < row.seq) {
      const to = Math.min(row.seq, seq + PAGE);
      const options = { limit: to - seq, fromSeq: to };
      const page = await this.storage.readReflog(this.workflow, name, options);
      if (page.length < to - seq) throw entryLost(name, to - page.length);
      for (const entry of page.reverse()) {
        if (this.#stop.signal.aborted) return;
        seq = entry.seq;
        this.#seen.set(name, seq);
        yield toMove(entry);
      }
    }
  }

  async #readStart(): Promise<void> {
    const { from = "now" } = this.options;
    if (from === "start") return;
    if (from === "now") {
      for (const row of await this.#readRefs()) this.#seen.set(row.name, row.seq);
      this.#begun = true;
      return;
    }
    for (const [ref, seq] of Object.entries(from)) {
      if (this.pattern.matches(ref)) this.#seen.set(ref, seq);
    }
  }

  async #readRefs(): Promise<RefRow[]> {
    const rows = await this.storage.readRefs(this.workflow, this.pattern.read);
    return rows.filter((row) => this.pattern.matches(row.name));
  }

  #wake(): void {
    this.#woken = true;
    this.#waiter();
  }

  async #untilWoken(): Promise<void> {
    // Nothing wakes any more when nobody asked for long: then it is time to watch anew, and read.
    if (this.#watch === null) return;
    await new Promise<void>((resolve) => {
      this.#waiter = resolve;
      if (this.#woken || this.#stop.signal.aborted) resolve();
    });
  }

  #end(): void {
    this.#stop.abort();
    this.#waiter();
    clearTimeout(this.#idle);
    void this.#unwatch();
  }

  #unwatch(): Promise<void> {
    const watch = this.#watch;
    this.#watch = null;
    // A watch that cannot be closed ends with the store.
    if (watch !== null) this.#unwatched = watch.close().catch(() => undefined);
    return this.#unwatched;
  }
}

export function toMove(entry: StoredReflogEntry): Move {
  const { selector: _, ...line } = toReflogLine(entry, entry.seq);
  return { ref: entry.ref, shortName: shortRefName(entry.ref), ...line };
}

function checkFrom(from: WatchOptions["from"]): void {
  if (from === undefined || from === "now" || from === "start") return;
  if (typeof from !== "object" || from === null) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `from is ${quoteForMessage(String(from))}; it is now, start, or what was seen as { ref: number }`,
    );
  }
  for (const [ref, seq] of Object.entries(from)) {
    if (ref.startsWith("refs/") && Number.isSafeInteger(seq) && seq >= 0) continue;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `from says ${String(seq)} of ${quoteForMessage(ref)}; it takes full names, such as refs/heads/canonical, and numbers of log entries`,
      { ref, seq },
    );
  }
}

function seenTooMuch(ref: string, seen: number, last: number): AgstateError {
  return new AgstateError(
    "INVALID_ARGUMENT",
    `entry ${seen} of the log of ${shortRefName(ref)} was seen, but its last one is ${last}: what was seen is of another store, or this one is an older copy; watch from start, or from now`,
    { ref, seen, last },
  );
}

function entryLost(ref: string, seq: number): AgstateError {
  return new AgstateError(
    "STORE_DAMAGED",
    `the log of ${shortRefName(ref)} has no entry ${seq}; run agstate fsck to see what is wrong`,
    { ref, seq },
  );
}
