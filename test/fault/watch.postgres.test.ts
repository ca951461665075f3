import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Move, type Moves, openStore, type Store } from "../../src/index.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { begin } from "../../src/testing/fixtures.js";
import { digest, randomHex } from "../../src/testing/index.js";
import { HAS_POOLER, startPooler } from "../support/pooler.js";
import { startServer, type TestServer } from "../support/postgres-server.js";
import { agstateError } from "../support/stores.js";

/** How the connections that listen call themselves. */
const LISTENING = "agstate watch";

// A server of its own: connections are counted and cut.
let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.remove());

let schemas = 0;

/** A schema of its own, and a client that may look at it. */
async function place() {
  const schema = `watch ${++schemas}`;
  const url = new URL(server.url);
  url.searchParams.set("schema", schema);
  const client = new pg.Client(server.url);
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  const quoted = client.escapeIdentifier(schema);
  const ask = async (text: string, values: unknown[] = []) =>
    (await client.query(text.replaceAll("{s}", quoted), values)).rows;
  return {
    url: url.toString(),
    client,
    ask,
    watchers: async () => Number((await ask("SELECT count(*) AS n FROM {s}.watchers"))[0].n),
  };
}

async function opened(url: string, how: { create?: boolean } = {}): Promise<Store> {
  const store = await openStore(url, how);
  onTestFinished(() => store.close());
  return store;
}

