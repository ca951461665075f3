import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openStore, readGovernanceFile } from "../../src/index.js";
import { agstateError } from "../support/stores.js";

const directory = mkdtempSync(join(tmpdir(), "agstate-rules-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function fileOf(content: string | Uint8Array): string {
  const path = join(directory, "rules.json");
  writeFileSync(path, content);
  return path;
}

describe("a file of rules", () => {
  it("is what a store is opened with", async () => {
    const path = fileOf(
      '\ufeff{ "rules": [{ "tool": "rm*", "decision": "deny" }], "default": "allow" }\n',
    );
    const governance = await readGovernanceFile(path);
    expect(governance).toEqual({ rules: [{ tool: "rm*", decision: "deny" }], default: "allow" });
    const store = await openStore("memory:", { governance });
    const branch = await (await store.createWorkflow("w")).branch({ agent: "a", branch: "x" });
    expect(await branch.step({ name: "list" }, () => 1)).toBe(1);
    await expect(branch.step({ name: "rm-all" }, () => 1)).rejects.toEqual(
      agstateError("STEP_DENIED"),
    );
    await store.close();
  });

  it.each([
    [
      '{\n  "rules": [\n    { "tool": "a", "decision": "may" }\n  ]\n}',
      { at: "/rules/0/decision", line: 3, column: 32 },
    ],
    ['{"rules":[],\n"defualt":"deny"}', { at: "/defualt", line: 2, column: 11 }],
    ['{"rules":[{"decision":"deny"}]}', { at: "/rules/0/tool", line: 1, column: 11 }],
    ["[]", { at: "", line: 1, column: 1 }],
  ])("that has something wrong in it names itself and the place: %s", async (text, details) => {
    const path = fileOf(text);
    const reading = readGovernanceFile(path);
    await expect(reading).rejects.toEqual(agstateError("INVALID_POLICY", details));
    await expect(reading).rejects.toThrow(`(line ${details.line}, column ${details.column})`);
    await expect(reading).rejects.toThrow(`rules file ${JSON.stringify(path)} cannot be used: `);
  });

  it("is refused when it is not JSON, or would lose something", async () => {
    const wrong: [string | Uint8Array, Record<string, unknown>][] = [
      ['{"rules":[],}', { line: 1, column: 13 }],
      [
        '{"rules":[{"tool":"a","decision":"deny","decision":"allow"}]}',
        { path: "/rules/0/decision" },
      ],
      ["", {}],
      [new Uint8Array([0x22, 0xff, 0x22]), {}],
    ];
    for (const [content, details] of wrong) {
      await expect(readGovernanceFile(fileOf(content))).rejects.toEqual(
        agstateError("INVALID_VALUE", details),
      );
    }
  });

  it("is refused when it cannot be read, or is too large to be one", async () => {
    const none = join(directory, "none.json");
    for (const path of [none, directory]) {
      await expect(readGovernanceFile(path)).rejects.toEqual(
        agstateError("INVALID_ARGUMENT", { file: path }),
      );
    }
    const path = fileOf("");
    truncateSync(path, 2 ** 25);
    await expect(readGovernanceFile(path)).rejects.toEqual(
      agstateError("LIMIT_EXCEEDED", { size: 2 ** 25 }),
    );
  });
});
