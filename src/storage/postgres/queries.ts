import { REPLICA } from "./replica.js";

/** Ids that come as one string of bytes, as a table `wanted (id, n)` in their order. */
const WANTED = `(SELECT substring($2::bytea FROM 32 * i + 1 FOR 32) AS id, i AS n
    FROM generate_series(0, length($2::bytea) / 32 - 1) AS i) AS wanted`;

const OBJECT = "t.type, t.kind, t.encoding, encode(t.id, 'hex') AS id, t.body";
const COMMIT = `encode(t.id, 'hex') AS id, encode(t.parents, 'hex') AS parents, t.generation,
  t.time, t.external_id, t.inline, t.body`;
const REF = `t.name, encode(t.id, 'hex') AS id, t.seq, t.max_step,
  encode(t.incarnation, 'hex') AS incarnation, encode(t.log_hash, 'hex') AS log_hash`;
const WORKFLOW = `t.id, t.classification, t.storage_region, t.retention_policy, t.isolation, t.created_at,
  t.completed_at`;

/**
 * Rows by their ids, each found through the index: where there are no statistics yet, a planner that
 * may choose reads all rows of the workflow.
 */
function byId(table: string, columns: string): string {
  return `SELECT ${columns} FROM ${WANTED} CROSS JOIN LATERAL
    (SELECT * FROM ${table} AS t WHERE t.workflow_id = $1 AND t.id = wanted.id LIMIT 1) AS t`;
}

