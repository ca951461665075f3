import type { Database, Statement } from "better-sqlite3";
import { PACKED_GRAPH_DIGITS } from "../port.js";
import type { CommitColumns, ObjectColumns, RefColumns, WorkflowColumns } from "./rows.js";

const OBJECT_COLUMNS = "type, kind, encoding, id, body";
// NULL in a row that damage made a commit: read as a root, its body tells it is none.
const PARENTS = "coalesce(parents, x'') AS parents";
const GRAPH_COLUMNS = `coalesce(generation, 0) AS generation, coalesce(time, 0) AS time, id, ${PARENTS}`;
const COMMIT_COLUMNS = `${GRAPH_COLUMNS}, external_id, inline, body`;
// Read with every write: as hex, because a text costs much less to hand over than a Buffer.
const REF_COLUMNS = `ref, seq, max_step, lower(hex(incarnation)) AS incarnation,
  lower(hex(log_hash)) AS log_hash, lower(hex(id)) AS id, name`;
const { generation, time, parents } = PACKED_GRAPH_DIGITS;
const PACKED_NUMBERS = `%0${generation}d%0${time}d%0${parents}d`;
const INSERT_COMMIT = `INSERT INTO objects (wf, type, kind, encoding, seen_at, id, generation, time,
    log_ref, log_seq, log_time, parents, log_incarnation, log_previous, external_id, log_actor,
    log_reason, log_trace, inline, body)
  VALUES (?, 1, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const SQL = {
  begin: "BEGIN IMMEDIATE",
  beginRead: "BEGIN",
  commit: "COMMIT",
  rollback: "ROLLBACK",

  workflow: "SELECT * FROM workflows WHERE id = ?",
  wf: "SELECT wf FROM workflows WHERE id = ?",
  insertWorkflow: `INSERT INTO workflows
    (created_at, id, classification, storage_region, retention_policy, isolation)
    VALUES (?, ?, ?, ?, ?, ?)`,
  completed: "SELECT 1 FROM workflows WHERE wf = ? AND completed_at IS NOT NULL",
  completeWorkflow: "UPDATE workflows SET completed_at = ? WHERE wf = ? AND completed_at IS NULL",
  workflowsAfter: "SELECT * FROM workflows WHERE id > ? ORDER BY id LIMIT ?",
  workflowsFirst: "SELECT * FROM workflows ORDER BY id LIMIT ?",

  object: `SELECT ${OBJECT_COLUMNS} FROM objects WHERE wf = ? AND id = ? AND type <> 1`,
  // The WHERE makes the common case, a good copy seen lately, write nothing.
  putObject: `INSERT INTO objects (wf, type, kind, encoding, seen_at, id, body)
    VALUES (?, ?, 0, ?, ?, ?, ?)
    ON CONFLICT (wf, id) DO UPDATE SET type = excluded.type, kind = 0,
      encoding = excluded.encoding, seen_at = excluded.seen_at, body = excluded.body
    WHERE seen_at < ? OR kind <> 0 OR type <> excluded.type
      OR encoding <> excluded.encoding OR body <> excluded.body`,
  objectsAfter: `SELECT ${OBJECT_COLUMNS} FROM objects
    WHERE wf = ? AND id > ? AND type <> 1 ORDER BY id LIMIT ?`,
  objectIds: `SELECT type, id FROM objects
    WHERE wf = ? AND id BETWEEN ? AND ? AND type <> 1 ORDER BY id LIMIT ?`,
  objectUsage: `SELECT count(*) AS objects, coalesce(sum(length(body)), 0) AS bytes
    FROM objects WHERE wf = ? AND type <> 1 AND kind = 0`,

  commitStored: "SELECT 1 FROM objects WHERE wf = ? AND id = ? AND type = 1",
  commitRow: `SELECT ${COMMIT_COLUMNS} FROM objects WHERE wf = ? AND id = ? AND type = 1`,
  commitLog: `SELECT log_ref, log_seq, log_time, ${PARENTS}, log_incarnation, log_previous,
    log_actor, log_reason, log_trace FROM objects WHERE wf = ? AND id = ? AND type = 1`,
  commitGraph: `SELECT coalesce(generation, 0) AS generation, coalesce(time, 0) AS time,
    lower(hex(parents)) AS parents FROM objects WHERE wf = ? AND id = ? AND type = 1`,
  commitRowid: "SELECT rowid FROM objects WHERE wf = ? AND id = ? AND type = 1",
  // One value for all rows: handing over a row costs ten times what reading it does. Rows stand
  // in the order of writing, so a range of them is read page after page; by the index, as the
  // planner would have it, it is a search a row.
  commitsNear: `SELECT CAST(group_concat(
      format('${PACKED_NUMBERS}', generation, time, octet_length(parents) / 32) || id || parents,
      '') AS BLOB)
    FROM objects NOT INDEXED
    WHERE rowid BETWEEN ? AND ? AND wf = ? AND type = 1 AND octet_length(id) = 32`,
  addCommit: `${INSERT_COMMIT} ON CONFLICT (wf, id) DO NOTHING`,
  // A commit's row keeps the log columns of the move that brought it first.
  putCommit: `${INSERT_COMMIT}
    ON CONFLICT (wf, id) DO UPDATE SET type = 1, kind = 0, encoding = 0,
      generation = excluded.generation, time = excluded.time,
      seen_at = excluded.seen_at, parents = excluded.parents, external_id = excluded.external_id,
      inline = excluded.inline, body = excluded.body
    WHERE seen_at < ? OR type <> 1 OR body <> excluded.body OR inline IS NOT excluded.inline
      OR parents IS NOT excluded.parents OR generation IS NOT excluded.generation
      OR time IS NOT excluded.time OR external_id IS NOT excluded.external_id`,
  commitsAfter: `SELECT ${COMMIT_COLUMNS} FROM objects
    WHERE wf = ? AND id > ? AND type = 1 ORDER BY id LIMIT ?`,
  commitIds: `SELECT id FROM objects
    WHERE wf = ? AND id BETWEEN ? AND ? AND type = 1 ORDER BY id LIMIT ?`,
  commitsExternal: `SELECT id FROM objects WHERE wf = ? AND external_id = ? AND type = 1
    ORDER BY generation, time, id`,
  commitUsage: `SELECT count(*) AS commits, coalesce(sum(length(body)), 0) AS bytes
    FROM objects WHERE wf = ? AND type = 1`,
  commitInlines: `SELECT id, inline FROM objects
    WHERE wf = ? AND type = 1 AND inline IS NOT NULL`,

  // length() of a BLOB does not read it.
  seenAfter: `SELECT id, coalesce(generation, 0) AS generation, max(seen_at, 0) AS seen_at,
      length(body) + coalesce(length(inline), 0) AS bytes, kind
    FROM objects WHERE wf = ? AND id > ? AND type = ? AND seen_at < ? ORDER BY id LIMIT ?`,
  freshenCommit: `UPDATE objects SET seen_at = ? WHERE wf = ? AND id = ? AND type = 1
    AND seen_at < ?`,
  // A condemned row has the number of the collection, made negative, in the place of a time.
  condemn: "UPDATE objects SET seen_at = ? WHERE wf = ? AND id = ? AND seen_at < ?",
  seen: "SELECT type, seen_at FROM objects WHERE wf = ? AND id = ?",
  keepEntry: `INSERT OR IGNORE INTO reflog
      (ref, seq, time, incarnation, old, new, previous, actor, reason, trace)
    SELECT log_ref, log_seq, log_time, log_incarnation,
        CASE WHEN length(parents) > 0 THEN substr(parents, 1, 32) END, id, log_previous, log_actor,
        log_reason, coalesce(log_trace, '')
      FROM objects WHERE wf = ? AND id = ? AND log_ref IS NOT NULL`,
  remove: "DELETE FROM objects WHERE wf = ? AND id = ?",
  inlineOf:
    "SELECT inline FROM objects WHERE wf = ? AND id = ? AND type = 1 AND inline IS NOT NULL",
  setInline: "UPDATE objects SET inline = ? WHERE wf = ? AND id = ? AND type = 1",
  graft: `UPDATE objects SET parents = ?, log_ref = NULL, log_seq = NULL, log_time = NULL,
      log_incarnation = NULL, log_previous = NULL, log_actor = NULL, log_reason = NULL, log_trace = NULL
    WHERE wf = ? AND id = ? AND type = 1`,
  bury: `UPDATE objects SET kind = 1, encoding = 0, body = ?
    WHERE wf = ? AND id = ? AND type <> 1 AND kind = 0`,
  bodySize: "SELECT length(body) FROM objects WHERE wf = ? AND id = ? AND type <> 1 AND kind = 0",
  pendingSize: "SELECT length(body) FROM pending WHERE wf = ? AND key = ? AND idx = ?",
  redeclare: "UPDATE workflows SET classification = ?, retention_policy = ? WHERE wf = ?",
  removePending: "DELETE FROM pending WHERE wf = ? AND key = ? AND idx = ?",
  abandoned: `SELECT DISTINCT e.old FROM refs AS r JOIN reflog AS e ON e.ref = r.ref
    WHERE r.wf = ? AND e.time >= ? AND e.old IS NOT NULL`,

  ref: `SELECT ${REF_COLUMNS} FROM refs WHERE wf = ? AND name = ?`,
  refsFrom: `SELECT ${REF_COLUMNS} FROM refs
    WHERE wf = ? AND name >= ? AND name < CAST(? AS TEXT) ORDER BY name`,
  insertRef: `INSERT INTO refs (wf, seq, max_step, incarnation, log_hash, id, name)
    VALUES (?, ?, ?, ?, ?, ?, ?)`,
  updateRef: `UPDATE refs SET seq = ?, max_step = ?, incarnation = ?, log_hash = ?, id = ?
    WHERE ref = ?`,

  putPending: `INSERT INTO pending (wf, idx, key, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (wf, key, idx) DO UPDATE SET body = excluded.body WHERE excluded.idx < 0`,
  dropPending: "DELETE FROM pending WHERE wf = ? AND key >= ? AND key < CAST(? AS TEXT)",
  pending: `SELECT key, idx, body FROM pending
    WHERE wf = ? AND key >= ? AND key < CAST(? AS TEXT) ORDER BY key, idx`,
  pendingAfter: `SELECT key, idx, body FROM pending
    WHERE wf = ? AND (key, idx) > (?, ?) ORDER BY key, idx LIMIT ?`,
  pendingUsage: `SELECT count(*) AS pending, coalesce(sum(length(body)), 0) AS bytes
    FROM pending WHERE wf = ?`,

  insertReflog: `INSERT INTO reflog
    (ref, seq, time, incarnation, old, new, previous, actor, reason, trace)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  reflog: `SELECT time, incarnation, old, new, previous, actor, reason, trace
    FROM reflog WHERE ref = ? AND seq = ?`,

  // Changes when another connection has written to the file.
  dataVersion: "PRAGMA data_version",

  meta: "SELECT value FROM meta WHERE key = ?",
  setMeta: "UPDATE meta SET value = ? WHERE key = ?",
} as const;

