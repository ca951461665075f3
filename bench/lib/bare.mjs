import { randomBytes } from "node:crypto";
import { join } from "node:path";
import Database from "better-sqlite3";

/** Type, encoding, length and id before each object that is kept in a commit's row. */
const INLINE_FRAME_BYTES = 38;
/** A commit row's incarnation and hash of the log entry before; its parents come to 32 bytes each. */
const LOG_BYTES = 48;

/** The sizes of the rows that one of agstate's writes made: its objects' bodies, and its commit's row. */
export function rowSizes({ objects, commit }) {
  const sizes = objects.map(({ body }) => body.length);
  let row = commit.body.length + 32 * commit.parents.length + LOG_BYTES;
  for (const { body } of commit.inline) row += body.length + INLINE_FRAME_BYTES;
  return [...sizes, row];
}

/**
 * A contestant that does with better-sqlite3 what any store must do for a commit, and nothing
 * else: one transaction at `synchronous = FULL` with an insert a row of the given sizes and one
 * update of a ref. Ids and bodies are made before the clock starts; nothing is hashed.
 *
 * @param shapes the sizes of the rows of each commit, taken in turn
 */
export function bareContestant(name, directory, shapes, steps) {
  const db = new Database(join(directory, "bare.db"));
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec(`
    CREATE TABLE objects (wf INTEGER NOT NULL, id BLOB NOT NULL, body BLOB NOT NULL);
    CREATE UNIQUE INDEX objects_id ON objects (wf, id);
    CREATE TABLE refs (ref INTEGER PRIMARY KEY, wf INTEGER NOT NULL, id BLOB, name TEXT NOT NULL);
    CREATE UNIQUE INDEX refs_name ON refs (wf, name);
    INSERT INTO refs (wf, id, name) VALUES (1, NULL, 'refs/heads/agents/agent-0/main');
  `);
  const begin = db.prepare("BEGIN IMMEDIATE");
  const insert = db.prepare("INSERT INTO objects (wf, id, body) VALUES (1, ?, ?)");
  const update = db.prepare("UPDATE refs SET id = ? WHERE ref = 1");
  const commit = db.prepare("COMMIT");
  let at = 0;
  const rowsOfStep = () =>
    shapes[at++ % shapes.length].map((size) => ({ id: randomBytes(32), body: randomBytes(size) }));
  return {
    name,
    steps,
    async round() {
      const given = Array.from({ length: steps }, rowsOfStep);
      const times = [];
      for (const rows of given) {
        const since = performance.now();
        begin.run();
        for (const { id, body } of rows) insert.run(id, body);
        update.run(rows.at(-1).id);
        commit.run();
        times.push(performance.now() - since);
      }
      return { times };
    },
    close: () => db.close(),
  };
}
