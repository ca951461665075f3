import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { diagnoseStore, migrateStore, openStore } from "../../src/index.js";
import type { ObjectRecord, Storage } from "../../src/storage/port.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { WorkflowKeys } from "../../src/storage/postgres/workflow-keys.js";
import { encodeBatches, writeStatement } from "../../src/storage/postgres/write-call.js";
import {
  ANY,
  at,
  begin,
  blob,
  commit,
  move,
  mustMove,
  refRow,
  send,
  tree,
} from "../../src/testing/fixtures.js";
import { digest, randomHex } from "../../src/testing/index.js";
import { CliSandbox } from "../support/cli.js";
import { schemaOf, schemaPlace, withClient } from "../support/postgres.js";
import { type StoreRoles, storeWithRoles } from "../support/roles.js";
import { agstateError } from "../support/stores.js";

const TABLES = [
  "workflows",
  "commits",
  "objects",
  "refs",
  "reflog",
  "watchers",
  "meta",
  "migrations",
];

async function rolesPlace(): Promise<StoreRoles> {
  const place = await storeWithRoles();
  onTestFinished(place.drop);
  return place;
}

/** A storage that checks nothing of what it is given. */
async function storageAs(url: string): Promise<Storage> {
  const rest = { graceMs: 1000, busyTimeoutMs: 5000, create: false, now: Date.now };
  const storage = await openPostgresStorage({ ...rest, digest, randomHex, url });
  onTestFinished(() => storage.close());
  return storage;
}

async function storeAs(url: string) {
  const store = await openStore(url, { create: false });
  onTestFinished(() => store.close());
  return store;
}

const execute = (url: string, sql: string, values: unknown[] = []) =>
  withClient(async (client) => (await client.query(sql, values)).rows, url);

/** What is written for good: all rows of a table, but for when they were last seen. */
async function lasting(url: string): Promise<string[]> {
  const rows: string[] = [];
  for (const table of ["workflows", "commits", "objects", "reflog"]) {
    const found = await execute(
      url,
      `SELECT (to_jsonb(t) - 'seen_at')::text AS row FROM ${schemaOf(url)}.${table} AS t`,
    );
    rows.push(...found.map(({ row }) => `${table} ${row}`));
  }
  return rows;
}

async function refused(url: string, sql: string): Promise<void> {
  const code = await execute(url, sql).then(
    () => "nothing",
    (error: pg.DatabaseError) => error.code,
  );
  expect([sql, code]).toEqual([sql, "42501"]);
}

/** Some history: a branch of three commits, with an object. */
async function history(storage: Storage) {
  await begin(storage, "w");
  const [one, two] = [blob("one"), blob("two")];
  const stored: ObjectRecord[] = [one, two, tree(one, two)];
  const first = commit({ inline: [tree(one)] });
  const second = commit({ parents: [first] });
  await mustMove(storage, move("refs/heads/a", ANY, [first]), { objects: stored });
  await mustMove(storage, move("refs/heads/a", at(first), [second]));
  return { stored, first, second };
}

