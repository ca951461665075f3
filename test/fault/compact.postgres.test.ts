import { describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/index.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { ANY, begin, blob, commit, move, mustMove } from "../../src/testing/fixtures.js";
import { digest, randomHex } from "../../src/testing/index.js";
import { schemaOf, schemaPlace, withClient } from "../support/postgres.js";
import { storeWithRoles } from "../support/roles.js";
import { agstateError } from "../support/stores.js";

const LATER = 4_000_000_000;

async function open(url: string, rest: { busyTimeoutMs?: number; statementTimeoutMs?: number }) {
  const how = { busyTimeoutMs: 5000, graceMs: 1000, now: Date.now, create: true, ...rest };
  const storage = await openPostgresStorage({ ...how, digest, randomHex, url });
  onTestFinished(() => storage.close());
  return storage;
}

describe("compacting a PostgreSQL store", () => {
  it("gives the bytes back to the server, whatever the limit of a statement is", async () => {
    const url = schemaPlace();
    const storage = await open(url, {});
    await begin(storage, "w");
    const gone = Array.from({ length: 2000 }, () => blob(randomHex(1000)));
    await mustMove(storage, move("refs/heads/a", ANY, [commit()]), { objects: gone });
    const ids = gone.map(({ id }) => id);
    await storage.condemn("w", ids, LATER, 1);
    await storage.sweep("w", ids, 1);
    // By another connection, whose statements have hardly any time.
    const hurried = await open(`${url}&statement_timeout_ms=60`, {});
    const before = await withClient(async (client) => {
      const sql = "SELECT pg_total_relation_size($1::regclass)::int AS bytes";
      return (await client.query(sql, [`${schemaOf(url)}.objects`])).rows[0].bytes;
    });
    const { bytesBefore, bytesAfter } = await hurried.compact();
    expect(bytesBefore).toBeGreaterThanOrEqual(before);
    expect(before).toBeGreaterThan(3_000_000);
    expect(bytesAfter).toBeLessThan(700_000);
  });

  it("waits for locks as long as a call may, and then is busy", async () => {
    const url = schemaPlace();
    const storage = await open(url, { busyTimeoutMs: 100 });
    await withClient(async (client) => {
      await client.query("BEGIN");
      await client.query(`SELECT count(*) FROM ${schemaOf(url)}.objects`);
      await expect(storage.compact()).rejects.toEqual(agstateError("STORE_BUSY"));
      await client.query("ROLLBACK");
    });
    await storage.compact();
  });

  it("is the maintainer's: others are told who may", async () => {
    const place = await storeWithRoles();
    onTestFinished(place.drop);
    for (const role of ["writer", "reader"] as const) {
      const store = await openStore(place.as[role], { create: false });
      onTestFinished(() => store.close());
      await expect(store.compact()).rejects.toEqual(agstateError("STORE_READONLY"));
      await expect(store.compact()).rejects.toThrow(/maintainer role/);
    }
    const store = await openStore(place.as.maintainer, { create: false });
    onTestFinished(() => store.close());
    expect((await store.compact()).bytesAfter).toBeGreaterThan(0);
  });
});
