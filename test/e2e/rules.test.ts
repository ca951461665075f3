import stringWidth from "string-width";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const RULES = `{
  "rules": [
    { "tool": "find*", "decision": "allow", "action": "read" },
    { "tool": "send", "decision": "allow" },
    { "tool": "rm*", "decision": "deny", "reason": "nothing\\u202e is removed here, ${"ever ".repeat(20)}" },
    { "tool": "book*", "decision": "approve", "paths": ["/budget", ""], "expiresAfterMs": 5400000 }
  ],
  "default": "deny"
}
`;

describe("agstate rules", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());
  beforeAll(() => box.write("rules.json", RULES));

  it("checks a file, without a store", () => {
    const said = "4 rules can be used; deny for every other tool.\n";
    expect(box.ok(["rules", "check", "rules.json"])).toBe(`rules.json: ${said}`);
    expect(box.ok(["rules", "check", "-"], { input: RULES })).toBe(`standard input: ${said}`);
    expect(box.json(["rules", "check", "rules.json"])).toEqual([
      { file: "rules.json", rules: 4, default: "deny" },
    ]);
    expect(box.json(["rules", "check", "-"], '{"rules":[]}')).toEqual([
      { file: "-", rules: 0, default: "approve" },
    ]);
  });

  it("says what is wrong, and where, and ends with 2", () => {
    box.write("bad.json", RULES.replace('"send"', '"find-out"'));
    for (const args of [
      ["check", "bad.json"],
      ["explain", "bad.json", "send"],
    ]) {
      const { status, stdout, stderr } = box.run(["rules", ...args]);
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toMatch(
        /^agstate: rules file "bad.json" cannot be used: "\/rules\/1\/tool" can never count.* \(line 4, column 15\) \(INVALID_POLICY\)\n$/,
      );
    }
    const { stderr } = box.run(["--json", "rules", "check", "bad.json"]);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: "INVALID_POLICY", details: { at: "/rules/1/tool", line: 4, column: 15 } },
    });
    for (const input of ["{", '{"rules":[],"rules":[]}', "[]"]) {
      expect(box.run(["rules", "check", "-"], { input })).toMatchObject({ status: 2, stdout: "" });
    }
    for (const args of [
      ["check", "none.json"],
      ["check"],
      ["check", "a", "b"],
      ["explain", "rules.json"],
      ["forget"],
      [],
    ]) {
      expect(box.run(["rules", ...args])).toMatchObject({ status: 2, stdout: "" });
    }
  });

  it("explains what holds for tools, as people read it", () => {
    const tools = ["find-it", "send", "rm", "book-hotel", "mail\u001b[31m"];
    const text = box.ok(["rules", "explain", "rules.json", ...tools]);
    const lines = text.split("\n");
    for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
    for (const unsafe of ["\u001b", "\u202e"]) expect(text).not.toContain(unsafe);
    const blocks = text.trimEnd().split("\n\n");
    expect(blocks.map((block) => block.split("\n")[0])).toEqual([
      "find-it",
      "send",
      "rm",
      "book-hotel",
      "mail\\u001b[31m",
    ]);
    expect(blocks[0]).toContain("rule      find* (number 1, /rules/0)\ndecision  allow: it runs\n");
    expect(blocks[0]).toContain("class     read, whatever the code says");
    expect(blocks[0]).not.toMatch(/^(bound to|expires|reason)/m);
    expect(blocks[1]).toContain("class     what the code says, else execute");
    expect(blocks[2]).toMatch(
      /^decision {2}deny: .*\n.*\nreason {4}nothing\\u202e is removed here,/m,
    );
    expect(blocks[3]).toContain(
      "bound to  the step, its input and the state at /budget, (the whole state)\nexpires   after 90 minutes",
    );
    expect(blocks[4]).toContain("rule      none matches\ndecision  deny:");
    expect(blocks[4]).toContain("class     execute, whatever the code says; the strictest");
    const coloured = box.ok(["rules", "explain", "rules.json", "rm"], {
      env: { FORCE_COLOR: "1" },
    });
    expect(coloured).toContain("\u001b[");
  });

  it("explains what holds for tools in JSON, a value a line", () => {
    expect(box.json(["rules", "explain", "rules.json", "send", "book-hotel", "mail"])).toEqual([
      {
        tool: "send",
        rule: { at: "/rules/1", tool: "send" },
        decision: "allow",
        action: null,
        paths: [],
        expiresAfterMs: null,
        reason: null,
      },
      {
        tool: "book-hotel",
        rule: { at: "/rules/3", tool: "book*" },
        decision: "approve",
        action: null,
        paths: ["/budget", ""],
        expiresAfterMs: 5_400_000,
        reason: null,
      },
      {
        tool: "mail",
        rule: null,
        decision: "deny",
        action: "execute",
        paths: [],
        expiresAfterMs: null,
        reason: null,
      },
    ]);
  });

  it("tells of itself within 80 columns", () => {
    for (const args of [[], ["check"], ["explain"]]) {
      for (const line of box.ok(["rules", ...args, "--help"]).split("\n")) {
        expect(stringWidth(line), line).toBeLessThanOrEqual(80);
      }
    }
  });
});