type Name = keyof typeof SQL;

interface Rows {
  wf: number;
  workflow: WorkflowColumns;
  workflowsAfter: WorkflowColumns;
  workflowsFirst: WorkflowColumns;
  object: ObjectColumns;
  objectsAfter: ObjectColumns;
  objectIds: { type: number; id: Buffer };
  objectUsage: { objects: number; bytes: number };
  commitRow: CommitColumns;
  commitLog: CommitLogColumns;
  commitGraph: { generation: number; time: number; parents: string };
  commitRowid: number;
  commitsNear: Buffer | null;
  commitsAfter: CommitColumns;
  commitIds: { id: Buffer };
  commitsExternal: { id: Buffer };
  commitUsage: { commits: number; bytes: number };
  commitInlines: { id: Buffer; inline: Buffer };
  inlineOf: Buffer;
  bodySize: number;
  pendingSize: number;
  seenAfter: SeenColumns;
  seen: { type: number; seen_at: number };
  abandoned: { old: Buffer };
  ref: RefColumns;
  refsFrom: RefColumns;
  reflog: ReflogColumns;
  pending: { key: string; idx: number; body: Buffer };
  pendingAfter: { key: string; idx: number; body: Buffer };
  pendingUsage: { pending: number; bytes: number };
  dataVersion: number;
  meta: string | Buffer | null;
}

