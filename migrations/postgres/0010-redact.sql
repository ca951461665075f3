-- Takes something out of a workflow's rows in place: bodies of objects, copies in commits' rows and in the objects
-- table alike, which become tombstones; parents of commits, in their rows alone; and pending rows. It is for the
-- maintainer, as collection is. Rows are locked in the order of ids, commits before objects, as everywhere.
--
-- Ids come as one string of bytes, sorted, and so do tombstones, with their lengths. Of a commit's parents those
-- given remain. What the row of such a commit keeps of a ref's log becomes a row of its own, since the log entry has its
-- old id from the first parent. With p_by, only rows that this collection has condemned, and nobody freshened since,
-- get tombstones. Done again, it changes nothing.
CREATE FUNCTION redact(
  p_workflow uuid, t_ids bytea, t_length int[], p_tombstones bytea, c_ids bytea,
  g_ids bytea, g_parents int[], p_parents bytea, d_key text[], d_index int[], p_by bigint,
  OUT objects bigint, OUT inline bigint, OUT grafts bigint, OUT pending bigint, OUT bytes bigint)
LANGUAGE plpgsql AS $$
DECLARE
  ids constant bytea[] := ARRAY(SELECT substring(t_ids FROM 32 * i + 1 FOR 32)
    FROM generate_series(0, length(t_ids) / 32 - 1) AS i);
  held constant bytea[] := ARRAY(SELECT substring(c_ids FROM 32 * i + 1 FOR 32)
    FROM generate_series(0, length(c_ids) / 32 - 1) AS i);
  grafted constant bytea[] := ARRAY(SELECT substring(g_ids FROM 32 * i + 1 FOR 32)
    FROM generate_series(0, length(g_ids) / 32 - 1) AS i);
  -- Each tombstone as it stands in a commit's row: encoding 255, length, id, bytes.
  buried bytea[] := '{}';
  tombstones bytea[] := '{}';
  r record;
  src bytea; made bytea; kept bytea; v_id bytea; v_body bytea; v_key text; v_index int;
  at int := 1;
  len bigint;
  n bigint;
  place int;
BEGIN
  objects := 0; inline := 0; grafts := 0; pending := 0; bytes := 0;
  FOR i IN 1 .. cardinality(ids) LOOP
    v_body := substring(p_tombstones FROM at FOR t_length[i]);
    tombstones := tombstones || v_body;
    buried := buried || ('\xff'::bytea || int4send(t_length[i]) || ids[i] || v_body);
    at := at + t_length[i];
  END LOOP;

  PERFORM 1 FROM :"schema".commits AS t
    WHERE t.workflow_id = p_workflow AND (t.id = ANY (held) OR t.id = ANY (grafted))
    ORDER BY t.id FOR NO KEY UPDATE;
  FOR r IN
    SELECT t.id, t.inline AS packed FROM :"schema".commits AS t
      WHERE t.workflow_id = p_workflow AND t.id = ANY (held) AND t.inline IS NOT NULL
        AND (p_by IS NULL OR t.seen_at = -p_by) ORDER BY t.id
  LOOP
    src := r.packed || ''::bytea;
    made := ''; n := 0; at := 1;
    WHILE at + 37 <= length(src) LOOP
      len := 16777216::bigint * get_byte(src, at + 1) + 65536 * get_byte(src, at + 2)
        + 256 * get_byte(src, at + 3) + get_byte(src, at + 4);
      EXIT WHEN at + 37 + len > length(src);
      place := array_position(ids, substring(src FROM at + 6 FOR 32));
      IF place IS NULL OR get_byte(src, at) = 255 THEN
        made := made || substring(src FROM at FOR 38 + len::int);
      ELSE
        made := made || substring(src FROM at FOR 1) || buried[place];
        n := n + 1;
        bytes := bytes + len;
      END IF;
      at := at + 38 + len::int;
    END LOOP;
    CONTINUE WHEN n = 0;
    made := made || substring(src FROM at);
    v_id := r.id;
    UPDATE :"schema".commits AS t SET inline = made WHERE t.workflow_id = p_workflow AND t.id = v_id;
    inline := inline + n;
  END LOOP;

  at := 1;
  FOR i IN 1 .. cardinality(grafted) LOOP
    v_id := grafted[i];
    v_body := substring(p_parents FROM at FOR 32 * g_parents[i]);
    at := at + 32 * g_parents[i];
    SELECT t.parents INTO src FROM :"schema".commits AS t WHERE t.workflow_id = p_workflow AND t.id = v_id;
    CONTINUE WHEN NOT FOUND;
    kept := '';
    FOR j IN 0 .. length(src) / 32 - 1 LOOP
      made := substring(src FROM 32 * j + 1 FOR 32);
      FOR k IN 0 .. length(v_body) / 32 - 1 LOOP
        IF substring(v_body FROM 32 * k + 1 FOR 32) = made THEN
          kept := kept || made;
          EXIT;
        END IF;
      END LOOP;
    END LOOP;
    CONTINUE WHEN kept = src;
    INSERT INTO :"schema".reflog (workflow_id, seq, time, ref, incarnation, old, new, previous, actor, reason,
        trace)
      SELECT t.workflow_id, t.log_seq, t.log_time, t.log_ref, t.log_incarnation,
          nullif(substring(t.parents FROM 1 FOR 32), ''::bytea), t.id, t.log_previous, t.log_actor,
          t.log_reason, coalesce(t.log_trace, '')
        FROM :"schema".commits AS t
        WHERE t.workflow_id = p_workflow AND t.id = v_id AND t.log_ref IS NOT NULL
      ON CONFLICT DO NOTHING;
    UPDATE :"schema".commits AS t SET parents = kept, log_seq = NULL, log_time = NULL, log_incarnation = NULL,
        log_previous = NULL, log_ref = NULL, log_actor = NULL, log_reason = NULL, log_trace = NULL
      WHERE t.workflow_id = p_workflow AND t.id = v_id;
    grafts := grafts + 1;
  END LOOP;

  PERFORM 1 FROM :"schema".objects AS t
    WHERE t.workflow_id = p_workflow AND t.id = ANY (ids) ORDER BY t.id FOR NO KEY UPDATE;
  FOR i IN 1 .. cardinality(ids) LOOP
    v_id := ids[i]; v_body := tombstones[i];
    SELECT length(t.body) INTO len FROM :"schema".objects AS t
      WHERE t.workflow_id = p_workflow AND t.id = v_id AND t.kind = 0
        AND (p_by IS NULL OR t.seen_at = -p_by);
    CONTINUE WHEN NOT FOUND;
    UPDATE :"schema".objects AS t SET kind = 1, encoding = 0, body = v_body
      WHERE t.workflow_id = p_workflow AND t.id = v_id AND t.kind = 0;
    objects := objects + 1;
    bytes := bytes + len;
  END LOOP;

  FOR i IN 1 .. cardinality(d_key) LOOP
    v_key := d_key[i]; v_index := d_index[i];
    DELETE FROM :"schema".pending AS t
      WHERE t.workflow_id = p_workflow AND t.key = v_key AND t.idx = v_index
      RETURNING length(t.body) INTO len;
    CONTINUE WHEN NOT FOUND;
    pending := pending + 1;
    bytes := bytes + len;
  END LOOP;
END
$$;
