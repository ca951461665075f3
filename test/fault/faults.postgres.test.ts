import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Branch, isAgstateError, migrateStore, openStore } from "../../src/index.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { startServer } from "../support/postgres-server.js";
import { agstateError } from "../support/stores.js";
import { startProxy } from "../support/tcp-proxy.js";
import { commitUntil, expectAcknowledged, withStore } from "../support/writers.js";

const WRITERS = 32;
const RUN_MS = 6000;

describe("a PostgreSQL server whose connections are terminated again and again", () => {
  it("loses no acknowledged commit under 32 writers, and makes none twice", async () => {
    const url = schemaPlace();
    await withStore(url, (store) => store.createWorkflow("w"));
    const until = performance.now() + RUN_MS;
    const over = () => performance.now() > until;
    let killed = 0;
    const terminate = withClient(async (client) => {
      while (!over()) {
        await sleep(200);
        const { rows } = await client.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'agstate' AND pid <> pg_backend_pid()
              AND query LIKE '%' || $1 || '%'`,
          [new URL(url).searchParams.get("schema")?.replaceAll('"', '""')],
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
    console.log(`${acknowledged.flat().length} commits, ${killed} connections terminated`);
    expect(killed).toBeGreaterThan(5);
    await expectAcknowledged(url, acknowledged);
  });
});

describe("a PostgreSQL server that crashes", () => {
  it("has every acknowledged commit when it is back, and writers go on by themselves", async () => {
    const server = await startServer();
    onTestFinished(() => server.remove());
    const url = `${server.url}?schema=crash`;
    await withStore(url, (store) => store.createWorkflow("w"));
    let over = false;
    const acknowledged = await withStore(url, async (store) => {
      const workflow = await store.workflow("w");
      const writers = Array.from({ length: 8 }, (_, k) =>
        commitUntil(workflow, `a${k}`, () => over),
      );
      for (let crashes = 0; crashes < 3; crashes++) {
        await sleep(800);
        await server.crash();
        await sleep(300);
        await server.start();
      }
      await sleep(500);
      over = true;
      return Promise.all(writers);
    });
    console.log(`${acknowledged.flat().length} commits over 3 crashes`);
    expect(acknowledged.every((ids) => ids.length > 0)).toBe(true);
    await expectAcknowledged(url, acknowledged);
  });
});

describe("a network that loses answers", () => {
  it("makes no commit twice where the answer to the commit is lost", async () => {
    const url = schemaPlace();
    await withStore(url, (store) => store.createWorkflow("w"));
    const direct = new URL(url);
    const proxy = await startProxy(direct.hostname, Number(direct.port));
    const through = new URL(url);
    through.port = String(proxy.port);
    await withStore(through.toString(), async (store) => {
      const workflow = await store.workflow("w");
      const branch = await workflow.branch({ agent: "a0", branch: "work" });
      const ids: string[] = [];
      for (let n = 1; n <= 30; n++) {
        if (n % 3 === 0) proxy.loseNextAnswer();
        if (n % 7 === 0) proxy.cut();
        ids.push((await branch.commit({ state: { n } })).id);
      }
      expect(proxy.lost).toBe(10);
      await expectAcknowledged(url, [ids]);
    });
  });

  it("tells of a server that cannot be reached, and goes on when it can again", async () => {
    const nowhere = new URL(serverUrl());
    nowhere.port = "1";
    await expect(openStore(nowhere.toString(), { limits: { busyTimeoutMs: 300 } })).rejects.toEqual(
      agstateError("STORE_UNAVAILABLE"),
    );
  });
});

describe("writers of one ref, from two stores", () => {
  it("count exactly, and meet conflicts", async () => {
    const url = schemaPlace();
    await withStore(url, async (one) => {
      await one.createWorkflow("w", { state: { n: 0 } });
      await withStore(url, async (two) => {
        let conflicts = 0;
        const count = async (branch: Branch) => {
          for (let done = 0; done < 40; ) {
            const { n } = (await branch.state()) as { n: number };
            try {
              await branch.commit({ state: { n: n + 1 } });
              done++;
            } catch (error) {
              if (!isAgstateError(error, "REF_CONFLICT")) throw error;
              conflicts++;
              await branch.refresh();
            }
          }
        };
        await Promise.all(
          [one, two].map(async (store) => count(await (await store.workflow("w")).canonical())),
        );
        const workflow = await one.workflow("w");
        expect(await workflow.stateAt("canonical")).toEqual({ n: 80 });
        expect(conflicts).toBeGreaterThan(0);
      });
    });
  });
});

describe("a commit", () => {
  it("is one round trip, whatever it holds; commits that come together are one as well", async () => {
    const url = schemaPlace();
    let counter: ReturnType<typeof counting> | undefined;
    const store = await openStore(url, {
      wrap: (storage) => {
        counter = counting(storage);
        return counter.storage;
      },
    });
    try {
      const workflow = await store.createWorkflow("w");
      const branches = await Promise.all(
        Array.from({ length: 20 }, (_, k) => workflow.branch({ agent: `a${k}`, branch: "work" })),
      );
      // Reads what its branch holds.
      await branches[0]?.commit({ state: { n: 0 } });
      counter?.reset();
      await branches[0]?.commit({
        state: { large: Array.from({ length: 2000 }, (_, i) => `element ${i}`) },
        step: { action: "inference", record: { output: "x".repeat(5000) } },
      });
      expect(counter?.counts().roundTrips).toBe(1);

      const together = await Promise.all(
        branches.map((branch) => branch.commit({ message: "go" })),
      );
      expect(counter?.counts().roundTrips).toBe(1 + branches.length);
      // Rows that one transaction made have its number.
      await withClient(async (client) => {
        const schema = client.escapeIdentifier(new URL(url).searchParams.get("schema") as string);
        const { rows } = await client.query<{ transactions: string }>(
          `SELECT count(DISTINCT xmin::text) AS transactions FROM ${schema}.commits
            WHERE encode(id, 'hex') = ANY ($1::text[])`,
          [together.map(({ id }) => id)],
        );
        expect(Number(rows[0]?.transactions)).toBeLessThanOrEqual(2);
      });
    } finally {
      await store.close();
    }
  });
});

describe("migrations", () => {
  it("are made once by 20 stores that open at the same time, in a schema whose name must be quoted", async () => {
    const url = schemaPlace();
    const stores = await Promise.all(Array.from({ length: 20 }, () => openStore(url)));
    const ids = await Promise.all(stores.map(async (store) => (await store.describe()).storeId));
    expect(new Set(ids).size).toBe(1);
    await Promise.all(stores.map((store) => store.close()));
  });

  it("are not made unless asked, and a newer schema is refused", async () => {
    const url = schemaPlace();
    await expect(openStore(url, { create: false })).rejects.toEqual(
      agstateError("STORE_NOT_FOUND"),
    );
    await withStore(url, async (store) => store.createWorkflow("w"));
    const schema = new URL(url).searchParams.get("schema") as string;
    await withClient(async (client) => {
      const table = `${client.escapeIdentifier(schema)}.migrations`;
      await client.query(`INSERT INTO ${table} (name) VALUES ('9999-later.sql')`);
    });
    await expect(openStore(url)).rejects.toEqual(agstateError("STORE_TOO_NEW", { version: 9999 }));
  });

  it("can be looked at, and made, apart from opening", async () => {
    const url = schemaPlace();
    const look = await migrateStore(url, { dryRun: true });
    expect(look.applied).toEqual([]);
    expect(look.pending.length).toBeGreaterThan(1);
    await expect(openStore(url, { create: false })).rejects.toEqual(
      agstateError("STORE_NOT_FOUND"),
    );
    expect(await migrateStore(url)).toEqual(look);
    expect(await migrateStore(url)).toMatchObject({ applied: look.pending, pending: [] });
    await (await openStore(url, { create: false })).close();
  });

  it("refuses URLs that name no schema that PostgreSQL could have", async () => {
    for (const schema of ["", "x".repeat(64), "pg_agents", "$user", "information_schema"]) {
      await expect(openStore(`postgres://localhost/db?schema=${schema}`)).rejects.toEqual(
        agstateError("INVALID_ARGUMENT"),
      );
    }
  });
});
