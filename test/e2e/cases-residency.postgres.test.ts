import { describe, expect, it, onTestFinished } from "vitest";
import { AgstateError, openStore, type Storage } from "../../src/index.js";
import { randomHex } from "../../src/testing/index.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { makeGround } from "../support/regions.js";
import { expectRefused, lowerEu, REFUSED } from "../support/residency-cases.js";
import { agstateError, all } from "../support/stores.js";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.js";

const EU = { storageRegion: "eu" } as const;
const QUICK = { limits: { busyTimeoutMs: 200 } } as const;

/** Two regions and the catalogue on a server, and a region in a directory. */
async function serverGround() {
  const stores = { eu: schemaPlace(), us: schemaPlace(), catalogue: schemaPlace() };
  return { stores, ground: await makeGround(["eu", "us", "lab"], stores) };
}

async function through(url: string): Promise<{ proxy: TcpProxy; url: string }> {
  const { hostname, port } = new URL(serverUrl());
  const proxy = await startProxy(hostname, Number(port));
  const other = new URL(url);
  other.hostname = "127.0.0.1";
  other.port = String(proxy.port);
  return { proxy, url: other.toString() };
}

describe("regions on a server", () => {
  it("keep each workflow in its own store, and its state nowhere else", async () => {
    const { stores, ground } = await serverGround();
    const { regions } = await ground.open();
    for (const region of ["eu", "us", "lab"]) {
      const state = { secret: `marker-of-${region}` };
      const options = { classification: "regulated", storageRegion: region, state } as const;
      const workflow = await regions.createWorkflow(`w-${region}`, options);
      const branch = await workflow.branch({ agent: "a", branch: "x" });
      await branch.commit({ state: { ...state, more: `marker-of-${region}` } });
    }
    await regions.close();
    const { regions: later } = await ground.open();
    for (const region of ["eu", "us", "lab"]) {
      const state = await (await later.workflow(`w-${region}`)).stateAt("agents/a/x", "/more");
      expect(state).toBe(`marker-of-${region}`);
      expect((await all((await later.store(region)).workflows())).map(({ id }) => id)).toEqual([
        `w-${region}`,
      ]);
    }
    expect(await later.regions()).toMatchObject(
      ["eu", "us", "lab"].map((name) => ({ name, problem: null })),
    );
    await later.close();
    for (const [name, url] of Object.entries(stores)) {
      const found = await markersIn(url);
      expect(found, name).toEqual(name === "catalogue" ? [] : [`marker-of-${name}`]);
    }
  });

  it("let one of several win who create one id in three regions at once", async () => {
    const { ground } = await serverGround();
    const names = ["eu", "us", "lab"];
    for (let round = 0; round < 3; round++) {
      const outcomes = await Promise.allSettled(
        names.map(async (storageRegion) => {
          const { regions } = await ground.open();
          await regions.createWorkflow(`w${round}`, { storageRegion });
          return storageRegion;
        }),
      );
      const won = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      expect(won).toHaveLength(1);
      for (const one of outcomes) {
        if (one.status === "rejected") expect(one.reason).toEqual(agstateError("WORKFLOW_EXISTS"));
      }
      const { regions } = await ground.open();
      for (const name of names) {
        const ids = (await all((await regions.store(name)).workflows())).map(({ id }) => id);
        expect(ids.includes(`w${round}`), name).toBe(name === won[0]);
      }
    }
  });
});

