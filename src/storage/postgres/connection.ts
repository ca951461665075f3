import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { toldError } from "../../core/server-error.js";
import type { Telemetry } from "../../core/telemetry.js";
import { type Bringing, type DatabasePlace, RoundTrips } from "../rows/round-trips.js";
import { codeOf, isAway, isTransient, toStoreError } from "./errors.js";
import type { Parameter } from "./parameters.js";
import { callPrepared, type Prepared } from "./prepared-call.js";
import { telling } from "./replica.js";
import { cut, runWithin, within } from "./run-within.js";
import type { PostgresTarget } from "./target.js";

/** The longest wait for a connection, a new one or one that others use, before it counts as a failure. */
const CONNECT_TIMEOUT_MS = 10_000;
const CONNECT_MIN_MS = 1000;
const IDLE_TIMEOUT_MS = 30_000;
/** The longest pause before a call is tried again. */
const PAUSE_MAX_MS = 500;
/** How long after the server's own limit the client asks it to cancel a statement. */
const MARGIN_MS = 500;
/** How long connections may take to say goodbye. */
const CLOSE_TIMEOUT_MS = 2000;

/**
 * What is said of prepared statements that a session does not know, knows already, or knows as something
 * else: poolers that take no notice of them give each call to any session.
 */
const FORGOTTEN = ["26000", "42P05", "0A000"];

/** What is said to a write by a server that follows another, or that takes none for another reason. */
const READ_ONLY = "25006";

/** The names under which limits of the server are settings of a session, sent as it begins. */
const SETTINGS = ["statement_timeout", "lock_timeout"] as const;

export interface ConnectionOptions {
  readonly target: PostgresTarget;
  /** How many connections are held at most. */
  readonly poolMax: number;
  /** How long a call may go on trying after it failed first, and how long it may wait for a lock, in milliseconds. */
  readonly retryForMs: number;
  /** A statement is given up after this, in milliseconds. */
  readonly statementTimeoutMs: number;
  readonly telemetry?: Telemetry | undefined;
}

/** What a transaction may take, in milliseconds. */
export interface TransactionLimits {
  readonly statementMs: number;
  /** How long it may stand still between two statements. */
  readonly idleMs: number;
}

