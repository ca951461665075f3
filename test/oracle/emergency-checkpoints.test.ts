import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { git, temporaryFolder } from "../support/git.js";
import { givenPressure } from "../support/pressure.js";
import { makeStore } from "../support/stores.js";

const folder = temporaryFolder();
const given = givenPressure();

it("emergency checkpoints are commits that real Git finds sound, on their branches and where they were rescued to", async () => {
  const { store } = await makeStore("memory");
  const workflow = await store.createWorkflow("w", { state: { notes: [] } });
  const branch = await workflow.branch({ agent: "a", branch: "x" });
  const late = await workflow.branch({ agent: "b", branch: "y" });
  await (await workflow.branch("b/y")).commit({ state: { notes: ["another's"] } });
  const notes = Array.from({ length: 300 }, (_, i) => `note ${i} of an agent at work`);
  branch.guard({ state: () => ({ notes }) });
  late.guard({ state: () => ({ notes: ["rescued"] }) });
  const report = await given.watch.checkpoint("memory is short: 91% of 512 MiB of memory in use");
  expect(report.branches.map(({ outcome }) => outcome)).toEqual(["committed", "rescued"]);

  const target = join(mkdtempSync(join(folder, "emergency-")), "export.git");
  await exportWorkflow(workflow, target);
  expect(git(target, ["fsck", "--strict", "--full"]).trim()).toBe("");
  for (const { branch: name, rescue = name, commit } of report.branches) {
    expect(git(target, ["rev-parse", `refs/heads/${rescue}`]).trim()).toBe(commit);
    const body = git(target, ["cat-file", "commit", commit as string]);
    const [headers, message] = body.split("\n\n");
    expect(headers?.split("\n").at(-1)).toBe("agstate-reason memory-pressure");
    expect(message).toBe("memory is short: 91% of 512 MiB of memory in use\n");
  }
});
