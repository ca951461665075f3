import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import type { JsonValue } from "../../src/index.js";
import { git, gitLines, temporaryFolder } from "../support/git.js";
import { BACKENDS, makeStore } from "../support/stores.js";

const folder = temporaryFolder();
/** So many that the record of the merge is a tree of its own. */
const BRANCHES = 40;

describe.each(BACKENDS)("merges on %s, through the Git export", (backend) => {
  it("are commits that real Git finds sound, with their record beside the state", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", {
      state: { n: 0, log: [] },
      policies: { "/n": "sum", "/log": "append" },
    });
    const names: string[] = [];
    for (let k = 0; k < BRANCHES; k++) {
      const branch = await workflow.branch({ agent: `agent-${k}`, branch: "work" });
      await branch.update([
        { op: "set", path: "/n", value: 1 },
        { op: "append", path: "/log", value: `by ${k}` },
        { op: "set", path: `/k${k}`, value: { large: "x".repeat(k * 100) } },
      ]);
      names.push(branch.name);
    }
    await workflow.merge(names.slice(0, 2));
    const merged = await workflow.merge(names);
    const a = await workflow.branch({ agent: "a", branch: "work" });
    const b = await workflow.branch({ agent: "b", branch: "work" });
    await a.update([{ op: "set", path: "/k1", value: 1 }]);
    await b.update([{ op: "set", path: "/k1", value: 2 }]);
    const { stored } = await workflow.merge(["a/work", "b/work"], { onConflict: "store" });
    await (await workflow.storedMerge()).resolve("/k1", { take: "theirs" });
    expect((await workflow.revert("b/work", { onto: "b/work" })).status).toBe("applied");

    const target = join(mkdtempSync(join(folder, "merged-")), "export.git");
    await exportWorkflow(workflow, target);
    expect(git(target, ["fsck", "--strict", "--full"]).trim()).toBe("");
    const id = merged.commit?.id as string;
    expect(gitLines(target, ["rev-list", "--parents", "-1", id])[0]?.split(" ")).toHaveLength(
      // The id, canonical, and the branches that were not merged before.
      2 + BRANCHES - 2,
    );
    expect(gitLines(target, ["ls-tree", "--name-only", id])).toEqual(["merge", "policy", "state"]);
    expect(gitLines(target, ["rev-parse", `refs/merges/${stored}`])).toEqual([
      await workflow.resolve(`merges/${stored}`),
    ]);
    // A branch's change came over whole: the same object.
    const entry = (commit: string, path: string) =>
      gitLines(target, ["rev-parse", `${commit}:${path}`])[0];
    expect(entry(id, "state/k39")).toBe(entry("refs/heads/agents/agent-39/work", "state/k39"));
    const policy = JSON.parse(git(target, ["show", `${id}:policy`])) as JsonValue;
    expect(policy).toEqual({ "/n": "sum", "/log": "append" });
    expect(await workflow.stateAt("canonical", "/n")).toBe(BRANCHES);
    expect(entry("refs/heads/agents/b/work", "state")).toBe(entry(id, "state"));
  });
});
