-- Who watches the refs of which workflow, until when: NOTIFY makes commits wait for each other, so it
-- is only sent where somebody listens.
CREATE TABLE watchers (
  workflow_id uuid NOT NULL,
  watcher     uuid NOT NULL,
  until       bigint NOT NULL,               -- seconds, by the server's clock; renewed before it is over
  PRIMARY KEY (workflow_id, watcher)
) WITH (fillfactor = 50);

-- Notifies, with its key, each of these workflows that somebody watches. The channel is named after
-- the table's number, so that every schema has one of its own whatever its name is.
CREATE FUNCTION notify_watchers(p_workflows uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('agstate_' || t.tableoid, t.workflow_id::text)
    FROM :"schema".watchers AS t
    WHERE t.workflow_id = ANY (p_workflows) AND t.until > extract(epoch FROM now())
    GROUP BY t.tableoid, t.workflow_id;
END
$$;