describe("a writer", () => {
  it("has no way past the functions", async () => {
    const { url, as, names } = await rolesPlace();
    await history(await storageAs(as.writer));
    const before = await lasting(url);
    const s = schemaOf(url);
    for (const who of [as.writer, as.reader]) {
      for (const table of TABLES) {
        const own = table === "watchers" && who === as.writer;
        const column = { meta: "value", migrations: "name" }[table] ?? "workflow_id";
        if (!own) {
          await refused(who, `DELETE FROM ${s}.${table}`);
          await refused(who, `UPDATE ${s}.${table} SET ${column} = NULL`);
          await refused(who, `INSERT INTO ${s}.${table} (${column}) VALUES (NULL)`);
          await refused(who, `SELECT 1 FROM ${s}.${table} FOR UPDATE`);
        }
        await refused(who, `TRUNCATE ${s}.${table}`);
        await refused(who, `ALTER TABLE ${s}.${table} ADD COLUMN mine int`);
        await refused(who, `DROP TABLE ${s}.${table}`);
      }
      for (const call of [
        "condemn(gen_random_uuid(), '', 0, 0)",
        "sweep(gen_random_uuid(), '', 0)",
        "redact(gen_random_uuid(), '', '{}', '', '', '', '{}', '', '{}', '{}', NULL)",
        "notify_watchers('{}')",
      ])
        await refused(who, `SELECT ${s}.${call}`);
      await refused(who, `CREATE TABLE ${s}.mine ()`);
      await refused(who, `CREATE FUNCTION ${s}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
      await refused(who, `DROP FUNCTION ${s}.is_object`);
      await refused(who, `ALTER FUNCTION ${s}.condemn SECURITY DEFINER`);
      await refused(who, `SET ROLE ${pg.escapeIdentifier(names.maintainer)}`);
    }
    expect(await lasting(url)).toEqual(before);
  });

  it("rewrites nothing through them", async () => {
    const { url, as } = await rolesPlace();
    const writer = await storageAs(as.writer);
    const { stored, first, second } = await history(writer);
    const before = await lasting(url);
    let head = second;
    const forge = async (
      objects: readonly ObjectRecord[],
      forged: Partial<typeof first> | null = null,
    ) => {
      // In a line of two the one that is stored may be mended.
      const next = commit({ parents: [head] });
      const commits = forged === null ? [next] : [{ ...first, ...forged }, next];
      const answer = await send(writer, [move("refs/heads/a", at(head), commits)], { objects });
      expect(answer.moves[0]).toMatchObject({ outcome: "moved" });
      head = next;
      expect(await lasting(url)).toEqual(expect.arrayContaining(before));
    };
    for (const object of stored) {
      await forge([{ ...object, body: Buffer.from("forged") }]);
      await forge([{ ...object, type: object.type === "tree" ? "blob" : "tree" }]);
    }
    await forge([], { body: Buffer.concat([first.body, Buffer.from("!")]) });
    await forge([], { parents: [second.id], generation: 7, time: 1 });
    await forge([], { externalId: "forged", inline: [blob("forged")] });
    // Bytes that are the id's, said to be something else.
    const [told] = stored as [ObjectRecord];
    for (const encoding of [1, 2] as const) {
      const lie = move("refs/heads/a", at(head), [commit({ parents: [head] })]);
      await expect(send(writer, [lie], { objects: [{ ...told, encoding }] })).rejects.toEqual(
        agstateError("STORE_UNAVAILABLE", { code: "23514" }),
      );
    }
    const batch = {
      workflow: "w",
      objects: [told],
      moves: [move("refs/heads/a", at(head), [commit({ parents: [head] })])],
      atomic: true,
    };
    const values = encodeBatches([batch], new WorkflowKeys(digest), 1_800_000_000, 0);
    // The types of objects come before their encodings and lengths, what is said of pending rows, and all bodies.
    expect(values.at(-11)).toEqual([3]);
    values.splice(-11, 1, [7]);
    await expect(execute(as.writer, writeStatement(schemaOf(url)), values)).rejects.toThrow(
      /objects_plain/,
    );
    expect(await lasting(url)).toEqual(expect.arrayContaining(before));
  });

  it("moves no ref without telling of it in the log, and cuts no log", async () => {
    const { url, as } = await rolesPlace();
    const writer = await storageAs(as.writer);
    const { first, second } = await history(writer);
    const name = "refs/heads/a";
    const whole = async () => {
      const row = await refRow(writer, name);
      const log = await writer.readReflog("w", name, { limit: 100 });
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, i) => (row?.seq ?? 0) - i));
      expect(log.at(-1)).toMatchObject({ seq: 1 });
      expect(log[0]?.hash).toBe(row?.logHash);
      for (const [i, { previous }] of log.slice(0, -1).entries())
        expect(previous).toBe(log[i + 1]?.hash);
      return log.length;
    };
    expect(await whole()).toBe(2);
    const log = await lasting(url);
    const again = { log: { actor: "forged", reason: "", time: 1, trace: "" } };
    // The commit whose row holds the entry, sent again with another; backwards; away; and anew.
    await send(writer, [move(name, at(first), [second], again)]);
    await send(writer, [move(name, ANY, [second], again)]);
    await send(writer, [move(name, ANY, [], { target: first.id })]);
    await send(writer, [move(name, ANY, [], { target: null })]);
    await send(writer, [move(name, ANY, [], { target: second.id, maxStep: -5 })]);
    expect(await whole()).toBe(5);
    expect(await lasting(url)).toEqual(expect.arrayContaining(log));
  });

  it("registers what it watches, and touches no other's registration", async () => {
    const { url, as } = await rolesPlace();
    const s = schemaOf(url);
    const writer = await storageAs(as.writer);
    await begin(writer, "w");
    const watch = await writer.watch("w", () => undefined);
    const rows = () => execute(url, `SELECT made_by FROM ${s}.watchers`);
    await expect.poll(rows).toHaveLength(1);
    await execute(
      as.maintainer,
      `INSERT INTO ${s}.watchers
      VALUES (gen_random_uuid(), gen_random_uuid(), extract(epoch FROM now()) + 60)`,
    );
    await execute(as.writer, `DELETE FROM ${s}.watchers`);
    const [other] = await rows();
    expect(other.made_by).toMatch(/^a"m/);
    await execute(as.writer, `UPDATE ${s}.watchers SET until = 0`);
    expect(await execute(url, `SELECT FROM ${s}.watchers WHERE until = 0`)).toEqual([]);
    for (const [until, by] of [
      ["9e9", "current_user"],
      ["0", "'postgres'"],
    ])
      await refused(
        as.writer,
        `INSERT INTO ${s}.watchers VALUES (gen_random_uuid(), gen_random_uuid(), ${until}, ${by})`,
      );
    await watch.close();
  });

  it("is told who may collect, and the maintainer collects", async () => {
    const { as } = await rolesPlace();
    const prepared = await (await storeAs(as.writer)).createWorkflow("w", { state: { n: 1 } });
    const branch = await prepared.branch({ agent: "a", branch: "gone" });
    await branch.commit({ state: { n: 2, text: "x".repeat(5000) } });
    await prepared.deleteBranch("agents/a/gone");
    const error = await prepared.gc({ graceMs: 0 }).catch((reason: unknown) => reason);
    expect(error).toEqual(
      agstateError("STORE_READONLY", { missing: "EXECUTE on function condemn" }),
    );
    expect((error as Error).message).toMatch(
      /maintainer role, which agstate migrate --roles makes/,
    );
    const maintained = await (await storeAs(as.maintainer)).workflow("w");
    expect((await maintained.gc({ graceMs: 0 })).commits).toBe(1);
    expect((await maintained.fsck()).problems).toEqual([]);
  });
});

describe("a reader", () => {
  it("reads and watches, and does not write", async () => {
    const { url, as } = await rolesPlace();
    const written = await (await storeAs(as.writer)).createWorkflow("w", { state: { n: 1 } });
    const reading = await (await storeAs(as.reader)).workflow("w");
    expect((await reading.fsck()).problems).toEqual([]);
    await expect(reading.branch({ agent: "a", branch: "b" })).rejects.toEqual(
      agstateError("STORE_READONLY", { code: "42501" }),
    );
    const moves = reading.watch();
    await moves.start();
    const next = moves.next();
    await written.branch({ agent: "a", branch: "b" });
    expect((await next).value).toMatchObject({ ref: "refs/heads/agents/a/b" });
    await moves.return?.();
    expect(
      await execute(url, `SELECT FROM ${schemaOf(url)}.watchers WHERE made_by LIKE 'a"r%'`),
    ).toEqual([]);
  });
});

describe("roles", () => {
  it("are what agstate doctor tells", async () => {
    const { as } = await rolesPlace();
    const told = async (url: string) =>
      (await diagnoseStore(url)).findings.find(({ check }) => check === "rights");
    expect(await told(as.writer)).toMatchObject({
      level: "good",
      what: expect.stringMatching(/ is a writer: .*neither delete nor rewrite/),
    });
    expect(await told(as.reader)).toMatchObject({
      level: "good",
      what: expect.stringMatching(/ is a reader: /),
    });
    expect(await told(as.maintainer)).toMatchObject({
      level: "good",
      what: expect.stringMatching(/ is a maintainer: /),
    });
  });

  it("hold for functions that a later migration makes, run by a maintainer", async () => {
    const { url, as, names } = await rolesPlace();
    const s = schemaOf(url);
    await execute(
      as.maintainer,
      `DROP FUNCTION ${s}.condemn, ${s}.sweep; DELETE FROM ${s}.migrations WHERE name LIKE '0008%'`,
    );
    expect((await migrateStore(as.maintainer)).pending).toHaveLength(1);
    await refused(as.writer, `SELECT ${s}.condemn(gen_random_uuid(), '', 0, 0)`);
    const owners = await execute(
      url,
      `SELECT DISTINCT pg_get_userbyid(o.owner) AS owner FROM (
        SELECT proowner AS owner FROM pg_proc WHERE pronamespace = $1::regnamespace
        UNION SELECT relowner FROM pg_class WHERE relnamespace = $1::regnamespace) AS o`,
      [s],
    );
    expect(owners).toEqual([{ owner: names.maintainer }]);
  });

  it("are given beside running writers, again and again", async () => {
    const url = schemaPlace();
    const store = await openStore(url);
    onTestFinished(() => store.close());
    const workflow = await store.createWorkflow("w", { state: { n: 0 } });
    const mark = randomHex(6);
    const roles = { writer: `w ${mark}`, reader: `r ${mark}`, maintainer: `m ${mark}` };
    onTestFinished(async () => {
      for (const role of Object.values(roles))
        await withClient((client) => client.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`));
    });
    let going = true;
    const writing = Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        const branch = await workflow.branch({ agent: "a", branch: `b${i}` });
        let n = 0;
        while (going) await branch.commit({ state: { n: ++n, i } });
        return { branch, n };
      }),
    );
    for (let i = 0; i < 4; i++) await migrateStore(url, { roles });
    going = false;
    for (const { branch, n } of await writing) {
      expect(n).toBeGreaterThan(0);
      expect((await branch.state()) as object).toMatchObject({ n });
    }
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("are made by an owner who is no superuser, and may create roles", async () => {
    const place = schemaPlace();
    const mark = randomHex(6);
    const owner = `o ${mark}`;
    const roles = { writer: `w ${mark}`, reader: `r ${mark}`, maintainer: `m ${mark}` };
    await execute(place, `CREATE ROLE "${owner}" LOGIN CREATEROLE PASSWORD 'secret'`);
    await execute(place, `GRANT CREATE ON DATABASE postgres TO "${owner}"`);
    onTestFinished(async () => {
      for (const role of [...Object.values(roles), owner])
        await execute(place, `DROP OWNED BY "${role}" CASCADE; DROP ROLE "${role}"`);
    });
    const url = new URL(place);
    url.username = encodeURIComponent(owner);
    url.password = "secret";
    for (let i = 0; i < 2; i++) await migrateStore(url.toString(), { roles });
    const definers = await execute(
      place,
      `SELECT DISTINCT pg_get_userbyid(proowner) AS owner FROM pg_proc
        WHERE pronamespace = $1::regnamespace AND prosecdef`,
      [schemaOf(place)],
    );
    expect(definers).toEqual([{ owner: roles.maintainer }]);
    const workflow = await (await storeAs(url.toString())).createWorkflow("w", { state: {} });
    expect((await workflow.fsck()).problems).toEqual([]);
  });

  it("are made by agstate migrate, under names of one's own", async () => {
    const url = schemaPlace();
    const box = new CliSandbox();
    onTestFinished(() => box.remove());
    const at = { env: { AGSTATE_STORE: url } };
    const names = ["W", "R", "M"].map((role) => `${role} ${randomHex(6)}`);
    onTestFinished(async () => {
      for (const role of names)
        await withClient((client) => client.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`));
    });
    expect(box.ok(["migrate", `--roles=${names}`], at)).toMatch(/^The roles have their rights/);
    expect(box.run(["migrate", "--roles=one,two"], at)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--roles=WRITER,READER,MAINTAINER"),
    });
    expect(box.run(["migrate", "--roles", "--dry-run"], at)).toMatchObject({ status: 2 });
    const owner = await execute(
      url,
      "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = $1",
      [new URL(url).searchParams.get("schema")],
    );
    expect(owner).toEqual([{ tableowner: names[2] }]);
  });

  it("are three with names, of a store of its own schema", async () => {
    const url = schemaPlace();
    for (const roles of [{ writer: "" }, { writer: "pg_x" }, { writer: "x", reader: "x" }])
      await expect(migrateStore(url, { roles })).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    await expect(migrateStore(url, { roles: true, dryRun: true })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    await expect(migrateStore("memory:", { roles: true })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    const { as } = await rolesPlace();
    await expect(
      migrateStore(as.maintainer, { roles: { writer: `nobody ${randomHex(4)}` } }),
    ).rejects.toEqual(agstateError("STORE_READONLY", { code: "42501" }));
  });
});
