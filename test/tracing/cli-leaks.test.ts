import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { keepRequests } from "../support/collector.js";
import { expectNone, newMarker } from "../support/leaks.js";

const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));
const M = newMarker();

it("commands export nothing of what they were given, whether they fail or not, nor log it where the SDK logs all", async () => {
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  const { url, requests } = await keepRequests();
  const env = {
    ...process.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_LOG_LEVEL: "all",
  };
  /** Unlike the sandbox's own it does not stand in the way of the collector. */
  const run = async (args: readonly string[], input = "") => {
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: box.directory, env });
    const parts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        parts[name] += text;
      });
    }
    child.stdin.on("error", () => undefined).end(input);
    const [code] = await once(child, "close");
    // A path that was given is told back to whoever gave it, if it is wrong.
    if (!args.some((each) => each.startsWith(`/${M}`)))
      expectNone(parts.stderr, [M], args.join(" "));
    return code as number;
  };
  const state = JSON.stringify({ [M]: [M], text: M, mail: "ann@example.org" });

  const done: number[] = [];
  for (const [args, input] of [
    [["init"]],
    [["workflow", "create", "w", "--state", "-"], state],
    [["branch", "a/x"]],
    [["commit", "-b", "a/x", "-m", M, "-"], JSON.stringify({ text: `${M} a` })],
    [["commit", "-m", M, "-"], JSON.stringify({ text: `${M} b` })],
    [["cat", "canonical"]],
    [["erase", "--path", "/state/mail", "--reason", "request 17", "--by", "dpo"]],
    [["gc", "--grace", "0"]],
  ] as const) {
    done.push(await run(args, input));
  }
  expect(done.filter((code) => code !== 0)).toEqual([]);

  const failed: number[] = [];
  for (const [args, input] of [
    [["commit", "-"], `{"text": ${M}`],
    [["commit", "-b", "a/none", "-m", M, "-"], state],
    [["cat", "canonical", `/${M}/${M}`]],
    [["merge", "a/x", "-m", M]],
    [["resolve", "/text", "--value", `"${M}`]],
    [["log", "--store", `mysql://ann:${M}@h/db`]],
    [["erase", "--path", `/${M}`, "--reason", M, "--by", "dpo"]],
  ] as const) {
    failed.push(await run(args, input));
  }
  expect(failed).not.toContain(0);

  const sent = requests().filter((bytes) => bytes.includes("/v1/traces"));
  expect(sent.length).toBeGreaterThanOrEqual(done.length + failed.length - 1);
  for (const bytes of requests()) expectNone(bytes, [M], "a request");
});