interface SeenColumns {
  id: Buffer;
  generation: number;
  seen_at: number;
  bytes: number;
  kind: number;
}

export interface CommitLogColumns {
  log_ref: number | null;
  log_seq: number | null;
  log_time: number;
  parents: Buffer;
  log_incarnation: Buffer;
  log_previous: Buffer | null;
  log_actor: string;
  log_reason: string;
  log_trace: string | null;
}

export interface ReflogColumns {
  time: number;
  incarnation: Buffer;
  old: Buffer | null;
  new: Buffer | null;
  previous: Buffer | null;
  actor: string;
  reason: string;
  trace: string;
}

/** What a statement answers, row by row. */
export type RowOf<N extends Name> = N extends keyof Rows ? Rows[N] : unknown;

/** Statements that answer one column, and give it as it is instead of a row. */
const PLUCKED: ReadonlySet<Name> = new Set([
  "wf",
  "commitStored",
  "commitRowid",
  "commitsNear",
  "inlineOf",
  "bodySize",
  "pendingSize",
  "dataVersion",
  "meta",
]);

/** Every statement of the store, each prepared once, on first use. */
export type Statements = { readonly [N in Name]: Statement<unknown[], RowOf<N>> };

export function prepareStatements(db: Database): Statements {
  const statements = {} as Statements;
  for (const name of Object.keys(SQL) as Name[]) {
    Object.defineProperty(statements, name, {
      configurable: true,
      get() {
        const statement = db.prepare(SQL[name]);
        if (PLUCKED.has(name)) statement.pluck();
        Object.defineProperty(statements, name, { value: statement });
        return statement;
      },
    });
  }
  return statements;
}
