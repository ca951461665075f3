-- What write_batches does, for the batches that are nearly all: one move of a ref that is there, from
-- the commit that is expected to be its head to one new commit on top of it. All of them in one
-- statement a table, so that a group costs its rows and not a loop.
--
-- Answers a line for each batch that landed: its place in the arrays, the ref's new seq and max_step, its
-- incarnation and the hash of the entry in its log. What has no line was refused, or has landed before:
-- write_batches tells. A commit that is stored although its ref was not moved is an error
-- (unique_violation); write_batches tells then, too.
--
-- Locks are taken in the same order as there: refs, which come in the order of workflows and names, then
-- commits, then objects, which come in the order of workflows and ids, then pending rows, in the order of
-- workflows, keys and indexes. An object that an earlier
-- batch brings as well has its batch's place negative.
--
-- The planner knows neither how long arrays are nor, before statistics are there, how many refs a workflow has.
-- What is set here keeps it from planning each call anew for the length of its arrays, and each
-- ref and commit found by its key.
CREATE FUNCTION append_commits(
  p_workflow uuid,            -- of all batches, where the tables are distributed
  p_now bigint,
  p_stale bigint,             -- rows last seen before this are freshened
  b_workflow uuid[], m_ref text[], m_expect_id bytea, m_expect_seq bigint[], m_max_step bigint[],
  m_time bigint[], m_actor text[], m_reason text[], m_trace text[],
  c_id bytea, c_generation bigint[], c_time bigint[], c_external text[], c_inline int[],
  c_body int[], c_at int[],
  o_batch int[], o_id bytea, o_type int[], o_encoding int[], o_body int[], o_at int[],
  d_batch int[], d_key text[], d_index int[], d_body int[], d_at int[],
  p_bodies bytea
) RETURNS text LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
  landed int[];             -- places of batches
  answer text;
