import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAgstateError } from "../../src/index.js";
import { checkRefComponent } from "../../src/refs/names.js";
import { temporaryFolder, tryGit } from "../support/git.js";
import { usually } from "../support/runs.js";

const folder = temporaryFolder();

function accepted(name: string): boolean {
  try {
    expect(checkRefComponent("branch", name)).toBe(name);
    return true;
  } catch (error) {
    expect(isAgstateError(error, "INVALID_NAME")).toBe(true);
    return false;
  }
}

/** Whether git takes the name as the last component of a ref. An argument cannot hold NUL, and Git's files cannot either. */
function gitAccepts(name: string): boolean {
  if (name.includes("\0")) return false;
  return tryGit(folder, ["check-ref-format", `refs/heads/agents/a/${name}`]).status === 0;
}

/** What agstate refuses and git does not: the documented extras. */
function refusedByUs(name: string): boolean {
  return (
    name.startsWith("-") ||
    name === "HEAD" ||
    name === "@" ||
    /^[0-9A-Fa-f]{4,64}$/.test(name) ||
    name.includes("/") ||
    Buffer.byteLength(name) > 200 ||
    !name.isWellFormed()
  );
}

const HOSTILE = [
  ...["", ".", "..", "...", "a.", ".a", "a..b", "a.b", "a.lock", ".lock", "lock", "a.lock.b"],
  ...["a.lockx", "a.LOCK", "@", "@@", "@{", "a@{b", "a@", "{", "}", "@}", "HEAD", "head", "HEADS"],
  ...["-", "-a", "a-", "--", "/", "a/b", "/a", "a/", "a//b", "a/.b", "a.lock/b", "a/..", "~", "^"],
  ...[":", "?", "*", "[", "]", "\\", " ", "a b", "\t", "\n", "\r", "\u007f", "\u0080", "\u009f"],
  ...["\u0000", "a\u0000", "\u001f", "\u00a0", "\u2028", "\ufeff", "😀", "\ud83d", "e\u0301"],
  ...[
    "abc",
    "abcd",
    "ABCD",
    "abcg",
    "0000",
    "f".repeat(64),
    "f".repeat(65),
    "deadbee",
    "dead-beef",
  ],
  ...["a".repeat(200), "g".repeat(200), "g".repeat(201), "é".repeat(100), "é".repeat(101)],
  ...["%", "!", '"', "#", "$", "&", "'", "(", ")", ",", ";", "<", ">", "=", "`", "|", "+", "_"],
];

describe("names of ref components, against git check-ref-format", () => {
  it.each(HOSTILE)("agree on %j", (name) => {
    expect(accepted(name)).toBe(gitAccepts(name) && !refusedByUs(name));
  });

  it("agree on random names", () => {
    const unit = fc.constantFrom(..."ab0.@{}-/~^:?*[\\ \t\u007f\u0080é😀", ".lock", "..", "HEAD");
    const names = fc.oneof(
      { weight: 3, arbitrary: fc.string({ unit, maxLength: 6 }) },
      { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 6 }) },
    );
    const property = fc.property(names, (name) => {
      expect(accepted(name)).toBe(gitAccepts(name) && !refusedByUs(name));
    });
    fc.assert(property, { numRuns: usually(150, 10_000) });
  });
});
