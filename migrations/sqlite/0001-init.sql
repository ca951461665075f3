-- The first schema. Ids are raw 32-byte BLOBs; every key of a workflow's data
-- leads with `wf`, the catalogue's small integer for it. Tables keep their
-- rowid and a UNIQUE index: WITHOUT ROWID tables cost three times the bytes.
-- Columns that are narrow come before those that are wide, so that reading the
-- former does not walk over the latter.

-- 'agst' in ASCII: what `file` and the opening check look at.
PRAGMA application_id = 1634169716;

-- Facts about the store: store_id, created, region, wal_note. It is the first
-- table made, so that its root is page 2 of the file, where wal_note can be
-- found without SQLite.
CREATE TABLE meta (
  key   TEXT NOT NULL UNIQUE,
  value BLOB
);

-- The files that made this schema, by name; PRAGMA user_version has the number of the last.
CREATE TABLE migrations (
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE workflows (
  wf               INTEGER PRIMARY KEY,
  created_at       INTEGER NOT NULL,         -- milliseconds
  completed_at     INTEGER,                  -- milliseconds; NULL while it is open
  id               TEXT NOT NULL UNIQUE,
  classification   TEXT NOT NULL,
  storage_region   TEXT,
  retention_policy TEXT,
  isolation        TEXT NOT NULL
);

-- Trees, blobs and commits share a table and its index, because each table and
-- each index costs every write transaction a page. The columns from generation
-- on, body excepted, are a commit's and NULL in the rows of other objects.
--
-- The log_ columns hold the reflog entry of the move that brought the commit,
-- when that move appended exactly this one commit; all NULL otherwise. With
-- log_ref set, a NULL log_trace stands for the empty one.
CREATE TABLE objects (
  wf              INTEGER NOT NULL,
  type            INTEGER NOT NULL,          -- Git's numbers: 1 commit, 2 tree, 3 blob
  kind            INTEGER NOT NULL,          -- 0 object, 1 tombstone
  encoding        INTEGER NOT NULL,          -- 0 plain, 1 pointer, 2 encrypted
  seen_at         INTEGER NOT NULL,          -- seconds; when last written or freshened
  id              BLOB NOT NULL,
  generation      INTEGER,
  time            INTEGER,                   -- seconds
  log_ref         INTEGER,                   -- refs.ref
  log_seq         INTEGER,
  log_time        INTEGER,                   -- milliseconds
  parents         BLOB,                      -- raw ids, one after the other
  log_incarnation BLOB,
  log_previous    BLOB,
  external_id     TEXT,
  log_actor       TEXT,
  log_reason      TEXT,
  log_trace       TEXT,
  inline          BLOB,                      -- packed objects; NULL when there are none
  body            BLOB NOT NULL
);
CREATE UNIQUE INDEX objects_id ON objects (wf, id);
CREATE INDEX objects_external ON objects (wf, external_id) WHERE external_id IS NOT NULL;

-- A deleted ref keeps its row with id NULL.
CREATE TABLE refs (
  ref         INTEGER PRIMARY KEY,
  wf          INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  max_step    INTEGER NOT NULL,
  incarnation BLOB NOT NULL,
  log_hash    BLOB NOT NULL,
  id          BLOB,
  name        TEXT NOT NULL
);
CREATE UNIQUE INDEX refs_name ON refs (wf, name);

-- The entries that are no columns of a commit. NULL old or new: no object.
CREATE TABLE reflog (
  ref         INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  time        INTEGER NOT NULL,              -- milliseconds
  incarnation BLOB NOT NULL,
  old         BLOB,
  new         BLOB,
  previous    BLOB,
  actor       TEXT NOT NULL,
  reason      TEXT NOT NULL,
  trace       TEXT NOT NULL
);
CREATE UNIQUE INDEX reflog_seq ON reflog (ref, seq);
