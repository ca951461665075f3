-- The one write call: batches of objects, commits and ref moves, each batch judged
-- alone, all landed by the one statement that calls this.
--
-- Locks are taken in one order everywhere: refs by workflow and name, then commits that the
-- batches build on, by workflow and id, then the rows of objects, then pending rows, which the caller
-- gives in this order. No ref and no pending row comes twice. A row of a commit exists only if its move
-- happened, so a batch that is sent again finds it and has landed; a batch that is still
-- under way holds the lock of its ref, or the unique entry of the row that it creates.
--
-- Values of fixed length come as one string of bytes an argument, 32 bytes an id, 16 an
-- incarnation; bodies as one string of bytes, cut by their lengths: an array of bytea is
-- several times slower to send. An id of zeroes stands for none.
--
-- Answers a row a batch (move 0): status 0 ok, 1 created, 2 exists, 3 missing; and a row a
-- move: status 0 moved, 1 landed, 2 conflict, 3 missing, 4 skipped, with the ref's row as it
-- is then (seq NULL: no row), or the ids that are missing; or 5, closed: a branch of a completed workflow.
--
-- Every statement names the one workflow that it is about, and takes no column's value from an
-- array's element: where the tables are distributed, a call for one workflow runs as a whole on
-- the server that has it.

-- Whether a body is what an object's id says; Git's numbers of types.
CREATE FUNCTION is_object(p_type int, p_id bytea, p_body bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(CASE p_type WHEN 1 THEN 'commit' WHEN 2 THEN 'tree' ELSE 'blob' END
    || ' ' || length(p_body), 'UTF8') || decode('00', 'hex') || p_body) = p_id
$$;

CREATE FUNCTION write_batches(
  p_workflow uuid,            -- of all batches, where the tables are distributed
  p_now bigint,
  p_stale bigint,             -- rows last seen before this are freshened
  w_batch int[], w_id text[], w_created bigint[], w_class text[], w_region text[],
  w_retention text[], w_isolation text[],
  b_workflow uuid[], b_atomic boolean[],
  b_complete bigint[],        -- when the workflow is completed by it; NULL: it is not
  m_batch int[], m_ref text[], m_expect int[], m_expect_id bytea, m_expect_seq bigint[],
  m_target bytea, m_incarnation bytea, m_max_step bigint[], m_time bigint[], m_actor text[],
  m_reason text[], m_trace text[], m_commits int[],
  c_id bytea, c_generation bigint[], c_time bigint[], c_parents int[], c_parent_ids bytea,
  c_external text[], c_inline int[], c_body int[],
  k_batch int[], k_id bytea, k_needs boolean[], -- commits that a batch refers to and does not bring
  o_batch int[], o_id bytea, o_type int[], o_encoding int[], o_body int[],
  x_batch int[], x_prefix text[], -- pending rows to drop
  d_batch int[], d_key text[], d_index int[], d_body int[], d_at int[],
  p_bodies bytea
) RETURNS TABLE (
  r_batch int, r_move int, r_status int, r_id text, r_seq bigint, r_log_hash text,
  r_incarnation text, r_max_step bigint, r_missing text
) LANGUAGE plpgsql AS $$
DECLARE
  zero constant bytea := decode(repeat('00', 32), 'hex');
  n_moves constant int := cardinality(m_ref);
  known uuid;                 -- the last workflow that was found to be there
  is_closed boolean;          -- whether that one is completed
  v_complete bigint;
  r record;
  wf uuid;
  m int := 1;                 -- the move that comes next
  m_end int;
  c int := 1;                 -- the commit that comes next
  c_at int := 1;              -- where its bodies begin
  p_at int := 0;              -- how many parents came before
  -- What judging a batch found, by move.
  a_status int[];
  a_missing text[];
  a_found boolean[];
  a_head bytea[];
  a_seq bigint[];
  a_hash bytea[];
  a_incarnation bytea[];
  a_step bigint[];
  c_first int[];
  coming bytea[];
  own bytea[];
  need bytea;
  target bytea;
  head bytea;
  gone text[];
  batch_status int;
  changed boolean;
  won boolean[] := array_fill(false, ARRAY[greatest(cardinality(b_workflow), 1)]);
  any_won boolean := false;
  there boolean[] := won;     -- batches whose workflow is there
  creates boolean;
  carries boolean;
  stored boolean;
  line text;
  new_hash bytea;
  -- A workflow, a move, a commit or an object, column by column.
  v_name text; v_created bigint; v_class text; v_region text; v_retention text; v_isolation text;
  v_ref text; v_seq bigint; v_step bigint; v_incarnation bytea; v_previous bytea;
  v_log_time bigint; v_actor text; v_reason text; v_trace text;
  v_id bytea; v_generation bigint; v_time bigint; v_parents bytea; v_external text;
  v_inline bytea; v_body bytea; v_type smallint; v_encoding smallint;
  v_key text; v_index int;
  n_inline int;
  n_rows int;
  i int;
  j int;
  k int;