describe("residency on a server fails closed (RES-01)", () => {
  it("refuses what it refuses anywhere, and no row of any table changes", async () => {
    const { ground } = await serverGround();
    for (const [given, code, details] of REFUSED) {
      // Who may hold what, in messages, counts the third region.
      const { others: _, ...rest } = details ?? {};
      await expectRefused(ground, given as object, {
        code,
        details: rest,
        config: lowerEu(ground),
      });
    }
  });

  it("writes nothing elsewhere with a region's server down, before and after it was opened", async () => {
    const { ground, stores } = await serverGround();
    const { proxy, url } = await through(stores.eu);
    const eu = { ...ground.config.regions.eu!, store: url };
    const config = { ...ground.config, regions: { ...ground.config.regions, eu } };
    const { regions, writes } = await ground.open(QUICK, config);
    await regions.createWorkflow("there", EU);
    const before = await ground.contents();
    const written = writes.length;
    proxy.refuse();
    proxy.cut();
    await expect(regions.createWorkflow("w", EU)).rejects.toEqual(
      agstateError("STORE_UNAVAILABLE"),
    );
    expect(writes.slice(written)).toEqual([]);
    expect(await ground.contents()).toEqual(before);
    await regions.close();
    await expectRefused(ground, EU, {
      code: "STORE_UNAVAILABLE",
      details: { region: "eu" },
      config,
      opens: [null],
      options: QUICK,
    });
    // The others go on.
    const { regions: others } = await ground.open(QUICK, config);
    await others.createWorkflow("w", { storageRegion: "us" });
  });

  it("writes nothing with the catalogue's server down", async () => {
    const { ground, stores } = await serverGround();
    const { proxy, url } = await through(stores.catalogue);
    proxy.refuse();
    await expectRefused(ground, EU, {
      code: "STORE_UNAVAILABLE",
      details: { catalogue: true },
      config: { ...ground.config, catalogue: url },
      opens: [],
      options: QUICK,
    });
  });

  it("refuses a schema that stands where another did, and one that is not there", async () => {
    const { ground, stores } = await serverGround();
    const { regions } = await ground.open();
    await regions.createWorkflow("there", EU);
    await regions.close();
    const { config } = ground;
    const swapped = schemaPlace();
    await (await openStore(swapped, { region: "eu" })).close();
    for (const [store, code] of [
      [swapped, "STORE_MISMATCH"],
      [stores.us, "STORE_MISMATCH"],
      [schemaPlace(), "STORE_NOT_FOUND"],
    ] as const) {
      const eu = { ...config.regions.eu!, store };
      await expectRefused(ground, EU, {
        code,
        details: { region: "eu" },
        config: { ...config, regions: { eu, lab: config.regions.lab! } },
      });
    }
  });

  it("shows no password, whatever fails", async () => {
    const { ground } = await serverGround();
    const { config } = ground;
    const role = `agstate_test_${randomHex(6)}`;
    await withClient((client) =>
      client.query(`CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD 'hunter2 %'`),
    );
    onTestFinished(async () => {
      await withClient((client) => client.query(`DROP ROLE ${role}`));
    });
    const url = new URL(config.regions.eu!.store);
    url.username = role;
    url.password = "hunter2 %";
    const eu = { ...config.regions.eu!, store: url.toString() };
    const failing = (storage: Storage, region: string | null): Storage => {
      const failure = new AgstateError(
        "STORE_UNAVAILABLE",
        `cannot use ${url}: hunter2 %`,
        { url: String(url) },
        { cause: new Error("hunter2 %") },
      );
      return region === "eu" ? { ...storage, describe: () => Promise.reject(failure) } : storage;
    };
    const { regions } = await ground.open(
      { wrap: failing },
      { ...config, regions: { ...config.regions, eu } },
    );
    onTestFinished(() => regions.close());
    const [status] = await regions.regions();
    const { message, details, cause } = status?.problem ?? new AgstateError("INTERNAL", "", {});
    expect(message).toContain("region eu: cannot use");
    expect(details).toMatchObject({ region: "eu" });
    expect(JSON.stringify([status?.url, message, details, String(cause)])).not.toContain("hunter2");
  });
});

/** Every text like a payload's marker that any table of a store holds, as bytes or as text. */
function markersIn(url: string): Promise<string[]> {
  return withClient(async (client) => {
    const schema = schemaOf(url);
    const tables = await client.query<{ name: string }>(
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE quote_ident(schemaname) = $1",
      [schema],
    );
    const found = new Set<string>();
    for (const { name } of tables.rows) {
      const { rows } = await client.query<Record<string, unknown>>(
        `SELECT * FROM ${schema}.${name}`,
      );
      for (const value of rows.flatMap((row) => Object.values(row))) {
        const text = Buffer.isBuffer(value) ? value.toString("latin1") : String(value);
        for (const [marker] of text.matchAll(/marker-of-[a-z]+/g)) found.add(marker);
      }
    }
    return [...found].sort();
  });
}
