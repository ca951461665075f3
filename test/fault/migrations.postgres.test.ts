import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { migrateStore, openStore } from "../../src/index.js";
import { randomHex } from "../../src/testing/index.js";
import { startChild } from "../support/child-processes.js";
import { heldUp } from "../support/held-up.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { agstateError } from "../support/stores.js";

const CHILD = new URL("children/open-postgres.mjs", import.meta.url);

/** Makes a role without rights, that goes when the test ends, and gives a URL as that role. */
async function asRole(url: string): Promise<{ readonly url: string; readonly role: string }> {
  const role = `agstate test ${randomHex(6)}`;
  const quoted = pg.escapeIdentifier(role);
  await withClient((client) => client.query(`CREATE ROLE ${quoted} LOGIN PASSWORD 'secret'`));
  onTestFinished(async () => {
    await withClient((client) => client.query(`DROP OWNED BY ${quoted}; DROP ROLE ${quoted}`));
  });
  const as = new URL(url);
  as.username = encodeURIComponent(role);
  as.password = "secret";
  return { url: as.toString(), role };
}

const execute = (sql: string) => withClient((client) => client.query(sql));

async function expectSound(url: string): Promise<void> {
  const store = await openStore(url, { create: false });
  const workflow = await store.createWorkflow(`w ${randomHex(4)}`, { state: { n: 1 } });
  expect((await workflow.fsck()).problems).toEqual([]);
  await store.close();
}

describe("a migration", () => {
  it("that was killed in its midst leaves nothing, and is made by the next start", async () => {
    const url = schemaPlace();
    await heldUp(url, async (waiting) => {
      const child = startChild(CHILD, { url });
      await expect.poll(() => waiting(), { timeout: 20_000 }).toBe(1);
      child.kill();
      expect((await child.ended).signal).toBe("SIGKILL");
    });
    const next = startChild(CHILD, { url });
    expect(await next.said("open")).toMatch(/^[0-9a-f]{32}$/);
    expect((await next.ended).code).toBe(0);
    await expectSound(url);
  });

  it("that lost its connection in its midst is made again by the same call", async () => {
    const url = schemaPlace();
    const opened = await heldUp(url, async (waiting) => {
      const opening = openStore(url);
      await expect.poll(() => waiting(), { timeout: 20_000 }).toBe(1);
      expect(await waiting("pg_terminate_backend(pid)")).toBe(1);
      return { opening };
    });
    await (await opened.opening).close();
    await expectSound(url);
  });

  it("that takes too long is told to those who wait for it, and they change nothing", async () => {
    const url = schemaPlace();
    await heldUp(url, async (waiting) => {
      const first = startChild(CHILD, { url });
      await expect.poll(() => waiting(), { timeout: 20_000 }).toBe(1);
      await expect(openStore(url, { limits: { busyTimeoutMs: 300 } })).rejects.toEqual(
        agstateError("STORE_BUSY", { code: "55P03" }),
      );
      first.kill();
      await first.ended;
    });
  });

  it("goes on where an older version ended", async () => {
    const url = schemaPlace();
    const full = await migrateStore(url);
    // As a version would have left it that knew the first two.
    const schema = schemaOf(url);
    const { rows } = await withClient((client) =>
      client.query<{ drop: string }>(
        `SELECT 'DROP FUNCTION ' || p.oid::regprocedure AS drop FROM pg_proc AS p
          JOIN pg_namespace AS n ON n.oid = p.pronamespace
          WHERE n.nspname = $1 AND p.proname NOT IN ('write_batches', 'is_object')`,
        [new URL(url).searchParams.get("schema")],
      ),
    );
    for (const { drop } of rows) await execute(drop);
    await execute(`DROP TABLE ${schema}.watchers, ${schema}.pending`);
    await execute(`DELETE FROM ${schema}.migrations WHERE name >= '0003'`);
    const later = full.pending.filter((name) => name >= "0003");
    expect(later.length).toBeGreaterThan(0);
    await expect(openStore(url, { create: false })).rejects.toEqual(
      agstateError("STORE_NOT_FOUND", { pending: later }),
    );
    const ends = await Promise.all(Array.from({ length: 5 }, () => openStore(url)));
    for (const store of ends) await store.close();
    expect(await migrateStore(url, { dryRun: true })).toMatchObject({
      applied: full.pending,
      pending: [],
    });
    await expectSound(url);
  });

  it("does not touch tables of somebody else", async () => {
    const url = schemaPlace();
    await execute(
      `CREATE SCHEMA ${schemaOf(url)}; CREATE TABLE ${schemaOf(url)}.commits (mine int)`,
    );
    await expect(openStore(url)).rejects.toEqual(agstateError("STORE_MISMATCH", { code: "42P07" }));
    const { rows } = await withClient((client) =>
      client.query(
        "SELECT count(*)::int AS n FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'",
        [schemaOf(url)],
      ),
    );
    expect(rows).toEqual([{ n: 1 }]);
  });
});

