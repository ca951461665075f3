import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const widthOf = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

const MIGRATIONS = `
export const version = 2;
export const migrations = {
  1: ({ seats, ...rest }) => ({ ...rest, places: seats.toFixed(0) }),
};
`;

describe("agstate migrate-state", () => {
  const cli = new CliSandbox();
  afterAll(() => cli.remove());
  const given = ["--migrations", "migrations.mjs"];
  const statesOf = (lines: Record<string, unknown>[]) =>
    lines.map(({ workflow, branch, status }) => [workflow, branch, status].join(" "));

  it("names what is wrong with what it is given", () => {
    cli.ok(["init"]);
    cli.ok(["workflow", "create", "w", "--state", "-"], { input: '{"seats":2}' });
    cli.write("migrations.mjs", MIGRATIONS);
    cli.write("broken.mjs", "export const version = ;");
    cli.write("none.mjs", "export const versions = 2;");
    cli.write("hole.mjs", "export default { version: 3, migrations: { 1: (state) => state } };");
    for (const [args, message] of [
      [[], /no migrations are named/],
      [["--migrations", "nowhere.mjs"], /cannot load the migrations "nowhere\.mjs"/],
      [["--migrations", "broken.mjs"], /cannot load the migrations "broken\.mjs": SyntaxError/],
      [["--migrations", "none.mjs"], /"none\.mjs" exports no version/],
      [["--migrations", "hole.mjs"], /lacks migrations\[2\]/],
    ] as const) {
      const { status, stderr } = cli.run(["migrate-state", "--dry-run", ...args]);
      expect([status, stderr]).toEqual([2, expect.stringMatching(message)]);
    }
    const { status } = cli.run(["migrate-state", "--branch", "a/none", ...given]);
    expect(status).toBe(3);
  });

  it("goes over the branches, tells of those that fail, and ends with 1 then", () => {
    cli.ok(["branch", "agent-of-a-long-name-that-is-cut/branch-of-a-longer-name-still-in-full"]);
    cli.ok(["branch", "critic/odd"]);
    cli.ok(["commit", "-", "-b", "critic/odd"], { input: '{"seats":"secret-7"}' });
    const dry = cli.run(["migrate-state", "--dry-run", ...given]);
    expect([dry.status, dry.stderr]).toEqual([1, ""]);
    expect(dry.stdout).toContain("2 branches to migrate, 1 failed\nNothing was changed");
    expect(dry.stdout.replace(/\s+/g, " ")).toContain("failed with TypeError (migrations.mjs:4:");
    expect(dry.stdout).not.toContain("secret-7");
    expect(widthOf(dry.stdout)).toBeLessThanOrEqual(80);

    const failed = cli.run(["--json", "migrate-state", ...given]);
    expect(failed.status).toBe(1);
    const lines = failed.stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(({ branch, status, from, to }) => [branch, status, from, to])).toEqual([
      [expect.stringContaining("agents/agent-of"), "migrated", 1, 2],
      ["agents/critic/odd", "failed", 1, 2],
      ["canonical", "migrated", 1, 2],
    ]);
    expect(lines[1]?.error).toMatchObject({ code: "MIGRATION_FAILED", details: { from: 1 } });
    expect(lines[2]).toMatchObject({
      changes: 2,
      paths: [
        { kind: "added", path: "/places" },
        { kind: "removed", path: "/seats" },
      ],
      commit: cli.json(["show"])[0]?.id,
      error: null,
    });
    expect(cli.json(["show"])[0]).toMatchObject({
      stateVersion: 2,
      message: "Migrate state 1 -> 2",
    });
    expect(cli.ok(["show"])).toContain("\nState:  version 2\n");
    expect(cli.ok(["show", "canonical~1"])).not.toContain("State:");
  });

  it("takes a dry run for all workflows, and migrates more than one only when asked", () => {
    cli.ok(["workflow", "create", "over", "--state", "-"], { input: '{"seats":1}' });
    cli.ok(["workflow", "complete", "over"]);
    cli.ok(["workflow", "create", "x", "--state", "-"], { input: '{"seats":3}' });
    cli.ok(["workflow", "create", "other", "--state", "-"], { input: "{}" });
    cli.write(
      "some.mjs",
      `import * as schema from "./migrations.mjs";
       export default (workflow) => (workflow === "other" ? undefined : schema);`,
    );
    const env = { AGSTATE_MIGRATIONS: "some.mjs" };
    const run = (...args: string[]) => {
      const { status, stdout } = cli.run(["--json", "migrate-state", ...args], { env });
      const lines = stdout.split("\n").filter(Boolean);
      return { status, lines: statesOf(lines.map((line) => JSON.parse(line))) };
    };
    expect(run("--dry-run").lines.filter((line) => !line.startsWith("w "))).toEqual([
      "over canonical pending",
      "x canonical pending",
    ]);
    const several = cli.run(["migrate-state"], { env });
    expect([several.status, several.stderr]).toEqual([2, expect.stringContaining("-w NAME")]);
    expect(run("-w", "over").status).toBe(4);
    expect(run("-w", "over", "--dry-run").lines).toEqual(["over canonical pending"]);
    expect(cli.run(["migrate-state", "-w", "other"], { env }).stderr).toContain("SCHEMA_NEEDED");
    expect(run("--all").lines.filter((line) => !line.startsWith("w "))).toEqual([
      "x canonical migrated",
    ]);
  });

  it("is what merges need where versions differ", () => {
    const w = ["-w", "x"];
    cli.ok([...w, "branch", "a/old", "canonical~1"]);
    cli.ok([...w, "commit", "-", "-b", "a/old"], { input: '{"seats":8}' });
    cli.ok([...w, "commit", "-"], { input: '{"places":"4"}' });
    const refused = cli.run([...w, "merge", "a/old"]);
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining("SCHEMA_NEEDED")]);
    const merged = cli.run([...w, "merge", "a/old", ...given]);
    expect([merged.status, merged.stdout]).toEqual([4, expect.stringContaining("/places")]);
    expect(cli.run([...w, "conflicts"]).stderr).toContain("SCHEMA_NEEDED");
    expect(cli.ok([...w, "conflicts", ...given])).toContain('"8"');
    cli.ok([...w, "resolve", "/places", "--theirs", ...given]);
    cli.ok([...w, "merge", "--continue", ...given]);
    expect(cli.json([...w, "cat", "canonical"])).toEqual([{ places: "8" }]);
    const shown = cli.ok([...w, "show"]);
    expect(shown).toMatch(/source {2}agents\/a\/old .*, migrated from version 1/);
    expect(widthOf(shown)).toBeLessThanOrEqual(80);
  });
});
