import pg from "pg";
import stringWidth from "string-width";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Diagnosis, diagnoseStore, type Finding, migrateStore } from "../../src/index.js";
import { randomHex } from "../../src/testing/index.js";
import { CliSandbox } from "../support/cli.js";
import { PGBOUNCER, startPgbouncer } from "../support/pgbouncer.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { startServer, type TestServer } from "../support/postgres-server.js";

let usual: TestServer;

// The server of all tests has settings that would be told of.
beforeAll(async () => {
  usual = await startServer();
  process.env.AGSTATE_TEST_DATABASE_URL = usual.url;
});
afterAll(() => usual.remove());

function doctor(url: string) {
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  const at = { env: { AGSTATE_STORE: url } };
  return { text: box.run(["doctor"], at), json: box.run(["--json", "doctor"], at) };
}

const finding = ({ findings }: Diagnosis, check: string): Finding | undefined =>
  findings.find((one) => one.check === check);

const bad = ({ findings }: Diagnosis) => findings.filter(({ level }) => level !== "good");

describe("agstate doctor on PostgreSQL", () => {
  it("finds a store that was just made good", async () => {
    const url = schemaPlace();
    await migrateStore(url);
    const { text, json } = doctor(url);
    expect(text).toMatchObject({ status: 0, stderr: "" });
    expect(text.stdout).toMatch(/\nNothing is wrong\.\n$/);
    for (const line of text.stdout.split("\n").slice(1))
      expect(stringWidth(line)).toBeLessThanOrEqual(80);
    const diagnosis = JSON.parse(json.stdout) as Diagnosis;
    expect(diagnosis.findings.map(({ check }) => check)).toEqual([
      "server",
      "writable",
      "encoding",
      "fsync",
      "full_page_writes",
      "synchronous_commit",
      "autovacuum",
      "connections",
      "clock",
      "pooler",
      "schema",
      "rights",
      "dead rows",
    ]);
    expect(bad(diagnosis)).toEqual([]);
    expect(text.stdout + json.stdout).not.toContain(":postgres@");
  });

  it("says what hinders: no server, no such user, no database, no schema, an old and a newer one", async () => {
    const nobody = doctor("postgres://someone:hunter2@127.0.0.1:1/db");
    expect(nobody.text).toMatchObject({ status: 5, stderr: "" });
    expect(nobody.text.stdout).toMatch(
      /wrong {4}The server cannot be used: .*ECONNREFUSED[\s\S]*-> Check host and port/,
    );
    expect(nobody.text.stdout + nobody.json.stdout).not.toContain("hunter2");

    const user = new URL(serverUrl());
    user.password = "wrong";
    expect(doctor(user.toString()).text.stdout).toMatch(/-> Check user and password/);
    const database = new URL(serverUrl());
    database.pathname = "/nowhere";
    expect(doctor(database.toString()).text.stdout).toMatch(/-> Make the database/);

    const url = schemaPlace();
    const none = doctor(url).text;
    expect(none.status).toBe(3);
    expect(none.stdout).toMatch(
      /wrong {4}There is no store in schema[\s\S]*-> Make it with agstate init/,
    );
    await migrateStore(url);
    await withClient((client) =>
      client.query(`DELETE FROM ${schemaOf(url)}.migrations WHERE name >= '0003'`),
    );
    expect(doctor(url).text.stdout).toMatch(
      /lacks \d of \d+ migrations: 0003-[\s\S]*-> Run agstate migrate\./,
    );
    await withClient((client) =>
      client.query(`INSERT INTO ${schemaOf(url)}.migrations (name) VALUES ('9999-later.sql')`),
    );
    expect(doctor(url).text).toMatchObject({ status: 5 });
  });

  it("says which rights a role lacks", async () => {
    const place = schemaPlace();
    const role = `agstate doctor ${randomHex(6)}`;
    const to = pg.escapeIdentifier(role);
    const schema = schemaOf(place);
    const execute = (sql: string) => withClient((client) => client.query(sql));
    await execute(`CREATE ROLE ${to} LOGIN PASSWORD 'secret'`);
    onTestFinished(async () => {
      await execute(`DROP OWNED BY ${to}; DROP ROLE ${to}`);
    });
    const url = new URL(place);
    url.username = encodeURIComponent(role);
    url.password = "secret";
    const look = () => diagnoseStore(url.toString());

    expect(finding(await look(), "create")).toMatchObject({
      level: "warning",
      what: expect.stringContaining("lacks CREATE on database"),
    });
    await migrateStore(place);
    expect(finding(await look(), "schema")).toMatchObject({
      level: "wrong",
      code: "STORE_READONLY",
    });
    await execute(`GRANT USAGE ON SCHEMA ${schema} TO ${to};
      GRANT SELECT ON ${schema}.migrations TO ${to}`);
    expect(finding(await look(), "rights")).toMatchObject({
      level: "wrong",
      what: expect.stringContaining("SELECT on commits"),
    });
    await execute(`GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${to}`);
    expect(finding(await look(), "rights")).toMatchObject({
      level: "warning",
      what: expect.stringMatching(/can read, and lacks .*INSERT on commits.*UPDATE on refs/),
    });
    await execute(`GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA ${schema} TO ${to}`);
    expect(bad(await look())).toEqual([]);
    await execute(`REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} FROM PUBLIC`);
    expect(finding(await look(), "rights")).toMatchObject({
      level: "wrong",
      what: expect.stringContaining("EXECUTE on function read_graph"),
    });
  });

  it("warns of settings that could lose what was acknowledged, and of tables that nobody cleans", async () => {
    const server = await startServer();
    onTestFinished(() => server.remove());
    const execute = (sql: string) => withClient((client) => client.query(sql), server.url);
    for (const name of ["fsync", "full_page_writes", "synchronous_commit", "autovacuum"]) {
      await execute(`ALTER SYSTEM SET ${name} = off`);
    }
    await execute("SELECT pg_reload_conf()");
    await expect.poll(async () => (await execute("SHOW fsync")).rows).toEqual([{ fsync: "off" }]);
    const url = `${server.url}?schema=s&pool_max=500`;
    await migrateStore(url);
    await execute(`INSERT INTO s.workflows SELECT gen_random_uuid(), 1, NULL, n::text, '', NULL, NULL, ''
      FROM generate_series(1, 60000) AS n; DELETE FROM s.workflows;
      ALTER TABLE s.objects SET (autovacuum_enabled = false)`);
    const look = () => diagnoseStore(url);
    await expect
      .poll(async () => finding(await look(), "dead rows")?.what)
      .toMatch(
        /workflows has 60000 dead rows and 0 live ones; autovacuum is switched off for objects/,
      );
    expect(bad(await look()).map(({ check, level }) => `${check} ${level}`)).toEqual([
      "fsync warning",
      "full_page_writes warning",
      "synchronous_commit warning",
      "autovacuum warning",
      "connections warning",
      "dead rows warning",
    ]);
    // Warnings alone are no failure.
    expect(doctor(url).text).toMatchObject({ status: 0 });

    await execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    await execute("ALTER ROLE postgres SET default_transaction_read_only = on");
    expect(finding(await look(), "writable")).toMatchObject({
      level: "wrong",
      code: "STORE_READONLY",
    });
    const latin = url.replace("/postgres?", "/latin?");
    expect(finding(await diagnoseStore(latin), "encoding")).toMatchObject({ level: "wrong" });
  });

  it.runIf(PGBOUNCER !== undefined)("tells of a pooler in transaction mode", async () => {
    const pooler = await startPgbouncer(serverUrl(), 3);
    onTestFinished(() => pooler.stop());
    const url = schemaPlace(pooler.url);
    await migrateStore(url);
    const diagnosis = await diagnoseStore(url);
    expect(bad(diagnosis).map(({ check }) => check)).toEqual(["pooler"]);
    expect(finding(diagnosis, "pooler")?.what).toMatch(/^A pooler in transaction mode/);
  });
});
