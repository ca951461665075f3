import { Wakers } from "../../core/wakers.js";
import type { Watch } from "../port.js";
import type { Connection } from "./connection.js";
import type { Queries } from "./queries.js";
import { Listener } from "./watch-listener.js";
import { POLL_MS, Poller } from "./watch-poller.js";
import type { WorkflowKeys } from "./workflow-keys.js";

/** What {@link ServerWatching} needs. */
export interface WatchContext {
  readonly connection: Connection;
  readonly queries: Queries;
  readonly keys: WorkflowKeys;
  /** Quoted. */
  readonly schema: string;
  readonly randomHex: (bytes: number) => string;
  /** Finds moves by reading only. */
  readonly poll: boolean;
}

/**
 * Wakes whoever watches a workflow of this store.
 *
 * While anybody watches, one connection, outside the pool, listens to what
 * writers notify of; until it does, and where it cannot, refs are polled.
 */
export class ServerWatching {
  readonly #wakers = new Wakers();
  readonly #poller: Poller;
  #listener: Listener | null = null;

  constructor(private readonly context: WatchContext) {
    const { connection, queries } = context;
    this.#poller = new Poller(async (keys) => {
      const rows = await connection.query<{ key: string; moves: string }>(
        queries.moves,
        [keys],
        "moves",
      );
      return new Map(rows.map(({ key, moves }) => [key, moves]));
    }, this.#wakers);
  }

  /** @throws AgstateError as reading does */
  async watch(workflow: string, wake: () => void): Promise<Watch> {
    const key = this.context.keys.of(workflow);
    if (this.#wakers.idle) this.#begin();
    const remove = this.#wakers.add(key, wake);
    const close = async () => {
      remove();
      if (this.#wakers.idle) await this.#end();
      else if (!this.#wakers.has(key)) await this.#listener?.uncover(key);
    };
    try {
      if (!(await this.#listener?.cover(key))) await this.#poller.poll();
    } catch (error) {
      await close();
      throw error;
    }
    return { close };
  }

  async close(): Promise<void> {
    await this.#end();
    this.#wakers.end();
  }

  #begin(): void {
    const { connection, schema, randomHex, poll } = this.context;
    // Who begins to watch reads first.
    this.#poller.start(POLL_MS);
    if (poll) return;
    const options = { connection, schema, watcher: randomHex(16), token: randomHex(16) };
    this.#listener = new Listener(options, this.#wakers, this.#poller);
    this.#listener.start();
  }

  async #end(): Promise<void> {
    this.#poller.stop();
    const listener = this.#listener;
    this.#listener = null;
    await listener?.close();
  }
}
