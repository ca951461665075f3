import pg from "pg";
import type { Replica } from "../port.js";

/**
 * Whether the server follows another, and how far it has come, as one row.
 *
 * What it has to apply is what it has received, and what the primary has last said that it has written; the latter is told
 * to roles that may read all statistics only. Positions to reach are read before the one that was reached, which only
 * grows. The last transaction's time alone would not do: it grows old while a primary has nothing to say.
 */
export const REPLICA = `SELECT pg_is_in_recovery() AS standby,
    pg_last_wal_replay_lsn()::text AS position,
    (extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000)::float8 AS applied,
    CASE
      WHEN NOT pg_is_in_recovery() THEN NULL
      WHEN NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE coalesce(status, 'streaming') = 'streaming') THEN NULL
      WHEN greatest(pg_last_wal_receive_lsn(), (SELECT latest_end_lsn FROM pg_stat_wal_receiver))
        <= pg_last_wal_replay_lsn() THEN 0
      ELSE greatest(0, extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000)
    END::float8 AS behind`;

/** What {@link REPLICA} answers. */
export interface ReplicaColumns {
  readonly standby: boolean;
  readonly position: string | null;
  /** In milliseconds since the Unix epoch. */
  readonly applied: number | null;
  readonly behind: number | null;
}

/** How far a replica has come; null of a server that follows none. */
export function replicaOf({ standby, position, applied, behind }: ReplicaColumns): Replica | null {
  if (!standby) return null;
  return {
    appliedAt: applied === null ? null : new Date(applied),
    position: position ?? "0/0",
    behindMs: behind === null ? null : Math.round(behind),
  };
}

/** The setting by which a session is told, as it begins and whenever that changes, that the server follows another. */
const STANDBY = "in_hot_standby";

/** What node-pg's connection tells, and its types do not. */
interface Told {
  on(
    event: "parameterStatus",
    told: (status: { readonly parameterName: string; readonly parameterValue: string }) => void,
  ): void;
}

/**
 * The class of clients that call `standby` when the server says that it follows another, which costs no question.
 *
 * It is a hint: a pooler may tell of another server, or of an earlier time.
 */
export function telling(standby: () => void): new (config?: string | pg.ClientConfig) => pg.Client {
  return class extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      const { connection } = this as unknown as { readonly connection: Told };
      connection.on("parameterStatus", ({ parameterName, parameterValue }) => {
        if (parameterName === STANDBY && parameterValue === "on") standby();
      });
    }
  };
}
