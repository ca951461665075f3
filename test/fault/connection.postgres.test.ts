import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type AgstateError,
  type OpenStoreOptions,
  openStore,
  type Store,
} from "../../src/index.js";
import { Connection, type ConnectionOptions } from "../../src/storage/postgres/connection.js";
import { parseTarget } from "../../src/storage/postgres/target.js";
import { randomHex } from "../../src/testing/index.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { startServer } from "../support/postgres-server.js";
import { agstateError } from "../support/stores.js";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.js";

/** A URL whose sessions can be told from all others. */
function named(url: string): { readonly url: string; readonly name: string } {
  const name = `agstate test ${randomHex(6)}`;
  const with_ = new URL(url);
  with_.searchParams.set("application_name", name);
  return { url: with_.toString(), name };
}

/** What the sessions of a name do, as the server tells it. */
const sessions = (name: string) =>
  withClient(async (client) => {
    const { rows } = await client.query<{ pid: number; state: string; query: string }>(
      "SELECT pid, state, query FROM pg_stat_activity WHERE application_name = $1",
      [name],
    );
    return rows;
  });

/** Expects that soon no session of a name works or holds a transaction open, and that there are not more than so many. */
async function expectAtRest(name: string, most: number): Promise<void> {
  await expect
    .poll(async () => {
      const found = await sessions(name);
      return {
        busy: found.filter(({ state }) => state !== "idle"),
        tooMany: Math.max(0, found.length - most),
      };
    })
    .toEqual({ busy: [], tooMany: 0 });
}

function connection(url: string, rest: Partial<ConnectionOptions>): Connection {
  const made = new Connection({
    target: parseTarget(url),
    poolMax: 1,
    retryForMs: 200,
    statementTimeoutMs: 60_000,
    ...rest,
  });
  onTestFinished(() => made.close());
  return made;
}

async function open(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const store = await openStore(url, options);
  onTestFinished(() => store.close());
  return store;
}

async function proxied(url: string): Promise<{ proxy: TcpProxy; through: string }> {
  const direct = new URL(url);
  const proxy = await startProxy(direct.hostname, Number(direct.port));
  direct.port = String(proxy.port);
  return { proxy, through: direct.toString() };
}

describe("a statement that takes longer than it may", () => {
  it("fails, and its client answers nobody else", async () => {
    const { url, name } = named(serverUrl());
    const made = connection(url, { statementTimeoutMs: 100 });
    const pid = async () =>
      (await made.query<{ pid: number }>("SELECT pg_backend_pid() AS pid"))[0];
    const before = await pid();
    for (let round = 0; round < 3; round++) {
      await expect(made.query("SELECT pg_sleep(60), 'late' AS answer")).rejects.toEqual(
        agstateError("STORE_BUSY", { code: "57014", statementTimeoutMs: 100 }),
      );
      for (let n = 0; n < 10; n++) {
        expect(await made.query("SELECT $1::int AS answer", [n])).toEqual([{ answer: n }]);
      }
    }
    expect(await pid()).not.toEqual(before);
    await expectAtRest(name, 1);
  });

  it("is cancelled by the client where the server knows no limit", async () => {
    const { url, name } = named(serverUrl());
    const unlimited = new URL(url);
    // What the URL says goes before what the store asks for; 0 is none.
    unlimited.searchParams.set("statement_timeout", "0");
    const made = connection(unlimited.toString(), { statementTimeoutMs: 100 });
    expect(await made.query("SHOW statement_timeout")).toEqual([{ statement_timeout: "0" }]);
    await expect(made.query("SELECT pg_sleep(60)")).rejects.toEqual(
      agstateError("STORE_BUSY", { code: "57014" }),
    );
    expect(await made.query("SELECT 1 AS answer")).toEqual([{ answer: 1 }]);
    await expectAtRest(name, 1);
  });

  it("fails alone when it is a write whose branch another session holds, and writes nothing", async () => {
    const { url, name } = named(schemaPlace());
    const store = await open(url, { limits: { statementTimeoutMs: 400, poolMax: 2 } });
    const workflow = await store.createWorkflow("w");
    const branches = await Promise.all(
      Array.from({ length: 20 }, (_, k) => workflow.branch({ agent: `a${k}`, branch: "work" })),
    );
    const commit = (n: number) => branches.map((branch) => branch.commit({ state: { n } }));
    await Promise.all(commit(0));
    await withClient(async (client) => {
      await client.query("BEGIN");
      await client.query(
        `SELECT FROM ${schemaOf(url)}.refs WHERE name = 'refs/heads/agents/a3/work' FOR UPDATE`,
      );
      const ended = await Promise.allSettled(commit(1));
      await client.query("ROLLBACK");
      expect(ended.map(({ status }) => status)).toEqual(
        branches.map((_, k) => (k === 3 ? "rejected" : "fulfilled")),
      );
      expect((ended[3] as PromiseRejectedResult).reason).toEqual(
        agstateError("STORE_BUSY", { code: "57014" }),
      );
    });
    const fresh = await workflow.branch("a3/work");
    expect(await fresh.state("/n")).toBe(0);
    // The handle goes on where it was.
    await branches[3]?.commit({ state: { n: 2 } });
    expect(await workflow.stateAt("a3/work")).toEqual({ n: 2 });
    expect((await workflow.fsck()).problems).toEqual([]);
    await expectAtRest(name, 2);
  });

  it("waits for a lock no longer than busyTimeoutMs", async () => {
    const url = schemaPlace();
    const store = await open(url, { limits: { busyTimeoutMs: 300 } });
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    await withClient(async (client) => {
      await client.query("BEGIN");
      await client.query(`SELECT FROM ${schemaOf(url)}.refs FOR UPDATE`);
      await expect(canonical.commit({ state: { n: 1 } })).rejects.toEqual(
        agstateError("STORE_BUSY", { code: "55P03" }),
      );
      await client.query("ROLLBACK");
    });
    await canonical.commit({ state: { n: 1 } });
  });

  it("has the limit that the URL gives, before that of the call", async () => {
    const url = new URL(schemaPlace());
    url.searchParams.set("statement_timeout_ms", "1234");
    url.searchParams.set("pool_max", "3");
    expect(parseTarget(url.toString())).toMatchObject({ statementTimeoutMs: 1234, poolMax: 3 });
    const { url: place, name } = named(url.toString());
    const store = await open(place, { limits: { poolMax: 1 } });
    const workflow = await store.createWorkflow("w");
    await Promise.all(Array.from({ length: 30 }, () => workflow.stateAt("canonical")));
    expect(await sessions(name)).toHaveLength(3);
    for (const wrong of ["0", "-1", "many", "", "1e3", "99999999999"]) {
      url.searchParams.set("pool_max", wrong);
      expect(() => parseTarget(url.toString())).toThrow(agstateError("INVALID_ARGUMENT") as Error);
    }
  });
});

