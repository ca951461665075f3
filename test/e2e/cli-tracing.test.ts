import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { startHttpService } from "../support/http-service.js";
import { metricsOf, spansOf } from "../support/otlp.js";

const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));

/** Longer than any test: what must be given up is not given up by the exporter. */
const PATIENT = {
  OTEL_EXPORTER_OTLP_TIMEOUT: "1000000",
  OTEL_BSP_EXPORT_TIMEOUT: "1000000",
};

const running = new Set<ChildProcess>();
let box: CliSandbox;
beforeEach(() => {
  box = new CliSandbox();
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip"]);
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  box.remove();
});

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command line in a process of its own, with only those variables of OpenTelemetry's that are given. */
function start(args: readonly string[], variables: NodeJS.ProcessEnv) {
  const own = Object.entries(process.env).filter(([name]) => !/^(OTEL_|AGSTATE_|TRACE)/.test(name));
  const env = { ...Object.fromEntries(own), ...variables };
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: box.directory, env });
  running.add(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended: Promise<Ended> = once(child, "close").then(([code, signal]) => {
    running.delete(child);
    return { code, signal, stdout, stderr };
  });
  return { child, ended };
}

/** A command that exports has a process of its own; what it is held against needs none. */
async function run(args: readonly string[], variables: NodeJS.ProcessEnv = {}): Promise<Ended> {
  if (Object.keys(variables).length === 0) {
    const { status, stdout, stderr } = box.run(args, { input: '{"n":1}' });
    return { code: status, signal: null, stdout, stderr };
  }
  const { child, ended } = start(args, variables);
  child.stdin.end('{"n":1}');
  return ended;
}

const taken = (_: unknown, response: ServerResponse) =>
  void response.writeHead(200, { "content-type": "application/json" }).end("{}");

async function collector() {
  const { url, received } = await startHttpService(taken);
  return {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url },
    received,
    get spans() {
      return spansOf(received);
    },
    /** The one span of the command itself. */
    get root() {
      const roots = spansOf(received).filter(({ name }) => /^agstate\b/.test(name));
      expect(roots).toHaveLength(1);
      return roots[0]!;
    },
  };
}

