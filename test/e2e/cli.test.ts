import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const ESC = "\u001b";

describe("agstate", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());

  beforeAll(() => {
    box.ok(["init"]);
    box.ok(["workflow", "create", "trip-42"]);
    box.ok(["branch", "booker/try-1"]);
    box.ok(["commit", "-", "-b", "booker/try-1", "-m", "Find flights"], {
      input: '{"messages":[{"role":"user","content":"hi"}],"seats":2}',
    });
    box.ok(["commit", "-", "-b", "booker/try-1", "-m", "Ask for the name"], {
      input:
        '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Name?"}],"seats":3}',
    });
  });

  describe("finds its store and workflow", () => {
    it("in the nearest .agstate upwards", () => {
      const below = join(box.directory, "a", "b");
      mkdirSync(below, { recursive: true });
      expect(box.run(["cat", "booker/try-1", "/seats"], { cwd: below }).stdout).toBe("3\n");
    });

    it("by --store and by AGSTATE_STORE, as a folder or as a URL", () => {
      const place = join(box.directory, ".agstate");
      for (const store of [place, `sqlite:${place}`]) {
        const cwd = "/";
        expect(box.run(["--store", store, "cat", "booker/try-1", "/seats"], { cwd }).stdout).toBe(
          "3\n",
        );
        expect(
          box.run(["cat", "booker/try-1", "/seats"], { cwd, env: { AGSTATE_STORE: store } }).stdout,
        ).toBe("3\n");
      }
    });

    it("and says what to do when there is none", () => {
      const result = box.run(["status"], { cwd: "/" });
      expect(result).toMatchObject({ status: 3, stdout: "" });
      expect(result.stderr).toMatch(/^agstate: .*agstate init.*\(STORE_NOT_FOUND\)\n$/);
    });

    it("asks for -w when there are several workflows", () => {
      const other = new CliSandbox();
      try {
        other.ok(["init"]);
        expect(other.run(["status"]).stderr).toContain("agstate workflow create");
        other.ok(["workflow", "create", "one"]);
        other.ok(["workflow", "create", "two"]);
        expect(other.run(["status"])).toMatchObject({ status: 2 });
        expect(other.ok(["status", "-w", "two"])).toContain("two");
        expect(other.ok(["status"], { env: { AGSTATE_WORKFLOW: "one" } })).toContain("one");
        expect(other.ok(["workflow", "list"]).split("\n")).toHaveLength(3);
      } finally {
        other.remove();
      }
    });
  });

  describe("tells of errors on one line and by exit code", () => {
    const cases: [string, string[], number, RegExp][] = [
      ["an unknown command", ["brnch"], 2, /unknown command 'brnch'.*branch/],
      ["an unknown option", ["log", "--grph"], 2, /unknown option '--grph'.*--graph/],
      ["a bad number", ["log", "-n", "-1"], 2, /whole number/],
      ["a number that is none", ["log", "-n", "ten"], 2, /whole number/],
      ["a missing argument", ["import"], 2, /missing required argument|required option/],
      ["a branch name that begins with a dash", ["branch", "booker/-x"], 2, /INVALID_NAME/],
      ["a branch name with two slashes", ["branch", "a/b/c"], 2, /INVALID_NAME/],
      ["a branch that exists", ["branch", "booker/try-1"], 4, /REF_EXISTS/],
      ["an unknown revision", ["show", "nowhere"], 3, /REVISION_NOT_FOUND/],
      ["a malformed revision", ["show", "canonical@{yesterday}"], 2, /INVALID_REVISION/],
      ["an unknown path", ["cat", "booker/try-1", "/nothing"], 3, /PATH_NOT_FOUND/],
      ["a path that is no JSON Pointer", ["cat", "booker/try-1", "nothing"], 2, /INVALID_PATH/],
      ["an unknown workflow", ["log", "-w", "nope"], 3, /WORKFLOW_NOT_FOUND/],
      ["a workflow that exists", ["workflow", "create", "trip-42"], 4, /WORKFLOW_EXISTS/],
      [
        "a lost race",
        ["commit", "-b", "booker/try-1", "--expected", "canonical", "-m", "x"],
        4,
        /REF_CONFLICT/,
      ],
      ["deleting canonical", ["branch", "-d", "canonical"], 2, /INVALID_ARGUMENT/],
      ["an unknown store kind", ["--store", "ftp:x", "log"], 2, /INVALID_ARGUMENT/],
      ["a file that is not there", ["commit", "nowhere.json"], 2, /INVALID_ARGUMENT/],
      ["an unknown format", ["import", "x", "--format", "csv"], 2, /Allowed choices|csv/],
    ];
    it.each(cases)("%s", (_name, args, status, message) => {
      const result = box.run(args);
      expect(result.stderr).toMatch(message);
      expect(result.stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(result).toMatchObject({ status, stdout: "" });
      const json = box.run(["--json", ...args]);
      const { error } = JSON.parse(json.stderr) as { error: { code: string; message: string } };
      expect(error.code).toMatch(/^[A-Z_]+$/);
      expect(error.message).not.toBe("");
      expect(json.status).toBe(status);
    });

    it("refuses to round an integer, and commits nothing", () => {
      const before = box.ok(["cat", "booker/try-1"]);
      const result = box.run(["commit", "-", "-b", "booker/try-1"], {
        input: '{"a":{"id":235191684988928001}}',
      });
      expect(result.status).toBe(2);
      expect(result.stderr).toContain("/a/id");
      expect(result.stderr).toContain("235191684988928001");
      expect(box.ok(["cat", "booker/try-1"])).toBe(before);
    });

    it("refuses bytes that are not UTF-8 instead of replacing them", () => {
      writeFileSync(
        join(box.directory, "latin1.json"),
        Buffer.from('{"name":"caf\xe9"}', "latin1"),
      );
      const result = box.run(["commit", "latin1.json"]);
      expect(result).toMatchObject({ status: 2, stdout: "" });
      expect(result.stderr).toMatch(/UTF-8.*\(INVALID_VALUE\)/);
    });

    it("says where JSON is malformed", () => {
      const result = box.run(["commit", "-"], { input: '{"a":\n  nope}' });
      expect(result.status).toBe(2);
      expect(result.stderr).toMatch(/line 2/);
    });

    it("survives a deeply nested file", () => {
      const result = box.run(["commit", "-"], { input: "[".repeat(100_000) + "]".repeat(100_000) });
      expect(result.status).toBe(2);
      expect(result.stderr).toMatch(/\((LIMIT_EXCEEDED|INVALID_VALUE)\)/);
      expect(result.stderr.split("\n")).toHaveLength(2);
    });
  });

  describe("shows history", () => {
    it("as git log does", () => {
      const log = box.ok(["log", "booker/try-1"]);
      expect(log).toMatch(
        /^commit [0-9a-f]{64}\nRefs: {3}agents\/booker\/try-1\nAuthor: booker\nDate: {3}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n\n {4}Ask for the name\n\ncommit /,
      );
    });

    it("on one line a commit, within 80 columns", () => {
      const lines = box.ok(["log", "--oneline", "-n", "2", "booker/try-1"]).trimEnd().split("\n");
      expect(lines).toHaveLength(2);
      expect(lines[0]).toMatch(/^[0-9a-f]{10} \(agents\/booker\/try-1\) Ask for the name$/);
    });

    it("as JSON, a commit a line", () => {
      const commits = box.json(["log", "--all"]);
      expect(commits.map((c) => c.message)).toContain("Find flights");
      for (const commit of commits) expect(commit.id).toMatch(/^[0-9a-f]{64}$/);
    });

    it("shows a step's change with its path", () => {
      const shown = box.ok(["show", "booker/try-1"]);
      expect(shown).toContain("~ /seats\n");
      expect(shown).toContain("- 2\n");
      expect(shown).toContain("+ 3\n");
      expect(shown).toContain("+ /messages/1");
    });

    it("diffs two revisions, and says by exit code whether they differ", () => {
      expect(box.ok(["diff", "booker/try-1~1..booker/try-1"])).toContain(
        "2 changes: 1 added, 0 removed, 1 changed",
      );
      expect(box.run(["diff", "booker/try-1", "booker/try-1", "--exit-code"])).toMatchObject({
        status: 0,
      });
      expect(box.run(["diff", "canonical", "booker/try-1", "--exit-code"])).toMatchObject({
        status: 1,
      });
      expect(box.json(["diff", "booker/try-1~1", "booker/try-1", "--path", "/seats"])).toEqual([
        { kind: "changed", path: "/seats", before: 2, after: 3 },
      ]);
    });

    it("prints values by revision and pointer, in either spelling", () => {
      expect(box.ok(["cat", "booker/try-1:/messages/1/content"])).toBe('"Name?"\n');
      expect(box.ok(["cat", "booker/try-1", "/messages/1/content", "--raw"])).toBe("Name?\n");
      expect(box.ok(["show", "booker/try-1@{1}:/seats"])).toBe("2\n");
    });

    it("knows branches, merged ones, tags and the log of a deleted branch", () => {
      box.ok(["branch", "tester/gone", "booker/try-1~1"]);
      expect(box.ok(["branch"])).toMatch(
        /^agents\/booker\/try-1 +[0-9a-f]{10} {2}Ask for the name$/m,
      );
      expect(box.json(["branch", "--merged", "booker/try-1"]).map((b) => b.shortName)).toEqual([
        "agents/booker/try-1",
        "agents/tester/gone",
        "canonical",
      ]);
      expect(box.json(["branch", "--merged"]).map((b) => b.shortName)).toEqual(["canonical"]);
      box.ok(["tag", "boundary", "booker/try-1"]);
      expect(box.ok(["tag"])).toMatch(/^boundary {2}[0-9a-f]{10} {2}Ask for the name\n$/);
      expect(box.ok(["log", "--oneline", "-n", "1", "boundary"])).toContain("tags/boundary");
      box.ok(["tag", "-d", "boundary"]);
      box.ok(["branch", "-d", "tester/gone"]);
      expect(box.ok(["reflog", "agents/tester/gone"])).toMatch(/^deleted .*\n[0-9a-f]{10} /);
      expect(box.ok(["status"])).toMatch(/agents\/booker\/try-1 {2}[0-9a-f]{10} {2}\+2 /);
    });

    it("finds no fault", () => {
      expect(box.ok(["fsck"])).toContain("No problems.");
    });

    it("commits nothing when nothing changed", () => {
      const before = box.json(["log", "booker/try-1"]);
      const state = box.ok(["cat", "booker/try-1"]);
      expect(box.ok(["commit", "-", "-b", "booker/try-1"], { input: state })).toContain(
        "Nothing changed",
      );
      expect(box.json(["log", "booker/try-1"])).toEqual(before);
    });

    it("draws a merge", () => {
      box.ok(["commit", "-", "-m", "Take over", "--merge-parent", "booker/try-1"], {
        input: '{"seats":3}',
      });
      const graph = box.ok(["log", "--graph", "--oneline"]);
      expect(graph).toMatch(/^\* {3}[0-9a-f]{10} \(canonical\) Take over\n\|\\\n/);
    });
  });

  describe("is safe on a terminal and in a pipe", () => {
    it("escapes control characters of stored text everywhere", () => {
      const evil = new CliSandbox();
      try {
        evil.ok(["init"]);
        evil.ok(["workflow", "create", "w"]);
        const name = `x\u202egnp`;
        evil.ok(["branch", `${name}/try`]);
        evil.ok(
          ["commit", "-", "-b", `${name}/try`, "-m", `red ${ESC}[31m\u009b31m\r\nsecond\u0007`],
          {
            input: JSON.stringify({ [`key${ESC}[2J`]: `value${ESC}]0;title\u0007`, "\u202e": 1 }),
          },
        );
        const outputs = [
          ["log", "--all"],
          ["log", "--oneline", "--graph", "--all"],
          ["show", `${name}/try`],
          ["diff", `${name}/try`],
          ["cat", `${name}/try`],
          ["status"],
          ["branch"],
          ["reflog", `${name}/try`],
          ["workflow", "show"],
          ["show", `nothing${ESC}[31m`],
        ].map((args) => evil.run(args));
        for (const { stdout, stderr } of outputs) {
          expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
        }
        const state = JSON.parse(evil.ok(["cat", `${name}/try`])) as Record<string, unknown>;
        expect(state).toEqual({ [`key${ESC}[2J`]: `value${ESC}]0;title\u0007`, "\u202e": 1 });
      } finally {
        evil.remove();
      }
    });

    it("uses colour only where it is wanted", () => {
      const args = ["log", "--graph", "--oneline", "--all"];
      expect(box.ok(args)).not.toContain(ESC);
      const coloured = box.ok(args, { env: { FORCE_COLOR: "1" } });
      expect(coloured).toContain(ESC);
      expect(coloured.replaceAll(new RegExp(`${ESC}\\[[0-9;]*m`, "g"), "")).toBe(box.ok(args));
      expect(box.ok([...args, "--no-color"], { env: { FORCE_COLOR: "1" } })).not.toContain(ESC);
      expect(box.ok(args, { env: { FORCE_COLOR: "1", NO_COLOR: "1" } })).not.toContain(ESC);
      expect(box.ok(["--json", ...args], { env: { FORCE_COLOR: "1" } })).not.toContain(ESC);
    });

    it("ends quietly when the reader goes away", () => {
      writeFileSync(
        join(box.directory, "many.sh"),
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell
        'set -o pipefail; $AGSTATE log --all "$@" | head -1; echo "codes ${PIPESTATUS[*]}"',
      );
      for (const more of ["", "--json", "--graph"]) {
        const result = box.shell(`bash many.sh ${more}`);
        expect(result.stderr).toBe("");
        expect(result.stdout).toMatch(/codes 0 0\n$/);
      }
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell
      const gone = box.shell("$AGSTATE log --all | true; echo ${PIPESTATUS[0]}");
      expect(gone).toMatchObject({ stderr: "", stdout: "0\n" });
    });

    it("shows help on standard output, within 80 columns", () => {
      for (const args of [["--help"], ["help", "log"], ["branch", "--help"]]) {
        const help = box.ok(args);
        expect(help).toContain("Usage: agstate");
        for (const line of help.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
      }
      expect(box.ok(["--version"])).toMatch(/^\d+\.\d+\.\d+\n$/);
      expect(box.run([])).toMatchObject({ status: 2 });
    });
  });
});