/** Waits until something holds that other processes bring about. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await holds()) return;
    await sleep(25);
  }
  throw new Error(`waited in vain until ${what}`);
}

async function listeners(ask: (text: string, values: unknown[]) => Promise<unknown[]>) {
  const rows = await ask("SELECT pid FROM pg_stat_activity WHERE application_name = $1", [
    LISTENING,
  ]);
  return rows.length;
}

async function take(moves: Moves, count: number): Promise<Move[]> {
  const taken: Move[] = [];
  while (taken.length < count) {
    const { value, done } = await moves.next();
    if (done === true) throw new Error(`ended after ${taken.length} moves`);
    taken.push(value);
  }
  return taken;
}

describe("notifications", () => {
  it("are sent only while somebody watches the workflow, and then one a transaction", async () => {
    const { url, client, ask, watchers } = await place();
    const store = await opened(url);
    const workflow = await store.createWorkflow("w");
    const aside = await (await store.createWorkflow("v")).canonical();
    const branches = await Promise.all(
      Array.from({ length: 20 }, (_, k) => workflow.branch({ agent: `a${k}`, branch: "b" })),
    );
    const heard: string[] = [];
    client.on("notification", ({ payload = "" }) => heard.push(payload));
    const [{ channel }] = await ask(
      "SELECT 'agstate_' || '{s}.watchers'::regclass::oid AS channel",
    );
    await client.query(`LISTEN ${channel}`);
    let sentinels = 0;
    const transactions = `SELECT count(DISTINCT c.xmin::text) AS n FROM {s}.commits AS c
      JOIN {s}.workflows AS w USING (workflow_id) WHERE w.id = 'w'`;
    /** What was heard of the commits that some work made, and of how many transactions they were. */
    const hearing = async (work: () => Promise<unknown>) => {
      heard.length = 0;
      const [{ n: before }] = await ask(transactions);
      await work();
      const [{ n: after }] = await ask(transactions);
      const sentinel = `sentinel ${sentinels++}`;
      await ask("SELECT pg_notify($1, $2)", [channel, sentinel]);
      await until("the sentinel is heard", async () => heard.includes(sentinel));
      expect(heard.pop()).toBe(sentinel);
      return { heard: [...heard], transactions: Number(after) - Number(before) };
    };
    let n = 0;
    const work = async () => {
      await branches[0]?.commit({ state: { n: n++ } });
      await Promise.all(branches.map((branch) => branch.commit({ state: { n: n++ } })));
      await workflow.tag(`t${n}`, "canonical");
      await Promise.all([
        aside.commit({ state: { n } }),
        branches[1]?.commit({ state: { n: n++ } }),
      ]);
    };
    expect((await hearing(work)).heard).toEqual([]);

    const moves = workflow.watch();
    const first = moves.next();
    await until("the watcher is registered", async () => (await watchers()) === 1);
    const [{ key }] = await ask("SELECT workflow_id AS key FROM {s}.workflows WHERE id = 'w'");
    const told = await hearing(work);
    // The tag moves a ref without a commit; each of the others is told of once, however large its group.
    expect(new Set(told.heard)).toEqual(new Set([key]));
    expect(told.heard.length).toBe(told.transactions + 1);
    expect(told.transactions).toBeLessThan(10);
    expect((await first).done).toBe(false);
    // One who loses moves nothing.
    const lost = await hearing(async () => {
      await expect(workflow.deleteBranch("a1/b", { expected: "canonical" })).rejects.toEqual(
        agstateError("REF_CONFLICT"),
      );
    });
    expect(lost.heard).toEqual([]);

    await moves.return();
    expect(await watchers()).toBe(0);
    expect((await hearing(work)).heard).toEqual([]);
  });

  it("are asked for over one connection a store, which goes with the last watcher", async () => {
    const { url, ask, watchers } = await place();
    const store = await opened(url);
    const workflow = await store.createWorkflow("w");
    const other = await store.createWorkflow("v");
    const all = [workflow.watch(), workflow.watch("canonical"), other.watch()];
    const first = all.map((moves) => moves.next());
    await until("all are registered", async () => (await watchers()) === 2);
    expect(await listeners(ask)).toBe(1);
    await all[2]?.return();
    expect(await watchers()).toBe(1);
    await (await workflow.canonical()).commit({ state: { n: 1 } });
    expect((await Promise.all(first.slice(0, 2))).map(({ value }) => value?.seq)).toEqual([2, 2]);
    await all[0]?.return();
    await all[1]?.return();
    await until("nobody listens", async () => (await listeners(ask)) === 0);
    expect(await watchers()).toBe(0);
  });

  it("are no longer asked for by those whose time is over", async () => {
    const { url, ask, watchers } = await place();
    const store = await opened(url);
    const workflow = await store.createWorkflow("w");
    await ask(
      "INSERT INTO {s}.watchers SELECT workflow_id, gen_random_uuid(), 1 FROM {s}.workflows",
    );
    const moves = workflow.watch();
    const first = moves.next();
    await until("only the living one is left", async () => {
      const rows = await ask("SELECT until FROM {s}.watchers");
      return rows.length === 1 && Number(rows[0].until) > 1;
    });
    await store.close();
    expect((await first).done).toBe(true);
    expect(await watchers()).toBe(0);
  });

  it("that a writer could not send, since it had begun before, are made up for", async () => {
    const { url, client, watchers } = await place();
    const options = {
      digest,
      randomHex,
      now: Date.now,
      busyTimeoutMs: 5000,
      graceMs: 1_209_600_000,
    };
    const storage = await openPostgresStorage({ ...options, url, create: true });
    onTestFinished(() => storage.close());
    await begin(storage, "w");
    // A writer that has looked whether anybody watches, and has not committed yet.
    await client.query("BEGIN");
    await client.query("SELECT pg_current_xact_id()");
    let wakes = 0;
    await storage.watch("w", () => wakes++);
    await client.query("SAVEPOINT looking");
    await until("the watcher is registered", async () => (await watchers()) === 1);
    // By now all other wakes have come.
    await sleep(1000);
    await client.query("COMMIT");
    const before = wakes;
    await until("it is woken after the commit", async () => wakes > before);
  });
});

