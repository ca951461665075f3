import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { Connection } from "../../src/storage/postgres/connection.js";
import { parseTarget } from "../../src/storage/postgres/target.js";
import { conformanceSuite } from "../../src/testing/index.js";
import { postgresTarget } from "../conformance/targets.js";
import { startChild } from "../support/child-processes.js";
import { heldUp } from "../support/held-up.js";
import { PGBOUNCER, type Pooler, pgbouncerVersion, startPgbouncer } from "../support/pgbouncer.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { agstateError } from "../support/stores.js";
import { commitUntil, expectAcknowledged, withStore } from "../support/writers.js";

const CHILD = new URL("children/open-postgres.mjs", import.meta.url);

/** Connections that the pooler has to the server: far fewer than its clients. */
const POOL_SIZE = 3;
const WRITERS = 32;
const RUN_MS = 4000;

if (PGBOUNCER === undefined) {
  console.log("Not tested through a pooler: pgbouncer is not installed.");
}

describe.runIf(PGBOUNCER !== undefined)("through pgbouncer in transaction mode", () => {
  let pooler: Pooler;
  beforeAll(async () => {
    pooler = await startPgbouncer(serverUrl(), POOL_SIZE);
  });
  afterAll(async () => {
    await pooler?.stop();
    console.log(`Tested through a pooler: ${pgbouncerVersion()}, transaction mode.`);
  });
  const place = () => schemaPlace(pooler.url);

  conformanceSuite(
    postgresTarget("postgres behind a pooler", () => pooler.url),
    { describe, it: it.concurrent },
  );

  it("32 writers lose nothing while the server's sessions are terminated again and again", async () => {
    const url = place();
    await withStore(url, (store) => store.createWorkflow("w"));
    const until = performance.now() + RUN_MS;
    const over = () => performance.now() > until;
    let killed = 0;
    const terminate = withClient(async (client) => {
      while (!over()) {
        await sleep(200);
        const { rows } = await client.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()`,
          [schemaOf(url)],
        );
        killed += rows.length;
      }
    });
    const acknowledged = await withStore(url, async (store) => {
      const workflow = await store.workflow("w");
      const writers = Array.from({ length: WRITERS }, (_, k) =>
        commitUntil(workflow, `a${k}`, over),
      );
      return Promise.all(writers);
    });
    await terminate;
    console.log(`${acknowledged.flat().length} commits, ${killed} sessions terminated`);
    expect(killed).toBeGreaterThan(3);
    await expectAcknowledged(url, acknowledged);
  });

  it("8 stores of more connections than the pooler has write at once", async () => {
    const url = place();
    await withStore(url, (store) => store.createWorkflow("w"));
    const acknowledged = await Promise.all(
      Array.from({ length: 8 }, (_, k) =>
        withStore(url, async (store) => {
          let n = 0;
          return commitUntil(await store.workflow("w"), `a${k}`, () => n++ >= 20);
        }),
      ),
    );
    await expectAcknowledged(url, acknowledged);
  });

  it("5 processes that start at once make the schema once", async () => {
    const url = place();
    const children = Array.from({ length: 5 }, () => startChild(CHILD, { url }));
    const ids = await Promise.all(children.map((child) => child.said("open")));
    expect(new Set(ids).size).toBe(1);
    for (const child of children) expect((await child.ended).code).toBe(0);
  });

  it("a start that was killed in the midst of a migration blocks none that follows", async () => {
    const url = place();
    await heldUp(url, async (waiting) => {
      const child = startChild(CHILD, { url });
      await expect.poll(() => waiting(), { timeout: 20_000 }).toBe(1);
      child.kill();
      expect((await child.ended).signal).toBe("SIGKILL");
    });
    const next = startChild(CHILD, { url });
    expect(await next.said("open")).toMatch(/^[0-9a-f]{32}$/);
    expect((await next.ended).code).toBe(0);
    await withClient(async (client) => {
      const { rows } = await client.query(
        "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND state = 'idle'",
      );
      expect(rows).toEqual([]);
    });
  });

  it("a statement that takes too long is cancelled, and nothing is set that another call would meet", async () => {
    const connection = new Connection({
      target: parseTarget(`${pooler.url}?application_name=behind-a-pooler`),
      poolMax: 2,
      retryForMs: 2000,
      statementTimeoutMs: 300,
    });
    try {
      for (let round = 0; round < 2; round++) {
        await expect(connection.query("SELECT pg_sleep(60)")).rejects.toEqual(
          agstateError("STORE_BUSY", { code: "57014" }),
        );
        for (let n = 0; n < 10; n++) {
          expect(await connection.query("SELECT $1::int AS answer", [n])).toEqual([{ answer: n }]);
        }
      }
    } finally {
      await connection.close();
    }
    const busy = () =>
      withClient(async (client) => {
        const { rows } = await client.query(
          `SELECT state, query FROM pg_stat_activity
            WHERE application_name = 'behind-a-pooler' AND state <> 'idle'`,
        );
        return rows;
      });
    await expect.poll(busy).toEqual([]);
    await withClient(async (client) => {
      for (let n = 0; n < 2 * POOL_SIZE; n++) {
        const { rows } = await client.query(
          "SELECT name FROM pg_settings WHERE source = 'session' AND name LIKE '%timeout'",
        );
        expect(rows).toEqual([]);
      }
    }, pooler.url);
  });

  it("a store is made by a migration that sets its limits for itself alone", async () => {
    const url = place();
    await (await openStore(url)).close();
    await withClient(async (client) => {
      for (const name of [
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
      ]) {
        const { rows } = await client.query(`SHOW ${name}`);
        expect(rows).toEqual([{ [name]: "0" }]);
      }
    }, pooler.url);
  });
});
