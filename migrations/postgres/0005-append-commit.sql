-- What append_commits does, for one batch alone: plain statements on one row each start quicker than
-- one that could take many.
CREATE FUNCTION append_commit(
  p_workflow uuid, p_now bigint, p_stale bigint,
  m_ref text, m_expect_id bytea, m_expect_seq bigint, m_max_step bigint, m_time bigint,
  m_actor text, m_reason text, m_trace text,
  c_id bytea, c_generation bigint, c_time bigint, c_external text, c_inline bytea, c_body bytea,
  o_id bytea, o_type int[], o_encoding int[], o_body int[],
  d_key text[], d_index int[], d_body int[], p_bodies bytea
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v_type smallint; v_encoding smallint; v_id bytea; v_body bytea;
  v_key text; v_index int;
  at int := 1;
BEGIN
  -- As in append_commits: read as it was, and moved only where it still is so.
  UPDATE :"schema".refs AS t SET id = c_id, seq = p.seq + 1, max_step = greatest(p.max_step, m_max_step),
      log_hash = sha256(convert_to('agstate-reflog 1' || E'\nref ' || m_ref
        || E'\nincarnation ' || encode(p.incarnation, 'hex') || E'\nseq ' || (p.seq + 1)
        || E'\nold ' || encode(m_expect_id, 'hex') || E'\nnew ' || encode(c_id, 'hex')
        || E'\nactor ' || m_actor || E'\nreason ' || m_reason
        || E'\ntime ' || m_time || E'\ntrace ' || m_trace
        || E'\nprevious ' || encode(p.log_hash, 'hex') || E'\n', 'UTF8'))
    FROM :"schema".refs AS p
    WHERE p.workflow_id = p_workflow AND p.name = m_ref AND p.id = m_expect_id
      AND (m_expect_seq IS NULL OR p.seq = m_expect_seq)
      AND NOT EXISTS (SELECT FROM :"schema".workflows AS w
        WHERE w.workflow_id = p_workflow AND w.completed_at IS NOT NULL)
      AND t.workflow_id = p_workflow AND t.name = m_ref AND t.id = m_expect_id AND t.seq = p.seq
    RETURNING t.seq, t.max_step, t.incarnation, t.log_hash, p.log_hash AS previous INTO r;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO :"schema".commits (workflow_id, generation, time, seen_at, log_seq, log_time, id, parents,
      log_incarnation, log_previous, log_ref, log_actor, log_reason, log_trace, external_id, inline, body)
    VALUES (p_workflow, c_generation, c_time, p_now, r.seq, m_time, c_id, m_expect_id,
      r.incarnation, r.previous, m_ref, m_actor, m_reason, nullif(m_trace, ''), c_external, c_inline,
      c_body);
  FOR i IN 1 .. cardinality(o_type) LOOP
    -- Scalars, as in write_batches: where the tables are distributed, no value is an array's element.
    v_type := o_type[i]; v_encoding := o_encoding[i];
    v_id := substring(o_id FROM 32 * i - 31 FOR 32);
    v_body := substring(p_bodies FROM at FOR o_body[i]);
    INSERT INTO :"schema".objects AS t (workflow_id, seen_at, type, kind, encoding, id, body)
      VALUES (p_workflow, p_now, v_type, 0, v_encoding, v_id, v_body)
      ON CONFLICT (workflow_id, id) DO UPDATE SET type = excluded.type, kind = 0,
        encoding = excluded.encoding, seen_at = excluded.seen_at, body = excluded.body
      WHERE CASE WHEN t.kind = 0 AND t.type = excluded.type AND t.encoding = excluded.encoding
          AND t.body = excluded.body
        THEN t.seen_at < p_stale
        ELSE :"schema".is_object(excluded.type, excluded.id, excluded.body) END;
    at := at + o_body[i];
  END LOOP;
  FOR i IN 1 .. cardinality(d_key) LOOP
    v_key := d_key[i]; v_index := d_index[i];
    v_body := substring(p_bodies FROM at FOR d_body[i]);
    INSERT INTO :"schema".pending AS t (workflow_id, idx, key, body)
      VALUES (p_workflow, v_index, v_key, v_body)
      ON CONFLICT (workflow_id, key, idx) DO UPDATE SET body = excluded.body WHERE excluded.idx < 0;
    at := at + d_body[i];
  END LOOP;
  -- Looked up here, as calling the function costs more than finding nobody.
  IF EXISTS (SELECT 1 FROM :"schema".watchers AS t WHERE t.workflow_id = p_workflow) THEN
    PERFORM :"schema".notify_watchers(ARRAY[p_workflow]);
  END IF;
  RETURN '1 ' || r.seq || ' ' || r.max_step || ' ' || encode(r.incarnation, 'hex') || ' '
    || encode(r.log_hash, 'hex');
END
$$;
