import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { expect, it, onTestFinished } from "vitest";
import { importCheckpoints } from "../../src/langgraph/import/import.js";
import { openPostgresSource } from "../../src/langgraph/import/postgres.js";
import { openStore } from "../../src/store.js";
import { expectSame, fillWithThreads } from "../support/langgraph-source.js";
import { schemaPlace, serverUrl } from "../support/postgres.js";

it("copies all threads of a PostgresSaver, and finds them there the second time", async () => {
  const url = schemaPlace();
  const schema = new URL(url).searchParams.get("schema") as string;
  const saver = PostgresSaver.fromConnString(serverUrl(), { schema: schema.replaceAll('"', '""') });
  onTestFinished(() => saver.end());
  await saver.setup();
  await fillWithThreads(saver);
  const store = await openStore(schemaPlace());
  onTestFinished(() => store.close());
  const source = await openPostgresSource(url);
  onTestFinished(() => source.close());
  const first = await importCheckpoints(source, store);
  expect(await expectSame(saver, store)).toBe(first.checkpoints);
  expect(first).toMatchObject({ threads: 3, skipped: 0, verified: first.checkpoints });
  expect(first.writes).toBeGreaterThan(0);
  expect(await importCheckpoints(source, store)).toEqual({ ...first, skipped: first.checkpoints });
});

it("says so where there is nothing of LangGraph, and makes no tables there", async () => {
  const url = schemaPlace();
  for (let i = 0; i < 2; i++) {
    await expect(openPostgresSource(url)).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
  }
});