describe("a watch whose connection is cut again and again", () => {
  it("tells of 200 moves of another connection, none lost, none twice", async () => {
    const { url, ask } = await place();
    const store = await opened(url);
    const workflow = await store.createWorkflow("w");
    const moves = workflow.watch("canonical");
    await moves.start();
    const taking = take(moves, 200);
    const writer = await (await (await opened(url)).workflow("w")).canonical();
    const ids: string[] = [];
    let killed = 0;
    for (let n = 1; n <= 200; n++) {
      ids.push((await writer.commit({ state: { n } })).id);
      if (n % 10 !== 0) continue;
      if (n % 20 === 0) await until("it listens", async () => (await listeners(ask)) === 1);
      const rows = await ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
        [LISTENING],
      );
      killed += rows.length;
    }
    expect((await taking).map((move) => move.new)).toEqual(ids);
    expect(killed).toBeGreaterThan(4);
    // It listens again in the end, and still tells.
    await until("it listens again", async () => (await listeners(ask)) === 1);
    const next = moves.next();
    const { id } = await writer.commit({ state: { n: 201 } });
    expect((await next).value?.new).toBe(id);
    await moves.return();
  });

  it("outlives a server that crashes", async () => {
    const own = await startServer();
    onTestFinished(() => own.remove());
    const store = await opened(`${own.url}?schema=crash`);
    const workflow = await store.createWorkflow("w");
    const moves = workflow.watch("canonical");
    await moves.start();
    const told = take(moves, 2);
    const canonical = await workflow.canonical();
    const one = await canonical.commit({ state: { n: 1 } });
    await own.crash();
    await sleep(1000);
    await own.start();
    const two = await canonical.commit({ state: { n: 2 } });
    expect((await told).map((move) => move.new)).toEqual([one.id, two.id]);
    await moves.return();
  });
});

describe("where nobody can listen", () => {
  it("a watch polls when the URL says so, and takes no connection", async () => {
    const { url, ask, watchers } = await place();
    const store = await opened(`${url}&watch=poll`);
    const workflow = await store.createWorkflow("w");
    const moves = workflow.watch();
    const first = moves.next();
    // Time enough to have listened, if it did.
    await sleep(500);
    expect(await listeners(ask)).toBe(0);
    expect(await watchers()).toBe(0);
    const writer = await (await (await opened(url)).workflow("w")).canonical();
    const { id } = await writer.commit({ state: { n: 1 } });
    expect((await first).value?.new).toBe(id);
    const told = take(moves, 20);
    for (let n = 2; n <= 21; n++) await writer.commit({ state: { n } });
    expect((await told).map((move) => move.seq)).toEqual(
      Array.from({ length: 20 }, (_, k) => k + 3),
    );
    await moves.return();
    for (const value of ["", "yes", "LISTEN"]) {
      await expect(openStore(`${url}&watch=${value}`)).rejects.toEqual(
        agstateError("INVALID_ARGUMENT", { watch: value }),
      );
    }
  });

  it("a watch polls for a role that may only read", async () => {
    const { url, ask, watchers } = await place();
    const workflow = await (await opened(url)).createWorkflow("w");
    await ask("CREATE ROLE looker LOGIN PASSWORD 'looker'");
    await ask("GRANT USAGE ON SCHEMA {s} TO looker");
    await ask("GRANT SELECT ON ALL TABLES IN SCHEMA {s} TO looker");
    const reading = new URL(url);
    reading.username = "looker";
    reading.password = "looker";
    const reader = await opened(reading.toString(), { create: false });
    const moves = (await reader.workflow("w")).watch("canonical");
    const first = moves.next();
    await until("it has given up listening", async () => (await listeners(ask)) === 0);
    const { id } = await (await workflow.canonical()).commit({ state: { n: 1 } });
    expect((await first).value?.new).toBe(id);
    expect(await watchers()).toBe(0);
    await moves.return();
    await reader.close();
    await ask("DROP OWNED BY looker");
    await ask("DROP ROLE looker");
  });

  it.runIf(HAS_POOLER)(
    "a watch polls behind pgbouncer in transaction mode (if installed)",
    async () => {
      const { url, ask, watchers } = await place();
      const through = new URL(await startPooler(server.url));
      through.searchParams.set("schema", new URL(url).searchParams.get("schema") as string);
      const store = await opened(through.toString());
      const workflow = await store.createWorkflow("w");
      const moves = workflow.watch("canonical");
      const writer = await (await (await opened(url)).workflow("w")).canonical();
      await moves.start();
      for (let n = 1; n <= 12; n++) {
        const next = moves.next();
        const { id } = await writer.commit({ state: { n } });
        expect((await next).value?.new).toBe(id);
      }
      // Notifications that its LISTEN asked for never arrive, so it must not have asked writers for any.
      const waiting = moves.next();
      await sleep(3000);
      expect(await watchers()).toBe(0);
      const { id } = await writer.commit({ state: { n: 13 } });
      expect((await waiting).value?.new).toBe(id);
      await moves.return();
      expect(await ask("SELECT 1 AS alive")).toEqual([{ alive: 1 }]);
    },
  );
});
