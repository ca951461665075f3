import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { isAgstateError, openStore } from "../../src/index.js";
import { startChild } from "../support/child-processes.js";
import { type Ground, makeGround, writeRegionsFile } from "../support/regions.js";
import { usually } from "../support/runs.js";
import { agstateError, all } from "../support/stores.js";

const CREATE = new URL("./children/create-in-regions.mjs", import.meta.url);
const NAMES = ["eu", "us"];
const KILLS = usually(8, 60);
const RACES = 20;

/** Holds that every store is sound, and that no workflow is in two of them. */
async function expectSoundAndApart({ config }: Ground): Promise<void> {
  const ids: string[] = [];
  for (const url of [config.catalogue as string, ...NAMES.map((n) => config.regions[n]!.store)]) {
    const store = await openStore(url, { create: false });
    expect(await store.checkStructure()).toEqual([]);
    for await (const { id } of store.workflows()) {
      ids.push(id);
      expect((await (await store.workflow(id)).fsck()).problems).toEqual([]);
    }
    await store.close();
  }
  expect(new Set(ids).size).toBe(ids.length);
}

describe("a process that creates workflows in regions", () => {
  it("leaves a place that the next one fills, when it dies between the two writes", async () => {
    const ground = await makeGround(NAMES);
    const file = writeRegionsFile(ground.directory, ground.config);
    const child = startChild(CREATE, { file, regions: ["eu"], from: 0, to: 1, stopAt: "eu" });
    await child.said("placed");
    child.kill();
    expect((await child.ended).signal, child.errors()).toBe("SIGKILL");

    const { regions } = await ground.open();
    await expect(regions.workflow("w0")).rejects.toEqual(
      agstateError("WORKFLOW_NOT_FOUND", { region: "eu", unfinished: true }),
    );
    const next = startChild(CREATE, { file, regions: NAMES, from: 0, to: 1 });
    await next.said("created");
    expect((await next.ended).code, next.errors()).toBe(0);
    expect(await (await regions.workflow("w0")).stateAt("canonical", "/n")).toBe(0);
    await expectSoundAndApart(ground);
  });

  it("leaves nothing else, whenever it dies", async () => {
    const ground = await makeGround(NAMES);
    const file = writeRegionsFile(ground.directory, ground.config);
    let from = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = startChild(CREATE, { file, regions: NAMES, from, to: from + 1000 });
      await child.said("created");
      await sleep(Math.random() * 20);
      child.kill();
      expect((await child.ended).signal, child.errors()).toBe("SIGKILL");
      const { regions } = await ground.open();
      const created = child.lines.filter((line) => line.startsWith("created "));
      for (const line of created) {
        const [, n, region] = line.split(" ");
        expect((await regions.workflow(`w${n}`)).info.storageRegion).toBe(region);
      }
      // What it was about when it died: nothing, a place, or all.
      from += created.length;
      const about = `w${from}`;
      const placement = (await all(regions.workflows())).find((one) => one.workflow === about);
      const served = await regions.workflow(about).then(
        () => true,
        (error: unknown) => {
          expect(isAgstateError(error, "WORKFLOW_NOT_FOUND")).toBe(true);
          return false;
        },
      );
      if (served) expect(placement).toBeDefined();
      const storageRegion = placement?.region ?? (NAMES[from % NAMES.length] as string);
      if (!served) await regions.createWorkflow(about, { storageRegion });
      from++;
      await regions.close();
    }
    await expectSoundAndApart(ground);
  });

  it("is one of two that race, each for another region", async () => {
    const ground = await makeGround(NAMES);
    const file = writeRegionsFile(ground.directory, ground.config);
    const children = NAMES.map((name) =>
      startChild(CREATE, { file, regions: [name], from: 0, to: RACES, together: true }),
    );
    for (const child of children) await child.said("ready");
    for (const child of children) child.go();
    for (const child of children) expect((await child.ended).code, child.errors()).toBe(0);
    const { regions } = await ground.open();
    for (let n = 0; n < RACES; n++) {
      const { storageRegion } = (await regions.workflow(`w${n}`)).info;
      for (const [i, child] of children.entries()) {
        const word = NAMES[i] === storageRegion ? "created" : "exists";
        expect(child.lines).toContain(`${word} ${n} ${storageRegion}`);
      }
    }
    await expectSoundAndApart(ground);
  });
});