describe("a schema whose name must be quoted", () => {
  for (const name of ['My-Schema"x', "a b", "sélect", "$users", "%s'; --", "public.x", "\\"]) {
    it(`is what the URL says: ${name}`, async () => {
      const url = new URL(serverUrl());
      url.searchParams.set("schema", name);
      const place = url.toString();
      onTestFinished(async () => {
        await execute(`DROP SCHEMA IF EXISTS ${pg.escapeIdentifier(name)} CASCADE`);
      });
      await (await openStore(place)).close();
      await expectSound(place);
      const { rows } = await withClient((client) =>
        client.query("SELECT count(*)::int AS n FROM pg_namespace WHERE nspname = $1", [name]),
      );
      expect(rows).toEqual([{ n: 1 }]);
    });
  }
});

describe("a role", () => {
  it("that may not make schemas is told which right it lacks, in one line, and makes nothing", async () => {
    const { url, role } = await asRole(schemaPlace());
    const error = await openStore(url).catch((reason: unknown) => reason);
    expect(error).toEqual(
      agstateError("STORE_READONLY", { role, missing: "CREATE on database postgres" }),
    );
    const { message } = error as Error;
    expect(message).not.toMatch(/\n|secret/);
    expect(message).toContain(`GRANT CREATE ON DATABASE "postgres" TO "${role}"`);
    // The remedy is one.
    await execute(`GRANT CREATE ON DATABASE "postgres" TO "${role}"`);
    await (await openStore(url)).close();
    await execute(`REVOKE CREATE ON DATABASE "postgres" FROM "${role}"`);
    await expectSound(url);
  });

  it("that may use a schema, and not create in it, is told that", async () => {
    const place = schemaPlace();
    const { url, role } = await asRole(place);
    await execute(`CREATE SCHEMA ${schemaOf(place)}`);
    const missing = async () => {
      const error = await openStore(url).catch((reason: unknown) => reason);
      expect(error).toEqual(agstateError("STORE_READONLY", { role }));
      return (error as { details: { missing: string } }).details.missing;
    };
    expect(await missing()).toMatch(/^USAGE on schema/);
    await execute(`GRANT USAGE ON SCHEMA ${schemaOf(place)} TO "${role}"`);
    expect(await missing()).toMatch(/^CREATE on schema/);
    await execute(`GRANT CREATE ON SCHEMA ${schemaOf(place)} TO "${role}"`);
    await (await openStore(url)).close();
  });

  it("that only has the rights that a writer needs opens, reads and writes a store that is there", async () => {
    const place = schemaPlace();
    await migrateStore(place);
    const { url, role } = await asRole(place);
    const [schema, to] = [schemaOf(place), `"${role}"`];
    await execute(
      `GRANT USAGE ON SCHEMA ${schema} TO ${to};
       GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ${schema} TO ${to}`,
    );
    await (await openStore(url)).close();
    await expectSound(url);
  });
});
