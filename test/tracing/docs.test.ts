import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Workflow } from "../../src/index.js";
import { registry } from "../../src/pressure/guards.js";
import { CliSandbox } from "../support/cli.js";
import { startHttpService } from "../support/http-service.js";
import { metricsOf, spansOf } from "../support/otlp.js";
import { GivenPressure } from "../support/pressure.js";
import { makeStore } from "../support/stores.js";
import { tellOpenTelemetry } from "../support/tracing.js";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

const PAGE = read("docs/tracing.md");
const COLLECTOR = read("docs/tracing/otel-collector.yaml");
const DASHBOARD = JSON.parse(read("docs/tracing/grafana-dashboard.json"));
const TELEMETRY = ts.createSourceFile(
  "telemetry.ts",
  read("src/core/telemetry.ts"),
  ts.ScriptTarget.Latest,
);

/** The texts that a type of core/telemetry.ts is made of. */
function literalsOf(name: string): string[] {
  const texts: string[] = [];
  const collect = (node: ts.Node): void => {
    if (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal))
      texts.push(node.literal.text);
    ts.forEachChild(node, collect);
  };
  ts.forEachChild(TELEMETRY, (node) => {
    if (ts.isTypeAliasDeclaration(node) && node.name.text === name) collect(node.type);
  });
  expect(texts, name).not.toEqual([]);
  return texts;
}

/** The members that are declared anywhere within an interface or type of core/telemetry.ts. */
function membersOf(name: string): string[] {
  const names: string[] = [];
  const collect = (node: ts.Node): void => {
    if (
      ts.isPropertySignature(node) &&
      (ts.isIdentifier(node.name) || ts.isStringLiteral(node.name))
    )
      names.push(node.name.text);
    ts.forEachChild(node, collect);
  };
  ts.forEachChild(TELEMETRY, (node) => {
    const named = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
    if (named && node.name.text === name) collect(node);
  });
  expect(names, name).not.toEqual([]);
  return names;
}

interface Row {
  readonly name: string;
  readonly is: string;
  readonly on: readonly string[];
  readonly says: string;
}

/** The rows of the table of names. */
const ROWS: readonly Row[] = PAGE.split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) => {
    const [name = "", is = "", on = "", says = ""] = line
      .split("|")
      .slice(1)
      .map((cell) => cell.trim());
    return { name: name.replaceAll("`", ""), is, on: on.split(", "), says };
  });
const namesThatAre = (kind: RegExp) =>
  ROWS.filter(({ is }) => kind.test(is)).map(({ name }) => name);

const ATTRIBUTES = namesThatAre(/^attribute$/);

/** What Prometheus calls a metric, as the collector translates names. */
const SERIES = ROWS.filter(({ is }) => /counter|histogram/.test(is)).flatMap(({ name, is }) => {
  const unit = /, `s`$/.test(is) ? "_seconds" : "";
  const series = name.replaceAll(".", "_") + unit;
  if (is.startsWith("histogram"))
    return ["_bucket", "_sum", "_count"].map((suffix) => series + suffix);
  return is.startsWith("counter") ? [`${series}_total`] : [series];
});

const blocksOf = (language: string) =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(([, text]) => text!);

interface Target {
  readonly expr?: string;
  readonly query?: string;
}
const TARGETS: readonly Target[] = DASHBOARD.panels.flatMap(
  ({ targets }: { targets: Target[] }) => targets,
);

