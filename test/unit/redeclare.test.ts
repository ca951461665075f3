import { describe, expect, it } from "vitest";
import { isAgstateError, openStore, type Storage } from "../../src/index.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { makeGround } from "../support/regions.js";

const WHY = { reason: "the contract changed", by: "officer" };

async function open(wrap: (storage: Storage) => Storage = (storage) => storage) {
  return openStore("memory:", { region: "eu", wrap });
}

describe("a declaration", () => {
  it("changes on record, and is then what others read", async () => {
    const store = await open();
    const workflow = await store.createWorkflow("w", { retentionPolicy: "P90D" });
    const changed = await workflow.redeclare({ retentionPolicy: "P1Y" }, WHY);
    expect(changed).toMatchObject({ retentionPolicy: "P1Y", classification: "internal" });
    expect((await store.workflow("w")).info).toEqual(changed);
    await workflow.redeclare({ classification: "public" }, { ...WHY, lower: true });
    const info = await workflow.redeclare({ retentionPolicy: null }, WHY);
    expect(info).toMatchObject({ retentionPolicy: null, classification: "public" });

    const events = [];
    for await (const event of workflow.audit()) {
      if (event.ref === "refs/audit/workflow") events.push(event);
    }
    expect(events.map(({ kind }) => kind)).toEqual([
      "workflow",
      "redeclared",
      "redeclared",
      "redeclared",
    ]);
    expect(events[1]).toMatchObject({
      actor: "officer",
      facts: {
        from: { classification: "internal", retentionPolicy: "P90D" },
        to: { classification: "internal", retentionPolicy: "P1Y" },
      },
    });
    expect(await workflow.stateAt("refs/audit/workflow")).toMatchObject({
      classification: "public",
      changed: { by: "officer", reason: WHY.reason },
    });
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
  });

  it("does not become less strict by mistake, nor strict over what was written without keys", async () => {
    const store = await open();
    const workflow = await store.createWorkflow("w", { storageRegion: "eu" });
    const before = await workflow.reflog("refs/audit/workflow");
    for (const [change, options, said] of [
      [{ classification: "public" }, WHY, "less strict"],
      [{ classification: "regulated" }, WHY, "written without"],
      [{ classification: "secret" }, WHY, "unknown"],
      [{ retentionPolicy: "90 days" }, WHY, "is not a period"],
      [{ retentionPolicy: "P1Y" }, { reason: " " }, "a reason"],
    ] as const) {
      await expect(workflow.redeclare(change as never, options)).rejects.toThrow(said);
    }
    expect(await workflow.reflog("refs/audit/workflow")).toEqual(before);
    expect((await store.workflow("w")).info.classification).toBe("internal");
  });

  it("that was cut off is told by fsck, and ended by the call made again", async () => {
    let calls = 0;
    const store = await open((storage) => ({
      ...forward(storage),
      redeclare: async (w, declared) => {
        if (++calls === 2) throw new Error("cut off");
        return storage.redeclare(w, declared);
      },
    }));
    const workflow = await store.createWorkflow("w");
    await expect(workflow.redeclare({ retentionPolicy: "P1Y" }, WHY)).rejects.toThrow("cut off");
    expect((await store.workflow("w")).info.retentionPolicy).toBeNull();
    expect((await workflow.fsck()).problems).toMatchObject([{ kind: "bad-declaration" }]);
    await workflow.redeclare({ retentionPolicy: "P1Y" }, WHY);
    expect((await store.workflow("w")).info.retentionPolicy).toBe("P1Y");
    expect((await workflow.fsck()).problems).toEqual([]);
    expect(await workflow.reflog("refs/audit/workflow")).toHaveLength(2);
  });

  it("changes in the catalogue too, in a region that may hold it, and others follow", async () => {
    const ground = await makeGround();
    const config = {
      ...ground.config,
      regions: {
        ...ground.config.regions,
        eu: {
          ...ground.config.regions.eu!,
          classifications: ["internal", "sensitive", "regulated"] as const,
        },
      },
    };
    const { regions } = await ground.open({}, config);
    const { regions: other } = await ground.open({}, config);
    await regions.createWorkflow("w", { storageRegion: "eu", classification: "sensitive" });
    expect((await other.workflow("w")).info.classification).toBe("sensitive");
    await expect(
      regions.redeclare("w", { classification: "public" }, { ...WHY, lower: true }),
    ).rejects.toMatchObject({ code: "REGION_REFUSED" });
    const info = await regions.redeclare("w", { classification: "regulated" }, WHY);
    expect(info.classification).toBe("regulated");
    expect((await other.workflow("w")).info.classification).toBe("regulated");
    for await (const placement of other.workflows()) {
      expect(placement).toMatchObject({ workflow: "w", classification: "regulated" });
    }
    // What one store says alone is no change, whoever said it.
    const store = await regions.store("eu");
    await (await store.workflow("w")).redeclare(
      { classification: "sensitive" },
      { ...WHY, lower: true },
    );
    const refusal = await other.workflow("w").catch((error: unknown) => error);
    expect(isAgstateError(refusal, "REGION_REFUSED")).toBe(true);
    await other.redeclare("w", { classification: "sensitive" }, { ...WHY, lower: true });
    expect((await regions.workflow("w")).info.classification).toBe("sensitive");
  });
});