describe("a connection that is only half there", () => {
  for (const lost of ["answers", undefined] as const) {
    it(`is given up when ${lost ?? "requests and answers"} do not come through, and the write lands once`, async () => {
      const { url, name } = named(schemaPlace());
      const { proxy, through } = await proxied(url);
      const store = await open(through, { limits: { statementTimeoutMs: 200, poolMax: 2 } });
      const workflow = await store.createWorkflow("w");
      const branch = await workflow.branch({ agent: "a0", branch: "work" });
      proxy.freeze(lost);
      const ids = [(await branch.commit({ state: { n: 1 } })).id];
      for (let n = 2; n <= 11; n++) ids.push((await branch.commit({ state: { n } })).id);
      const held: string[] = [];
      for await (const { id } of branch.log({ limit: 11 })) held.push(id);
      expect(held.reverse()).toEqual(ids);
      expect((await workflow.fsck()).commits).toBe(2 + ids.length);
      proxy.cut();
      await expectAtRest(name, 2);
    });
  }

  it("does not keep a store from closing", async () => {
    const { proxy, through } = await proxied(schemaPlace());
    const store = await openStore(through);
    await store.createWorkflow("w");
    proxy.freeze();
    await store.close();
  });
});

describe("a write whose answer is lost for good", () => {
  it("says that the outcome is not known, and what to do then is enough", async () => {
    const url = schemaPlace();
    const { proxy, through } = await proxied(url);
    const store = await open(through, { limits: { busyTimeoutMs: 500, poolMax: 1 } });
    const workflow = await store.createWorkflow("w");
    const branches = await Promise.all(
      Array.from({ length: 5 }, (_, k) => workflow.branch({ agent: `a${k}`, branch: "work" })),
    );
    const commit = (n: number) => branches.map((branch) => branch.commit({ state: { n } }));
    await Promise.all(commit(0));
    proxy.loseNextAnswer();
    proxy.refuse();
    const ended = await Promise.allSettled(commit(1));
    expect(proxy.lost).toBe(1);
    const again = await (await open(url)).workflow("w");
    let unknown = 0;
    for (const [k, one] of ended.entries()) {
      const { reason } = one as PromiseRejectedResult;
      expect(reason).toEqual(agstateError("STORE_UNAVAILABLE"));
      const { outcome } = (reason as AgstateError).details;
      if (outcome === "unknown") {
        unknown++;
        expect(String(reason)).toMatch(/refresh the branch/);
      }
      // The server had done what was sent, and nothing else.
      expect(await (await again.branch(`a${k}/work`)).state("/n")).toBe(
        outcome === "unknown" ? 1 : 0,
      );
    }
    expect(unknown).toBeGreaterThan(0);
  });

  it("is not said of a write that was never sent, nor of a read", async () => {
    const { proxy, through } = await proxied(schemaPlace());
    const store = await open(through, { limits: { busyTimeoutMs: 300 } });
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    proxy.refuse();
    proxy.cut();
    await sleep(100);
    for (const call of [() => canonical.commit({ state: { n: 1 } }), () => store.describe()]) {
      const error = await call().then(String, (reason: unknown) => reason);
      expect(error).toEqual(agstateError("STORE_UNAVAILABLE"));
      expect(error).not.toEqual(agstateError("STORE_UNAVAILABLE", { outcome: "unknown" }));
    }
  });
});

