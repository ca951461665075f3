-- The ids in a Git tree, one after the other as raw bytes; NULL when it is no well-formed one.
CREATE FUNCTION tree_ids(p_body bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  -- Not the stored value itself, which each substring would decompress anew.
  body bytea := p_body || ''::bytea;
  size int := length(body);
  at int := 1;
  zero int;
  ids bytea := '';
BEGIN
  WHILE at <= size LOOP
    -- Mode, a space and the name end in a zero byte; most names are short.
    zero := position('\x00'::bytea IN substring(body FROM at FOR 80));
    IF zero = 0 THEN zero := position('\x00'::bytea IN substring(body FROM at)); END IF;
    IF zero = 0 OR at + zero + 31 > size THEN RETURN NULL; END IF;
    ids := ids || substring(body FROM at + zero FOR 32);
    at := at + zero + 32;
  END LOOP;
  RETURN ids;
END
$$;

-- What some entries of a commit's root tree refer to, as raw ids. The root tree is among the objects in
-- the commit's row, each after a frame: type (1 byte), encoding (1), length (4, big-endian), id (32).
-- None where the row does not hold a well-formed one.
CREATE FUNCTION root_ids(p_body bytea, p_inline bytea, p_entries text[]) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  inline bytea := p_inline || ''::bytea;
  size int := length(inline);
  head text := encode(substring(p_body FROM 1 FOR 69), 'escape');
  at int := 1;
  len bigint;
  tree bytea;
  zero int;
  ids bytea := '';
BEGIN
  IF size IS NULL OR head !~ '^tree [0-9a-f]{64}$' THEN RETURN ''; END IF;
  WHILE tree IS NULL AND at + 37 <= size LOOP
    len := 16777216::bigint * get_byte(inline, at + 1) + 65536 * get_byte(inline, at + 2)
      + 256 * get_byte(inline, at + 3) + get_byte(inline, at + 4);
    EXIT WHEN at + 37 + len > size;
    IF encode(substring(inline FROM at + 6 FOR 32), 'hex') = substring(head FROM 6) THEN
      tree := substring(inline FROM at + 38 FOR len::int);
    END IF;
    at := at + 38 + len::int;
  END LOOP;
  IF tree IS NULL THEN RETURN ''; END IF;
  at := 1;
  size := length(tree);
  WHILE at <= size LOOP
    zero := position('\x00'::bytea IN substring(tree FROM at));
    IF zero = 0 OR at + zero + 31 > size THEN RETURN ''; END IF;
    IF substring(encode(substring(tree FROM at FOR zero - 1), 'escape') FROM ' (.*)$') = ANY (p_entries) THEN
      ids := ids || substring(tree FROM at + zero FOR 32);
    END IF;
    at := at + zero + 32;
  END LOOP;
  RETURN ids;
END
$$;

-- Reads objects and what they refer to, a level of trees after the other, each object once, until one
-- more would be too many or too much. Where nothing is to be read an id is passed over, and so is one
-- that is known, with all that is reached only through it.
--
-- Ids come as one string of bytes. A level is read through the index, id by id: without statistics a
-- planner that may choose could read all of the workflow.
CREATE FUNCTION read_below(p_workflow uuid, p_ids bytea, p_known bytea, p_objects int, p_bytes bigint)
RETURNS TABLE (type smallint, kind smallint, encoding smallint, id text, body bytea)
LANGUAGE plpgsql STABLE ROWS 1000 AS $$
DECLARE
  -- Objects that were answered, or are known.
  seen bytea[] := ARRAY(SELECT substring(p_known FROM 32 * i + 1 FOR 32)
    FROM generate_series(0, length(p_known) / 32 - 1) AS i);
  level bytea[];
  -- The ids in each tree of the level.
  trees bytea[] := ARRAY[p_ids];
  objects bigint := 0;
  bytes bigint := 0;
  ids bytea;
  r record;
BEGIN
  LOOP
    level := ARRAY(
      SELECT x.id FROM (
        SELECT substring(t.ids FROM 32 * i + 1 FOR 32) AS id, min(1000000 * t.n + i) AS o
          FROM unnest(trees) WITH ORDINALITY AS t (ids, n),
            LATERAL generate_series(0, length(t.ids) / 32 - 1) AS i
          GROUP BY 1
      ) AS x
      WHERE NOT EXISTS (SELECT FROM unnest(seen) AS s (id) WHERE s.id = x.id)
      ORDER BY x.o);
    EXIT WHEN cardinality(level) = 0;
    trees := '{}';
    FOR r IN
      SELECT o.* FROM unnest(level) WITH ORDINALITY AS w (id, n)
        CROSS JOIN LATERAL (
          SELECT t.type, t.kind, t.encoding, t.id, t.body FROM :"schema".objects AS t
            WHERE t.workflow_id = p_workflow AND t.id = w.id LIMIT 1) AS o
        ORDER BY w.n
    LOOP
      objects := objects + 1;
      bytes := bytes + length(r.body);
      IF objects > p_objects OR bytes > p_bytes THEN RETURN; END IF;
      type := r.type; kind := r.kind; encoding := r.encoding; id := encode(r.id, 'hex');
      body := r.body;
      RETURN NEXT;
      IF r.type = 2 AND r.kind = 0 AND r.encoding = 0 THEN
        ids := :"schema".tree_ids(r.body);
        IF length(ids) > 0 THEN trees := trees || ids; END IF;
      END IF;
    END LOOP;
    seen := seen || level;
  END LOOP;
END
$$;
