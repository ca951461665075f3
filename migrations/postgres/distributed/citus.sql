-- Distributes a store over the workers of Citus, by workflow. Run once by
--
--     agstate migrate --distributed
--
-- after CREATE EXTENSION citus and the adding of workers, or by
-- psql -1 -v ON_ERROR_STOP=1 -v schema=agents -f citus.sql, as the owner of the tables. It may be run again; the store
-- remembers it in meta, and migrations end with running this again, for the functions that they make.
-- Every process then opens the store with `distributed: true`, or ?distributed=true in its URL.
--
-- Not tried: no Citus was at hand when this was written. It follows what is documented of Citus 13, and
-- the check of the schema and of all statements that is part of the tests.
\if :{?schema}
\else
\set schema agstate
\endif

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    RAISE EXCEPTION 'the extension citus is not in this database' USING ERRCODE = 'AG003';
  END IF;
END
$$;

SELECT set_config('search_path', quote_ident(:'schema'), true);
-- Tables and functions in one transaction, and so over one connection a worker.
SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

SELECT create_distributed_table('workflows', 'workflow_id')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'workflows'::regclass);
SELECT create_distributed_table('commits', 'workflow_id', colocate_with => 'workflows')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'commits'::regclass);
SELECT create_distributed_table('objects', 'workflow_id', colocate_with => 'workflows')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'objects'::regclass);
SELECT create_distributed_table('refs', 'workflow_id', colocate_with => 'workflows')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'refs'::regclass);
SELECT create_distributed_table('reflog', 'workflow_id', colocate_with => 'workflows')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'reflog'::regclass);
SELECT create_distributed_table('pending', 'workflow_id', colocate_with => 'workflows')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'pending'::regclass);
SELECT create_distributed_table('watchers', 'workflow_id', colocate_with => 'workflows')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'watchers'::regclass);

-- No function reads these; whoever opens a store does, on whichever node it calls.
SELECT create_reference_table('meta')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'meta'::regclass);
SELECT create_reference_table('migrations')
  WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'migrations'::regclass);

-- What a worker sends reaches nobody who listens on the coordinator: who watches polls.
CREATE OR REPLACE FUNCTION :"schema".notify_watchers(p_workflows uuid[]) RETURNS void
LANGUAGE sql AS $$ $$;

-- Called by the others, on the node where these run.
SELECT create_distributed_function(p.oid::regprocedure) FROM pg_proc AS p
  WHERE p.pronamespace = quote_ident(:'schema')::regnamespace
    AND p.proname IN ('is_object', 'notify_watchers', 'root_ids', 'tree_ids');

-- A call goes to the worker that has the workflow, and does all of its work there. Not append_commits and
-- append_pending, which are for batches of several workflows.
SELECT create_distributed_function(p.oid::regprocedure, 'p_workflow', colocate_with => 'workflows')
  FROM pg_proc AS p
  WHERE p.pronamespace = quote_ident(:'schema')::regnamespace
    AND p.proname IN ('append_commit', 'condemn', 'read_below', 'read_graph', 'redact', 'reflog_entry', 'sweep',
      'write_batches', 'write_pending');

INSERT INTO :"schema".meta AS t (key, value) VALUES ('distributed', 'citus')
  ON CONFLICT (key) DO UPDATE SET value = excluded.value;