describe("the table of docs/tracing.md", () => {
  it("has every span, attribute and metric of the code, and no other", () => {
    expect(namesThatAre(/^span$/).sort()).toEqual(literalsOf("SpanName").sort());
    const attributes = [
      ...membersOf("Attributes"),
      ...literalsOf("PayloadName"),
      ...membersOf("MeasuredBy"),
    ];
    expect([...ATTRIBUTES].sort()).toEqual(attributes.sort());
    expect(namesThatAre(/^counter/).sort()).toEqual(literalsOf("CounterName").sort());
    expect(namesThatAre(/^histogram/).sort()).toEqual(literalsOf("HistogramName").sort());
    expect(namesThatAre(/^up-down counter/)).toEqual(["agstate.queue.depth"]);
  });

  it("has the units that metrics are made with", () => {
    const made = read("src/tracing/meters.ts");
    for (const { name, is } of ROWS.filter(({ is }) => /counter|histogram/.test(is))) {
      const unit = /`(.*)`/.exec(is)?.[1];
      const pattern = `"${name}"[^"]*(?:unit: )?"([^"]*)"`;
      expect(new RegExp(pattern).exec(made)?.[1], name).toBe(unit);
    }
  });

  it("says of each attribute on which spans it is", async () => {
    const told = tellOpenTelemetry();
    const { store } = await makeStore("sqlite");
    await doEverything(await store.createWorkflow("trip", { state: { n: 0 } }));
    await store.close();
    const seen = new Map<string, Set<string>>();
    for (const span of told.spans()) {
      const on = span.kind === 2 ? "call" : (SHORT[span.name] ?? span.name);
      for (const name of Object.keys(span.attributes)) {
        if (!seen.has(name)) seen.set(name, new Set());
        seen.get(name)!.add(on);
      }
    }
    const wrong: string[] = [];
    for (const { name, on } of ROWS.filter(({ is }) => is === "attribute")) {
      const where = seen.get(name) ?? new Set();
      if (on[0] === "all") continue;
      for (const each of where) {
        const listed = on[0] === "all but call" ? each !== "call" : on.includes(each);
        if (!listed) wrong.push(`${name} is on ${each}`);
      }
      // What a store on a server alone has, and what payloads alone have.
      if (/^(server|db\.response|gen_ai\.tool\.call|agstate\.step\.(in|out)put)/.test(name))
        continue;
      if (name === "db.operation.batch.size" || name === "agstate.operation") continue;
      for (const each of on) {
        if (each !== "all but call" && !where.has(each)) wrong.push(`${name} is not on ${each}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

const SHORT: Readonly<Record<string, string>> = {
  execute_step: "step",
  write_checkpoint: "checkpoint",
};

/** What tells of itself, once. */
async function checkpointUnasked(workflow: Workflow): Promise<void> {
  const guarded = await workflow.branch({ agent: "guarded", branch: "a" });
  const watch = new GivenPressure();
  registry.watch = watch;
  const guard = guarded.guard({ state: () => ({ n: "in no commit" }) });
  await watch.checkpoint();
  guard.release();
  registry.watch = undefined;
}

async function doEverything(workflow: Workflow): Promise<void> {
  await checkpointUnasked(workflow);
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  const run = (stops: boolean) =>
    workflow.run(
      branch,
      async (ctx) => {
        await ctx.step({ name: "look", action: "write" }, async () => "seen");
        if (stops) throw new Error("stopped");
        await ctx.step({ name: "go", action: "write" }, async () => "gone");
      },
      { id: "r" },
    );
  await run(true).catch(() => undefined);
  await run(false);
  await branch.handoff({ summary: "later" });
  await branch.resume();
  await workflow.merge(["agents/a/b"]);
  await (await workflow.canonical()).commit({ state: { n: 1, m: 2 } });
  await (await workflow.canonical()).commit({ state: { n: 1, m: 2 } });
  await workflow.gc();
  await workflow.erase({ paths: ["/state/m"], by: "test", reason: "test" });
  await workflow.applyRetention({ policy: "payload=P1D;history=P1D" });
}

it("the example of docs/tracing.md tells a collector", async () => {
  const { url, received } = await startHttpService((_, response) => {
    response.setHeader("content-type", "application/json").end("{}");
  });
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  symlinkSync(
    fileURLToPath(new URL("../../node_modules", import.meta.url)),
    join(box.directory, "node_modules"),
  );
  const index = new URL("../../dist/index.js", import.meta.url).href;
  const [example] = blocksOf("js");
  box.write(
    "app.mjs",
    `${example}
    const { openStore } = await import(${JSON.stringify(index)});
    const workflow = await (await openStore("memory:")).createWorkflow("trip");
    await (await workflow.canonical()).commit({ state: { n: 1 } });
    ${/^\/\/ At the end: (.*)$/m.exec(example!)![1]}`,
  );
  const child = spawn(process.execPath, ["app.mjs"], {
    cwd: box.directory,
    env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: url },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await once(child, "close")).toEqual([0, null]);
  expect(spansOf(received).map(({ name }) => name)).toContain("write_checkpoint");
  expect(metricsOf(received).map(({ name }) => name)).toContain("agstate.commits");
});

describe("queries", () => {
  const promql = [...blocksOf("promql"), ...TARGETS.flatMap(({ expr }) => expr ?? [])];
  const traceql = [...blocksOf("traceql"), ...TARGETS.flatMap(({ query }) => query ?? [])];

  it("of Prometheus ask for series and labels that there are", () => {
    expect(promql.length).toBeGreaterThan(20);
    const labels = ATTRIBUTES.map((name) => name.replaceAll(".", "_"));
    for (const query of promql) {
      const names = query.match(/\b(?:agstate|db_client)_\w+/g) ?? [];
      const series = names.filter((name) => !labels.includes(name));
      expect(series.length, query).toBeGreaterThan(0);
      for (const name of series) expect(SERIES, query).toContain(name);
      const grouped = [...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) =>
        list!.split(", "),
      );
      const matched = [...query.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label]) => label!);
      for (const label of [...grouped, ...matched])
        expect([...labels, "le", "job"], query).toContain(label);
    }
  });

  it("of Tempo ask for spans and attributes that there are", () => {
    expect(traceql.length).toBeGreaterThan(10);
    for (const query of traceql) {
      const attributes = [...query.matchAll(/\bspan\.([a-z_.]+)/g)].map(([, name]) => name!);
      for (const name of attributes) expect(ATTRIBUTES, query).toContain(name);
      for (const [, name] of query.matchAll(/\bname = "([^"]*)"/g))
        expect(literalsOf("SpanName"), query).toContain(name);
    }
  });

  it("of the dashboard stand beside each other, and name the page's metrics all", () => {
    const ids = DASHBOARD.panels.map(({ id }: { id: number }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const cells = new Set<string>();
    for (const { gridPos, title } of DASHBOARD.panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(cells, title).not.toContain(`${x},${y}`);
          cells.add(`${x},${y}`);
        }
      }
    }
    const shown = JSON.stringify(DASHBOARD);
    for (const { name } of ROWS.filter(({ is }) => /counter|histogram/.test(is)))
      expect(shown).toContain(name.replaceAll(".", "_"));
  });
});

describe("the collector's configuration", () => {
  it("samples by attributes that there are, and keeps every failed checkpoint", () => {
    const keys = [
      ...[...COLLECTOR.matchAll(/^\s+key: (\S+)$/gm)].map(([, key]) => key!),
      ...[...COLLECTOR.matchAll(/attributes\["([^"]+)"\]/g)].map(([, key]) => key!),
    ];
    expect(keys).toEqual(["checkpoint.success", "agstate.merge.conflicts", "checkpoint.success"]);
    for (const key of keys) expect(ATTRIBUTES).toContain(key);
    expect(COLLECTOR).toMatch(
      /type: boolean_attribute\n.*\n\s+key: checkpoint.success\n\s+value: false\n/,
    );
  });

  it("uses each part that it defines, and defines each that it uses", () => {
    const [parts = "", service = ""] = COLLECTOR.split(/^service:$/m);
    const defined = [...parts.matchAll(/^ {2}([a-z_/]+):/gm)].map(([, name]) => name!);
    const used = [...service.matchAll(/\[([^\]]+)\]/g)].flatMap(([, list]) => list!.split(", "));
    expect([...new Set(used)].sort()).toEqual(defined.sort());
  });
});
