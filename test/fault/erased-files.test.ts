import { join } from "node:path";
import { expect, it } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { eraseAndUse, filesWith, fillWithSubject, newMarker } from "../support/erasure-history.js";
import { temporaryFolder, tryGit } from "../support/git.js";
import { makeStore } from "../support/stores.js";

it("nothing of an erased subject is left in the files of an embedded store", async () => {
  const subject = newMarker();
  const { store, directory } = await makeStore("sqlite");
  const workflow = await fillWithSubject(store, subject);
  expect(filesWith(directory, subject)).toContain("store.db-wal");
  await eraseAndUse(workflow, subject);
  const directoryOfGit = join(temporaryFolder(), "copy.git");
  const exported = await exportWorkflow(workflow, directoryOfGit);
  expect(exported.withheld).toBeGreaterThan(50);
  expect(tryGit(directoryOfGit, ["fsck", "--full"]).status).toBe(0);
  await store.close();
  // What SQLite frees it overwrites, and its log goes with the last connection.
  expect(filesWith(directory, subject)).toEqual([]);
});

it("nothing of it is left beside other processes that have the store open, once it is compacted", async () => {
  const subject = newMarker();
  const { store, directory, another } = await makeStore("sqlite");
  const workflow = await fillWithSubject(store, subject);
  const other = await another();
  await (await other.workflow("w")).stateAt("a/b0");
  await eraseAndUse(workflow, subject);
  await store.compact();
  expect(filesWith(directory, subject)).toEqual([]);
});
