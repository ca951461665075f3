import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { git, temporaryFolder } from "../support/git.js";
import { schemaPlace, withClient } from "../support/postgres.js";

const folder = temporaryFolder();

describe("the command line on PostgreSQL", () => {
  it("makes, fills, merges, checks and exports a store", () => {
    const url = schemaPlace();
    const box = new CliSandbox();
    onTestFinished(() => box.remove());
    const at = { env: { AGSTATE_STORE: url } };
    const run = (...args: string[]) => box.ok(args, at);
    expect(box.run(["status"], at)).toMatchObject({ status: 3 });
    expect(run("migrate", "--dry-run")).toMatch(/^pending {2}0001-tables\.sql\n/);
    expect(run("init")).toMatch(/^Made an empty store in postgres:/);
    expect(run("init")).toMatch(/is there already/);
    expect(run("migrate", "--status")).toMatch(
      /^applied {2}0001-tables\.sql\n[\s\S]*is up to date\.\n$/,
    );
    run("workflow", "create", "trip");
    for (const [agent, mode] of [
      ["a", "fast"],
      ["b", "slow"],
    ] as const) {
      run("branch", `${agent}/work`);
      const input = JSON.stringify({ mode, [agent]: "x".repeat(5000) });
      box.ok(["commit", "-", "-b", `${agent}/work`, "-m", `Say ${mode}`], { ...at, input });
    }
    expect(box.run(["merge", "a/work", "b/work"], at)).toMatchObject({ status: 4 });
    run("resolve", "/mode", "--theirs");
    run("merge", "--continue");
    expect(JSON.parse(run("cat", "canonical"))).toMatchObject({ mode: "slow" });
    expect(run("log", "--graph", "--oneline", "--all")).toContain("Say fast");
    expect(run("watch", "a/*", "--from-start", "-n", "2")).toMatch(
      /^[0-9a-f]{10} {2}agents\/a\/work .*\n[0-9a-f]{10} {2}agents\/a\/work .* Say fast\n$/,
    );
    expect(run("fsck")).toMatch(/No problems\.\n$/);
    const target = join(mkdtempSync(join(folder, "pg-")), "export.git");
    run("export", "--git", target);
    expect(git(target, ["fsck", "--strict", "--full"]).trim()).toBe("");
  });

  it("says in one line that a schema is newer, or that no server is there, and shows no password", async () => {
    const url = schemaPlace();
    const box = new CliSandbox();
    onTestFinished(() => box.remove());
    box.ok(["init"], { env: { AGSTATE_STORE: url } });
    await withClient(async (client) => {
      const schema = client.escapeIdentifier(new URL(url).searchParams.get("schema") as string);
      await client.query(`INSERT INTO ${schema}.migrations (name) VALUES ('9999-later.sql')`);
    });
    const newer = box.run(["status"], { env: { AGSTATE_STORE: url } });
    expect(newer).toMatchObject({ status: 5, stdout: "" });
    expect(newer.stderr).toMatch(/^agstate: .*of version 9999.*\(STORE_TOO_NEW\)\n$/);
    const nobody = "postgres://someone:hunter2@127.0.0.1:1/db";
    const gone = box.run(["status"], { env: { AGSTATE_STORE: nobody } });
    expect(gone.status).toBe(5);
    expect(gone.stderr).toMatch(/^agstate: .*\(STORE_UNAVAILABLE\)\n$/);
    expect(gone.stderr).not.toContain("hunter2");
  });
});
