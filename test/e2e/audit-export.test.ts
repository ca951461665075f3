import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openStore, type Workflow } from "../../src/index.js";
import { exportAudit } from "../../src/opentelemetry/index.js";
import { CliSandbox } from "../support/cli.js";

interface LogRecord {
  readonly timeUnixNano: string;
  readonly severityText: string;
  readonly eventName?: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

/** A collector on the loopback: takes OTLP over HTTP as JSON, or refuses it. */
class Collector {
  readonly requests: LogRecord[][] = [];
  /** What the next requests are answered with; then 200. */
  readonly answers: number[] = [];
  private readonly server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const status = this.answers.shift() ?? 200;
      if (status === 200) this.requests.push(recordsOf(Buffer.concat(chunks)));
      response.writeHead(status, { "content-type": "application/json" }).end("{}");
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** What was taken, in order, by the hash of each entry. */
  get entries(): string[] {
    return this.requests.flat().map((record) => String(attribute(record, "agstate.entry")));
  }
}

function recordsOf(body: Buffer): LogRecord[] {
  const { resourceLogs } = JSON.parse(body.toString()) as {
    resourceLogs: { scopeLogs: { scope: { name: string }; logRecords: LogRecord[] }[] }[];
  };
  return resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ scope, logRecords }) => {
      expect(scope.name).toBe("agstate");
      return logRecords;
    }),
  );
}

function attribute({ attributes }: LogRecord, name: string): unknown {
  const found = attributes.find(({ key }) => key === name);
  return found && Object.values(found.value)[0];
}

let collector: Collector;
let url: string;
beforeEach(async () => {
  collector = new Collector();
  url = await collector.start();
});
afterEach(() => collector.stop());

async function history(workflow: Workflow, from: number, to: number): Promise<void> {
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  for (let i = from; i < to; i++) {
    const step = { action: "read" as const, record: { name: "look", input: i } };
    await branch.commit({ state: { i }, step, message: `step ${i}` });
  }
}

async function entriesOf(workflow: Workflow): Promise<string[]> {
  const entries: string[] = [];
  for await (const { hash } of workflow.audit()) entries.push(hash);
  return entries;
}

describe("an audit exported to a collector", () => {
  it("arrives whole, in order, as records that say what happened", async () => {
    const store = await openStore("memory:");
    const workflow = await store.createWorkflow("w");
    await history(workflow, 0, 25);
    await workflow.tag("v1", "agents/a/b");
    const cursors: string[] = [];
    const exporter = new OTLPLogExporter({ url: `${url}/v1/logs` });
    const options = { delivered: (cursor: string) => void cursors.push(cursor), batch: 10 };
    const count = await exportAudit(workflow.audit(), exporter, options);
    const entries = await entriesOf(workflow);
    expect(collector.entries).toEqual(entries);
    expect(count).toBe(entries.length);
    expect(collector.requests.map(({ length }) => length)).toEqual([10, 10, count - 20]);
    expect(cursors).toHaveLength(3);
    const tag = collector.requests.flat().at(-1) as LogRecord;
    expect(tag).toMatchObject({ severityText: "INFO", eventName: "agstate.audit.tag" });
    expect(attribute(tag, "agstate.ref")).toBe("refs/tags/v1");
    expect(attribute(tag, "agstate.workflow")).toBe("w");
    const step = collector.requests.flat().find((r) => r.eventName === "agstate.audit.step");
    expect(JSON.stringify(step?.attributes)).toContain("look");
    await exporter.shutdown();
  });

  it("goes on where it stopped when a batch is refused: nothing is lost, and nothing comes twice", async () => {
    const store = await openStore("memory:");
    const workflow = await store.createWorkflow("w");
    await history(workflow, 0, 25);
    const exporter = new OTLPLogExporter({ url: `${url}/v1/logs` });
    collector.answers.push(200, 400);
    const cursors: string[] = [];
    const options = { delivered: (cursor: string) => void cursors.push(cursor), batch: 10 };
    await expect(exportAudit(workflow.audit(), exporter, options)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      details: { count: 10 },
    });
    expect(collector.entries).toHaveLength(10);
    await history(workflow, 25, 30);
    await exportAudit(workflow.audit({ from: cursors.at(-1)! }), exporter, options);
    expect(collector.entries).toEqual(await entriesOf(workflow));
    await exporter.shutdown();
  });
});

describe("agstate audit export", () => {
  let box: CliSandbox;
  let running: ChildProcess | undefined;
  beforeEach(() => {
    box = new CliSandbox();
    box.ok(["init"]);
    box.ok(["workflow", "create", "trip"]);
  });
  afterEach(() => {
    running?.kill("SIGKILL");
    box.remove();
  });

  const commit = (n: number) => box.ok(["commit", "-", "-m", `n ${n}`], { input: `{"n":${n}}` });

  async function run(...args: string[]): Promise<{ code: number | null; said: string }> {
    const child = start(...args);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    return { code, said };
  }

  function start(...args: string[]): ChildProcess {
    const entry = join(process.cwd(), "dist/bin/agstate.js");
    return spawn(process.execPath, [entry, "audit", "export", ...args], { cwd: box.directory });
  }

  it("keeps in a file how far it came, and is killed and begun again without a loss", async () => {
    for (let n = 0; n < 5; n++) commit(n);
    const first = await run("--cursor", "position", "--otlp", url);
    expect(first).toEqual({ code: 0, said: `Delivered ${collector.entries.length} events.\n` });
    expect(await run("--cursor", "position", "--otlp", `${url}/`)).toEqual({
      code: 0,
      said: "Delivered 0 events.\n",
    });

    running = start("--cursor", "position", "--otlp", url, "--follow");
    commit(6);
    await vi.waitFor(() => expect(collector.entries.length).toBeGreaterThan(6), 10_000);
    running.kill("SIGKILL");
    commit(7);
    expect((await run("--cursor", "position", "--otlp", url)).code).toBe(0);
    const wanted = box.json<{ hash: string }>(["audit"]).map(({ hash }) => hash);
    expect([...new Set(collector.entries)]).toEqual(wanted);
  });

  it("refuses what is no collector and what is no position, and tells when it was not taken", async () => {
    const bad = await run("--cursor", "position", "--otlp", "collector:4318");
    expect(bad.code).toBe(2);
    expect(bad.said).toContain("is not the URL of a collector");
    expect(existsSync(join(box.directory, "position"))).toBe(false);

    collector.answers.push(400);
    const refused = await run("--cursor", "position", "--otlp", url);
    expect(refused.code).not.toBe(0);
    expect(refused.said).toContain("run it again");
    expect(existsSync(join(box.directory, "position"))).toBe(false);

    writeFileSync(join(box.directory, "position"), "nonsense\n");
    const nonsense = await run("--cursor", "position", "--otlp", url);
    expect(nonsense.code).toBe(2);
    expect(readFileSync(join(box.directory, "position"), "utf8")).toBe("nonsense\n");
  });
});
