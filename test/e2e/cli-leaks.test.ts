import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reportError } from "../../src/cli/output.js";
import { openStore } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";
import { expectNone, newMarker } from "../support/leaks.js";

const M = newMarker();
/** What parsers quote is short. */
const PART = M.slice(0, 6);

describe("a command of agstate that fails", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());

  beforeAll(async () => {
    box.ok(["init"]);
    box.ok(["workflow", "create", "w", "--state", "-"], {
      input: JSON.stringify({ text: M, list: [M] }),
    });
    const store = await openStore(`sqlite:${join(box.directory, ".agstate")}`);
    const workflow = await store.workflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.commit({ state: { text: `${M} a` }, message: "one" });
    await (await workflow.canonical()).commit({ state: { text: `${M} b` }, message: "two" });
    await branch
      .step(
        { name: "pay", input: { to: M }, timeoutMs: 5 },
        () => new Promise<never>(() => undefined),
      )
      .catch(() => undefined);
    await branch
      .step({ name: "print", input: { to: M } }, () => {
        throw new RangeError(`no paper for ${M}`, { cause: new Error(M) });
      })
      .catch(() => undefined);
    await store.close();
    box.write("broken.json", `{"text": ${M}}`);
    box.write(
      "broken.jsonl",
      `{"messages":[{"role":"user","content":"${M}"}]}\n{"messages":${M}}\n`,
    );
    box.write("wrong.jsonl", `{"messages":[{"role":"user","content":{"a":"${M}"}}]}\n`);
    box.write("receipt", `${M} is what was erased`);
    box.write("half", '{"agstate":"erasure-receipt","v":1}');
    box.write("rules.json", `{"rules":[{"tool":"a","decision":"allow","reason":${M}}]}`);
  });

  it.each<[string, string[], { input?: string; env?: NodeJS.ProcessEnv }?]>([
    ["INVALID_VALUE", ["commit", "broken.json"]],
    ["INVALID_VALUE", ["commit", "-"], { input: `["${M}" "${M}"]` }],
    ["INVALID_VALUE", ["commit", "-"], { input: `{"${M}":1,"b":"${M}"` }],
    ["REF_NOT_FOUND", ["commit", "-b", "b/none", "-"], { input: JSON.stringify(M) }],
    [
      "REF_CONFLICT",
      ["commit", "--expected", "canonical~1", "-"],
      { input: JSON.stringify({ a: M }) },
    ],
    ["PATH_NOT_FOUND", ["cat", "canonical", "/text/0"]],
    ["PATH_NOT_FOUND", ["cat", "canonical", "/none"]],
    ["REF_CONFLICT", ["merge", "a/x", "--ff-only", "--allow-open-intents"]],
    ["PATH_NOT_FOUND", ["blame", "canonical", "/none"]],
    ["MERGE_NOT_FOUND", ["resolve", "/text", "--ours"]],
    ["INVALID_ARGUMENT", ["step", "seal", "9", "a/x", "--output", "1"]],
    ["INVALID_VALUE", ["step", "seal", "1", "a/x", "--output", `{"a": ${M}`]],
    ["INVALID_TRANSCRIPT", ["import", "broken.jsonl"]],
    ["INVALID_TRANSCRIPT", ["import", "wrong.jsonl"]],
    [
      "INVALID_ARGUMENT",
      ["import", "--from", "langgraph-postgres", `mysql://ann:${M}@127.0.0.1:1/db`],
    ],
    ["INVALID_ARGUMENT", ["import", "--from", "langgraph-sqlite", "broken.json"]],
    ["INVALID_ARGUMENT", ["erase", "--again", "--receipt", "receipt"]],
    ["INVALID_NAME", ["erase", "--again", "--receipt", "half"]],
    ["INVALID_VALUE", ["rules", "check", "rules.json"]],
    ["INVALID_ARGUMENT", ["log", "--store", `mysql://ann:${M}@127.0.0.1:1/db`]],
    ["INVALID_ARGUMENT", ["log", "--store", `postgres://ann:${M}@127.0.0.1:99999/db`]],
    [
      "INVALID_ARGUMENT",
      ["audit", "export", "--cursor", "at", "--otlp", `ftp://ann:${M}@127.0.0.1:1`],
    ],
  ])("tells of %s without values: %j", (code, args, how = {}) => {
    for (const json of [[], ["--json"]]) {
      const { status, stdout, stderr } = box.run([...json, ...args], how);
      expect(status, stdout + stderr).toBeGreaterThan(0);
      expect(stderr).toContain(code);
      expectNone(stderr, [PART], "standard error");
      expectNone(stdout, [PART], "standard output");
    }
  });
});

describe("an error that nobody expected", () => {
  const told = (error: unknown, json: boolean) => {
    const write = process.stderr.write;
    let text = "";
    process.stderr.write = (part: string | Uint8Array) => {
      text += String(part);
      return true;
    };
    try {
      expect(reportError(error, json)).toBeGreaterThan(0);
    } finally {
      process.stderr.write = write;
    }
    return text;
  };
  const thrown = (work: () => unknown): unknown => {
    try {
      return work();
    } catch (error) {
      return error;
    }
  };

  it.each<[string, unknown]>([
    ["a text that is not JSON", thrown(() => JSON.parse(`{"a":${M}}`))],
    ["a number that is none", thrown(() => BigInt(M))],
    ["an argument of Node's", thrown(() => Buffer.alloc(M as never))],
    ["a URL that is none", thrown(() => new URL(`http://${M}:99999`))],
    ["a cause", new TypeError("it failed", { cause: new Error(M) })],
    ["what is no error", M],
  ])("about %s is told by its kind and place, and quotes nothing", (_, error) => {
    for (const json of [true, false]) expectNone(told(error, json), [PART], "standard error");
    if (error instanceof Error) expect(told(error, false)).toMatch(/^\s+at .*cli-leaks/m);
  });

  it("keeps what names code only", () => {
    const error = thrown(() => (undefined as unknown as { a: number }).a);
    expect(told(error, false)).toContain("reading 'a'");
    expect(told(error, true)).toContain("reading 'a'");
  });
});
