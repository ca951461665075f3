import { randomBytes } from "node:crypto";
import pg from "pg";
import { textSource } from "./text.mjs";

/** agstate's own bound on the members of a group. */
const GROUP_MAX_MEMBERS = 512;
const WORKFLOW = "00000000-0000-4000-8000-000000000001";

/**
 * What any store on PostgreSQL must do for a commit, and nothing else: rows of given sizes by their
 * ids, and refs. Ids and bodies are made before the clock starts; nothing is hashed.
 */
export async function openBare({ url }, schema, refs) {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  await pool.query(`
    CREATE SCHEMA ${schema};
    CREATE TABLE ${schema}.objects (workflow_id uuid, id bytea, body bytea NOT NULL,
      PRIMARY KEY (workflow_id, id));
    CREATE TABLE ${schema}.refs (workflow_id uuid, name text, id bytea NOT NULL,
      PRIMARY KEY (workflow_id, name)) WITH (fillfactor = 50);
  `);
  const zero = Buffer.alloc(32);
  for (const ref of refs) {
    await pool.query(`INSERT INTO ${schema}.refs VALUES ($1, $2, $3)`, [WORKFLOW, ref, zero]);
  }
  return { pool, schema, refs, heads: new Map(refs.map((ref) => [ref, zero])) };
}

/** Makes a function that gives the rows of the next commit: random ids, bodies that look like agstate's. */
export function rowSource(shapes) {
  const text = textSource(99);
  let at = 0;
  return () =>
    shapes[at++ % shapes.length].map((size) => ({
      id: randomBytes(32),
      body: Buffer.from(text(size)),
    }));
}

/**
 * A writer a ref, for a contestant of `interleave`: each commit is one statement that moves the ref
 * by compare-and-swap and inserts the commit's one row.
 */
export function singleWriters({ pool, schema, refs, heads }) {
  const text = `
    WITH moved AS (
      UPDATE ${schema}.refs SET id = $1 WHERE workflow_id = $2 AND name = $3 AND id = $4 RETURNING 1)
    INSERT INTO ${schema}.objects SELECT $2, $1, $5 FROM moved`;
  return refs.map((ref) => async ([{ id, body }]) => {
    const values = [id, WORKFLOW, ref, heads.get(ref), body];
    const { rowCount } = await pool.query({ text, values });
    if (rowCount !== 1) throw new Error("a bare commit was lost");
    heads.set(ref, id);
  });
}

/**
 * A writer a ref: what arrives while a statement is under way goes out in the next, one multi-row
 * insert, as agstate groups it.
 *
 * @param moves whether the statement moves each commit's ref as well, by compare-and-swap
 */
export function groupWriters(bare, moves) {
  const queue = [];
  let underWay = false;
  const run = async () => {
    while (queue.length > 0) {
      const group = queue.splice(0, GROUP_MAX_MEMBERS);
      try {
        await insert(bare, group, moves);
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    underWay = false;
  };
  return bare.refs.map(
    (ref) => (rows) =>
      new Promise((resolve, reject) => {
        queue.push({ ref, rows, resolve, reject });
        if (underWay) return;
        underWay = true;
        queueMicrotask(() => void run());
      }),
  );
}

async function insert({ pool, schema, heads }, group, moves) {
  const values = [WORKFLOW];
  const bind = (value, type = "") => `$${values.push(value)}${type}`;
  const rows = group.flatMap((member) => member.rows);
  const list = rows.map(({ id, body }) => `($1::uuid, ${bind(id)}::bytea, ${bind(body)}::bytea)`);
  let text = `INSERT INTO ${schema}.objects VALUES ${list.join(", ")}`;
  let expected = rows.length;
  if (moves) {
    const wanted = group.map(({ ref, rows: own }) => {
      const [old, id] = [heads.get(ref), own.at(-1).id];
      return `(${bind(ref)}::text, ${bind(old)}::bytea, ${bind(id)}::bytea)`;
    });
    text = `WITH kept AS (${text})
      UPDATE ${schema}.refs AS r SET id = v.id FROM (VALUES ${wanted.join(", ")}) AS v (name, old, id)
      WHERE r.workflow_id = $1 AND r.name = v.name AND r.id = v.old`;
    expected = group.length;
  }
  const { rowCount } = await pool.query({ text, values });
  if (rowCount !== expected) throw new Error(`a bare group of ${expected} landed ${rowCount}`);
  if (moves) for (const { ref, rows: own } of group) heads.set(ref, own.at(-1).id);
}
