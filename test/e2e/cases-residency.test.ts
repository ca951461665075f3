import { cpSync, renameSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { makeGround } from "../support/regions.js";
import { expectRefused, lowerEu, REFUSED } from "../support/residency-cases.js";
import { agstateError } from "../support/stores.js";

const EU = { storageRegion: "eu" } as const;

describe("residency fails closed (RES-01)", () => {
  it.each(REFUSED)("refuses %j, and writes nothing anywhere", async (given, code, details) => {
    const ground = await makeGround();
    await expectRefused(ground, given as object, { code, details, config: lowerEu(ground) });
  });

  it.each(["before", "after"])(
    "writes nothing with a region down %s its first use",
    async (when) => {
      const ground = await makeGround();
      const { config, directory } = ground;
      if (when === "after") {
        const { regions } = await ground.open();
        await regions.createWorkflow("there", EU);
        await regions.close();
      }
      renameSync(join(directory, "eu"), join(directory, "eu-away"));
      // Only the catalogue is asked; the other region is not even opened.
      await expectRefused(ground, EU, {
        code: "STORE_NOT_FOUND",
        details: { region: "eu" },
        config,
        opens: [null],
      });
      if (when === "before") return;
      const { regions } = await ground.open();
      await expect(regions.workflow("there")).rejects.toEqual(agstateError("STORE_NOT_FOUND"));
      expect((await regions.regions()).map(({ problem }) => problem?.code ?? null)).toEqual([
        "STORE_NOT_FOUND",
        null,
      ]);
      // It is found again, by the same router, once it is back.
      renameSync(join(directory, "eu-away"), join(directory, "eu"));
      await regions.workflow("there");
    },
  );

  it("writes nothing with the catalogue down", async () => {
    const ground = await makeGround();
    renameSync(join(ground.directory, "catalogue"), join(ground.directory, "away"));
    await expectRefused(ground, EU, {
      code: "STORE_NOT_FOUND",
      details: { catalogue: true },
      config: ground.config,
      opens: [],
    });
  });

  it("writes nothing into a store that stands where another did", async () => {
    const ground = await makeGround();
    const { config, directory } = ground;
    const { regions } = await ground.open();
    await regions.createWorkflow("there", EU);
    await regions.close();
    renameSync(join(directory, "eu"), join(directory, "eu-away"));
    cpSync(join(directory, "us"), join(directory, "eu"), { recursive: true });
    await expectRefused(ground, EU, {
      code: "STORE_MISMATCH",
      details: { expected: "eu", found: "us" },
      config,
    });
    renameSync(join(directory, "eu"), join(directory, "us-copy"));
    await (await openStore(config.regions.eu!.store, { region: "eu" })).close();
    await expectRefused(ground, EU, { code: "STORE_MISMATCH", details: { region: "eu" }, config });
  });

  it("serves no workflow that is not in the catalogue, or whose region or class is not allowed any more", async () => {
    const ground = await makeGround();
    const { regions } = await ground.open();
    await regions.createWorkflow("w", { ...EU, classification: "sensitive" });
    await regions.close();
    const { eu: _, ...others } = ground.config.regions;
    const refused = [
      ["nobody", ground.config, "WORKFLOW_NOT_FOUND"],
      ["w", lowerEu(ground), "REGION_REFUSED"],
      ["w", { ...ground.config, regions: others }, "REGION_UNKNOWN"],
    ] as const;
    const before = await ground.contents();
    for (const [id, config, code] of refused) {
      const opened: (string | null)[] = [];
      const wrap = (storage: never, region: string | null) => {
        opened.push(region);
        return storage;
      };
      const { regions: later } = await ground.open({ wrap: wrap as never }, config);
      await expect(later.workflow(id)).rejects.toEqual(agstateError(code));
      expect(opened).toEqual([null]);
      await later.close();
    }
    expect(await ground.contents()).toEqual(before);
  });
});
