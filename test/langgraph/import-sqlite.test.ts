import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { expect, it, onTestFinished } from "vitest";
import { importCheckpoints } from "../../src/langgraph/import/import.js";
import { openSqliteSource } from "../../src/langgraph/import/sqlite.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { counting } from "../../src/storage/decorators/counting.js";
import { forward } from "../../src/storage/decorators/forward.js";
import { openStore } from "../../src/store.js";
import { CliSandbox } from "../support/cli.js";
import { expectSame, fillWithThreads } from "../support/langgraph-source.js";
import { all, makeStore } from "../support/stores.js";

const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));

function place() {
  const sandbox = new CliSandbox();
  onTestFinished(() => sandbox.remove());
  const file = join(sandbox.directory, "source.db");
  return { sandbox, file, args: ["import", "--from", "langgraph-sqlite", file] };
}

function storeIn(sandbox: CliSandbox) {
  return openStore(`sqlite:${join(sandbox.directory, ".agstate")}`);
}

/** A long thread, so that an import can be stopped within. */
async function fillLong(saver: SqliteSaver, length: number) {
  let config = { configurable: { thread_id: "long", checkpoint_ns: "" } } as object;
  for (let step = 0; step < length; step++) {
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(step) };
    checkpoint.channel_values = { step };
    checkpoint.channel_versions = { step: step + 1 };
    config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} });
    await saver.putWrites(config, [["step", step + 1]], "task");
  }
}

it("copies all threads of a SqliteSaver, leaves the file alone, and refuses one that differs", async () => {
  const { sandbox, file, args } = place();
  const saver = SqliteSaver.fromConnString(file);
  onTestFinished(() => void saver.db.close());
  await fillWithThreads(saver);
  saver.db.pragma("wal_checkpoint(TRUNCATE)");
  const before = readFileSync(file);
  const [first] = sandbox.json<Record<string, number>>(args);
  expect(readFileSync(file).equals(before)).toBe(true);
  const store = await storeIn(sandbox);
  expect(await expectSame(saver, store)).toBe(first?.checkpoints);
  expect(first).toMatchObject({ threads: 3, skipped: 0, verified: first?.checkpoints });
  await store.close();
  expect(sandbox.json(args)).toEqual([{ ...first, skipped: first?.checkpoints }]);
  const [tuple] = await all(
    saver.list({ configurable: { thread_id: "plain", checkpoint_ns: "" } }),
  );
  await saver.putWrites(tuple?.config ?? {}, [["log", ["later"]]], "later");
  expect(sandbox.json(args)).toMatchObject([{ writes: (first?.writes ?? 0) + 1 }]);
  saver.db.exec("UPDATE writes SET channel = 'other' WHERE thread_id = 'plain'");
  const refused = sandbox.run(args);
  expect(refused.status).toBe(4);
  expect(refused.stderr).toContain("differs from the source's in pendingWrites");
});

it("goes on after a kill", async () => {
  const { sandbox, file, args } = place();
  const saver = SqliteSaver.fromConnString(file);
  onTestFinished(() => void saver.db.close());
  await fillLong(saver, 600);
  const store = await storeIn(sandbox);
  onTestFinished(() => store.close());
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: sandbox.directory });
  const gone = once(child, "exit");
  const count = async () => (await all(new AgstateSaver(store).list({}))).length;
  while ((await count()) < 3 && child.exitCode === null) await setTimeout(10);
  child.kill("SIGKILL");
  expect(await gone).toEqual([null, "SIGKILL"]);
  const there = await count();
  expect(there).toBeLessThan(600);
  expect(sandbox.json(args)).toMatchObject([{ checkpoints: 600, verified: 600, skipped: there }]);
  expect(await expectSame(saver, store)).toBe(600);
});

it("copies a long thread in few calls, and tells of a checkpoint that its thread does not list", async () => {
  const { file } = place();
  const saver = SqliteSaver.fromConnString(file);
  onTestFinished(() => void saver.db.close());
  await fillLong(saver, 100);
  const source = await openSqliteSource(file);
  onTestFinished(() => source.close());
  let counter: ReturnType<typeof counting> | undefined;
  const { store } = await makeStore("memory", {
    wrap: (storage) => {
      counter = counting(storage);
      return counter.storage;
    },
  });
  expect(await importCheckpoints(source, store)).toMatchObject({ checkpoints: 100, verified: 100 });
  // The workflow, and for each of 4 pages its writes and its checkpoints.
  expect(counter?.counts().calls.write).toBe(9);
  expect(await expectSame(saver, store)).toBe(100);

  const { store: forgetful } = await makeStore("memory", {
    wrap: (storage) => ({ ...forward(storage), readRefs: async () => [] }),
  });
  await expect(importCheckpoints(source, forgetful)).rejects.toMatchObject({
    code: "STORE_DAMAGED",
  });
});

it("names a wrong source, and makes nothing", () => {
  const { sandbox, file, args } = place();
  expect(sandbox.run(args).status).toBe(3);
  expect(existsSync(file)).toBe(false);
  sandbox.write("source.db", "no database at all, but a text that is long enough to be one");
  expect(sandbox.run(args).status).toBe(2);
  sandbox.write("source.db", "");
  expect(sandbox.run(args).stderr).toContain("no tables of a LangGraph checkpointer");
  expect(existsSync(join(sandbox.directory, ".agstate"))).toBe(false);
});
