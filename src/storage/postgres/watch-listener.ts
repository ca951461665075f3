import { setTimeout as sleep } from "node:timers/promises";
import type { Wakers } from "../../core/wakers.js";
import { isTransient } from "./errors.js";
import type { Poller } from "./watch-poller.js";
import { ListenSession, type SessionOptions } from "./watch-session.js";

/** How often it is said that somebody still watches, and all are woken in case a hint was lost; in milliseconds. */
const RENEW_MS = 20_000;

/** The longest pause before a lost connection is made again, in milliseconds. */
const RECONNECT_MAX_MS = 5000;

/** How long its end is waited for, should a server not answer; in milliseconds. */
const CLOSE_MS = 2000;

/** The longest pause between two looks at whether older transactions are over, in milliseconds. */
const SETTLE_MAX_MS = 2000;

/**
 * Keeps a listening connection while somebody watches: wakes watchers when writers
 * notify, and makes the connection anew when it is lost.
 *
 * While there is no connection, and for good where notifications do not arrive or
 * this role may not ask for them, the poller stands in.
 */
export class Listener {
  readonly #stop = new AbortController();
  readonly #stopped = new Promise<void>((resolve) => {
    this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  #session: ListenSession | null = null;
  /** Since a connection was last good. */
  #failures = 0;
  #over: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: Omit<SessionOptions, "heard">,
    private readonly wakers: Wakers,
    private readonly poller: Poller,
  ) {}

  start(): void {
    this.#over = this.#run();
  }

  /** Makes writers notify of one more workflow; false while there is no connection. */
  async cover(key: string): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    try {
      await session.register([key]);
    } catch {
      return false;
    }
    void this.#wakeWhenSettled(session, () => this.wakers.wake(key));
    return true;
  }

  /** Nobody watches this workflow any more. */
  async uncover(key: string): Promise<void> {
    // What cannot be taken back is over in a minute.
    await this.#session?.unregister(key).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.race([this.#over, sleep(CLOSE_MS, undefined, { ref: false })]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const heard = (key: string) => this.wakers.wake(key);
        const session = await ListenSession.open({ ...this.options, heard });
        if (session === null) return;
        try {
          await this.#serve(session);
        } finally {
          this.#session = null;
          if (!signal.aborted) this.poller.start();
          await session.end();
        }
      } catch (error) {
        if (isRefusal(error)) return;
      }
      const pause = Math.min(RECONNECT_MAX_MS, 50 * 2 ** Math.min(this.#failures++, 10));
      await sleep(Math.random() * pause, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Listens until the connection is lost or nobody watches any more. */
  async #serve(session: ListenSession): Promise<void> {
    const { signal } = this.#stop;
    if (signal.aborted) return;
    // From here on who begins to watch registers by itself.
    this.#session = session;
    await session.register(this.wakers.keys());
    this.#failures = 0;
    if (!signal.aborted) {
      this.poller.stop();
      void this.#wakeWhenSettled(session, () => this.wakers.wakeAll());
    }
    const ending = new AbortController();
    const over = ending.signal;
    void Promise.race([this.#stopped, session.lost]).then(() => ending.abort());
    for (;;) {
      await sleep(RENEW_MS, undefined, { ref: false, signal: over }).catch(() => undefined);
      if (over.aborted) break;
      await session.register(this.wakers.keys());
      this.wakers.wakeAll();
    }
    if (signal.aborted) await session.unregister(null).catch(() => undefined);
  }

  /**
   * Wakes after a registration, until no transaction is left that may have looked
   * for watchers before it and lands after what a watcher then reads.
   */
  async #wakeWhenSettled(session: ListenSession, wake: () => void): Promise<void> {
    const { signal } = this.#stop;
    try {
      const mark = await session.mark();
      for (let pause = 10; !signal.aborted; pause = Math.min(2 * pause, SETTLE_MAX_MS)) {
        const past = await session.isPast(mark);
        wake();
        if (past) return;
        await sleep(pause, undefined, { ref: false, signal });
      }
    } catch {
      // The connection is lost, and made anew, or nobody watches any more.
    }
  }
}

/** Whether the server refuses to do this, now and later: a role without the right, a replica. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && "severity" in error && !isTransient(error);
}
