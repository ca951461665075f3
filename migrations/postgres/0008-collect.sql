-- Collection: rows are condemned, then, if no write has freshened them, removed. A condemned row has the
-- number of the collection, made negative, in the place of a time. Ids come as one
-- string of bytes; rows are locked in the order of ids, commits before objects, as everywhere.

-- Takes away that rows last seen before a moment were ever seen. It waits for writes under way that
-- have locked one of them, and writes that come after freshen what they refer to.
CREATE FUNCTION condemn(p_workflow uuid, p_ids bytea, p_before bigint, p_by bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  ids constant bytea[] := ARRAY(SELECT substring(p_ids FROM 32 * i + 1 FOR 32)
    FROM generate_series(0, length(p_ids) / 32 - 1) AS i);
BEGIN
  PERFORM 1 FROM :"schema".commits AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.seen_at < p_before
    ORDER BY t.id FOR NO KEY UPDATE;
  UPDATE :"schema".commits AS t SET seen_at = -p_by
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.seen_at < p_before;
  PERFORM 1 FROM :"schema".objects AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.seen_at < p_before
    ORDER BY t.id FOR NO KEY UPDATE;
  UPDATE :"schema".objects AS t SET seen_at = -p_by
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.seen_at < p_before;
END
$$;

-- Removes rows that the same collection has condemned, and names those that it spares. Of commits all or none. What
-- the row of a commit keeps of a ref's log becomes a row of its own.
CREATE FUNCTION sweep(p_workflow uuid, p_ids bytea, p_by bigint,
  OUT removed bigint, OUT spared bytea)
LANGUAGE plpgsql AS $$
DECLARE
  ids constant bytea[] := ARRAY(SELECT substring(p_ids FROM 32 * i + 1 FOR 32)
    FROM generate_series(0, length(p_ids) / 32 - 1) AS i);
  n bigint;
BEGIN
  removed := 0;
  PERFORM 1 FROM :"schema".commits AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) ORDER BY t.id FOR UPDATE;
  SELECT string_agg(t.id, ''::bytea) INTO spared FROM :"schema".commits AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.seen_at <> -p_by;
  IF spared IS NOT NULL THEN RETURN; END IF;
  INSERT INTO :"schema".reflog (workflow_id, seq, time, ref, incarnation, old, new, previous, actor, reason,
      trace)
    SELECT t.workflow_id, t.log_seq, t.log_time, t.log_ref, t.log_incarnation,
        nullif(substring(t.parents FROM 1 FOR 32), ''::bytea), t.id, t.log_previous, t.log_actor,
        t.log_reason, coalesce(t.log_trace, '')
      FROM :"schema".commits AS t
      WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.log_ref IS NOT NULL
    ON CONFLICT DO NOTHING;
  DELETE FROM :"schema".commits AS t WHERE t.workflow_id = p_workflow AND t.id = ANY (ids);
  GET DIAGNOSTICS removed = ROW_COUNT;

  PERFORM 1 FROM :"schema".objects AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) ORDER BY t.id FOR UPDATE;
  DELETE FROM :"schema".objects AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) AND t.seen_at = -p_by;
  GET DIAGNOSTICS n = ROW_COUNT;
  removed := removed + n;
  SELECT string_agg(t.id, ''::bytea) INTO spared FROM :"schema".objects AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids);
END
$$;
