import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { openStore } from "../../src/index.js";
import { git, temporaryFolder } from "../support/git.js";
import { testKeys } from "../support/keys.js";
import { MARKED_RULES, markedWorkflow } from "../support/marked-workflow.js";
import { makeStore } from "../support/stores.js";

const SENSITIVE = { classification: "sensitive", storageRegion: "eu" } as const;
const folder = temporaryFolder();

/** The places whose marker is in a file of a folder. */
function found(directory: string, markers: Readonly<Record<string, string>>): string[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
  expect(files.length).toBeGreaterThan(0);
  return Object.keys(markers).filter((place) =>
    files.some((file) => file.includes(markers[place] as string)),
  );
}

it("no payload is in any file of an encrypted embedded store, and all are in those of another", async () => {
  const seen: string[][] = [];
  for (const keys of [testKeys(), undefined]) {
    const { store, directory } = await makeStore("sqlite", {
      region: "eu",
      governance: MARKED_RULES,
      ...(keys && { keys }),
    });
    const { workflow, markers } = await markedWorkflow(store, SENSITIVE);
    seen.push(found(directory, markers));
    if (keys === undefined) {
      expect(seen[1]).toEqual(Object.keys(markers));
    } else {
      expect((await workflow.fsck()).problems).toEqual([]);
      const file = await openStore(`sqlite:${directory}`, { keys });
      const state = await (await file.workflow("w")).stateAt("canonical");
      await file.close();
      expect(JSON.stringify(state)).toContain(markers.list);
    }
  }
  expect(seen[0]).toEqual([]);
});

it("real Git finds an export whole, with the ids that it has here and nothing in clear", async () => {
  const { store } = await makeStore("sqlite", {
    region: "eu",
    governance: MARKED_RULES,
    keys: testKeys(),
  });
  const { workflow, markers } = await markedWorkflow(store, SENSITIVE);
  const directory = join(folder, "export");
  await exportWorkflow(workflow, directory);
  git(directory, ["fsck", "--strict", "--full"]);
  const head = git(directory, ["rev-parse", "refs/heads/canonical"]).trim();
  expect(head).toBe(await workflow.resolve("canonical"));
  const blobs = git(directory, ["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
  for (const mark of Object.values(markers)) expect(blobs).not.toContain(mark);
});
