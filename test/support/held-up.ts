import { schemaOf, withClient } from "./postgres.js";

/**
 * Makes the migration of a schema wait in its midst for as long as a piece of work goes on.
 *
 * The work can ask how many sessions wait there, and have something done to each, as SQL.
 */
export async function heldUp<T>(
  url: string,
  work: (waiting: (also?: string) => Promise<number>) => Promise<T>,
): Promise<T> {
  const schema = schemaOf(url);
  // What a session reads of the others stands still within a transaction, so two.
  return withClient((holder) =>
    withClient(async (looker) => {
      await holder.query(`CREATE SCHEMA ${schema}`);
      await holder.query(`BEGIN; CREATE TABLE ${schema}.reflog (n int)`);
      try {
        return await work(async (also = "true") => {
          const { rows } = await looker.query(
            `SELECT ${also} FROM pg_stat_activity
              WHERE wait_event_type = 'Lock' AND strpos(query, $1) > 0
                AND query LIKE '%CREATE TABLE meta%'`,
            [schema],
          );
          return rows.length;
        });
      } finally {
        await holder.query("ROLLBACK");
      }
    }),
  );
}
