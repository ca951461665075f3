import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const CHILD = fileURLToPath(new URL("../fault/children/watch-life.mjs", import.meta.url));

/** Runs a process that watches, and gives what it said by words, and how it ended. */
async function live(mode: string) {
  const child = spawn(process.execPath, ["--max-old-space-size=256", CHILD, mode], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, errors, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  const lines = out
    .split("\n")
    .filter((line) => line !== "")
    .map((line): [string, unknown] => {
      const [, word = "", value = ""] =
        /^([a-z ]+?) ((?:[[{"\d]|null|true|false).*)$/.exec(line) ?? [];
      return [word, JSON.parse(value)];
    });
  const said = (word: string) => lines.filter(([name]) => name === word).map(([, value]) => value);
  return { said, errors, code, signal };
}

const ABSENT = /"absent"/;

describe("a watch of the process's memory", () => {
  it("is started for guards, ends with the last, and gives way to one with settings of the caller's", async () => {
    const { said, code, errors } = await live("implicit");
    expect(said("running")).toEqual([true]);
    expect(said("still")).toEqual([true]);
    expect(said("over")).toEqual([true]);
    expect(said("replaced")).toEqual([[true, false]]);
    expect(said("second")).toEqual([
      ["INVALID_ARGUMENT", expect.stringMatching(/^memory is watched already/)],
    ]);
    expect(said("none")).toEqual([["none", null, true]]);
    expect(said("listeners")).toEqual([0]);
    expect(code, errors).toBe(0);
  });

  it("gives its reserve back, and has said so in shared memory, while the process computes", async () => {
    const { said, code, errors } = await live("reserve");
    expect(said("held"), errors).toEqual([true]);
    expect(said("busy")).toEqual([
      ["pressure", { reason: "memory-pressure", how: "refuse" }, true],
    ]);
    expect(said("given back")).toEqual([true]);
    expect(said("released")).toEqual([
      { releasedBytes: 128 * 2 ** 20, path: "heap", late: expect.any(Boolean), level: "pressure" },
    ]);
    expect(code).toBe(0);
  });

  it("does its work though what it calls throws", async () => {
    const { said, signal } = await live("throws");
    expect(signal).toBe("SIGTERM");
    const notices = said("notice").filter((each) => !ABSENT.test(JSON.stringify(each)));
    expect(notices).toMatchObject([
      { code: "pressure" },
      { code: "failed", message: "onPressure failed: no cache" },
      {
        code: "safe",
        message: expect.stringMatching(/agents\/a\/x of w committed at [0-9a-f]{12}$/),
      },
    ]);
  });

  it("leaves the end to others that listen for the signal, and passes over a second one", async () => {
    const { said, code, signal } = await live("others");
    expect([code, signal]).toEqual([9, null]);
    expect(said("mine")).toEqual([null]);
    const safe = said("notice").filter((each) => /"safe"/.test(JSON.stringify(each)));
    expect(safe).toHaveLength(1);
  });

  it("lets the process end when the time for it is over, and says what is lost", async () => {
    const { said, signal } = await live("deadline");
    expect(signal).toBe("SIGTERM");
    expect(said("notice").at(-1)).toMatchObject({
      code: "unsafe",
      message: expect.stringMatching(
        /^NOT everything .* agents\/a\/x of w FAILED \(.*did not reach the store within 700 ms\)$/,
      ),
    });
  });

  it("lets it end in time also where an earlier checkpoint is still under way", async () => {
    const { said, signal } = await live("pass");
    expect(signal).toBe("SIGTERM");
    expect(said("notice").at(-1)).toEqual({
      code: "unsafe",
      message: "NOT everything is in the store (sigterm): 700 ms are over",
    });
  });

  it("does not keep a process alive, and tells Node.js's warnings where nobody asks for them", async () => {
    const { code, signal, errors } = await live("idle");
    expect([code, signal]).toEqual([0, null]);
    expect(errors.replace(/^\(Use .*\n/gm, "")).not.toMatch(/Error/);
  });

  it("refuses settings that make no sense, and starts nothing then", async () => {
    const { said } = await live("invalid");
    const refused = said("refused") as [string, string][];
    expect(new Set(refused.map(([code]) => code))).toEqual(new Set(["INVALID_ARGUMENT"]));
    const named = refused.map(([, message]) => message.split(" is ")[0]);
    expect(named).toEqual([
      "reserveBytes",
      "reserveBytes",
      "intervalMs",
      "deadlineMs",
      "steps",
      "exitCode",
      "sigterm.deadlineMs",
      "threshold usage",
    ]);
    expect(said("none")).toEqual([true]);
  });
});