BEGIN
  FOR r IN
    SELECT b_workflow[x.b] AS w, array_agg(x.ref) AS names
      FROM unnest(m_batch, m_ref) AS x (b, ref) GROUP BY 1 ORDER BY 1
  LOOP
    PERFORM 1 FROM :"schema".refs AS t
      WHERE t.workflow_id = r.w AND t.name = ANY (r.names) ORDER BY t.name FOR UPDATE;
  END LOOP;
  -- What is built on must not be collected meanwhile. A commit not seen lately, and so perhaps
  -- condemned, is freshened; it may be condemned until its row is locked.
  FOR r IN
    SELECT b_workflow[x.b] AS w, array_agg(substring(k_id FROM 32 * x.n::int - 31 FOR 32)) AS ids
      FROM unnest(k_batch) WITH ORDINALITY AS x (b, n) GROUP BY 1 ORDER BY 1
  LOOP
    PERFORM 1 FROM :"schema".commits AS t
      WHERE t.workflow_id = r.w AND t.id = ANY (r.ids) AND t.seen_at < p_stale
      ORDER BY t.id FOR NO KEY UPDATE;
    IF FOUND THEN
      UPDATE :"schema".commits AS t SET seen_at = p_now
        WHERE t.workflow_id = r.w AND t.id = ANY (r.ids) AND t.seen_at < p_stale;
    END IF;
    PERFORM 1 FROM :"schema".commits AS t
      WHERE t.workflow_id = r.w AND t.id = ANY (r.ids) ORDER BY t.id FOR SHARE;
    UPDATE :"schema".commits AS t SET seen_at = p_now
      WHERE t.workflow_id = r.w AND t.id = ANY (r.ids) AND t.seen_at < p_stale;
  END LOOP;

  FOR b IN 1 .. cardinality(b_workflow) LOOP
    wf := b_workflow[b];
    m_end := m;
    WHILE m_end <= n_moves AND m_batch[m_end] = b LOOP m_end := m_end + 1; END LOOP;
    batch_status := 0;
    i := array_position(w_batch, b);
    IF i IS NOT NULL THEN
      v_name := w_id[i]; v_created := w_created[i]; v_class := w_class[i]; v_region := w_region[i];
      v_retention := w_retention[i]; v_isolation := w_isolation[i];
      INSERT INTO :"schema".workflows (workflow_id, created_at, id, classification, storage_region,
          retention_policy, isolation)
        VALUES (wf, v_created, v_name, v_class, v_region, v_retention, v_isolation)
        ON CONFLICT DO NOTHING;
      GET DIAGNOSTICS n_rows = ROW_COUNT;
      batch_status := CASE n_rows WHEN 0 THEN 2 ELSE 1 END;
      is_closed := false;
    ELSIF wf IS DISTINCT FROM known THEN
      SELECT t.completed_at IS NOT NULL INTO is_closed
        FROM :"schema".workflows AS t WHERE t.workflow_id = wf;
      IF NOT FOUND THEN batch_status := 3; END IF;
    END IF;
    IF batch_status = 0 THEN known := wf; END IF;
    there[b] := batch_status < 2;
    r_batch := b; r_move := 0; r_status := batch_status;
    r_id := NULL; r_seq := NULL; r_log_hash := NULL; r_incarnation := NULL; r_max_step := NULL;
    r_missing := NULL;
    RETURN NEXT;

    -- Judge all moves before anything is written.
    a_status := '{}'; a_missing := '{}'; a_found := '{}'; a_head := '{}'; a_seq := '{}';
    a_hash := '{}'; a_incarnation := '{}'; a_step := '{}'; c_first := '{}'; coming := '{}';
    k := p_at;
    j := c;
    FOR x IN m .. m_end - 1 LOOP
      i := x - m + 1;
      c_first[i] := j;
      v_ref := m_ref[x];
      SELECT t.id, t.seq, t.log_hash, t.incarnation, t.max_step INTO r
        FROM :"schema".refs AS t WHERE t.workflow_id = wf AND t.name = v_ref;
      a_found[i] := FOUND;
      head := r.id;
      a_head[i] := head; a_seq[i] := r.seq; a_hash[i] := r.log_hash;
      a_incarnation[i] := r.incarnation; a_step[i] := r.max_step;
      target := substring(m_target FROM 32 * x - 31 FOR 32);
      a_status[i] := 0;
      a_missing[i] := NULL;
      IF batch_status > 1 THEN
        a_status[i] := 4;
      ELSIF is_closed AND target <> zero AND starts_with(v_ref, 'refs/heads/') THEN
        a_status[i] := 5;
      ELSIF (m_expect[x] = 1 AND head IS NOT NULL)
        OR (m_expect[x] = 2 AND (head IS NULL OR head <> substring(m_expect_id FROM 32 * x - 31 FOR 32)
          OR (m_expect_seq[x] IS NOT NULL AND m_expect_seq[x] <> r.seq)))
        OR (head IS NULL AND target = zero) THEN
        a_status[i] := 2;
      END IF;
      own := '{}';
      gone := '{}';
      FOR y IN j .. j + m_commits[x] - 1 LOOP
        FOR z IN k .. k + c_parents[y] - 1 LOOP
          need := substring(c_parent_ids FROM 32 * z + 1 FOR 32);
          IF a_status[i] = 0 AND need IS DISTINCT FROM head AND NOT need = ANY (own)
            AND NOT need = ANY (coming) AND NOT encode(need, 'hex') = ANY (gone)
            AND NOT EXISTS (SELECT 1 FROM :"schema".commits AS t WHERE t.workflow_id = wf AND t.id = need) THEN
            gone := gone || encode(need, 'hex');
          END IF;
        END LOOP;
        k := k + c_parents[y];
        own := own || substring(c_id FROM 32 * y - 31 FOR 32);
      END LOOP;
      j := j + m_commits[x];
      IF a_status[i] = 0 AND target <> zero AND target IS DISTINCT FROM head
        AND NOT target = ANY (own) AND NOT target = ANY (coming)
        AND NOT encode(target, 'hex') = ANY (gone)
        AND NOT EXISTS (SELECT 1 FROM :"schema".commits AS t WHERE t.workflow_id = wf AND t.id = target) THEN
        gone := gone || encode(target, 'hex');
      END IF;
      FOR y IN 1 .. cardinality(k_batch) LOOP
        CONTINUE WHEN NOT k_needs[y] OR k_batch[y] <> b OR a_status[i] <> 0;
        need := substring(k_id FROM 32 * y - 31 FOR 32);
        IF NOT EXISTS (SELECT 1 FROM :"schema".commits AS t WHERE t.workflow_id = wf AND t.id = need) THEN
          gone := gone || encode(need, 'hex');
        END IF;
      END LOOP;
      IF cardinality(gone) > 0 THEN
        a_status[i] := 3;
        a_missing[i] := array_to_string(gone, ',');
      END IF;
      -- Whether it landed before is asked where it was refused, or has more than one commit;
      -- of the others the insert tells.
      IF (a_status[i] IN (2, 3, 5) OR NOT a_found[i] OR m_end - m > 1 OR m_commits[x] > 1)
        AND batch_status < 2
        AND target = ANY (own)
        AND EXISTS (SELECT 1 FROM :"schema".commits AS t WHERE t.workflow_id = wf AND t.id = target) THEN
        a_status[i] := 1;
      END IF;
      IF a_status[i] = 0 THEN coming := coming || own; END IF;
    END LOOP;
    IF b_atomic[b] AND batch_status < 2 THEN
      IF 1 = ANY (a_status) THEN
        a_status := array_fill(1, ARRAY[m_end - m]);
      ELSIF a_status && ARRAY[2, 3, 5] THEN
        FOR x IN 1 .. m_end - m LOOP
          IF a_status[x] = 0 THEN a_status[x] := 4; END IF;
        END LOOP;
      END IF;
    END IF;

    -- Apply what may happen.
    changed := false;
    FOR x IN m .. m_end - 1 LOOP
      i := x - m + 1;
      target := substring(m_target FROM 32 * x - 31 FOR 32);
      stored := false;
      v_ref := m_ref[x]; v_step := m_max_step[x];
      v_log_time := m_time[x]; v_actor := m_actor[x]; v_reason := m_reason[x]; v_trace := m_trace[x];
      v_seq := coalesce(a_seq[i], 0) + 1; v_previous := a_hash[i]; v_incarnation := a_incarnation[i];
      head := coalesce(a_head[i], zero);
      IF a_status[i] = 0 THEN
        creates := a_head[i] IS NULL;
        IF creates THEN v_incarnation := substring(m_incarnation FROM 16 * x - 15 FOR 16); END IF;
        line := 'agstate-reflog 1' || E'\nref ' || v_ref
          || E'\nincarnation ' || encode(v_incarnation, 'hex') || E'\nseq ' || v_seq
          || E'\nold ' || encode(head, 'hex') || E'\nnew ' || encode(target, 'hex')
          || E'\nactor ' || v_actor || E'\nreason ' || v_reason
          || E'\ntime ' || v_log_time || E'\ntrace ' || v_trace
          || E'\nprevious ' || encode(coalesce(v_previous, zero), 'hex') || E'\n';
        new_hash := sha256(convert_to(line, 'UTF8'));
        IF NOT a_found[i] THEN
          -- Whoever creates the same name at the same time is waited for here.
          INSERT INTO :"schema".refs (workflow_id, seq, max_step, name, incarnation, log_hash, id)
            VALUES (wf, 1, v_step, v_ref, v_incarnation, new_hash, nullif(target, zero))
            ON CONFLICT DO NOTHING;
          GET DIAGNOSTICS n_rows = ROW_COUNT;
          IF n_rows = 0 THEN RAISE EXCEPTION SQLSTATE 'AG001' USING MESSAGE = 'a ref was created meanwhile'; END IF;
        END IF;
      END IF;
      FOR y IN c .. c + m_commits[x] - 1 LOOP
        n_inline := greatest(c_inline[y], 0);
        IF a_status[i] = 0 THEN
          v_id := substring(c_id FROM 32 * y - 31 FOR 32);
          v_parents := substring(c_parent_ids FROM 32 * p_at + 1 FOR 32 * c_parents[y]);
          v_generation := c_generation[y]; v_time := c_time[y]; v_external := c_external[y];
          v_inline := CASE WHEN c_inline[y] >= 0 THEN substring(p_bodies FROM c_at FOR c_inline[y]) END;
          v_body := substring(p_bodies FROM c_at + n_inline FOR c_body[y]);
          -- The log entry is kept in its row when it is the move's only commit, on top of the head.
          carries := m_commits[x] = 1 AND v_id = target
            AND CASE WHEN c_parents[y] = 0 THEN head = zero
              ELSE head = substring(v_parents FROM 1 FOR 32) END;
          IF carries THEN
            INSERT INTO :"schema".commits AS t (workflow_id, generation, time, seen_at, log_seq, log_time, id,
                parents, log_incarnation, log_previous, log_ref, log_actor, log_reason, log_trace,
                external_id, inline, body)
              VALUES (wf, v_generation, v_time, p_now, v_seq, v_log_time, v_id, v_parents, v_incarnation,
                v_previous, v_ref, v_actor, v_reason, nullif(v_trace, ''), v_external, v_inline, v_body)
              ON CONFLICT (workflow_id, id) DO NOTHING;
          ELSE
            INSERT INTO :"schema".commits AS t (workflow_id, generation, time, seen_at, id, parents,
                external_id, inline, body)
              VALUES (wf, v_generation, v_time, p_now, v_id, v_parents, v_external, v_inline, v_body)
              ON CONFLICT (workflow_id, id) DO NOTHING;
          END IF;
          GET DIAGNOSTICS n_rows = ROW_COUNT;
          IF n_rows = 1 THEN
            stored := stored OR carries;
          ELSIF m_end - m = 1 AND m_commits[x] = 1 THEN
            a_status[i] := 1;
          ELSE
            -- One that is stored already keeps its log entry; a damaged copy is replaced.
            UPDATE :"schema".commits AS t SET generation = v_generation, time = v_time, parents = v_parents,
                external_id = v_external, inline = v_inline, body = v_body
              WHERE t.workflow_id = wf AND t.id = v_id AND t.body <> v_body
                AND :"schema".is_object(1, v_id, v_body);
            UPDATE :"schema".commits AS t SET seen_at = p_now
              WHERE t.workflow_id = wf AND t.id = v_id AND t.seen_at < p_stale;
          END IF;
        END IF;
        c_at := c_at + n_inline + c_body[y];
        p_at := p_at + c_parents[y];
      END LOOP;
      c := c + m_commits[x];
      IF a_status[i] = 0 THEN
        changed := true;
        IF a_found[i] THEN
          UPDATE :"schema".refs AS t SET id = nullif(target, zero), seq = v_seq,
              max_step = greatest(t.max_step, v_step), incarnation = v_incarnation, log_hash = new_hash
            WHERE t.workflow_id = wf AND t.name = v_ref;
        END IF;
        IF NOT stored THEN
          INSERT INTO :"schema".reflog (workflow_id, seq, time, ref, incarnation, old, new, previous, actor,
              reason, trace)
            VALUES (wf, v_seq, v_log_time, v_ref, v_incarnation, nullif(head, zero), nullif(target, zero),
              v_previous, v_actor, v_reason, v_trace);
        END IF;
        a_head[i] := nullif(target, zero);
        a_seq[i] := v_seq;
        a_hash[i] := new_hash;
        a_incarnation[i] := v_incarnation;
        a_step[i] := greatest(coalesce(a_step[i], 0), v_step);
      END IF;
      r_batch := b; r_move := x; r_status := a_status[i];
      r_id := encode(a_head[i], 'hex'); r_seq := a_seq[i]; r_log_hash := encode(a_hash[i], 'hex');
      r_incarnation := encode(a_incarnation[i], 'hex'); r_max_step := a_step[i];
      r_missing := a_missing[i];
      RETURN NEXT;
    END LOOP;
    v_complete := b_complete[b];
    IF changed AND v_complete IS NOT NULL THEN
      UPDATE :"schema".workflows AS t SET completed_at = v_complete
        WHERE t.workflow_id = wf AND t.completed_at IS NULL;
      known := NULL;
    END IF;
    won[b] := changed;
    any_won := any_won OR changed;
    m := m_end;
  END LOOP;

  FOR x IN 1 .. CASE WHEN any_won THEN cardinality(o_batch) ELSE 0 END LOOP
    IF won[o_batch[x]] THEN
      wf := b_workflow[o_batch[x]];
      v_type := o_type[x]; v_encoding := o_encoding[x];
      v_id := substring(o_id FROM 32 * x - 31 FOR 32);
      v_body := substring(p_bodies FROM c_at FOR o_body[x]);
      INSERT INTO :"schema".objects AS t (workflow_id, seen_at, type, kind, encoding, id, body)
        VALUES (wf, p_now, v_type, 0, v_encoding, v_id, v_body)
        ON CONFLICT (workflow_id, id) DO UPDATE SET type = excluded.type, kind = 0,
          encoding = excluded.encoding, seen_at = excluded.seen_at, body = excluded.body
        WHERE CASE WHEN t.kind = 0 AND t.type = excluded.type AND t.encoding = excluded.encoding
            AND t.body = excluded.body
          THEN t.seen_at < p_stale
          -- What is stored under the id is replaced only by what the id is the hash of.
          ELSE :"schema".is_object(excluded.type, excluded.id, excluded.body) END;
    END IF;
    c_at := c_at + o_body[x];
  END LOOP;

  FOR x IN 1 .. cardinality(x_batch) LOOP
    CONTINUE WHEN NOT there[x_batch[x]];
    wf := b_workflow[x_batch[x]]; v_key := x_prefix[x];
    DELETE FROM :"schema".pending AS t
      WHERE t.workflow_id = wf AND t.key >= v_key AND starts_with(t.key, v_key);
  END LOOP;
  FOR x IN 1 .. cardinality(d_batch) LOOP
    CONTINUE WHEN NOT there[d_batch[x]];
    wf := b_workflow[d_batch[x]]; v_key := d_key[x]; v_index := d_index[x];
    v_body := substring(p_bodies FROM d_at[x] FOR d_body[x]);
    INSERT INTO :"schema".pending AS t (workflow_id, idx, key, body) VALUES (wf, v_index, v_key, v_body)
      ON CONFLICT (workflow_id, key, idx) DO UPDATE SET body = excluded.body WHERE excluded.idx < 0;
  END LOOP;
  PERFORM :"schema".notify_watchers(ARRAY(SELECT b_workflow[u.n] FROM generate_subscripts(b_workflow, 1) AS u (n) WHERE won[u.n]));
END
$$;
