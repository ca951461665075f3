import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VERSION } from "../../src/core/version.js";
import { openStore } from "../../src/index.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

describe("the version", () => {
  it("is that of the package", () => {
    const path = new URL("../../package.json", import.meta.url);
    expect(VERSION).toBe((JSON.parse(readFileSync(path, "utf8")) as { version: string }).version);
  });
});

describe("opening a store", () => {
  it.each(["", "memory", "postgre:x", "mysql://x", "/tmp/x", "SQLITE:x", ":memory:"])(
    "refuses %j, which is of no known kind",
    async (url) => {
      await expect(openStore(url)).rejects.toThrow(
        agstateError("INVALID_ARGUMENT", { kind: /^[^:]*:/.exec(url)?.[0] ?? url }),
      );
    },
  );

  it("does not make one when told not to", async () => {
    const { directory } = await makeStore("sqlite");
    const nowhere = join(directory, "nowhere");
    await expect(openStore(`sqlite:${nowhere}`, { create: false })).rejects.toThrow(
      agstateError("STORE_NOT_FOUND", { path: nowhere }),
    );
    mkdirSync(nowhere);
    writeFileSync(join(nowhere, "other"), "");
    await expect(openStore(`sqlite:${nowhere}`, { create: false })).rejects.toThrow(
      agstateError("STORE_NOT_FOUND"),
    );
  });

  it("holds it to its region", async () => {
    const { another, store } = await makeStore("sqlite", { region: "eu-1" });
    expect((await store.describe()).region).toBe("eu-1");
    await expect(another({ region: "us-1" })).rejects.toThrow(agstateError("STORE_MISMATCH"));
    const plain = await makeStore("sqlite");
    await expect(plain.another({ region: "eu-1" })).rejects.toThrow(agstateError("STORE_MISMATCH"));
    await expect(openStore("memory:", { region: "eu\n1" })).rejects.toThrow(
      agstateError("INVALID_NAME", { field: "region" }),
    );
  });

  it("finds what another process wrote", async () => {
    const { store, another } = await makeStore("sqlite");
    const workflow = await store.createWorkflow("w", { state: { n: 1 } });
    const other = await another();
    expect((await other.describe()).storeId).toBe((await store.describe()).storeId);
    const seen = await (await other.workflow("w")).canonical();
    await (await workflow.canonical()).commit({ state: { n: 2 } });
    expect(await seen.state()).toEqual({ n: 1 });
    await seen.refresh();
    expect(await seen.state()).toEqual({ n: 2 });
  });
});

describe.each(BACKENDS)("a closed store, on %s", (backend) => {
  it("answers every call that needs it with STORE_CLOSED, and closes once", async () => {
    const { store } = await makeStore(backend, { limits: { cacheMaxBytes: 1 } });
    const workflow = await store.createWorkflow("w", { state: { n: 1 } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const { head } = branch;
    await Promise.all([store.close(), store.close()]);
    await store.close();
    await store[Symbol.asyncDispose]();
    const calls: Record<string, () => Promise<unknown>> = {
      createWorkflow: () => store.createWorkflow("v"),
      workflow: () => store.workflow("w"),
      workflows: () => all(store.workflows()),
      describe: () => store.describe(),
      checkStructure: () => store.checkStructure(),
      canonical: () => workflow.canonical(),
      branch: () => workflow.branch({ agent: "a", branch: "y" }),
      refs: () => workflow.refs(),
      resolve: () => workflow.resolve("canonical"),
      stateAt: () => workflow.stateAt("canonical"),
      log: () => all(workflow.log()),
      diff: () => workflow.diff("canonical", "a/x"),
      reflog: () => workflow.reflog("a/x"),
      tag: () => workflow.tag("t", "canonical"),
      deleteBranch: () => workflow.deleteBranch("a/x"),
      findExternal: () => workflow.findExternal("e"),
      fsck: () => workflow.fsck(),
      usage: () => workflow.usage(),
      commit: () => branch.commit({ state: { n: 2 } }),
      update: () => branch.update([{ op: "set", path: "/n", value: 2 }]),
      refresh: () => branch.refresh(),
      state: () => branch.state(),
      "branch log": () => all(branch.log()),
    };
    for (const [name, call] of Object.entries(calls)) {
      await expect(call(), name).rejects.toThrow(agstateError("STORE_CLOSED"));
    }
    expect(branch.head).toEqual(head);
  });

  it("finishes the writes under way first", async () => {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: [] });
    const branches = await Promise.all(
      Array.from({ length: 5 }, (_, i) => workflow.branch({ agent: "a", branch: `b${i}` })),
    );
    const writes = branches.map((branch, i) => branch.commit({ state: [i] }));
    // A commit of a state that is compared first reaches the storage some turns later.
    const closing = new Promise((resolve) => setImmediate(resolve)).then(() => store.close());
    const results = await Promise.allSettled(writes);
    await closing;
    if (backend === "memory") return;
    const reader = await (await another()).workflow("w");
    for (const [i, result] of results.entries()) {
      if (result.status === "rejected") {
        expect(result.reason).toEqual(agstateError("STORE_CLOSED"));
      } else {
        expect(await reader.resolve(`a/b${i}`)).toBe(result.value.id);
      }
    }
    expect((await reader.fsck()).problems).toEqual([]);
  });
});