describe("a transaction", () => {
  it("is rolled back and its client closed when it stands still, or when a statement fails", async () => {
    const { url, name } = named(serverUrl());
    const made = connection(url, {});
    const limits = { statementMs: 5000, idleMs: 100 };
    await expect(
      made.transaction(limits, async (run) => {
        await run("SELECT pg_advisory_xact_lock(4711)");
        await sleep(1000);
        await run("SELECT 1");
      }),
    ).rejects.toEqual(agstateError("STORE_UNAVAILABLE"));
    await expect(
      made.transaction(limits, async (run) => {
        await run("SELECT pg_advisory_xact_lock(4711)");
        await run("SELECT 1 / 0");
      }),
    ).rejects.toEqual(agstateError("STORE_UNAVAILABLE", { code: "22012" }));
    await expectAtRest(name, 1);
    expect(await made.query("SELECT pg_try_advisory_xact_lock(4711) AS free")).toEqual([
      { free: true },
    ]);
    // Nothing of a transaction outlives it.
    expect(await made.query("SHOW idle_in_transaction_session_timeout")).toEqual([
      { idle_in_transaction_session_timeout: "0" },
    ]);
  });
});

describe("a pool whose connections are all in use", () => {
  it("lets nobody wait for ever", async () => {
    const made = connection(serverUrl(), { retryForMs: 200 });
    let end = () => {};
    const held = made.transaction(
      { statementMs: 60_000, idleMs: 60_000 },
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    await sleep(50);
    await expect(made.query("SELECT 1")).rejects.toEqual(
      agstateError("STORE_BUSY", { poolMax: 1 }),
    );
    end();
    await held;
    expect(await made.query("SELECT 1 AS answer")).toEqual([{ answer: 1 }]);
  });

  for (const poolMax of [1, 5]) {
    it(`of ${poolMax} is enough for 50 commits and merges at once whose resolver uses the store`, async () => {
      const { url, name } = named(schemaPlace());
      const store = await open(url, { limits: { poolMax } });
      const workflow = await store.createWorkflow("w", { state: { shared: 0 } });
      const branches = await Promise.all(
        Array.from({ length: 25 }, (_, k) => workflow.branch({ agent: `a${k}`, branch: "work" })),
      );
      let resolved = 0;
      const resolve = async () => {
        const log = await workflow.branch({ agent: "resolver", branch: `r${resolved++}` });
        await log.commit({ state: { seen: await workflow.stateAt("canonical") } });
        return { take: "theirs" } as const;
      };
      await Promise.all(
        branches.flatMap((branch, k) => [
          (async () => {
            for (let n = 1; n <= 3; n++) await branch.commit({ state: { shared: k + 1, n } });
          })(),
          (async () => {
            const own = await workflow.branch({ agent: `m${k}`, branch: "work" });
            await own.commit({ state: { shared: -k - 1 } });
            const into = await workflow.branch({ agent: `t${k % 5}`, branch: `into${k}` });
            await into.commit({ state: { shared: 1000 + k } });
            const result = await workflow.merge([`m${k}/work`], {
              into: `t${k % 5}/into${k}`,
              resolve,
            });
            expect(result.status).toBe("merged");
          })(),
        ]),
      );
      expect(resolved).toBe(25);
      for (let k = 0; k < 25; k++) {
        expect(await workflow.stateAt(`t${k % 5}/into${k}`)).toEqual({ shared: -k - 1 });
        expect(await workflow.stateAt(`a${k}/work`)).toEqual({ shared: k + 1, n: 3 });
      }
      expect((await workflow.fsck()).problems).toEqual([]);
      await expectAtRest(name, poolMax);
    });
  }
});

describe("a server that goes while nothing is under way", () => {
  it("is found again by the next calls when it was restarted, or when the sessions were ended", async () => {
    const server = await startServer();
    onTestFinished(() => server.remove());
    const { url, name } = named(`${server.url}?schema=idle`);
    const store = await openStore(url, { limits: { poolMax: 4 } });
    onTestFinished(() => store.close());
    const workflow = await store.createWorkflow("w");
    const canonical = await workflow.canonical();
    const fill = () => Promise.all(Array.from({ length: 10 }, () => workflow.stateAt("canonical")));
    for (let n = 1; n <= 3; n++) {
      await fill();
      await server.crash();
      await sleep(100);
      await server.start();
      await canonical.commit({ state: { n } });
      await fill();
      await withClient(
        (client) =>
          client.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
            [name],
          ),
        server.url,
      );
      await sleep(100);
      await canonical.commit({ state: { n, again: true } });
    }
    expect((await workflow.fsck()).commits).toBe(2 + 6);
  });
});