/** Runs one statement, or, without values, several. */
export type Run = <Row extends pg.QueryResultRow>(
  text: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

/** What is known of a call beyond its last error. */
interface Call {
  /** Something was sent that may have been done. */
  sent: boolean;
}

/**
 * What is connected to, by OpenTelemetry's conventions; what the URL leaves out is taken from the environment.
 *
 * @throws AgstateError `STORE_UNAVAILABLE` where a file that the URL names cannot be read
 */
function placeOf({ target, poolMax, statementTimeoutMs }: ConnectionOptions): DatabasePlace {
  const { connectionString, shown: location, schema } = target;
  try {
    const { database = "", host, port } = new pg.Client({ connectionString });
    return {
      "db.system.name": "postgresql",
      "db.namespace": `${database}|${schema}`,
      "server.address": host,
      "server.port": port,
    };
  } catch (error) {
    throw toStoreError(error, { location, poolMax, statementTimeoutMs, unknown: false });
  }
}

/**
 * A pool of connections that tries again what fails for passing reasons.
 *
 * No session holds any state that a call needs: every call is one statement of its own, so that a
 * pooler may give each to another server connection. That a session knows a statement only spares it work. Limits are sent as the session begins; a
 * pooler that does not take them is asked without, and then only the client watches the time.
 * A client on which anything failed is never used again.
 */
export class Connection {
  readonly location: string;
  private readonly trips: RoundTrips;
  /** How many connections there are at most. */
  readonly poolMax: number;
  private readonly pool: pg.Pool;
  private readonly clients = new Set<pg.ClientBase>();
  /** Whether sessions know again the statements that they have parsed. */
  private named = true;
  /** Whether the server may be one that follows another; it was so once, or a session has said so since. */
  private suspected = false;

  constructor(private readonly options: ConnectionOptions) {
    const { target } = options;
    this.location = target.shown;
    this.trips = new RoundTrips(options.telemetry, placeOf(options), target.schema, {
      codeOf,
      toldError,
    });
    this.poolMax = options.poolMax;
    this.pool = new pg.Pool({
      Client: telling(() => this.suspectReplica()),
      connectionString: target.connectionString,
      max: options.poolMax,
      connectionTimeoutMillis: Math.min(
        CONNECT_TIMEOUT_MS,
        Math.max(CONNECT_MIN_MS, options.retryForMs),
      ),
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      statement_timeout: options.statementTimeoutMs,
      lock_timeout: options.retryForMs,
      keepAlive: true,
      allowExitOnIdle: false,
      application_name: "agstate",
    });
    // An idle connection that breaks is replaced when it is needed.
    this.pool.on("error", () => undefined);
    this.pool.on("connect", (client) => {
      this.clients.add(client);
      client.once("end", () => this.clients.delete(client));
    });
  }

  get mayBeReplica(): boolean {
    return this.suspected;
  }

  /** Has it found out, before anything is decided, whether a replica is read. */
  suspectReplica(): void {
    this.suspected = true;
  }

  /** Takes note of what was found out: a replica may have become the primary, or a name lead to another server. */
  foundReplica(replica: boolean): void {
    this.suspected = replica;
  }

  /**
   * Runs one statement. It must be one that may be run again where its answer
   * was lost.
   *
   * @throws AgstateError `STORE_UNAVAILABLE`, `STORE_BUSY`, `STORE_FULL`, `STORE_READONLY`, `STORE_DAMAGED`
   */
  query<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
    operation = "query",
  ): Promise<Row[]> {
    return this.retrying(() =>
      this.borrow((client) =>
        this.trips.run({ operation }, () => runWithin<Row>(client, { text, values }, this.limitMs)),
      ),
    );
  }

  /**
   * The same for a statement that writes: where its answer was lost, and asking again did not
   * help either, the error's details have `outcome: "unknown"`.
   */
  write<Row extends pg.QueryResultRow>(
    { text, name, operation }: Prepared,
    values: readonly unknown[],
    bringing: Bringing = {},
  ): Promise<Row[]> {
    return this.retrying((call) =>
      this.prepared(call, (client, named, limitMs) =>
        this.trips.run({ operation, ...bringing }, () =>
          runWithin<Row>(client, { text, values, name: named ? name : undefined }, limitMs),
        ),
      ),
    );
  }

  /** The same for a statement that answers one value. */
  call(
    statement: Prepared,
    parameters: readonly Parameter[],
    bringing: Bringing = {},
  ): Promise<string | null> {
    const { operation } = statement;
    return this.retrying((call) =>
      this.prepared(call, (client, named, limitMs) =>
        this.trips.run({ operation, ...bringing }, () =>
          within(client, callPrepared(client, statement, parameters, named), limitMs),
        ),
      ),
    );
  }

  /**
   * Runs several statements as one transaction on a connection of their own; all of it is run
   * again where the connection is lost. Its limits are set for the transaction alone, which a pooler
   * lets through, and which the server holds it to when this process stands still or dies.
   */
  transaction<T>(limits: TransactionLimits, work: (run: Run) => Promise<T>): Promise<T> {
    const { statementMs, idleMs } = limits;
    return this.retrying(() =>
      this.borrow(async (client) => {
        const run: Run = (text, values) =>
          runWithin(client, { text, values }, statementMs + MARGIN_MS);
        await run(
          `BEGIN; SET LOCAL statement_timeout = ${statementMs};
           SET LOCAL lock_timeout = ${this.options.retryForMs};
           SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`,
        );
        const result = await work(run);
        await run("COMMIT");
        return result;
      }),
    );
  }

  /**
   * Runs statements of maintenance that cannot be part of a transaction, each by itself on a connection of their own.
   * They have no limit of time; for locks they wait as long as any call.
   */
  async maintain(texts: readonly string[]): Promise<void> {
    const { poolMax, statementTimeoutMs, retryForMs } = this.options;
    const { location } = this;
    let limits: { lock_timeout?: number } = { lock_timeout: retryForMs };
    for (;;) {
      const client = this.apart("agstate-maintain", limits);
      // What breaks the connection fails the statement under way as well.
      client.on("error", () => undefined);
      try {
        await client.connect();
        for (const text of texts) await client.query(text);
        return;
      } catch (error) {
        // A pooler that does not know the setting; nothing was done.
        if (codeOf(error) !== "08P01" || limits.lock_timeout === undefined) {
          throw toStoreError(error, { location, poolMax, statementTimeoutMs, unknown: false });
        }
        limits = {};
      } finally {
        await client.end().catch(() => undefined);
      }
    }
  }

  /** Closes all connections, those too whose server does not answer any more. */
  async close(): Promise<void> {
    await this.pool.end();
    const gone = [...this.clients].map(
      (client) => new Promise((resolve) => client.once("end", resolve)),
    );
    const late = new AbortController();
    await Promise.race([
      Promise.all(gone),
      sleep(CLOSE_TIMEOUT_MS, undefined, { signal: late.signal }),
    ]);
    late.abort();
    for (const client of this.clients) cut(client);
  }

  /** Runs a statement under its name, so that it is not parsed and planned each time; where that fails, never again. */
  private async prepared<T>(
    call: Call,
    run: (client: pg.PoolClient, named: boolean, limitMs: number) => Promise<T>,
  ): Promise<T> {
    const named = this.named;
    try {
      return await this.borrow((client) => run(client, named, this.limitMs));
    } catch (error) {
      if (isAway(error)) call.sent = true;
      if (!named || !FORGOTTEN.includes(codeOf(error))) throw error;
      // Nothing was done.
      this.named = false;
      return this.prepared(call, run);
    }
  }

  private get limitMs(): number {
    return this.options.statementTimeoutMs + MARGIN_MS;
  }

  /** Lends a client for a piece of work; one on which it fails is closed, which rolls back what it had begun. */
  private async borrow<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.connect();
    // The statement under way fails as well; without a listener the event would end the process.
    const ignore = () => undefined;
    client.on("error", ignore);
    let failure: Error | undefined;
    try {
      return await work(client);
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
      client.off("error", ignore);
    }
  }

  private async connect(): Promise<pg.PoolClient> {
    const since = performance.now();
    try {
      const client = await this.pool.connect();
      this.trips.waited((performance.now() - since) / 1000);
      return client;
    } catch (error) {
      // What a pooler says of settings that it does not know; the call is tried again.
      if (codeOf(error) === "08P01") {
        for (const name of SETTINGS) delete this.pool.options[name];
      }
      throw error;
    }
  }

  private async retrying<T>(work: (call: Call) => Promise<T>): Promise<T> {
    const { retryForMs, poolMax, statementTimeoutMs } = this.options;
    const call: Call = { sent: false };
    let since: number | undefined;
    for (let tries = 1; ; tries++) {
      try {
        return await work(call);
      } catch (error) {
        // From the first failure on: what took long to fail is asked about once more at least.
        since ??= performance.now();
        if (codeOf(error) === READ_ONLY) this.suspectReplica();
        if (!isTransient(error) || performance.now() - since >= retryForMs) {
          const { location } = this;
          throw toStoreError(error, { location, poolMax, statementTimeoutMs, unknown: call.sent });
        }
        await sleep(Math.random() * Math.min(PAUSE_MAX_MS, 5 * 2 ** tries));
      }
    }
  }

  /**
   * A connection outside the pool, for what needs a session; not connected yet. Whoever takes it
   * handles its errors and ends it.
   */
  apart(
    name: string,
    limits: Pick<pg.ClientConfig, "query_timeout" | "lock_timeout"> = {
      query_timeout: CONNECT_TIMEOUT_MS,
    },
  ): pg.Client {
    return new pg.Client({
      connectionString: this.options.target.connectionString,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      application_name: name,
      ...limits,
    });
  }
}
