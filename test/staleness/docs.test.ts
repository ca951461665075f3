import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CHECK_DEFAULTS } from "../../src/staleness/check.js";
import { checkBounds, createCheckers, readCheckersFile } from "../../src/staleness/config.js";
import type { Observation, Resource } from "../../src/staleness/types.js";
import { judge } from "../../src/staleness/verdict.js";

const PAGE = readFileSync(new URL("../../docs/staleness.md", import.meta.url), "utf8");

/** The rows of the table in a section, by their first cell. */
function tableOf(section: string): Map<string, string> {
  const [, text = ""] = PAGE.split(`\n## ${section}\n`);
  const rows = (text.split("\n## ")[0] ?? "").matchAll(/^\| (.+?) \| (.+?) \|/gm);
  return new Map([...rows].slice(2).map(([, cell = "", next = ""]) => [cell, next]));
}

const NOW = 1_700_000_000_000;

function verdict(observation: Observation, version: string | null = "1", compared?: string) {
  const resource = { type: "t", id: "i", version, observedAt: NOW, steps: [] };
  const checker = compared && {
    observe: async () => observation,
    compare: () => ({ unknown: compared }),
  };
  const exact: Resource = { ...resource, tolerance: "exact" };
  return judge(exact, observation, checker || undefined, { now: NOW }).verdict;
}

describe("the page on staleness", () => {
  it("has the verdicts that there are", () => {
    const found = (version: string): Observation => ({ kind: "version", version });
    const unknown: Observation = { kind: "unknown", why: "w" };
    expect([...tableOf("Verdicts").values()]).toEqual([
      verdict(found("1")),
      verdict(found("2")),
      verdict({ kind: "gone", why: "w" }),
      verdict(unknown),
      verdict(unknown),
      verdict(unknown),
      verdict(found("1"), null),
      verdict(found("1"), "1", "in the future"),
    ]);
    expect(verdict({ kind: "same" })).toBe("fresh");
  });

  it("shows a file of checkers that can be read, and the bounds that are the usual ones", async () => {
    const [, file = ""] = /^( {4}\{\n[\s\S]*?^ {4}\}\n)/m.exec(PAGE) ?? [];
    const directory = mkdtempSync(join(tmpdir(), "agstate-docs-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, "checkers.json"), file);
    const names = ["GIT_BASIC", "CONFLUENCE_TOKEN", "JIRA_TOKEN", "GITHUB_TOKEN"];
    const environment = Object.fromEntries(names.map((name) => [name, "x"]));
    const config = await readCheckersFile(join(directory, "checkers.json"), environment);
    expect(checkBounds(config)).toEqual(CHECK_DEFAULTS);
    const types = Object.keys(createCheckers(config)).sort();
    expect(types).toEqual(["confluence", "file", "git", "github-pr", "http", "jira"]);
    const [, named = ""] = /which checker knows it: (.+), or one of your own/.exec(PAGE) ?? [];
    expect(named.split(", ").sort()).toEqual(types.map((type) => `\`${type}\``));
    // Every member of the file is explained, in this table or in that of bounds.
    const told = `${[...tableOf("A file of checkers").keys()]} ${[...tableOf("The check").keys()]} ${PAGE}`;
    for (const member of Object.keys(JSON.parse(file))) expect(told).toContain(member);
  });

  it("names the tolerances and the changes that there are", () => {
    expect([...tableOf("Tolerances").keys()]).toEqual(["`exact`", "`max-age=1h`", "`ignore`"]);
    expect([...tableOf("Fingerprints").keys()]).toEqual([
      "`changed`",
      "`added`",
      "`removed`",
      "`untold`",
    ]);
  });
});
