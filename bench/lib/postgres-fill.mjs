/** How full random inserts leave the pages of a B-tree in the long run, in percent: ln 2 (Yao 1978). */
const FILL_FACTOR = 69;

const TABLES = {
  objects: {
    key: "objects_pkey",
    columns: "(workflow_id, seen_at, type, kind, encoding, id, body)",
    // Bodies of 200 to 296 bytes.
    row: `w.id, s.now, 3, 0, 0, sha256(s.seed),
      substring(s.bytes || s.bytes || s.bytes FOR 200 + (s.n % 97)::int)`,
  },
  commits: {
    key: "commits_pkey",
    columns: `(workflow_id, generation, time, seen_at, id, parents, log_seq, log_time, log_incarnation,
      log_previous, log_ref, log_actor, log_reason, inline, body)`,
    row: `w.id, s.n, s.now, s.now, sha256(s.seed), sha256(s.bytes), s.n, s.now * 1000,
      substring(s.bytes FOR 16), substring(s.bytes FOR 32), 'refs/heads/agents/other/main', 'other',
      'commit', substring(s.bytes FOR 100), s.bytes || s.bytes`,
  },
};

/**
 * Puts objects and commits of random ids into the tables of a schema.
 *
 * Their keys are made when all are there, which takes a fraction of the time, with pages as full as if
 * each row had come by itself. The rows lie in the order in which they came, and so by no id.
 *
 * @param groups of workflows, by id, with how many rows they get together: `{ workflows, objects, commits }`
 */
export async function fill({ pool }, schema, groups) {
  await pool.query("SET maintenance_work_mem = '256MB'");
  for (const [table, { key, columns, row }] of Object.entries(TABLES)) {
    const name = `${schema}.${table}`;
    await pool.query(`ALTER TABLE ${name} DROP CONSTRAINT ${key}`);
    let seed = 0;
    for (const group of groups) {
      const rows = group[table];
      await pool.query(
        `INSERT INTO ${name} ${columns}
         SELECT ${row}
           FROM (SELECT array_agg(workflow_id) AS ids FROM ${schema}.workflows WHERE id = ANY ($1)) AS group_of,
             LATERAL (
               SELECT n, int8send(n) || 'id' AS seed, extract(epoch FROM now())::bigint AS now,
                   sha256(int8send(n)) || sha256(int8send(-n)) || sha256(int8send(n) || 'a')
                     || sha256(int8send(n) || 'b') AS bytes
                 FROM generate_series($2::bigint + 1, $2::bigint + $3::bigint) AS n OFFSET 0
             ) AS s,
             LATERAL (SELECT ids[1 + s.n % cardinality(ids)] AS id) AS w`,
        [group.workflows, seed, rows],
      );
      seed += rows;
    }
    await pool.query(
      `ALTER TABLE ${name} ADD CONSTRAINT ${key} PRIMARY KEY (workflow_id, id)
         WITH (fillfactor = ${FILL_FACTOR})`,
    );
    // From here on pages are split as in any other index.
    await pool.query(`ALTER INDEX ${schema}.${key} RESET (fillfactor)`);
  }
  await pool.query("RESET maintenance_work_mem");
}
