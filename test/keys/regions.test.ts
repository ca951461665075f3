import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, it } from "vitest";
import { testKeys } from "../support/keys.js";
import { makeGround } from "../support/regions.js";
import { agstateError } from "../support/stores.js";

it("workflows of regions are encrypted as those of a store are", async () => {
  const ground = await makeGround();
  const keys = testKeys();
  const { regions } = await ground.open({ keys });
  const declared = { classification: "regulated", storageRegion: "eu" } as const;
  await regions.createWorkflow("w", { ...declared, state: { secret: "not to be seen" } });
  await regions.createWorkflow("open", { storageRegion: "us", state: { word: "may be seen" } });
  expect(await (await regions.workflow("w")).stateAt("canonical:/secret")).toBe("not to be seen");
  await regions.close();
  const filesWith = (text: string) =>
    readdirSync(ground.directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((file) => readFileSync(file).includes(text))
      .map((file) => relative(ground.directory, file));
  expect(filesWith("may be seen")).toEqual([expect.stringMatching(/^us\//)]);
  expect(filesWith("not to be seen")).toEqual([]);

  const without = (await ground.open()).regions;
  const locked = await without.workflow("w");
  expect(await locked.stateAt("canonical:/secret").catch((error) => error)).toEqual(
    expect.objectContaining({ code: "WITHHELD" }),
  );
  const write = (await locked.canonical()).commit({ state: { secret: 1 } });
  await expect(write).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
  await without.close();
});

it("what a subject has in another region is erased with the subject's key, too", async () => {
  const ground = await makeGround();
  const keys = testKeys();
  const { regions } = await ground.open({ keys });
  const workflow = await regions.createWorkflow("w", {
    ...{ classification: "regulated", storageRegion: "eu" },
    placement: [{ path: "/state/vault/*", region: "us" }],
    subjects: ["/state/vault/{subject}"],
    state: { vault: { ann: "hers", bob: "his" } },
  });
  await regions.close();

  const again = (await ground.open({ keys })).regions;
  const opened = await again.workflow("w");
  expect(await opened.stateAt("canonical")).toEqual({ vault: { ann: "hers", bob: "his" } });
  const branch = await opened.canonical();
  await branch.update([{ op: "set", path: "/vault/cid", value: "new" }]);
  await opened.destroyKey({ subject: "ann", reason: "asked for" });
  const locked = await (await ground.open()).regions.workflow("w");
  for (const [each, others] of [
    [opened, { bob: "his", cid: "new" }],
    [await (await ground.open({ keys })).regions.workflow("w"), { bob: "his", cid: "new" }],
    [locked, { bob: { reason: "key" }, cid: { reason: "key" } }],
  ] as const) {
    const reason = each === locked ? "key" : "erased";
    expect(await each.stateAt("canonical:/vault")).toMatchObject({ ...others, ann: { reason } });
  }
  expect(workflow.info.keyed).toBe("payloads");
});
