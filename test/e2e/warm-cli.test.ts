import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { runWarm } from "../support/warm-cli/client.js";

describe("commands that share a process", () => {
  const [own, shared] = [new CliSandbox("own"), new CliSandbox("shared")];
  afterAll(() => {
    own.remove();
    shared.remove();
  });

  /** What of an output tells where and when it was made. */
  const alike = (box: CliSandbox, text: string) =>
    text
      .replaceAll(box.directory, "HERE")
      .replace(/\b(?:[0-9a-f]{64}|[0-9a-f]{10})\b/g, "ID")
      .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\dZ]*/g, "TIME");

  it("do and tell what they do and tell in processes of their own", () => {
    const commands: [string[], Parameters<CliSandbox["run"]>[1]?][] = [
      [["log"]],
      [["init"]],
      [["workflow", "create", "trip"]],
      [["commit", "-", "-m", "one"], { input: '{"n":1,"text":"é\\u001b"}' }],
      [["commit", "-", "-m", "two"], { input: '{"n":2}' }],
      [["commit", "-"], { input: '{"n":' }],
      [["commit", "-"]],
      [["diff", "canonical~1", "canonical", "--exit-code"]],
      [["log"], { env: { FORCE_COLOR: "1" } }],
      [["log", "--json"]],
      [["log"], { env: { AGSTATE_WORKFLOW: "nope" } }],
      [["log"], { cwd: "/" }],
      [["log", "--json"], { env: { AGSTATE_STORE: "" } }],
      [["shoe"]],
      [["branch", "--help"]],
      [[]],
      [["fsck"]],
    ];
    for (const [args, options] of commands) {
      const [expected, got] = [own.run(args, options), shared.run(args, options)].map(
        ({ status, stdout, stderr }, i) => {
          const box = i === 0 ? own : shared;
          return { status, stdout: alike(box, stdout), stderr: alike(box, stderr) };
        },
      );
      expect(got, args.join(" ")).toEqual(expected);
    }
  });

  const run = (name: string, program: string, limits: { limitMs?: number; lingerMs?: number }) => {
    shared.write(name, program);
    const cwd = shared.directory;
    return runWarm({ main: join(cwd, name), args: [], env: {}, cwd, input: "", ...limits });
  };

  it("are told of where they would not end", () => {
    const program = "setTimeout(() => {}, 1000); process.exitCode = 3;";
    expect(run("ends.mjs", program, {})).toEqual({ status: 3, stdout: "", stderr: "" });
    const never = "setInterval(() => {}, 1000).unref().ref();";
    expect(() => run("never.mjs", never, { lingerMs: 50 })).toThrow(/would not end: .*Timeout/);
  });

  it("are given up where they take too long, and the next go on", () => {
    const program = "await new Promise((done) => setTimeout(done, 1e6));";
    expect(() => run("long.mjs", program, { limitMs: 50 })).toThrow(/ended before the command/);
    expect(shared.run(["log"]).status).toBe(0);
  });

  it("are given up where one throws, and the next go on", () => {
    expect(() => run("throws.mjs", "throw new Error();", {})).toThrow(/ended before the command/);
    expect(shared.run(["log"]).status).toBe(0);
  });
});
