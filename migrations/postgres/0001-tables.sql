-- The first schema. Tables and functions are made in the schema that the search path names
-- first; what functions refer to is named with the schema, :"schema" (as psql -v schema=NAME
-- has it), since a function that sets the search path costs each call a tenth of a millisecond.
-- Every key of a workflow's data leads with workflow_id, the first 16 bytes of
-- the SHA-256 of the workflow's id, so that the tables can be distributed by it.
-- Ids of objects and commits are raw 32-byte values.

-- Facts about the store: store_id, created, region.
CREATE TABLE meta (
  key   text COLLATE "C" PRIMARY KEY,
  value text
);

-- The files that made this schema.
CREATE TABLE migrations (
  name       text COLLATE "C" PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE workflows (
  workflow_id      uuid PRIMARY KEY,
  created_at       bigint NOT NULL,          -- milliseconds
  completed_at     bigint,                   -- milliseconds; NULL while it is open
  id               text COLLATE "C" NOT NULL,
  classification   text NOT NULL,
  storage_region   text,
  retention_policy text,
  isolation        text NOT NULL
);
CREATE INDEX workflows_by_id ON workflows (id, workflow_id);
-- Whether one is completed is asked with every write.
CREATE INDEX workflows_completed ON workflows (workflow_id) WHERE completed_at IS NOT NULL;

-- The log_ columns hold the reflog entry of the move that brought the commit,
-- when that move appended exactly this one commit; all NULL otherwise.
CREATE TABLE commits (
  workflow_id     uuid NOT NULL,
  generation      bigint NOT NULL,
  time            bigint NOT NULL,           -- seconds
  seen_at         bigint NOT NULL,           -- seconds; when last written or freshened
  log_seq         bigint,
  log_time        bigint,                    -- milliseconds
  id              bytea NOT NULL,
  parents         bytea NOT NULL,            -- raw ids, one after the other
  log_incarnation bytea,
  log_previous    bytea,
  log_ref         text COLLATE "C",
  log_actor       text COLLATE "C",
  log_reason      text COLLATE "C",
  log_trace       text COLLATE "C",
  external_id     text COLLATE "C",
  inline          bytea,                     -- packed objects; NULL when there are none
  body            bytea NOT NULL,
  PRIMARY KEY (workflow_id, id)
);
CREATE INDEX commits_external ON commits (workflow_id, external_id) WHERE external_id IS NOT NULL;

CREATE TABLE objects (
  workflow_id uuid NOT NULL,
  seen_at     bigint NOT NULL,               -- seconds; when last written or freshened
  type        smallint NOT NULL,             -- Git's numbers: 2 tree, 3 blob
  kind        smallint NOT NULL,             -- 0 object, 1 tombstone
  encoding    smallint NOT NULL,             -- 0 plain, 1 pointer, 2 encrypted
  id          bytea NOT NULL,
  body        bytea NOT NULL,
  PRIMARY KEY (workflow_id, id)
);

-- A deleted ref keeps its row with id NULL. Half of each page is left free, so
-- that a move writes its new row version beside the old one and no index entry.
CREATE TABLE refs (
  workflow_id uuid NOT NULL,
  seq         bigint NOT NULL,
  max_step    bigint NOT NULL,
  name        text COLLATE "C" NOT NULL,
  incarnation bytea NOT NULL,
  log_hash    bytea NOT NULL,
  id          bytea,
  PRIMARY KEY (workflow_id, name)
) WITH (fillfactor = 50);

-- The entries that are no columns of a commit. NULL old or new: no object.
CREATE TABLE reflog (
  workflow_id uuid NOT NULL,
  seq         bigint NOT NULL,
  time        bigint NOT NULL,               -- milliseconds
  ref         text COLLATE "C" NOT NULL,
  incarnation bytea NOT NULL,
  old         bytea,
  new         bytea,
  previous    bytea,
  actor       text COLLATE "C" NOT NULL,
  reason      text COLLATE "C" NOT NULL,
  trace       text COLLATE "C" NOT NULL,
  PRIMARY KEY (workflow_id, ref, seq)
);
