-- What write_batches does, for the batches that are nearly all: one move of a ref that is there, from
-- the commit that is expected to be its head to one new commit on top of it. All of them in one
-- statement, so that a group costs its rows and not a loop.
--
-- Answers a row for each batch that landed, by its place in the arrays; what has no row was refused, or
-- has landed before: write_batches tells. Locks are taken in the same order as there: refs, commits,
-- objects.
CREATE FUNCTION append_commits(
  p_workflow uuid,            -- of all batches, where the tables are distributed
  p_now bigint,
  p_stale bigint,             -- rows last seen before this are freshened
  b_workflow uuid[], m_ref text[], m_expect_id bytea, m_expect_seq bigint[], m_max_step bigint[],
  m_time bigint[], m_actor text[], m_reason text[], m_trace text[],
  c_id bytea, c_generation bigint[], c_time bigint[], c_external text[], c_inline int[],
  c_body int[], c_at int[],
  o_batch int[], o_id bytea, o_type int[], o_encoding int[], o_body int[], o_at int[],
  p_bodies bytea
) RETURNS TABLE (
  r_batch int, r_seq bigint, r_log_hash text, r_incarnation text, r_max_step bigint
) LANGUAGE plpgsql AS $$
BEGIN
  -- A completed workflow's branches stay where they are: write_batches tells.
  IF EXISTS (SELECT FROM :"schema".workflows AS t
      WHERE t.workflow_id = ANY (b_workflow) AND t.completed_at IS NOT NULL) THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH m AS MATERIALIZED (
    SELECT u.n::int AS n, u.w, u.ref, substring(m_expect_id FROM 32 * u.n::int - 31 FOR 32) AS old,
        u.expect_seq, u.max_step, u.moved_at, u.actor, u.reason, u.trace,
        substring(c_id FROM 32 * u.n::int - 31 FOR 32) AS id, u.generation, u.committed_at, u.external,
        CASE WHEN u.inline >= 0 THEN substring(p_bodies FROM u.at FOR u.inline) END AS inline,
        substring(p_bodies FROM u.at + greatest(u.inline, 0) FOR u.body) AS body
      FROM unnest(b_workflow, m_ref, m_expect_seq, m_max_step, m_time, m_actor, m_reason, m_trace,
          c_generation, c_time, c_external, c_inline, c_body, c_at)
        WITH ORDINALITY AS u (w, ref, expect_seq, max_step, moved_at, actor, reason, trace,
          generation, committed_at, external, inline, body, at, n)
  ), locked AS MATERIALIZED (
    SELECT r.workflow_id, r.name, r.id, r.seq, r.max_step, r.incarnation, r.log_hash
      FROM m JOIN :"schema".refs AS r ON r.workflow_id = m.w AND r.name = m.ref
      ORDER BY r.workflow_id, r.name FOR UPDATE OF r
  ), judged AS MATERIALIZED (
    SELECT m.*, l.seq + 1 AS seq, greatest(l.max_step, m.max_step) AS step, l.incarnation,
        l.log_hash AS previous,
        sha256(convert_to('agstate-reflog 1' || E'\nref ' || m.ref
          || E'\nincarnation ' || encode(l.incarnation, 'hex') || E'\nseq ' || (l.seq + 1)
          || E'\nold ' || encode(m.old, 'hex') || E'\nnew ' || encode(m.id, 'hex')
          || E'\nactor ' || m.actor || E'\nreason ' || m.reason
          || E'\ntime ' || m.moved_at || E'\ntrace ' || m.trace
          || E'\nprevious ' || encode(l.log_hash, 'hex') || E'\n', 'UTF8')) AS log_hash
      FROM m JOIN locked AS l ON l.workflow_id = m.w AND l.name = m.ref
      WHERE l.id = m.old AND (m.expect_seq IS NULL OR m.expect_seq = l.seq)
  ), stored AS (
    INSERT INTO :"schema".commits AS t (workflow_id, generation, time, seen_at, log_seq, log_time, id, parents,
        log_incarnation, log_previous, log_ref, log_actor, log_reason, log_trace, external_id, inline,
        body)
      SELECT j.w, j.generation, j.committed_at, p_now, j.seq, j.moved_at, j.id, j.old, j.incarnation,
          j.previous, j.ref, j.actor, j.reason, nullif(j.trace, ''), j.external, j.inline, j.body
        FROM judged AS j ORDER BY j.w, j.id
      ON CONFLICT (workflow_id, id) DO NOTHING
      RETURNING t.workflow_id AS w, t.id
  ), landed AS MATERIALIZED (
    -- IS TRUE keeps the planner from making a join of it: without statistics it would join all three
    -- by the workflow alone, and a group of 64 took fifteen times as long.
    SELECT j.* FROM judged AS j WHERE ((j.w, j.id) IN (SELECT s.w, s.id FROM stored AS s)) IS TRUE
  ), moved AS (
    UPDATE :"schema".refs AS t SET id = j.id, seq = j.seq, max_step = j.step, log_hash = j.log_hash
      FROM landed AS j
      WHERE t.workflow_id = j.w AND t.name = j.ref
  ), kept AS (
    INSERT INTO :"schema".objects AS t (workflow_id, seen_at, type, kind, encoding, id, body)
      SELECT DISTINCT ON (x.w, x.id) x.w, p_now, x.type, 0, x.encoding, x.id, x.body
        FROM (
          SELECT j.w, o.type, o.encoding, substring(o_id FROM 32 * o.n::int - 31 FOR 32) AS id,
              substring(p_bodies FROM o.at FOR o.len) AS body
            FROM unnest(o_batch, o_type, o_encoding, o_body, o_at) WITH ORDINALITY
              AS o (b, type, encoding, len, at, n)
            JOIN landed AS j ON j.n = o.b
        ) AS x
        ORDER BY x.w, x.id
      ON CONFLICT (workflow_id, id) DO UPDATE SET type = excluded.type, kind = 0,
        encoding = excluded.encoding, seen_at = excluded.seen_at, body = excluded.body
      WHERE CASE WHEN t.kind = 0 AND t.type = excluded.type AND t.encoding = excluded.encoding
          AND t.body = excluded.body
        THEN t.seen_at < p_stale
        ELSE :"schema".is_object(excluded.type, excluded.id, excluded.body) END
  )
  SELECT j.n, j.seq, encode(j.log_hash, 'hex'), encode(j.incarnation, 'hex'), j.step
    FROM landed AS j;
  PERFORM :"schema".notify_watchers(b_workflow);
END
$$;
