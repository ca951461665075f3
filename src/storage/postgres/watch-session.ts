import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Connection } from "./connection.js";

/** For how long a row in `watchers` makes writers notify, in seconds. */
const WATCHED_S = 60;

/** How long a notification may take to come back, in milliseconds. */
const PROOF_MS = 2000;

/** How long the end of a connection is waited for, in milliseconds. */
const END_MS = 1000;

export interface SessionOptions {
  readonly connection: Connection;
  /** Quoted. */
  readonly schema: string;
  /** Whose rows in `watchers` these are: a uuid, or its 32 hex digits. */
  readonly watcher: string;
  /** A text that nobody else sends. */
  readonly token: string;
  /** Called with the payload of every notification: a workflow's key. */
  readonly heard: (payload: string) => void;
}

/**
 * A connection that listens to the notifications of one schema, from its making
 * to its end; it is not made again.
 */
export class ListenSession {
  /** Resolves when the connection is gone, for whatever reason. */
  readonly lost: Promise<void>;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly client: pg.Client,
    private readonly options: SessionOptions,
  ) {
    // The end follows, and is enough to know.
    client.on("error", () => undefined);
    this.lost = new Promise((resolve) => {
      client.once("end", () => resolve());
    });
  }

  /**
   * Connects and listens; null where notifications do not arrive, as behind a
   * pooler that gives a session away after each transaction.
   *
   * @throws what node-pg throws
   */
  static async open(options: SessionOptions): Promise<ListenSession | null> {
    const client = options.connection.apart("agstate watch");
    const session = new ListenSession(client, options);
    try {
      await client.connect();
      // What waits for moves keeps the process alive, not what tells of them; the types lack this.
      (client as unknown as { unref(): void }).unref();
      if (await session.#listen()) return session;
    } catch (error) {
      await session.end();
      throw error;
    }
    await session.end();
    return null;
  }

  /** Listens, and proves it: on another connection, since a pooler hands on what one's own statement brings. */
  async #listen(): Promise<boolean> {
    const { connection, schema, token, heard } = this.options;
    const [named] = await this.#query<{ channel: string | null }>(
      "SELECT 'agstate_' || to_regclass($1)::oid AS channel",
      [`${schema}.watchers`],
    );
    const channel = named?.channel ?? null;
    if (channel === null) return false;
    let proven: (yes: boolean) => void = () => undefined;
    const proof = new Promise<boolean>((resolve) => {
      proven = resolve;
    });
    this.client.on("notification", ({ payload = "" }) => {
      if (payload === token) proven(true);
      else heard(payload);
    });
    await this.#query(`LISTEN ${channel}`);
    await connection.query("SELECT pg_notify($1, $2)", [channel, token]);
    const timer = setTimeout(() => proven(false), PROOF_MS).unref();
    const yes = await Promise.race([proof, this.lost]);
    clearTimeout(timer);
    if (yes === undefined) throw new Error("Connection terminated while it began to listen");
    // Where a pooler has let it pass, to some connection.
    if (!yes) await this.#query(`UNLISTEN ${channel}`).catch(() => undefined);
    return yes;
  }

  /** Makes writers notify of these workflows, for a while; forgets watchers whose time is over. */
  async register(keys: readonly string[]): Promise<void> {
    const { schema, watcher } = this.options;
    await this.#query(
      `WITH now AS (
        SELECT extract(epoch FROM clock_timestamp())::bigint AS seconds
      ), over AS (
        DELETE FROM ${schema}.watchers AS t USING (
          SELECT o.workflow_id, o.watcher FROM ${schema}.watchers AS o, now
            WHERE o.until <= now.seconds AND o.watcher <> $2 FOR UPDATE OF o SKIP LOCKED
        ) AS o WHERE t.workflow_id = o.workflow_id AND t.watcher = o.watcher
      )
      INSERT INTO ${schema}.watchers AS t (workflow_id, watcher, until)
        SELECT k, $2, now.seconds + ${WATCHED_S} FROM unnest($1::uuid[]) AS k, now ORDER BY k
        ON CONFLICT (workflow_id, watcher) DO UPDATE SET until = excluded.until`,
      [keys, watcher],
    );
  }

  /** Takes a registration back; all of them when no workflow is named. */
  async unregister(key: string | null): Promise<void> {
    const { schema, watcher } = this.options;
    await this.#query(
      `DELETE FROM ${schema}.watchers WHERE watcher = $2 AND ($1::uuid IS NULL OR workflow_id = $1)`,
      [key, watcher],
    );
  }

  /**
   * A number of a transaction that began after what was done on this session
   * before: writers with lower ones may not have seen it.
   */
  async mark(): Promise<string> {
    const [row] = await this.#query<{ mark: string }>("SELECT pg_current_xact_id()::text AS mark");
    return (row as { mark: string }).mark;
  }

  /** Whether every transaction with a lower number is over. */
  async isPast(mark: string): Promise<boolean> {
    const [row] = await this.#query<{ past: boolean }>(
      "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8 AS past",
      [mark],
    );
    return (row as { past: boolean }).past;
  }

  /** Ends the connection; one that does not answer is left to end by itself. */
  async end(): Promise<void> {
    const ended = this.client.end().catch(() => undefined);
    await Promise.race([ended, sleep(END_MS, undefined, { ref: false })]);
  }

  /** Runs a statement when those before it are over. */
  #query<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) {
    const run = this.#last.then(async () => {
      const { rows } = await this.client.query<Row>({ text, values: [...values] });
      return rows;
    });
    this.#last = run.catch(() => undefined);
    return run;
  }
}
