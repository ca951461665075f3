import type { Wakers } from "../../core/wakers.js";

/** How often refs are read while nothing tells of their moves, in milliseconds. */
export const POLL_MS = 250;

/** The same after a failure, in milliseconds. */
const FAILED_MS = 1000;

/** Reads, by workflow key, a text that changes with every move. */
export type ReadMoves = (keys: readonly string[]) => Promise<ReadonlyMap<string, string>>;

/**
 * Wakes watchers by reading, at intervals, how many moves their workflows have
 * had; one read tells of all.
 */
export class Poller {
  readonly #known = new Map<string, string>();
  /** Which run goes on; null while none does. */
  #run: object | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly read: ReadMoves,
    private readonly wakers: Wakers,
  ) {}

  /** Begins, or goes on; of what happened meanwhile nothing is known, so the first read wakes all. */
  start(pause = 0): void {
    if (this.#run !== null) return;
    this.#run = {};
    this.#known.clear();
    this.#schedule(this.#run, pause);
  }

  stop(): void {
    this.#run = null;
    clearTimeout(this.#timer);
  }

  /** Reads once, and wakes those whose workflow has moved since the last read. */
  async poll(): Promise<void> {
    const keys = this.wakers.keys();
    const moves = keys.length === 0 ? new Map<string, string>() : await this.read(keys);
    for (const key of keys) {
      const now = moves.get(key) ?? "";
      if (this.#known.get(key) === now) continue;
      this.#known.set(key, now);
      this.wakers.wake(key);
    }
  }

  #schedule(run: object, pause: number): void {
    this.#timer = setTimeout(async () => {
      // The server may be away; reading tells those who read.
      const next = await this.poll().then(
        () => POLL_MS,
        () => FAILED_MS,
      );
      if (this.#run === run) this.#schedule(run, next);
    }, pause).unref();
  }
}
