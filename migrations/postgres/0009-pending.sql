-- What was written beside the history and no commit holds yet.
CREATE TABLE pending (
  workflow_id uuid NOT NULL,
  idx         int NOT NULL,
  key         text COLLATE "C" NOT NULL,
  body        bytea NOT NULL,
  PRIMARY KEY (workflow_id, key, idx)
);

-- Puts pending rows of one workflow, which come in the order of keys and indexes. One of an index below 0
-- replaces the one that is there; of any other the first stays. Answers NULL when there is no such workflow.
CREATE FUNCTION write_pending(
  p_workflow uuid, d_key text[], d_index int[], d_body int[], p_bodies bytea
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_key text; v_index int; v_body bytea;
  at int := 1;
BEGIN
  PERFORM FROM :"schema".workflows AS w WHERE w.workflow_id = p_workflow;
  IF NOT FOUND THEN RETURN NULL; END IF;
  FOR i IN 1 .. cardinality(d_key) LOOP
    -- Scalars, as in write_batches: where the tables are distributed, no value is an array's element.
    v_key := d_key[i]; v_index := d_index[i];
    v_body := substring(p_bodies FROM at FOR d_body[i]);
    INSERT INTO :"schema".pending AS t (workflow_id, idx, key, body)
      VALUES (p_workflow, v_index, v_key, v_body)
      ON CONFLICT (workflow_id, key, idx) DO UPDATE SET body = excluded.body WHERE excluded.idx < 0;
    at := at + d_body[i];
  END LOOP;
  RETURN '1';
END
$$;

-- The same for several batches, of any workflows, in one statement. Rows come in the order of workflows, keys and
-- indexes, none twice. Answers the places of the batches whose workflow is there, one a line.
CREATE FUNCTION append_pending(
  b_workflow uuid[], d_workflow uuid[], d_key text[], d_index int[], d_body int[], d_at int[], p_bodies bytea
) RETURNS text LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
BEGIN
  INSERT INTO :"schema".pending AS t (workflow_id, idx, key, body)
    SELECT d.w, d.idx, d.key, substring(p_bodies FROM d.at FOR d.len)
      FROM unnest(d_workflow, d_key, d_index, d_body, d_at) WITH ORDINALITY AS d (w, key, idx, len, at, n)
      CROSS JOIN LATERAL (
        SELECT FROM :"schema".workflows AS w WHERE w.workflow_id = d.w LIMIT 1) AS there
      ORDER BY d.n
    ON CONFLICT (workflow_id, key, idx) DO UPDATE SET body = excluded.body WHERE excluded.idx < 0;
  RETURN (
    SELECT string_agg(b.n::text, E'\n') FROM unnest(b_workflow) WITH ORDINALITY AS b (w, n)
      CROSS JOIN LATERAL (
        SELECT FROM :"schema".workflows AS w WHERE w.workflow_id = b.w LIMIT 1) AS there);
END
$$;
