-- Reads the graph below some commits: each that is stored, in the order given, then
-- ancestors by falling generation, equal ones by id, until there are enough. Where one line of history is far
-- ahead of all others, as where there is but one, it is followed by a statement of its own, at a
-- fraction of the cost of a turn of the loop.
--
-- The ids come as one string of bytes, and so do the nodes go: generation (8 bytes, big-endian),
-- time (8), number of parents (4), the id, the parents.
CREATE FUNCTION read_graph(p_workflow uuid, p_ids bytea, p_limit int) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
DECLARE
  -- The commits asked for. Of all others each is met for the last time before it is answered: its
  -- children are of higher generations.
  seen bytea[] := '{}';
  -- What was met and has not been answered: a heap would be quicker, a scan is short enough, since a
  -- frontier holds as many nodes as there are lines of history side by side.
  w_id bytea[] := '{}';
  w_generation bigint[] := '{}';
  w_node bytea[] := '{}';
  w_parents bytea[] := '{}';
  -- Nodes, one or several in each; and how many.
  answer bytea[] := '{}';
  answered int := 0;
  met bytea[];
  parents bytea;
  r record;
  best int;
  -- The highest generation of what waits beside the best.
  second bigint;
  n int;
BEGIN
  IF p_limit <= 0 THEN RETURN ''; END IF;
  met := '{}';
  FOR i IN 0 .. length(p_ids) / 32 - 1 LOOP
    EXIT WHEN answered >= p_limit;
    CONTINUE WHEN substring(p_ids FROM 32 * i + 1 FOR 32) = ANY (seen);
    SELECT t.id, t.parents, int8send(t.generation) || int8send(t.time)
        || int4send(length(t.parents) / 32) || t.id || t.parents AS node
      INTO r FROM :"schema".commits AS t
      WHERE t.workflow_id = p_workflow AND t.id = substring(p_ids FROM 32 * i + 1 FOR 32);
    CONTINUE WHEN NOT FOUND;
    seen := seen || r.id;
    answer := answer || r.node;
    answered := answered + 1;
    FOR j IN 0 .. length(r.parents) / 32 - 1 LOOP
      met := met || substring(r.parents FROM 32 * j + 1 FOR 32);
    END LOOP;
  END LOOP;
  LOOP
    FOR i IN 1 .. cardinality(met) LOOP
      CONTINUE WHEN met[i] = ANY (seen) OR met[i] = ANY (w_id);
      SELECT t.generation, t.parents, int8send(t.generation) || int8send(t.time)
          || int4send(length(t.parents) / 32) || t.id || t.parents AS node
        INTO r FROM :"schema".commits AS t WHERE t.workflow_id = p_workflow AND t.id = met[i];
      CONTINUE WHEN NOT FOUND;
      w_id := w_id || met[i];
      w_generation := w_generation || r.generation;
      w_node := w_node || r.node;
      w_parents := w_parents || r.parents;
    END LOOP;
    n := cardinality(w_id);
    EXIT WHEN n = 0 OR answered >= p_limit;
    best := 1;
    second := 0;
    FOR i IN 2 .. n LOOP
      IF w_generation[i] > w_generation[best]
        OR (w_generation[i] = w_generation[best] AND w_id[i] < w_id[best]) THEN
        second := w_generation[best];
        best := i;
      ELSIF w_generation[i] > second THEN
        second := w_generation[i];
      END IF;
    END LOOP;
    answer := answer || w_node[best];
    answered := answered + 1;
    parents := w_parents[best];
    IF length(parents) = 32 AND w_generation[best] > second + 8 AND answered < p_limit THEN
      -- All that is of a higher generation than what waits comes before it.
      WITH RECURSIVE line AS (
        SELECT 0 AS at, parents AS parents, ''::bytea AS node
        UNION ALL
        SELECT l.at + 1, c.parents, c.node FROM line AS l
          CROSS JOIN LATERAL (
            SELECT t.id, t.generation, t.parents, int8send(t.generation) || int8send(t.time)
                || int4send(length(t.parents) / 32) || t.id || t.parents AS node
              FROM :"schema".commits AS t
              WHERE t.workflow_id = p_workflow AND t.id = l.parents LIMIT 1) AS c
          WHERE length(l.parents) = 32 AND l.at < p_limit - answered
            AND c.generation > second AND c.id <> ALL (seen)
      )
      SELECT string_agg(l.node, ''::bytea ORDER BY l.at) AS nodes, max(l.at) AS count,
          (array_agg(l.parents ORDER BY l.at DESC))[1] AS parents
        INTO r FROM line AS l;
      answer := answer || r.nodes;
      answered := answered + r.count;
      parents := r.parents;
    END IF;
    met := '{}';
    FOR j IN 0 .. length(parents) / 32 - 1 LOOP
      met := met || substring(parents FROM 32 * j + 1 FOR 32);
    END LOOP;
    w_id[best] := w_id[n]; w_generation[best] := w_generation[n];
    w_node[best] := w_node[n]; w_parents[best] := w_parents[n];
    w_id := w_id[: n - 1]; w_generation := w_generation[: n - 1];
    w_node := w_node[: n - 1]; w_parents := w_parents[: n - 1];
  END LOOP;
  RETURN (SELECT string_agg(a, ''::bytea ORDER BY o) FROM unnest(answer) WITH ORDINALITY AS x (a, o));
END
$$;

-- Finds an entry of a ref's log by what the entry after it, or the ref, tells of it: a row of reflog,
-- or the columns of the commit that it moved the ref to. No row when it is lost.
CREATE FUNCTION reflog_entry(p_workflow uuid, p_ref text, p_seq bigint, p_new bytea, p_hash bytea)
RETURNS TABLE (
  seq bigint, hash bytea, incarnation bytea, old bytea, new bytea, actor text, reason text,
  "time" bigint, trace text, previous bytea
) LANGUAGE sql STABLE AS $$
  SELECT t.seq, p_hash, t.incarnation, t.old, t.new, t.actor, t.reason, t.time, t.trace, t.previous
    FROM :"schema".reflog AS t WHERE t.workflow_id = p_workflow AND t.ref = p_ref AND t.seq = p_seq
  UNION ALL
  SELECT t.log_seq, p_hash, t.log_incarnation, nullif(substring(t.parents FROM 1 FOR 32), ''::bytea),
      t.id, t.log_actor, t.log_reason, t.log_time, coalesce(t.log_trace, ''), t.log_previous
    FROM :"schema".commits AS t
    WHERE t.workflow_id = p_workflow AND t.id = p_new AND t.log_ref = p_ref AND t.log_seq = p_seq
$$;