/** All statements that read, for a schema whose name is quoted; none of them needs a session. */
export function queries(s: string) {
  // Commits that were found, and what entries of their root trees lead to. Commits have no kind; all else are objects.
  const belowGiven = `SELECT ${COMMIT}, NULL::smallint AS type, NULL::smallint AS kind, NULL::smallint AS encoding
        FROM given AS t
      UNION ALL
      SELECT b.id, NULL, NULL, NULL, NULL, NULL, b.body, b.type, b.kind, b.encoding
        FROM ${s}.read_below($1, $3::bytea || coalesce((
          SELECT string_agg(${s}.root_ids(t.body, t.inline, $4::text[]), ''::bytea ORDER BY t.n)
            FROM given AS t), ''::bytea), $5, $6, $7) AS b`;
  return {
    objects: byId(`${s}.objects`, OBJECT),
    commits: byId(`${s}.commits`, COMMIT),
    below: `WITH given AS MATERIALIZED (
        SELECT wanted.n, t.* FROM ${WANTED} CROSS JOIN LATERAL
          (SELECT * FROM ${s}.commits AS t WHERE t.workflow_id = $1 AND t.id = wanted.id LIMIT 1) AS t
      )
      ${belowGiven}`,
    belowLine: `WITH RECURSIVE line AS (
        SELECT 1 AS n, t.id, t.parents, t.generation, t.time, t.external_id, t.inline, t.body
          FROM ${s}.commits AS t WHERE t.workflow_id = $1 AND t.id = $2 AND $8 > 0
        UNION ALL
        SELECT l.n + 1, t.* FROM line AS l CROSS JOIN LATERAL
          (SELECT c.id, c.parents, c.generation, c.time, c.external_id, c.inline, c.body
            FROM ${s}.commits AS c
            WHERE c.workflow_id = $1 AND c.id = substring(l.parents FROM 1 FOR 32) LIMIT 1) AS t
          WHERE l.n < $8
      ), given AS MATERIALIZED (SELECT * FROM line ORDER BY n)
      ${belowGiven}`,
    graph: `SELECT ${s}.read_graph($1, $2, $3) AS nodes`,

    refsByName: `SELECT ${REF} FROM ${s}.refs AS t
      WHERE t.workflow_id = $1 AND t.name = ANY ($2::text[]) ORDER BY t.name`,
    // No name holds a character above U+10FFFF's first byte in UTF-8, F4.
    refsFrom: `SELECT ${REF} FROM ${s}.refs AS t
      WHERE t.workflow_id = $1 AND t.name >= $2 AND starts_with(t.name, $2)
        AND ($3 OR t.id IS NOT NULL) ORDER BY t.name`,

    head: `SELECT ${REF}, t.head IS NOT NULL AS stored, t.parents, t.generation, t.time, t.external_id,
        t.inline, t.body
      FROM (SELECT r.name, r.id, r.seq, r.max_step, r.incarnation, r.log_hash, c.id AS head,
          encode(c.parents, 'hex') AS parents, c.generation, c.time, c.external_id, c.inline, c.body
        FROM ${s}.refs AS r
        LEFT JOIN ${s}.commits AS c ON c.workflow_id = $1 AND c.id = r.id
        WHERE r.workflow_id = $1 AND r.name = $2) AS t`,
    // From the newest entry back: a row of reflog, or columns of the commit that the entry moved to.
    reflog: `WITH RECURSIVE head AS (
        SELECT t.seq, t.id AS new, t.log_hash AS hash FROM ${s}.refs AS t
          WHERE t.workflow_id = $1 AND t.name = $2
      ), entries AS (
        SELECT e.* FROM head AS h
          CROSS JOIN LATERAL ${s}.reflog_entry($1, $2, h.seq, h.new, h.hash) AS e
        UNION ALL
        SELECT e.* FROM entries AS p
          CROSS JOIN LATERAL ${s}.reflog_entry($1, $2, p.seq - 1, p.old, p.previous) AS e
          WHERE p.seq > 1
      )
      SELECT seq, encode(hash, 'hex') AS hash, encode(incarnation, 'hex') AS incarnation,
          encode(old, 'hex') AS old, encode(new, 'hex') AS new, actor, reason, time, trace,
          encode(previous, 'hex') AS previous
        FROM entries WHERE seq <= $3 LIMIT $4`,

    // Commits first: they have no type.
    ids: `(SELECT NULL::smallint AS type, encode(t.id, 'hex') AS id FROM ${s}.commits AS t
        WHERE t.workflow_id = $1 AND t.id BETWEEN $2 AND $3 ORDER BY t.id LIMIT $4)
      UNION ALL
      (SELECT t.type, encode(t.id, 'hex') FROM ${s}.objects AS t
        WHERE t.workflow_id = $1 AND t.id BETWEEN $2 AND $3 ORDER BY t.id LIMIT $4)`,
    external: `SELECT encode(t.id, 'hex') AS id FROM ${s}.commits AS t
      WHERE t.workflow_id = $1 AND t.external_id = $2 ORDER BY t.generation, t.time, t.id`,

    workflow: `SELECT ${WORKFLOW} FROM ${s}.workflows AS t WHERE t.workflow_id = $1 AND t.id = $2`,
    workflows: `SELECT ${WORKFLOW} FROM ${s}.workflows AS t
      WHERE $1::text IS NULL OR t.id > $1 ORDER BY t.id LIMIT $2`,

    objectsAfter: `SELECT ${OBJECT} FROM ${s}.objects AS t
      WHERE t.workflow_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3`,
    commitsAfter: `SELECT ${COMMIT} FROM ${s}.commits AS t
      WHERE t.workflow_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3`,

    // No key is as long as 257 of the last character. OFFSET keeps a planner without statistics from reading all
    // rows of the workflow in place of each prefix's.
    pending: `SELECT t.key, t.idx, t.body FROM unnest($2::text[]) AS p (prefix)
      CROSS JOIN LATERAL (SELECT * FROM ${s}.pending AS t WHERE t.workflow_id = $1
        AND t.key >= p.prefix AND t.key < p.prefix || repeat(chr(1114111), 257) OFFSET 0) AS t
      ORDER BY t.key, t.idx`,

    pendingAfter: `SELECT t.key, t.idx, t.body FROM ${s}.pending AS t
      WHERE t.workflow_id = $1 AND (t.key, t.idx) > ($2, $3) ORDER BY t.key, t.idx LIMIT $4`,

    usage: `SELECT
        (SELECT count(*) FROM ${s}.commits AS t WHERE t.workflow_id = $1) AS commits,
        (SELECT coalesce(sum(length(t.body)), 0) FROM ${s}.commits AS t
          WHERE t.workflow_id = $1) AS commit_bytes,
        (SELECT count(*) FROM ${s}.objects AS t WHERE t.workflow_id = $1 AND t.kind = 0) AS objects,
        (SELECT coalesce(sum(length(t.body)), 0) FROM ${s}.objects AS t
          WHERE t.workflow_id = $1 AND t.kind = 0) AS object_bytes,
        (SELECT count(*) FROM ${s}.pending AS t WHERE t.workflow_id = $1) AS pending,
        (SELECT coalesce(sum(length(t.body)), 0) FROM ${s}.pending AS t
          WHERE t.workflow_id = $1) AS pending_bytes`,
    inlines: `SELECT encode(t.id, 'hex') AS id, t.inline FROM ${s}.commits AS t
      WHERE t.workflow_id = $1 AND t.inline IS NOT NULL AND t.id > $2 ORDER BY t.id LIMIT $3`,

    commitsSeen: `SELECT encode(t.id, 'hex') AS id, t.generation, greatest(t.seen_at, 0) AS seen_at,
        length(t.body) + coalesce(length(t.inline), 0) AS bytes FROM ${s}.commits AS t
      WHERE t.workflow_id = $1 AND t.seen_at < $2 AND t.id > $3 ORDER BY t.id LIMIT $4`,
    objectsSeen: `SELECT encode(t.id, 'hex') AS id, 0 AS generation, greatest(t.seen_at, 0) AS seen_at,
        length(t.body) AS bytes, t.kind FROM ${s}.objects AS t
      WHERE t.workflow_id = $1 AND t.seen_at < $2 AND t.id > $3 AND t.type = $5
      ORDER BY t.id LIMIT $4`,
    abandoned: `SELECT DISTINCT encode(t.old, 'hex') AS id FROM ${s}.reflog AS t
      WHERE t.workflow_id = $1 AND t.time >= $2 AND t.old IS NOT NULL`,
    condemn: `SELECT ${s}.condemn($1, $2, $3, $4)`,
    sweep: `SELECT removed, encode(spared, 'hex') AS spared FROM ${s}.sweep($1, $2, $3)`,
    redeclare: `UPDATE ${s}.workflows AS t SET classification = $2, retention_policy = $3
      WHERE t.workflow_id = $1 RETURNING 1 AS changed`,
    redact: `SELECT * FROM ${s}.redact($1, $2, $3::int[], $4, $5, $6, $7::int[], $8, $9::text[], $10::int[], $11)`,
    // One more a move, for each workflow: refs never go, and their numbers only rise.
    moves: `SELECT t.workflow_id AS key, sum(t.seq)::text AS moves FROM ${s}.refs AS t
      WHERE t.workflow_id = ANY ($1::uuid[]) GROUP BY t.workflow_id`,

    meta: `SELECT t.key, t.value FROM ${s}.meta AS t`,
    metaOnServer: `SELECT t.key, t.value, r.* FROM ${s}.meta AS t CROSS JOIN (${REPLICA}) AS r`,
  };
}

export type Queries = ReturnType<typeof queries>;
