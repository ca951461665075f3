-- Three roles of least privilege for one store, made by
--
--     agstate migrate --roles[=writer,reader,maintainer]
--
-- or by psql -1 -v ON_ERROR_STOP=1 -v schema=agents [-v writer=... -v reader=... -v maintainer=...] -f roles.sql,
-- by a superuser, or by the owner of the tables, who needs CREATEROLE where the roles are not there
-- yet. They cannot log in; logins are made members of one: GRANT agstate_writer TO alice.
--
-- reader      SELECT on every table, EXECUTE on the functions that only read.
-- writer      the same, and EXECUTE on the functions that write, which run with the maintainer's rights. No
--             INSERT, UPDATE or DELETE, but on the rows of watchers that it made itself.
-- maintainer  owns the tables and functions, and may CREATE in the schema: migrates, collects and erases.
--
-- What a function that writes can do is what it is for: move a ref and tell of that in its log, add
-- commits and objects, put and drop pending rows, which are no history. It replaces a stored one only where that is damaged, by bytes that hash to its id.
-- What it cannot tell is whether a caller says the truth of the time or of itself: a move that claims to be
-- old is collected early, and an actor is a claim. Names and bytes of what is new are for readers to judge, who check hashes.
--
-- It may be run again at any time, beside running writers, as one transaction; whatever it does not
-- grant to the three it takes from them and from PUBLIC. The store remembers the names in meta, and migrations end
-- with running this again, since a function that was replaced has lost what is set here.
--
-- The first run takes a short lock on all tables, in the order in which writers use them.
\if :{?schema}
\else
\set schema agstate
\endif
\if :{?writer}
\else
\set writer agstate_writer
\endif
\if :{?reader}
\else
\set reader agstate_reader
\endif
\if :{?maintainer}
\else
\set maintainer agstate_maintainer
\endif

-- What follows is quoted, and variables do not reach into it.
SELECT set_config('agstate.schema', :'schema', true), set_config('agstate.writer', :'writer', true),
  set_config('agstate.reader', :'reader', true), set_config('agstate.maintainer', :'maintainer', true);

DO $$
DECLARE
  s constant text := current_setting('agstate.schema');
  writer constant text := current_setting('agstate.writer');
  reader constant text := current_setting('agstate.reader');
  maintainer constant text := current_setting('agstate.maintainer');
  names constant text[] := ARRAY[writer, reader, maintainer];
  -- In the order of locks.
  tables constant text[] := ARRAY['refs', 'commits', 'workflows', 'reflog', 'objects', 'pending', 'watchers'];
  n oid := (SELECT oid FROM pg_namespace WHERE nspname = s);
  owner oid;
  r record;
  name text;
BEGIN
  IF n IS NULL OR to_regclass(format('%I.watchers', s)) IS NULL THEN
    RAISE EXCEPTION 'there is no store in schema %', s USING ERRCODE = 'AG002';
  END IF;
  IF s = 'public' THEN
    RAISE EXCEPTION 'roles need a schema of the store''s own, since all that is in it is given to them'
      USING ERRCODE = 'AG002';
  END IF;

  FOREACH name IN ARRAY names LOOP
    CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = name);
    EXECUTE format('CREATE ROLE %I NOLOGIN', name);
  END LOOP;
  owner := (SELECT oid FROM pg_roles WHERE rolname = maintainer);
  IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
    EXECUTE format('GRANT %I TO CURRENT_USER', maintainer);
  END IF;
  FOREACH name IN ARRAY names LOOP
    IF NOT has_schema_privilege(name, n, 'USAGE') THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', s, name);
    END IF;
    IF name <> maintainer AND has_schema_privilege(name, n, 'CREATE') THEN
      EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC, %I', s, name);
    END IF;
  END LOOP;
  IF NOT has_schema_privilege(maintainer, n, 'CREATE') THEN
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO %I', s, maintainer);
  END IF;

  -- All of the schema but what belongs to extensions.
  IF EXISTS (SELECT FROM pg_class WHERE relnamespace = n AND relkind IN ('r', 'p') AND relowner <> owner)
    OR NOT EXISTS (SELECT FROM pg_constraint WHERE connamespace = n AND conname = 'objects_plain') THEN
    FOREACH name IN ARRAY tables LOOP
      EXECUTE format('LOCK TABLE %I.%I IN ACCESS EXCLUSIVE MODE', s, name);
    END LOOP;
  END IF;
  FOR r IN
    SELECT c.oid::regclass AS it, c.relowner AS owner FROM pg_class AS c
      WHERE c.relnamespace = n AND c.relkind IN ('r', 'p')
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
  LOOP
    IF r.owner <> owner THEN EXECUTE format('ALTER TABLE %s OWNER TO %I', r.it, maintainer); END IF;
    EXECUTE format('REVOKE ALL ON %s FROM PUBLIC, %I, %I', r.it, writer, reader);
    EXECUTE format('GRANT SELECT ON %s TO %I, %I', r.it, writer, reader);
  END LOOP;

  FOR r IN
    SELECT p.oid::regprocedure AS it, p.proname, p.proowner AS owner, p.provolatile AS volatility
      FROM pg_proc AS p
      WHERE p.pronamespace = n AND p.prokind = 'f'
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e')
  LOOP
    IF r.owner <> owner THEN EXECUTE format('ALTER FUNCTION %s OWNER TO %I', r.it, maintainer); END IF;
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC, %I, %I', r.it, writer, reader);
    IF r.volatility <> 'v' THEN
      -- The server lets no such function write.
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I, %I', r.it, writer, reader);
    ELSIF r.proname ~ '^(write|append)_' THEN
      EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', r.it);
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', r.it, writer);
    END IF;
  END LOOP;

  -- An object's own bytes are not given out for a pointer or an encrypted payload, nor its type for another.
  -- Only rows to come are looked at, and of these the function sees none that is plain.
  IF NOT EXISTS (SELECT FROM pg_constraint WHERE connamespace = n AND conname = 'objects_plain') THEN
    EXECUTE format('ALTER TABLE %1$I.objects ADD CONSTRAINT objects_plain CHECK (type IN (2, 3)
      AND (encoding = 0 OR NOT %1$I.is_object(type, id, body))) NOT VALID', s);
  END IF;

  -- Who made a row of watchers; whose time is over is nobody's, and nobody asks for long.
  IF NOT EXISTS (SELECT FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
      WHERE c.relnamespace = n AND p.polname = 'watchers_own') THEN
    EXECUTE format('ALTER TABLE %I.watchers ADD COLUMN IF NOT EXISTS made_by name NOT NULL DEFAULT current_user', s);
    EXECUTE format('CREATE POLICY watchers_seen ON %I.watchers FOR SELECT USING (true)', s);
    EXECUTE format('CREATE POLICY watchers_own ON %I.watchers
      USING (made_by = current_user OR until <= extract(epoch FROM now()))
      WITH CHECK (made_by = current_user AND until <= extract(epoch FROM now()) + 120)', s);
    EXECUTE format('ALTER TABLE %I.watchers ENABLE ROW LEVEL SECURITY', s);
  END IF;
  EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %I.watchers TO %I', s, writer);
END
$$;

INSERT INTO :"schema".meta AS t (key, value)
  VALUES ('role_writer', :'writer'), ('role_reader', :'reader'), ('role_maintainer', :'maintainer')
  ON CONFLICT (key) DO UPDATE SET value = excluded.value;
