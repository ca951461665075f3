import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openRegions, openStore, type RegionConfig } from "../../src/index.js";
import { withClient } from "../support/postgres.js";
import { startServer } from "../support/postgres-server.js";
import { ALL } from "../support/regions.js";
import { usually } from "../support/runs.js";
import { all } from "../support/stores.js";
import { Agent, type Declared, dice, markOf } from "./agents.js";
import { textsInFiles, textsInTables } from "./bytes.js";

const WORKFLOWS: readonly Declared[] = [
  { id: "w-eu", home: "eu", customer: "us", visits: "ap", inference: "us", result: "ap" },
  { id: "w-us", home: "us", customer: "eu", visits: "eu", inference: "us", result: "eu" },
  { id: "w-ap", home: "ap", customer: "eu", visits: "us", inference: "eu", result: "ap" },
];

/** Refuses ids of workflows, and so has a stream of its own. */
const CATALOGUE = "agstate-catalogue";

const SEED = Number(process.env.AGSTATE_SEED ?? 20260731);
const OPERATIONS = usually(750, 10_000);
const AGENTS = 4;

it(`keeps what belongs to a region there, whatever agents copy (seed ${SEED})`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "agstate-residency-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [eu, us] = await Promise.all([startServer(), startServer()]);
  onTestFinished(async () => {
    await Promise.all([eu.remove(), us.remove()]);
  });
  const urls = {
    eu: `${eu.url}?schema=agents`,
    us: `${us.url}?schema=agents`,
    ap: `sqlite:${join(folder, "ap")}`,
  };
  const regions: Record<string, RegionConfig> = {};
  for (const [name, store] of Object.entries(urls)) {
    await (await openStore(store, { region: name })).close();
    regions[name] = { store, classifications: ALL };
  }
  const catalogue = `sqlite:${join(folder, "catalogue")}`;
  await (await openStore(catalogue)).close();
  const config = { catalogue, regions };

  const first = await openRegions(config);
  for (const { id, home, customer, visits, inference, result } of WORKFLOWS) {
    await first.createWorkflow(id, {
      storageRegion: home,
      classification: "sensitive",
      placement: [
        ...(customer === home ? [] : [{ path: "/state/customer", region: customer }]),
        ...(visits === home ? [] : [{ path: "/state/visits/*", region: visits }]),
        ...(inference === home ? [] : [{ phase: "inference" as const, region: inference }]),
        ...(result === home ? [] : [{ phase: "result" as const, region: result }]),
      ],
      state: { customer: {}, visits: [], notes: "", log: [], text: "", round: 0 },
    });
  }
  await first.close();

  const agents: Agent[] = [];
  const started = Date.now();
  await Promise.all(
    Array.from({ length: AGENTS }, async (_, i) => {
      const own = await openRegions(config);
      try {
        const agent = new Agent(`agent-${i}`, own, WORKFLOWS, dice(SEED + i));
        agents.push(agent);
        await agent.run(OPERATIONS / AGENTS);
      } finally {
        await own.close();
      }
    }),
  );
  const seconds = (Date.now() - started) / 1000;

  expect(agents.flatMap(({ wrong }) => wrong).slice(0, 10)).toEqual([]);
  const refusals = sum(agents.map((agent) => agent.refusals));
  console.log(
    `${OPERATIONS} operations in ${seconds.toFixed(0)} s; refused ${total(refusals)}:`,
    Object.fromEntries([...refusals].sort()),
    Object.fromEntries([...sum(agents.map((agent) => agent.operations))].sort()),
  );
  expect(total(refusals)).toBeGreaterThan(OPERATIONS / 10);

  // Every refusal is in the stream of the workflow to which it happened.
  const told = await openRegions(config);
  onTestFinished(() => told.close());
  const ofCatalogue = await openStore(catalogue);
  onTestFinished(() => ofCatalogue.close());
  const refused = sum(agents.map((agent) => agent.refused));
  for (const id of [...WORKFLOWS.map((one) => one.id), CATALOGUE]) {
    const workflow = await (id === CATALOGUE ? ofCatalogue : told).workflow(id);
    const events = (await all(workflow.audit({ refs: "audit/events" }))).filter(
      ({ kind }) => kind === "refused",
    );
    const times = events.map(({ facts }) => Number(facts?.times));
    expect({ id, times: times.reduce((a, b) => a + b, 0) }).toEqual({ id, times: refused.get(id) });
    expect((await workflow.verifyAudit()).problems).toEqual([]);
    expect((await workflow.fsck()).problems).toEqual([]);
  }

  for (const server of [eu, us]) {
    await withClient((client) => client.query("CHECKPOINT"), server.url);
  }
  const names = Object.keys(urls);
  const marks = names.map(markOf);
  const files = {
    eu: eu.directory,
    us: us.directory,
    ap: join(folder, "ap"),
    catalogue: join(folder, "catalogue"),
  };
  for (const [name, place] of Object.entries(files)) {
    const found = textsInFiles(place, marks);
    expect({ in: name, found: [...found] }).toEqual({
      in: name,
      found: name === "catalogue" ? [] : [[markOf(name), expect.any(String)]],
    });
  }
  for (const name of ["eu", "us"] as const) {
    const found = await textsInTables(urls[name], marks);
    expect({ in: name, found: [...found.keys()] }).toEqual({ in: name, found: [markOf(name)] });
  }
});

function sum(counts: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const all = new Map<string, number>();
  for (const [what, times] of counts.flatMap((one) => [...one])) {
    all.set(what, (all.get(what) ?? 0) + times);
  }
  return all;
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((a, b) => a + b, 0);
}
