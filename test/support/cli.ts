import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runWarm } from "./warm-cli/client.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));

/** What a person's own environment must not bring in. */
const UNSET = [
  "AGSTATE_STORE",
  "AGSTATE_REGIONS",
  "AGSTATE_WORKFLOW",
  "AGSTATE_KEYS",
  "AGSTATE_MIGRATIONS",
  "AGSTATE_TRACE_URL",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "TRACEPARENT",
  "NO_COLOR",
  "FORCE_COLOR",
] as const;

/** What of an environment changes more of a process than a command undoes: what is exported, and Node itself. */
const OF_THE_PROCESS = /^(?:OTEL_|NODE_|TRACE|AGSTATE_TRACE_URL$)/;

export interface CliResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A temporary folder in which the built command line is run as a user would.
 *
 * Starting a process takes longer than most commands. Where a test is not about processes its
 * commands share one, which is neither the test's own nor that of `shell`.
 */
export class CliSandbox {
  readonly directory = mkdtempSync(join(tmpdir(), "agstate-cli-"));

  constructor(private readonly processes: "own" | "shared" = "shared") {}

  run(
    args: readonly string[],
    options: { input?: string; env?: NodeJS.ProcessEnv; cwd?: string } = {},
  ): CliResult {
    const env: NodeJS.ProcessEnv = { ...process.env, ...options.env };
    for (const name of UNSET) {
      if (options.env?.[name] === undefined) delete env[name];
    }
    const { cwd = this.directory, input = "" } = options;
    const shares = !Object.keys(options.env ?? {}).some((name) => OF_THE_PROCESS.test(name));
    if (this.processes === "shared" && shares && !args.some((arg) => arg.startsWith("--trace-url")))
      return runWarm({ main: MAIN, args, env, cwd, input });
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      cwd,
      env,
      input,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    return { status, stdout, stderr };
  }

  /** Runs a command that must succeed, and gives what it printed. */
  ok(args: readonly string[], options: { input?: string; env?: NodeJS.ProcessEnv } = {}): string {
    const result = this.run(args, options);
    if (result.status !== 0) {
      throw new Error(`agstate ${args.join(" ")} ended with ${result.status}: ${result.stderr}`);
    }
    return result.stdout;
  }

  /** Runs a command with `--json` and parses what it printed, a value a line. */
  json<T = Record<string, unknown>>(args: readonly string[], input?: string): T[] {
    return this.ok(["--json", ...args], input === undefined ? {} : { input })
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as T);
  }

  shell(script: string): CliResult {
    const { status, stdout, stderr } = spawnSync("bash", ["-c", script], {
      cwd: this.directory,
      env: { ...process.env, AGSTATE: `${process.execPath} ${MAIN}` },
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  }

  /** Lets programs in the folder import `agstate`, as where it is installed. */
  linkPackage(): void {
    mkdirSync(join(this.directory, "node_modules"));
    symlinkSync(ROOT, join(this.directory, "node_modules", "agstate"));
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.directory, name), text);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
