import { describe, expect, it, onTestFinished } from "vitest";
import { migrateStore, openStore } from "../../src/index.js";
import { Connection } from "../../src/storage/postgres/connection.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { parseTarget } from "../../src/storage/postgres/target.js";
import { WorkflowKeys } from "../../src/storage/postgres/workflow-keys.js";
import { WorkflowWriters } from "../../src/storage/postgres/workflow-writers.js";
import { ANY, at, begin, blob, commit, move, mustMove } from "../../src/testing/fixtures.js";
import { digest, randomHex } from "../../src/testing/index.js";
import { schemaOf, schemaPlace, withClient } from "../support/postgres.js";
import { agstateError } from "../support/stores.js";

const options = { digest, randomHex, now: Date.now, graceMs: 1000, busyTimeoutMs: 5000 };

const execute = (sql: string, values: unknown[] = []) =>
  withClient(async (client) => (await client.query(sql, values)).rows);

const functionOf = (text: string) => /\.(\w+)\(/.exec(text)?.[1];

describe("a store of distributed tables", () => {
  for (const how of ["an option", "the URL"] as const) {
    it(`lets no workflow wait for another's group, when ${how} says so`, async () => {
      const place = schemaPlace();
      await migrateStore(place);
      const byUrl = how === "the URL";
      const url = byUrl ? `${place}&distributed=true` : place;
      const mode = byUrl ? {} : { distributed: true };
      const storage = await openPostgresStorage({ ...options, ...mode, url, create: false });
      onTestFinished(() => storage.close());
      await begin(storage, "v", "w");
      const first = commit();
      await mustMove(storage, move("refs/heads/a", ANY, [first]), { workflow: "v" });
      const next = commit({ parents: [first] });
      await withClient(async (client) => {
        await client.query("BEGIN");
        await client.query(`SELECT 1 FROM ${schemaOf(place)}.refs FOR UPDATE`);
        const held = mustMove(storage, move("refs/heads/a", at(first), [next]), { workflow: "v" });
        await mustMove(storage, move("refs/heads/a", ANY, [commit()]), {
          workflow: "w",
          objects: [blob("one")],
        });
        await client.query("ROLLBACK");
        expect(await held).toMatchObject({ id: next.id });
      });
      expect(await storage.usage("v")).toMatchObject({ commits: 2 });
      expect(await storage.usage("w")).toMatchObject({ commits: 1, objects: 1 });
    });
  }

  it("sends calls for one workflow each, and those of several at the same time", async () => {
    const url = schemaPlace();
    const storage = await openPostgresStorage({ ...options, url, create: true });
    onTestFinished(() => storage.close());
    await begin(storage, "v", "w");
    const first = commit();
    await mustMove(storage, move("refs/heads/0", ANY, [first]), { workflow: "v" });

    const target = parseTarget(url);
    const limits = { poolMax: 4, retryForMs: 20_000, statementTimeoutMs: 20_000 };
    const connection = new Connection({ target, ...limits });
    onTestFinished(() => connection.close());
    const keys = new WorkflowKeys(digest);
    const calls: { readonly by: string | undefined; readonly workflows: string[] }[] = [];
    const write = connection.write.bind(connection);
    connection.write = (statement, values) => {
      const by = functionOf(statement.text);
      calls.push({ by, workflows: by === "write_batches" ? (values[10] as string[]) : [] });
      return write(statement, values);
    };
    const call = connection.call.bind(connection);
    connection.call = (statement, parameters) => {
      calls.push({ by: functionOf(statement.text), workflows: [] });
      return call(statement, parameters);
    };
    const schema = schemaOf(url);
    const writer = new WorkflowWriters({
      ...{ connection, keys, options, schema },
      graceMs: 1000,
      distributed: true,
    });
    const heads = [0, 1, 2, 3, 4, 5].map(() => commit());
    const put = (workflow: string, i: number) =>
      writer.write({
        ...{ workflow, objects: [], atomic: true },
        moves: [move(`refs/heads/${i}`, ANY, [heads[i] as (typeof heads)[number]])],
      });
    const append = (i: number) => {
      const head = heads[i] as (typeof heads)[number];
      heads[i] = commit({ parents: [head] });
      const moves = [move(`refs/heads/${i}`, at(head), [heads[i] as typeof head])];
      return writer.write({ workflow: "w", objects: [], atomic: true, moves });
    };
    await withClient(async (client) => {
      await client.query("BEGIN");
      await client.query(`SELECT 1 FROM ${schema}.refs FOR UPDATE`);
      const held = [0, 1, 2].map((i) => put("v", i));
      // While these wait for the lock.
      for (const { moves } of await Promise.all([3, 4, 5].map((i) => put("w", i))))
        expect(moves).toMatchObject([{ outcome: "moved" }]);
      await client.query("ROLLBACK");
      for (const { moves } of await Promise.all(held))
        expect(moves).toMatchObject([{ outcome: "moved" }]);
    });
    await writer.drain();
    for (const workflow of ["v", "w"]) {
      const key = keys.of(workflow);
      const groups = calls.filter(({ workflows }) => workflows.includes(key));
      expect(groups.flatMap(({ workflows }) => workflows)).toEqual([key, key, key]);
      // What comes at once is halved.
      expect(groups.length).toBe(2);
    }

    // Appends in a group, and one alone.
    await Promise.all([3, 4, 5].map(append));
    await append(3);
    expect(calls.slice(4).map(({ by }) => by)).toEqual([
      ...["write_batches", "append_commit"],
      "append_commit",
    ]);
  });

  it("is watched by reading", async () => {
    const url = schemaPlace();
    const store = await openStore(url, { distributed: true });
    onTestFinished(() => store.close());
    const workflow = await store.createWorkflow("w", { state: {} });
    const moves = workflow.watch();
    await moves.start();
    const next = moves.next();
    await workflow.branch({ agent: "a", branch: "b" });
    expect((await next).value).toMatchObject({ ref: "refs/heads/agents/a/b" });
    expect(await execute(`SELECT FROM ${schemaOf(url)}.watchers`)).toEqual([]);
    await moves.return();
  });

  it("is refused where nothing can be distributed", async () => {
    const url = schemaPlace();
    await expect(migrateStore(url, { distributed: true })).rejects.toEqual(
      agstateError("STORE_MISMATCH", { missing: "extension citus" }),
    );
    // All or nothing.
    expect((await migrateStore(url, { dryRun: true })).applied).toEqual([]);
    await expect(openStore("memory:", { distributed: true })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    await expect(migrateStore("memory:", { distributed: true })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    await expect(openStore(`${url}&distributed=maybe`)).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { distributed: "maybe" }),
    );
  });
});
