import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { readWalkThrough } from "../support/walk-through.js";

const PAGE = fileURLToPath(new URL("../../docs/state-versions.md", import.meta.url));

const SHELL = 'unset FORCE_COLOR AGSTATE_STORE AGSTATE_WORKFLOW; agstate() { $AGSTATE "$@"; }';

/** An output without what is otherwise each time. */
function alike(output: string): string[] {
  return output
    .replace(/\b[0-9a-f]{64}\b/g, "ID")
    .replace(/\b[0-9a-f]{10}\b/g, "COMMIT")
    .trimEnd()
    .split("\n")
    .map((line) => line.trimEnd());
}

describe("the walk through versions of the state", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());

  it("prints what it shows", () => {
    const { files, commands } = readWalkThrough(readFileSync(PAGE, "utf8"));
    expect(files.map(({ name }) => name)).toEqual(["migrations.mjs", "book.mjs"]);
    expect(commands.length).toBeGreaterThan(8);
    box.linkPackage();
    for (const { name, text } of files) box.write(name, text);
    for (const { command, output } of commands) {
      const { stdout } = box.shell(`${SHELL}; { ${command}; } 2>&1`);
      expect(alike(stdout), command).toEqual(alike(output));
    }
  });
});