BEGIN
  WITH moved AS (
    -- Moved only where it still is as it was read: who waited for another here finds another seq.
    UPDATE :"schema".refs AS t SET id = j.id, seq = j.seq + 1, max_step = greatest(j.step, j.max_step),
        log_hash = sha256(convert_to('agstate-reflog 1' || E'\nref ' || j.ref
          || E'\nincarnation ' || encode(j.incarnation, 'hex') || E'\nseq ' || (j.seq + 1)
          || E'\nold ' || encode(j.old, 'hex') || E'\nnew ' || encode(j.id, 'hex')
          || E'\nactor ' || j.actor || E'\nreason ' || j.reason
          || E'\ntime ' || j.moved_at || E'\ntrace ' || j.trace
          || E'\nprevious ' || encode(j.log_hash, 'hex') || E'\n', 'UTF8'))
      FROM (
        SELECT u.*, substring(m_expect_id FROM 32 * u.n::int - 31 FOR 32) AS old,
            substring(c_id FROM 32 * u.n::int - 31 FOR 32) AS id,
            p.id AS head, p.seq, p.max_step AS step, p.incarnation, p.log_hash
          FROM unnest(b_workflow, m_ref, m_expect_seq, m_max_step, m_time, m_actor, m_reason, m_trace,
              c_generation, c_time, c_external, c_inline, c_body, c_at)
            WITH ORDINALITY AS u (w, ref, expect_seq, max_step, moved_at, actor, reason, trace,
              generation, committed_at, external, inline, body, at, n)
          CROSS JOIN LATERAL (
            SELECT * FROM :"schema".refs AS p WHERE p.workflow_id = u.w AND p.name = u.ref LIMIT 1
          ) AS p
      ) AS j
      WHERE j.head = j.old AND (j.expect_seq IS NULL OR j.expect_seq = j.seq)
        -- A completed workflow's branches stay where they are: write_batches tells. Completing moves them all,
        -- so that who waits for it here finds another seq.
        AND NOT EXISTS (SELECT FROM :"schema".workflows AS w
          WHERE w.workflow_id = j.w AND w.completed_at IS NOT NULL)
        AND t.workflow_id = j.w AND t.name = j.ref AND t.id = j.old AND t.seq = j.seq
      RETURNING j.n, j.w, j.ref, t.id, t.seq, t.max_step, t.incarnation, t.log_hash, j.old,
        j.log_hash AS previous, j.moved_at, j.actor, j.reason, j.trace, j.generation, j.committed_at,
        j.external, j.inline, j.body, j.at
  ), stored AS (
    INSERT INTO :"schema".commits (workflow_id, generation, time, seen_at, log_seq, log_time, id, parents,
        log_incarnation, log_previous, log_ref, log_actor, log_reason, log_trace, external_id, inline,
        body)
      SELECT j.w, j.generation, j.committed_at, p_now, j.seq, j.moved_at, j.id, j.old, j.incarnation,
          j.previous, j.ref, j.actor, j.reason, nullif(j.trace, ''), j.external,
          CASE WHEN j.inline >= 0 THEN substring(p_bodies FROM j.at FOR j.inline) END,
          substring(p_bodies FROM j.at + greatest(j.inline, 0) FOR j.body)
        FROM moved AS j
  )
  SELECT array_agg(j.n::int), string_agg(j.n || ' ' || j.seq || ' ' || j.max_step || ' '
      || encode(j.incarnation, 'hex') || ' ' || encode(j.log_hash, 'hex'), E'\n')
    INTO landed, answer FROM moved AS j;
  IF answer IS NULL THEN RETURN NULL; END IF;
  IF cardinality(landed) < cardinality(m_ref) THEN
    -- Each object is stored for the first batch of those that landed, if any.
    SELECT array_agg(CASE WHEN x.won AND x.nth = 1 THEN abs(x.b) ELSE -1 END ORDER BY x.n) INTO o_batch
      FROM (
        SELECT y.*, row_number() OVER (PARTITION BY y.w, y.id, y.won ORDER BY y.n) AS nth
          FROM (
            SELECT o.b, o.n, b_workflow[abs(o.b)] AS w, substring(o_id FROM 32 * o.n::int - 31 FOR 32) AS id,
                abs(o.b) = ANY (landed) AS won
              FROM unnest(o_batch) WITH ORDINALITY AS o (b, n)
          ) AS y
      ) AS x;
  END IF;
  INSERT INTO :"schema".objects AS t (workflow_id, seen_at, type, kind, encoding, id, body)
    SELECT b_workflow[o.b], p_now, o.type, 0, o.encoding, substring(o_id FROM 32 * o.n::int - 31 FOR 32),
        substring(p_bodies FROM o.at FOR o.len)
      FROM unnest(o_batch, o_type, o_encoding, o_body, o_at) WITH ORDINALITY
        AS o (b, type, encoding, len, at, n)
      WHERE o.b > 0
    ON CONFLICT (workflow_id, id) DO UPDATE SET type = excluded.type, kind = 0,
      encoding = excluded.encoding, seen_at = excluded.seen_at, body = excluded.body
    WHERE CASE WHEN t.kind = 0 AND t.type = excluded.type AND t.encoding = excluded.encoding
        AND t.body = excluded.body
      THEN t.seen_at < p_stale
      ELSE :"schema".is_object(excluded.type, excluded.id, excluded.body) END;
  IF cardinality(d_batch) > 0 THEN
    -- Those of batches that did not land are put by write_batches.
    INSERT INTO :"schema".pending AS t (workflow_id, idx, key, body)
      SELECT b_workflow[d.b], d.idx, d.key, substring(p_bodies FROM d.at FOR d.len)
        FROM unnest(d_batch, d_key, d_index, d_body, d_at) WITH ORDINALITY AS d (b, key, idx, len, at, n)
        WHERE d.b = ANY (landed) ORDER BY d.n
      ON CONFLICT (workflow_id, key, idx) DO UPDATE SET body = excluded.body WHERE excluded.idx < 0;
  END IF;
  -- Looked up here, as calling the function costs more than finding nobody.
  IF EXISTS (SELECT 1 FROM :"schema".watchers AS t WHERE t.workflow_id = ANY (b_workflow)) THEN
    PERFORM :"schema".notify_watchers(b_workflow);
  END IF;
  RETURN answer;
END
$$;