describe("a command that exports", () => {
  it("sends its span before it ends, by the conventions for command lines", async () => {
    const to = await collector();
    const { env } = to;
    const plain = await run(["log"]);
    const { child, ended } = start(["log"], { ...env, OTEL_EXPORTER_OTLP_HEADERS: "x-team=blue" });
    expect(await ended).toEqual(plain);
    expect(to.root).toMatchObject({
      name: "agstate log",
      kind: 1,
      status: { code: 0 },
      attributes: {
        "process.executable.name": basename(process.execPath),
        "process.exit.code": 0,
        "process.pid": child.pid,
      },
      resource: { "service.name": "agstate", "service.version": expect.any(String) },
      scope: { name: "agstate", version: expect.any(String) },
    });
    expect(to.root.attributes).not.toHaveProperty("error.type");
    expect(to.root.parentSpanId ?? "").toBe("");
    expect(to.received[0]?.headers["x-team"]).toBe("blue");
  });

  it("tells of nothing that was given to it", async () => {
    const to = await collector();
    const { env } = to;
    const secrets = [
      "s3cret-message",
      "s3cret-author",
      "s3cret-branch/s3cret-try",
      "s3cret-revision",
    ];
    const [message, author, branch, revision] = secrets as [string, string, string, string];
    await run(["commit", "-", "-m", message, "--author", author], env);
    await run(["branch", branch], env);
    await run(["show", revision], env);
    await run(["s3cret-command"], env);
    await run(["show", "--s3cret-option"], env);
    await run(["cat", "canonical:/s3cret/path"], env);
    const names = to.spans.map(({ name }) => name).filter((name) => name.startsWith("agstate"));
    expect(names).toEqual([
      "agstate commit",
      "agstate branch",
      "agstate show",
      "agstate",
      "agstate",
      "agstate cat",
    ]);
    const roots = to.spans.filter(({ name }) => name.startsWith("agstate"));
    expect(JSON.stringify(roots)).not.toContain("s3cret");
  });

  it.each([
    [["show", "nope"], 3, "REVISION_NOT_FOUND", "agstate show"],
    [["diff", "canonical", "first", "--exit-code"], 1, "negative", "agstate diff"],
    [["shoe"], 2, "usage", "agstate"],
    [["audit", "list", "-n", "0"], 2, "usage", "agstate"],
    [["audit", "--since", "x"], 2, "INVALID_ARGUMENT", "agstate audit list"],
  ])("says what went wrong: %j ends with %i, %s", async (args, code, type, name) => {
    box.ok(["tag", "first"]);
    box.ok(["commit", "-"], { input: '{"n":0}' });
    const to = await collector();
    const { env } = to;
    const plain = await run(args);
    expect(plain.code).toBe(code);
    expect(await run(args, env)).toEqual(plain);
    expect(to.root).toMatchObject({
      name,
      status: { code: 2, message: type },
      attributes: { "process.exit.code": code, "error.type": type },
    });
  });

  it("is part of the trace that its environment tells of", async () => {
    const to = await collector();
    const { env } = to;
    const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
    const parent = { TRACEPARENT: `00-${traceId}-${spanId}-01`, TRACESTATE: "vendor=x" };
    await run(["log"], { ...env, ...parent });
    expect(to.root).toMatchObject({ traceId, parentSpanId: spanId, traceState: "vendor=x" });
  });

  it("begins a trace of its own where that cannot be read, and none where it is not sampled", async () => {
    const to = await collector();
    const { env } = to;
    const ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    await run(["log"], { ...env, TRACEPARENT: `00-${ids}-00` });
    await run(["log"], { ...env, OTEL_TRACES_SAMPLER: "always_off" });
    await run(["log"], {
      ...env,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0",
    });
    expect(to.spans).toEqual([]);
    await run(["log"], { ...env, TRACEPARENT: `00-${ids.toUpperCase()}-01` });
    expect(to.root.parentSpanId ?? "").toBe("");
  });

  it("is known by the name that the environment gives it", async () => {
    const to = await collector();
    const { env } = to;
    const named = { OTEL_RESOURCE_ATTRIBUTES: "service.name=other,team=blue%2Cgreen" };
    await run(["log"], { ...env, ...named });
    expect(to.root.resource).toMatchObject({ "service.name": "other", team: "blue,green" });
    to.received.length = 0;
    await run(["log"], { ...env, ...named, OTEL_SERVICE_NAME: "nightly" });
    expect(to.root.resource).toMatchObject({ "service.name": "nightly", team: "blue,green" });
  });

  it("sends what it did below its span, and the commit leads back to it", async () => {
    const { env, received } = await collector();
    const committed = await run(["commit", "-", "--json"], env);
    const spans = spansOf(received);
    const checkpoint = spans.find(({ name }) => name === "write_checkpoint")!;
    const root = spans.find(({ name }) => name === "agstate commit")!;
    expect(checkpoint).toMatchObject({ traceId: root.traceId, parentSpanId: root.spanId });
    const { id, traceId, spanId } = JSON.parse(committed.stdout);
    expect({ traceId, spanId }).toEqual({ traceId: root.traceId, spanId: checkpoint.spanId });
    expect(checkpoint.attributes).toMatchObject({
      "checkpoint.commit": id,
      "checkpoint.success": true,
    });
  });

  it("sends what it counted, as what it adds, or as sums where it is told so", async () => {
    const { env, received } = await collector();
    for (const [preference, temporality] of [
      [{}, 1],
      [{ OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "cumulative" }, 2],
    ] as const) {
      received.length = 0;
      box.ok(["commit", "-"], { input: `{"preference":${temporality}}` });
      await run(["commit", "-"], { ...env, ...preference });
      const commits = metricsOf(received).filter(({ name }) => name === "agstate.commits");
      expect(commits).toHaveLength(1);
      expect(commits[0]).toMatchObject({
        unit: "{commit}",
        sum: { aggregationTemporality: temporality, dataPoints: [{ asDouble: 1 }] },
      });
    }
  });

  it("sends a 0 of what is rare, from which the first is one more", async () => {
    const { env, received } = await collector();
    await run(["commit", "-"], env);
    for (const rare of ["agstate.steps.in_doubt", "agstate.merge.conflicts"])
      expect(metricsOf(received).find(({ name }) => name === rare)).toMatchObject({
        sum: { dataPoints: [{ asDouble: 0 }] },
      });
  });

  it("sends traces where they alone are to go", async () => {
    const { url, received } = await startHttpService(taken);
    await run(["log"], {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/some/where`,
    });
    expect(received.map(({ path }) => path)).toEqual(["/some/where"]);
  });
});

/** Has one of the SDK's packages resolved as where it is not installed. */
const HIDING = `
  import { register } from "node:module";
  const hooks = \`export async function resolve(name, context, next) {
    if (name !== "@opentelemetry/exporter-trace-otlp-http") return next(name, context);
    throw Object.assign(new Error("Cannot find package " + name), { code: "ERR_MODULE_NOT_FOUND" });
  }\`;
  register("data:text/javascript," + encodeURIComponent(hooks));`;

describe("a command that is not to export", () => {
  it.each([
    [{ OTEL_SDK_DISABLED: "true" }],
    [{ OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }],
    [{ OTEL_TRACES_EXPORTER: "console", OTEL_METRICS_EXPORTER: "prometheus" }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
  ])("sends nothing, and loads nothing of the SDK: %j", async (variables) => {
    const { env, received } = await collector();
    const report = "process.on('exit', () => console.log(Object.keys(require.cache).join('\\n')))";
    box.write("report.cjs", report);
    const all = { ...env, NODE_OPTIONS: `--require ${join(box.directory, "report.cjs")}` };
    const sdk = /@opentelemetry\/(sdk|exporter|resources)/;
    expect((await run(["status"], all)).stdout).toMatch(sdk);
    expect(received.length).toBeGreaterThan(0);
    received.length = 0;
    const ended = await run(["status"], { ...all, ...variables });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout).not.toMatch(sdk);
    expect(received).toEqual([]);
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" }, "http://localhost:4318"],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4317", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      "4318",
    ],
  ])("says in one line what can never work: %j", async (variables, remedy) => {
    const { stderr, ...rest } = await run(["log", "--oneline"], variables);
    expect({ ...rest, stderr: "" }).toEqual(await run(["log", "--oneline"]));
    expect(stderr).toMatch(/^agstate: nothing is traced: .*\n$/);
    expect(stderr).toContain(remedy);
    const asJson = await run(["--json", "show", "nope"], variables);
    const [warning, error] = asJson.stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(warning.warning.message).toContain(remedy);
    expect(error.error.code).toBe("REVISION_NOT_FOUND");
  });

  it("says in one line which packages are not installed, and goes on", async () => {
    box.write("hide.mjs", HIDING);
    const hiding = { NODE_OPTIONS: `--import ${pathToFileURL(join(box.directory, "hide.mjs"))}` };
    const { env, received } = await collector();
    const { stderr, ...rest } = await run(["log"], { ...env, ...hiding });
    expect({ ...rest, stderr: "" }).toEqual(await run(["log"]));
    expect(stderr).toMatch(/^agstate: nothing is traced: .*npm install .*\n$/);
    expect(stderr).toContain("@opentelemetry/exporter-trace-otlp-http");
    expect(received).toEqual([]);
  });
});

/** Collectors that do not do their work, each answering what comes to it. */
const BAD: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  "answers 500": (response) => response.writeHead(500).end("no"),
  "asks to come again in an hour": (response) =>
    response.writeHead(503, { "retry-after": "3600" }).end(),
  "answers with what is no JSON": (response) =>
    response.writeHead(200, { "content-type": "application/json" }).end("\u0000<html>"),
  "never answers": () => undefined,
  "begins an answer, and never ends it": (response) => response.writeHead(200).write("{"),
  "sends back another byte from time to time": (response) => {
    const timer = setInterval(() => response.write(" "), 100);
    response.once("close", () => clearInterval(timer));
    response.writeHead(200).write("{");
  },
  "closes the connection": (response) => response.destroy(),
};

describe("a collector that does not do its work changes nothing", () => {
  const COMMANDS = [
    ["log", "--oneline"],
    ["--json", "show", "nope"],
  ];

  async function expectUnchanged(variables: NodeJS.ProcessEnv): Promise<void> {
    for (const args of COMMANDS) expect(await run(args, variables)).toEqual(await run(args));
  }

  it.each(Object.entries(BAD))("it %s", { timeout: 60_000 }, async (_, answer) => {
    const { url, received } = await startHttpService((_request, response) => void answer(response));
    await expectUnchanged({ ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: url });
    expect(received.length).toBeGreaterThanOrEqual(COMMANDS.length);
  });

  it("it speaks another protocol", { timeout: 60_000 }, async () => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end("220 mail.example ESMTP\r\n");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    await expectUnchanged({ ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` });
  });

  it("it is not there", { timeout: 60_000 }, async () => {
    const { env } = await collector();
    const nowhere = { ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
    await expectUnchanged(nowhere);
    await expectUnchanged({
      ...nowhere,
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.invalid:4318",
    });
    const told = await run(["log"], { ...nowhere, OTEL_LOG_LEVEL: "warn" });
    expect(told.stderr).toContain("opentelemetry warn: nobody takes what is exported: ");
    expect(told.stderr).not.toContain("the collector did not take all");
    expect((await run(["log"], { ...env, OTEL_LOG_LEVEL: "warn" })).stderr).toBe("");
  });
});

describe("a command that is interrupted", () => {
  /** Waits until a process listens for signals, and its work has begun: it reads what is not given to it. */
  async function waiting(variables: NodeJS.ProcessEnv) {
    box.write("ready.cjs", READY);
    const { child, ended } = start(["commit", "-"], {
      ...variables,
      NODE_OPTIONS: `--require ${join(box.directory, "ready.cjs")}`,
    });
    await once(child.stderr!, "data");
    return { child, ended };
  }

  /** Says when standard input is asked for. */
  const READY = `
    const { get } = Object.getOwnPropertyDescriptor(process, "stdin");
    Object.defineProperty(process, "stdin", {
      get: () => {
        process.stderr.write("ready\\n");
        return get.call(process);
      },
    });`;

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("by %s sends what it has, and ends by it", async (signal, code) => {
    const to = await collector();
    const { env } = to;
    const { child, ended } = await waiting(env);
    child.kill(signal);
    expect(await ended).toEqual({ code: null, signal, stdout: "", stderr: "ready\n" });
    expect(to.root).toMatchObject({
      name: "agstate commit",
      attributes: { "process.exit.code": code, "error.type": signal },
    });
  });

  it("does not wait for a collector that hangs", { timeout: 60_000 }, async () => {
    const { url } = await startHttpService(() => undefined);
    const { child, ended } = await waiting({ ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: url });
    child.kill("SIGINT");
    expect(await ended).toEqual({ code: null, signal: "SIGINT", stdout: "", stderr: "ready\n" });
  });

  it("ends by itself where it listens for that, with its own exit code", async () => {
    const to = await collector();
    const { env } = to;
    const { child, ended } = start(["watch", "--from-start"], env);
    await once(child.stdout!, "data");
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: "" });
    expect(to.root).toMatchObject({
      name: "agstate watch",
      attributes: { "process.exit.code": 0 },
    });
  });

  it("ends quietly when its reader goes", async () => {
    const { env } = await collector();
    const exported = `export OTEL_EXPORTER_OTLP_ENDPOINT=${env.OTEL_EXPORTER_OTLP_ENDPOINT};`;
    for (const prefix of ["", exported]) {
      const script = `${prefix} { $AGSTATE watch --from-start; echo "exit $?" >&2; } | head -n 1 &
        for n in $(seq 20); do
          [ -n "$(jobs -r)" ] || break
          echo "$n" | $AGSTATE commit - -m more >/dev/null
        done
        wait`;
      expect(box.shell(script).stderr).toBe("exit 0\n");
    }
  });
});
