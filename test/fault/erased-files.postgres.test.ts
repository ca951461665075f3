import pg from "pg";
import { expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { eraseAndUse, filesWith, fillWithSubject, newMarker } from "../support/erasure-history.js";
import { startServer } from "../support/postgres-server.js";

/** More than the segments of the log that a server of this size keeps to be written over. */
const SEGMENTS_MAX = 40;

/** What an operator runs after an erasure, as docs/erasure.md has it, but for `agstate compact`. */
async function scrub(client: pg.Client): Promise<void> {
  // Of a table that is empty, ANALYZE leaves what it found when there were rows.
  await client.query(
    `DELETE FROM pg_catalog.pg_statistic WHERE starelid IN
      (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'agents'::regnamespace)`,
  );
  await client.query("VACUUM FULL pg_catalog.pg_statistic");
  await client.query("ANALYZE");
  await client.query("ALTER SYSTEM SET wal_recycle = off");
  await client.query("SELECT pg_reload_conf()");
  const { rows } = await client.query<{ name: string }>(
    "SELECT name FROM pg_ls_waldir() ORDER BY name",
  );
  const last = rows.at(-1)?.name as string;
  for (let n = 0; n < SEGMENTS_MAX; n++) {
    const [now] = (
      await client.query<{ name: string; first: string }>(
        `SELECT pg_walfile_name(pg_current_wal_lsn()) AS name,
          (SELECT min(name) FROM pg_ls_waldir()) AS first`,
      )
    ).rows;
    // Every segment that was there is written over and gone.
    if ((now?.first as string) > last) break;
    await client.query("SELECT pg_switch_wal()");
    await client.query("CHECKPOINT");
  }
  await client.query("ALTER SYSTEM RESET wal_recycle");
  await client.query("SELECT pg_reload_conf()");
}

it("nothing of an erased subject is left in the files of a server, its statistics and its log", async () => {
  const subject = newMarker();
  const server = await startServer();
  try {
    const client = new pg.Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    const [place] = (
      await client.query<{ directory: string }>(
        "SELECT current_setting('data_directory') AS directory",
      )
    ).rows;
    const directory = place?.directory as string;
    const store = await openStore(`${server.url}?schema=agents`);
    const workflow = await fillWithSubject(store, subject);
    await client.query("ANALYZE");
    await client.query("CHECKPOINT");
    const [statistics] = (
      await client.query<{ path: string }>(
        "SELECT pg_relation_filepath('pg_catalog.pg_statistic') AS path",
      )
    ).rows;
    const before = filesWith(directory, subject);
    // In tables, in what the planner knows of them, and in the log.
    expect(before).toContain(statistics?.path);
    expect(before.some((file) => file.startsWith("pg_wal/"))).toBe(true);
    expect(before.length).toBeGreaterThan(4);

    await eraseAndUse(workflow, subject);
    await store.compact();
    expect(await workflow.stateAt("a/b1", "/people")).toEqual({ other: { n: 46 } });
    await store.close();
    await scrub(client);
    await client.end();
    await server.crash();
    const after = filesWith(directory, subject);
    await server.start();
    expect(after).toEqual([]);
    // Nothing that is needed is gone with it.
    const again = await openStore(`${server.url}?schema=agents`, { create: false });
    expect((await (await again.workflow("w")).fsck()).problems).toEqual([]);
    await again.close();
  } finally {
    await server.remove();
  }
});
