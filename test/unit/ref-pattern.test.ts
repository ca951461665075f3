import { describe, expect, it } from "vitest";
import { parseRefPattern } from "../../src/refs/pattern.js";
import { agstateError } from "../support/stores.js";

const REFS = [
  "refs/audit/workflow",
  "refs/heads/agents/booker/try-1",
  "refs/heads/agents/booker/try-2",
  "refs/heads/agents/hotels/try-1",
  "refs/heads/canonical",
  "refs/tags/try-1",
  "refs/tags/v1",
];

const matched = (pattern: string) => {
  const { matches } = parseRefPattern(pattern);
  return REFS.filter(matches);
};

describe("a pattern of refs", () => {
  it.each<[string, string[]]>([
    ["canonical", ["refs/heads/canonical"]],
    ["refs/heads/canonical", ["refs/heads/canonical"]],
    ["booker/try-1", ["refs/heads/agents/booker/try-1"]],
    ["agents/booker/try-1", ["refs/heads/agents/booker/try-1"]],
    ["v1", ["refs/tags/v1"]],
    ["agents/booker/*", REFS.slice(1, 3)],
    ["booker/", REFS.slice(1, 3)],
    ["refs/heads/agents/*", REFS.slice(1, 4)],
    ["agents/*/try-1", [REFS[1] as string, REFS[3] as string]],
    ["*/try-*", [...REFS.slice(1, 4), "refs/tags/try-1"]],
    ["refs/heads/", REFS.slice(1, 5)],
    ["refs/tags/*1", REFS.slice(5)],
    ["refs/heads/c*l*l", []],
    ["can*cal", ["refs/heads/canonical"]],
    ["refs/tags/v1*1", []],
    ["nobody/*", []],
    ["*", REFS],
  ])("%s", (pattern, refs) => {
    expect(matched(pattern)).toEqual(refs);
    const { read } = parseRefPattern(pattern);
    for (const ref of refs) {
      expect("names" in read ? read.names.includes(ref) : ref.startsWith(read.prefix)).toBe(true);
    }
  });

  it.each([
    "",
    "/",
    "/canonical",
    "a//b",
    "a b",
    "a?",
    "[ab]",
    "a..b",
    "HEAD",
    "a/.b",
    "\u0000",
    "x.lock",
  ])("%j is refused", (pattern) => {
    expect(() => parseRefPattern(pattern)).toThrow(agstateError("INVALID_NAME", { name: pattern }));
  });

  it("is refused when it is no text, or longer than any name", () => {
    expect(() => parseRefPattern(undefined as unknown as string)).toThrow(
      agstateError("INVALID_NAME"),
    );
    expect(() => parseRefPattern(`${"a*".repeat(600)}`)).toThrow(agstateError("LIMIT_EXCEEDED"));
    expect(matched(`${"*a".repeat(90)}*`)).toEqual([]);
  });
});
