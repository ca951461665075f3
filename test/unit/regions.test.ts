import { cpSync, renameSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openRegions, openStore, type RegionsConfig, type Storage } from "../../src/index.js";
import { ALL, makeGround, variable } from "../support/regions.js";
import { agstateError, all } from "../support/stores.js";

const SENSITIVE = { classification: "sensitive", storageRegion: "eu" } as const;

describe("regions", () => {
  it("keep a workflow in its region, and its place alone in the catalogue", async () => {
    const { config, open } = await makeGround();
    const { regions, writes } = await open();
    const made = await regions.createWorkflow("trip 1/b", {
      ...SENSITIVE,
      state: { secret: "MARKER" },
      author: "agent-marker",
    });
    expect(made.info).toMatchObject({ ...SENSITIVE, id: "trip 1/b" });
    // The catalogue's workflow, the place, the workflow.
    expect(writes).toEqual(["catalogue", "catalogue", "eu"]);
    await regions.createWorkflow("other", { storageRegion: "us" });
    expect(writes.slice(3)).toEqual(["catalogue", "us"]);

    const { regions: later, writes: none } = await open();
    expect(await (await later.workflow("trip 1/b")).stateAt("canonical")).toEqual({
      secret: "MARKER",
    });
    const placements = await all(later.workflows());
    expect(placements.sort((a, b) => (a.workflow < b.workflow ? -1 : 1))).toEqual([
      {
        workflow: "other",
        region: "us",
        classification: "internal",
        storeId: expect.stringMatching(/^[0-9a-f]{32}$/),
      },
      {
        workflow: "trip 1/b",
        region: "eu",
        classification: "sensitive",
        storeId: (await later.regions())[0]?.storeId,
      },
    ]);
    expect(none).toEqual([]);
    await later.close();
    await regions.close();

    const catalogue = await openStore(config.catalogue as string, { create: false });
    const workflow = await catalogue.workflow("agstate-catalogue");
    expect((await workflow.fsck()).problems).toEqual([]);
    const { storage } = workflow.internals;
    const bodies: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await storage.scanObjects(workflow.id, after ?? null, 100);
      for (const row of page.rows) if ("body" in row) bodies.push(Buffer.from(row.body).toString());
      if (page.next === null) break;
      after = page.next;
    }
    for await (const commit of workflow.log()) bodies.push(commit.message);
    for (const { id } of await workflow.refs()) {
      const [commit] = await storage.readCommits(workflow.id, [id as never]);
      bodies.push(Buffer.from(commit?.body ?? []).toString());
    }
    expect(bodies.join("\n")).toContain("trip 1/b");
    expect(bodies.join("\n")).not.toMatch(/marker/i);
    await catalogue.close();
  });

  it("open each store once, and only when it is needed", async () => {
    const { open } = await makeGround();
    const opened: (string | null)[] = [];
    const { regions } = await open({
      wrap: (storage, region) => {
        opened.push(region);
        return storage;
      },
    });
    expect(opened).toEqual([]);
    await Promise.all(
      ["a", "b", "c"].map((id) => regions.createWorkflow(id, { storageRegion: "eu" })),
    );
    await all(regions.workflows());
    expect(opened).toEqual([null, "eu"]);
    await (await regions.store("us")).describe();
    expect(opened).toEqual([null, "eu", "us"]);
    await regions.close();
    await expect(regions.workflow("a")).rejects.toEqual(agstateError("STORE_CLOSED"));
    await regions.close();
  });

  it("fill in what the file says for those who leave it out, and record that", async () => {
    const { config, open } = await makeGround();
    const defaults = {
      classification: "public",
      retentionPolicy: "P30D",
      isolation: ["/state/email"],
    } as const;
    const { regions } = await open({}, { ...config, defaults });
    const left = await regions.createWorkflow("left", { storageRegion: "eu" });
    expect(left.info).toMatchObject(defaults);
    expect(await left.stateAt("audit/workflow")).toMatchObject({
      ...defaults,
      defaulted: ["classification", "isolation", "retentionPolicy"],
    });
    const said = await regions.createWorkflow("said", {
      ...SENSITIVE,
      retentionPolicy: "P1D",
      isolation: [],
    });
    expect(said.info).toMatchObject({ ...SENSITIVE, retentionPolicy: "P1D", isolation: [] });
    expect(await said.stateAt("audit/workflow")).not.toHaveProperty("defaulted");
  });

  it("let one of several win who create one id in two regions at once", async () => {
    const { open } = await makeGround();
    for (let round = 0; round < 5; round++) {
      const id = `w${round}`;
      const outcomes = await Promise.allSettled(
        Array.from({ length: 6 }, async (_, i) => {
          const { regions } = await open();
          await regions.createWorkflow(id, { storageRegion: i % 2 === 0 ? "eu" : "us" });
          return i % 2 === 0 ? "eu" : "us";
        }),
      );
      const won = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      expect(won).toHaveLength(1);
      for (const one of outcomes) {
        if (one.status === "rejected") expect(one.reason).toEqual(agstateError("WORKFLOW_EXISTS"));
      }
      const { regions } = await open();
      expect((await regions.workflow(id)).info.storageRegion).toBe(won[0]);
      const other = await regions.store(won[0] === "eu" ? "us" : "eu");
      expect((await all(other.workflows())).map((info) => info.id)).not.toContain(id);
    }
  });

  it("finish what was cut off between the place and the workflow, and nothing else", async () => {
    const { open } = await makeGround();
    const { regions } = await open({ wrap: (storage, region) => cutOff(storage, region === "eu") });
    await expect(regions.createWorkflow("w", SENSITIVE)).rejects.toThrow("cut off");

    const { regions: later, writes } = await open();
    await expect(later.workflow("w")).rejects.toEqual(
      agstateError("WORKFLOW_NOT_FOUND", { region: "eu", unfinished: true }),
    );
    await expect(later.createWorkflow("w", { storageRegion: "us" })).rejects.toEqual(
      agstateError("WORKFLOW_EXISTS", { region: "eu" }),
    );
    await expect(
      later.createWorkflow("w", { ...SENSITIVE, classification: "public" }),
    ).rejects.toEqual(agstateError("REGION_REFUSED", { classification: "sensitive" }));
    expect(writes).toEqual([]);
    await later.createWorkflow("w", { ...SENSITIVE, state: { n: 1 } });
    expect(writes).toEqual(["eu"]);
    expect(await (await later.workflow("w")).stateAt("canonical")).toEqual({ n: 1 });
    await expect(later.createWorkflow("w", SENSITIVE)).rejects.toEqual(
      agstateError("WORKFLOW_EXISTS", { region: "eu" }),
    );
  });

  it("do not serve a workflow that the catalogue does not know before it is adopted", async () => {
    const { config, open } = await makeGround();
    const eu = await openStore(config.regions.eu!.store);
    await eu.createWorkflow("w", { ...SENSITIVE, state: { n: 1 } });
    await eu.createWorkflow("bare");
    await eu.close();

    const { regions, writes } = await open();
    await expect(regions.workflow("w")).rejects.toThrow(/adopt/);
    await expect(regions.workflow("w")).rejects.toEqual(agstateError("WORKFLOW_NOT_FOUND"));
    await expect(regions.createWorkflow("w", SENSITIVE)).rejects.toEqual(
      agstateError("REGION_REFUSED", { region: "eu" }),
    );
    await expect(regions.adopt("w", "us")).rejects.toEqual(agstateError("WORKFLOW_NOT_FOUND"));
    expect(writes).toEqual([]);
    const placement = await regions.adopt("w", "eu");
    expect(placement).toMatchObject({ workflow: "w", region: "eu", classification: "sensitive" });
    expect(await regions.adopt("w", "eu")).toEqual(placement);
    expect(await (await regions.workflow("w")).stateAt("canonical")).toEqual({ n: 1 });
    await regions.adopt("bare", "eu");
    expect((await regions.workflow("bare")).info.storageRegion).toBeNull();
    await regions.createWorkflow("there", { storageRegion: "us" });
    await (await regions.store("eu")).createWorkflow("there");
    await expect(regions.adopt("there", "eu")).rejects.toEqual(agstateError("WORKFLOW_EXISTS"));
  });

  it("refuse a workflow that says otherwise than the catalogue", async () => {
    const { open } = await makeGround();
    const { regions: placing } = await open({
      wrap: (storage, region) => cutOff(storage, region === "eu"),
    });
    await expect(placing.createWorkflow("w", SENSITIVE)).rejects.toThrow("cut off");
    const { regions } = await open();
    await (await regions.store("eu")).createWorkflow("w", { classification: "public" });
    await expect(regions.workflow("w")).rejects.toEqual(
      agstateError("REGION_REFUSED", { classification: "sensitive" }),
    );
  });

  it("refuse a store that is of another region, of none, pinned as another, or a copy", async () => {
    const { config, directory, open } = await makeGround();
    const { eu, us } = config.regions as Record<"eu" | "us", (typeof config.regions)[string]>;
    const { regions: first } = await open();
    const [{ storeId = "" } = {}] = (await first.regions()) as { storeId: string }[];
    await first.close();
    await (await openStore(`sqlite:${join(directory, "bare")}`)).close();
    await (await openStore(`sqlite:${join(directory, "eu2")}`, { region: "eu" })).close();
    const place = (name: string) => ({ ...eu, store: `sqlite:${join(directory, name)}` });
    const refused: [RegionsConfig["regions"], Record<string, unknown>][] = [
      [{ eu: us }, { expected: "eu", found: "us" }],
      [{ eu: place("bare") }, { expected: "eu", found: null }],
      [{ eu: { ...place("eu2"), storeId } }, { expected: storeId }],
      // The file says that this very store is another region's.
      [{ eu, us: { ...us, storeId } }, { other: "us" }],
    ];
    for (const [regions, details] of refused) {
      const { regions: opened, writes } = await open({}, { ...config, regions });
      const creating = opened.createWorkflow("w", { storageRegion: "eu" });
      await expect(creating).rejects.toEqual(
        agstateError("STORE_MISMATCH", { region: "eu", ...details }),
      );
      expect(writes).toEqual([]);
      await opened.close();
    }
    const pinned = { ...config, regions: { eu: { ...eu, storeId } } };
    const { regions } = await open({}, pinned);
    await regions.createWorkflow("w", { storageRegion: "eu" });
    await regions.close();

    // Another store in its place: by the pin, by what the catalogue met, and by the workflow's own place.
    renameSync(join(directory, "eu"), join(directory, "eu-before"));
    cpSync(join(directory, "eu2"), join(directory, "eu"), { recursive: true });
    for (const other of [pinned, config]) {
      const { regions: swapped } = await open({}, other);
      await expect(swapped.workflow("w")).rejects.toEqual(
        agstateError("STORE_MISMATCH", { expected: storeId }),
      );
      await expect(swapped.store("eu")).rejects.toEqual(agstateError("STORE_MISMATCH"));
    }
    const found = await openStore(config.regions.eu!.store);
    const repinned = { eu: { ...eu, storeId: (await found.describe()).storeId } };
    await found.close();
    const { regions: replaced } = await open({}, { ...config, regions: repinned });
    await replaced.store("eu");
    await expect(replaced.workflow("w")).rejects.toEqual(
      agstateError("STORE_MISMATCH", { workflow: "w", expected: storeId }),
    );
  });

  it("refuse a catalogue that is pinned as another, and one whose places were changed", async () => {
    const { config, open } = await makeGround();
    const store = config.catalogue as string;
    const pinned = { ...config, catalogue: { store, storeId: "0".repeat(32) } };
    const { regions } = await open({}, pinned);
    await expect(regions.createWorkflow("w", SENSITIVE)).rejects.toEqual(
      agstateError("STORE_MISMATCH", { catalogue: true, expected: "0".repeat(32) }),
    );
    expect(await regions.catalogue()).toMatchObject({
      storeId: null,
      problem: { code: "STORE_MISMATCH" },
    });
    const { regions: good } = await open();
    await good.createWorkflow("w", SENSITIVE);
    await good.createWorkflow("v", { storageRegion: "us" });
    const catalogue = await openStore(store);
    const { refs } = (await catalogue.workflow("agstate-catalogue")).internals;
    const [one, two] = await refs.list("refs/placements/");
    const note = { actor: "x", reason: "x" };
    for (const target of [two?.id as never, null]) {
      const update = { ref: one?.name as string, expect: { kind: "any" }, target, note } as const;
      await refs.apply({ updates: [update] });
      const { regions: after } = await open();
      const creating = ["w", "v"].map((id) => after.createWorkflow(id, { storageRegion: "us" }));
      const reasons = (await Promise.allSettled(creating)).map(
        (outcome) => outcome.status === "rejected" && outcome.reason,
      );
      // Which of the two it was is in the digest of its id.
      expect(reasons).toContainEqual(agstateError("STORE_DAMAGED"));
      expect(reasons).toContainEqual(agstateError("WORKFLOW_EXISTS"));
    }
    await catalogue.close();
  });

  it("keep the catalogue's id for it, and check names as stores do", async () => {
    const { open } = await makeGround();
    const { regions, writes } = await open();
    for (const id of ["agstate-catalogue", "", " w", "a:b"]) {
      await expect(regions.createWorkflow(id, SENSITIVE)).rejects.toEqual(
        agstateError("INVALID_NAME"),
      );
    }
    expect(writes).toEqual([]);
  });

  it("take a configuration as a value, with what its variables stand for", async () => {
    const { config, directory } = await makeGround(["eu"]);
    const template = { eu: { store: `sqlite:${variable("AT")}/eu`, classifications: ALL } };
    await expect(openRegions({ ...config, regions: template })).rejects.toEqual(
      agstateError("INVALID_VALUE", { at: "/regions/eu/store" }),
    );
    const environment = { AT: directory };
    await using regions = await openRegions({ ...config, regions: template }, { environment });
    const [eu] = await regions.regions();
    expect(eu).toMatchObject({ name: "eu", url: template.eu.store, problem: null });
    await regions.createWorkflow("w", SENSITIVE);
  });
});

/** A storage whose writer dies before it writes. */
function cutOff(storage: Storage, cut: boolean): Storage {
  if (!cut) return storage;
  return { ...storage, write: () => Promise.reject(new Error("cut off")) };
}
