import { describe, expect, it } from "vitest";
import { openStore } from "../../src/index.js";

describe("numbers of answers", () => {
  it.each([-1, 1.5, Number.NaN])("refuses a limit of %s", async (limit) => {
    const workflow = await (await openStore("memory:")).createWorkflow("w");
    const branch = await workflow.canonical();
    const wrong = expect.objectContaining({ code: "INVALID_ARGUMENT" });
    await expect(branch.log({ limit }).next()).rejects.toEqual(wrong);
    await expect(workflow.log({ limit }).next()).rejects.toEqual(wrong);
    await expect(branch.reflog({ limit })).rejects.toEqual(wrong);
    await expect(workflow.reflog("canonical", { limit })).rejects.toEqual(wrong);
  });

  it("takes a limit of 0 and one beyond the end", async () => {
    const branch = await (await (await openStore("memory:")).createWorkflow("w")).canonical();
    expect((await branch.log({ limit: 0 }).next()).done).toBe(true);
    expect(await branch.reflog({ limit: 99 })).toHaveLength(1);
  });

  it.each(["toString", "__proto__", "stateMaxbytes"])("refuses a limit called %s", async (name) => {
    const limits = JSON.parse(`{${JSON.stringify(name)}:5}`) as object;
    await expect(openStore("memory:", { limits })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });
});
