import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { isTransient, toStoreError } from "./errors.js";
import type { PostgresTarget } from "./target.js";

/** How many connections a store holds at most. */
const POOL_MAX = 8;
const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 30_000;
/** The longest pause before a call is tried again. */
const PAUSE_MAX_MS = 500;

export interface ConnectionOptions {
  readonly target: PostgresTarget;
  readonly poolMax?: number | undefined;
  /** How long a call may go on trying, in milliseconds. */
  readonly retryForMs: number;
  /** The server gives a statement up after this, in milliseconds. */
  readonly statementTimeoutMs: number;
}

/**
 * A pool of connections that tries again what fails for passing reasons.
 *
 * No session holds any state: every call is one statement of its own, so that a
 * pooler may give each to another server connection.
 */
export class Connection {
  readonly location: string;
  private readonly pool: pg.Pool;

  constructor(private readonly options: ConnectionOptions) {
    const { target } = options;
    this.location = target.shown;
    this.pool = new pg.Pool({
      connectionString: target.connectionString,
      max: options.poolMax ?? POOL_MAX,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      query_timeout: options.statementTimeoutMs + CONNECT_TIMEOUT_MS,
      keepAlive: true,
      allowExitOnIdle: false,
      application_name: "agstate",
    });
    // An idle connection that breaks is replaced when it is needed.
    this.pool.on("error", () => undefined);
  }

  /**
   * Runs one statement. It must be one that may be run again where its answer
   * was lost.
   *
   * @throws AgstateError `STORE_UNAVAILABLE`, `STORE_BUSY`, `STORE_FULL`, `STORE_READONLY`, `STORE_DAMAGED`
   */
  async query<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    const since = performance.now();
    for (let tries = 1; ; tries++) {
      try {
        return (await this.pool.query<Row>({ text, values: [...values] })).rows;
      } catch (error) {
        const waited = performance.now() - since;
        if (!isTransient(error) || waited >= this.options.retryForMs) {
          throw toStoreError(error, this.location);
        }
        await sleep(Math.random() * Math.min(PAUSE_MAX_MS, 5 * 2 ** tries));
      }
    }
  }

  /** A connection of one's own, for what takes several statements; give it back by `release`. */
  async own(): Promise<pg.PoolClient> {
    try {
      return await this.pool.connect();
    } catch (error) {
      throw toStoreError(error, this.location);
    }
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}
