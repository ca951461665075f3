import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { readWalkThrough } from "../support/walk-through.js";

const PAGE = fileURLToPath(new URL("../../docs/governance.md", import.meta.url));

/** The ids of reviews, which are of the store that they are in. */
const REVIEW = /\b(approval|in-doubt|denial)-[0-9a-f]{12}\b/g;

const SHELL = 'unset FORCE_COLOR AGSTATE_STORE AGSTATE_WORKFLOW; agstate() { $AGSTATE "$@"; }';

/** An output without what is otherwise each time. */
function alike(output: string, directory: string): string[] {
  return output
    .replaceAll(directory, "/home/agents/trip")
    .replace(REVIEW, "$1-ID")
    .replace(/\b[0-9a-f]{32}\b/g, "KEY")
    .replace(/\b[0-9a-f]{10}\b/g, "COMMIT")
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g, "TIME")
    .replace(/^.*\bKilled\b.*$/gm, "Killed")
    .trimEnd()
    .split("\n")
    .map((line) => line.trimEnd());
}

describe("the walk through rules, approvals and reviews", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());

  it("prints what it shows", () => {
    const { files, commands } = readWalkThrough(readFileSync(PAGE, "utf8"));
    expect(files.map(({ name }) => name)).toEqual(["rules.json", "agent.mjs", "clean.mjs"]);
    expect(commands.length).toBeGreaterThan(15);
    box.linkPackage();
    for (const { name, text } of files) box.write(name, text);
    // Of each kind of review there is one id at a time, but for its number at the end.
    const ids = new Map<string, string>();
    for (const { command, output } of commands) {
      const here = command.replace(REVIEW, (id, kind: string) => ids.get(kind) ?? id);
      const { stdout } = box.shell(`${SHELL}; { ${here}; } 2>&1`);
      for (const [id, kind] of stdout.matchAll(REVIEW)) ids.set(kind as string, id);
      expect(alike(stdout, box.directory), command).toEqual(alike(output, box.directory));
    }
  });
});
