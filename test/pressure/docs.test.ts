import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { watchPressure } from "../../src/index.js";
import { registry } from "../../src/pressure/guards.js";
import { calmThresholds } from "../../src/pressure/reasons.js";
import { DEFAULT_THRESHOLDS, shareAt } from "../../src/pressure/thresholds.js";
import { CALM_MS, RISE_MIN_INTERVAL_MS } from "../../src/pressure/trigger.js";
import { CliSandbox } from "../support/cli.js";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const PAGE = read("docs/pressure.md");
const KUBERNETES = read("docs/kubernetes.md");
const MIB = 2 ** 20;

/** The rows of the table in a section, by their first cell. */
function tableOf(section: string): Map<string, string> {
  const [, text = ""] = PAGE.split(`\n## ${section}\n`);
  const rows = (text.split("\n## ")[0] ?? "").matchAll(/^\| `(.+?)` \| (.+?) \|/gm);
  return new Map([...rows].map(([, cell = "", next = ""]) => [cell, next]));
}

/** The lines of an indented block, from the one that begins with a text. */
function blockOf(page: string, first: string): string {
  const lines = page.split("\n");
  const from = lines.findIndex((line) => line.startsWith(`    ${first}`));
  const length = lines.slice(from).findIndex((line) => line !== "" && !line.startsWith("    "));
  return lines
    .slice(from, from + length)
    .map((line) => line.slice(4))
    .join("\n");
}

describe("the page on pressure", () => {
  it("has the thresholds that there are", () => {
    const told = [...tableOf("When it acts")].map(([name, value]) => [name, JSON.parse(value)]);
    expect(Object.fromEntries(told)).toEqual(DEFAULT_THRESHOLDS);
    const calm = calmThresholds(DEFAULT_THRESHOLDS);
    const [, usage, critical] = /usage by\n(\S+) \(from critical by (\S+)\)/.exec(PAGE) ?? [];
    expect(DEFAULT_THRESHOLDS.usage - calm.usage).toBeCloseTo(Number(usage));
    expect(DEFAULT_THRESHOLDS.critical - calm.critical).toBeCloseTo(Number(critical));
    expect(PAGE).toContain(`for ${CALM_MS / 1000} seconds without a break`);
    expect(PAGE).toContain(`at least\n${RISE_MIN_INTERVAL_MS / 1000} seconds apart`);
    const [, ...shares] = /(\S+) is (\S+) there, and (\S+) is (\S+)\. Stalls/.exec(PAGE) ?? [];
    expect(shares.map(Number)).toEqual([
      DEFAULT_THRESHOLDS.usage,
      Number(shareAt(DEFAULT_THRESHOLDS.usage, "machine").toFixed(3)),
      DEFAULT_THRESHOLDS.critical,
      Number(shareAt(DEFAULT_THRESHOLDS.critical, "machine").toFixed(3)),
    ]);
  });

  it("has the options that there are, and their defaults", async () => {
    const watch = watchPressure();
    onTestFinished(() => watch.close());
    const { options } = watch as unknown as { options: Record<string, unknown> };
    const told = tableOf("Options");
    const { thresholds, sigtermDeadlineMs, ...rest } = options;
    expect(thresholds).toEqual(DEFAULT_THRESHOLDS);
    expect(told.get("sigterm")).toBe(`\`{ deadlineMs: ${sigtermDeadlineMs} }\``);
    for (const [name, value] of Object.entries(rest)) {
      expect(told.get(name)?.replaceAll("`", ""), name).toBe(`${value}`);
    }
    // Whatever else is there has no default.
    const others = ["thresholds", "sigterm", "exitCode", "onPressure", "onNotice"];
    expect([...told.keys()].sort()).toEqual([...Object.keys(rest), ...others].sort());
    expect(registry.watch).toBe(watch);
  });

  describe("has an agent", () => {
    const box = new CliSandbox();
    afterAll(() => box.remove());

    it("that puts down what it has when it is told to end, and goes on from there", async () => {
      box.linkPackage();
      box.write("agent.mjs", blockOf(PAGE, "// agent.mjs"));
      box.ok(["init"]);
      box.ok(["workflow", "create", "trip-42"]);
      const live = async () => {
        const agent = spawn(process.execPath, ["agent.mjs"], { cwd: box.directory });
        const ended = once(agent, "close");
        onTestFinished(() => void agent.kill("SIGKILL"));
        let said = "";
        agent.stdout.setEncoding("utf8").on("data", (text: string) => {
          said += text;
        });
        while (!said.includes("from note")) await once(agent.stdout, "data");
        // Some notes later.
        await new Promise((resolve) => setTimeout(resolve, 500));
        agent.kill("SIGTERM");
        expect(await ended).toEqual([null, "SIGTERM"]);
        return said;
      };
      expect(await live()).toBe("from note 0\nmemory: none\n");
      const [state] = box.json<{ notes: string[] }>(["cat", "booker/try-1"]);
      const saved = state?.notes.length ?? 0;
      expect(saved).toBeGreaterThan(0);
      expect(box.ok(["log", "booker/try-1", "-n", "1"])).toContain("told to end (SIGTERM)");
      expect(await live()).toContain(`from note ${saved}\n`);
    });
  });
});

interface Row {
  readonly line: string;
  readonly value: number | null;
}

describe("the page on Kubernetes", () => {
  const results = JSON.parse(read("bench/results/flush.json")) as {
    rows: Row[];
    machine: Record<string, unknown>;
  };
  const figureOf = (line: string) => results.rows.find((row) => row.line === line)?.value ?? null;

  it("has the figures that were measured", () => {
    const { cpu, cores, memory, node, filesystem } = results.machine;
    const spec = `${cpu}, ${cores} cores, ${memory}, Node.js ${node}, ${filesystem}`;
    expect(/Measured on (.+) by/.exec(KUBERNETES)?.[1]).toBe(spec);
    const number = (value: number | null, digits = 0) =>
      value === null
        ? "-"
        : value.toLocaleString("en-US", {
            maximumFractionDigits: digits,
            minimumFractionDigits: digits,
          });
    const time = (label: string) =>
      `${number(figureOf(`${label}: time`))} (${number(figureOf(`${label}: longest`))})`;
    const rows = results.rows.flatMap(({ line }) => {
      const [, store, state] = /^(\w+), (.+), idle: time$/.exec(line) ?? [];
      if (store === undefined) return [];
      const label = `${store}, ${state}`;
      const peaks = ["idle", "pressed"].map((how) => figureOf(`${label}, ${how}: greatest peak`));
      const cells = [
        store,
        state,
        number(figureOf(`${label}: on disk`), 1),
        time(`${label}, idle`),
        time(`${label}, pressed`),
        number(Math.max(...peaks.map((peak) => peak ?? 0))),
      ];
      return [`| ${cells.join(" | ")} |`];
    });
    const told = KUBERNETES.split("\n").filter((line) => /^\| (SQLite|PostgreSQL) \|/.test(line));
    expect(told).toEqual(rows);
    expect(results.rows.filter(({ line, value }) => line.endsWith("killed") && value)).toEqual([]);
  });

  it("has a rule that holds for what was measured", () => {
    const [, factor] = /a flush takes (\S+) times the bytes/.exec(KUBERNETES) ?? [];
    const states = [
      ["10 MB", 10e6, 0],
      ["100 MB", 100e6, 0],
      ["1 % of 100 MB", 1e6, 99e6],
    ] as const;
    for (const store of ["SQLite", "PostgreSQL"]) {
      for (const [state, newBytes, oldBytes] of states) {
        const peak = figureOf(`${store}, ${state}, idle: greatest peak`) ?? 0;
        expect(peak).toBeGreaterThan(0);
        expect(peak * MIB, state).toBeLessThanOrEqual(Number(factor) * newBytes + oldBytes);
      }
    }
  });

  it("shows a manifest that can be read, and whose numbers agree", () => {
    // Of what is installed, the tool that finds unused exports can read it.
    const require = createRequire(createRequire(import.meta.url).resolve("knip"));
    const { parse } = require("yaml") as { parse: (text: string) => unknown };
    const job = parse(blockOf(KUBERNETES, "apiVersion:")) as Job;
    const { spec } = job.spec.template;
    const [agent] = spec.containers;
    const code = blockOf(KUBERNETES, "const watch = watchPressure({");
    const numberIn = (pattern: RegExp) => Number(pattern.exec(code)?.[1]?.replaceAll("_", ""));
    const [reserveMib, exitCode, deadlineMs] = [
      numberIn(/reserveBytes: (\d+) \* 1024 \* 1024,/),
      numberIn(/exitCode: (\d+),/),
      numberIn(/deadlineMs: ([\d_]+) /),
    ] as [number, number, number];

    expect(agent?.resources.requests).toEqual(agent?.resources.limits);
    const limitMib = 1024 * Number(/^(\d+)Gi$/.exec(agent?.resources.limits.memory ?? "")?.[1]);
    const [, workingMib] = /An example: (\d+) MiB/.exec(KUBERNETES) ?? [];
    const [, leastMib] = /which is (\d+) MiB: 1 GiB/.exec(KUBERNETES) ?? [];
    const least = (Number(workingMib) + reserveMib) / DEFAULT_THRESHOLDS.usage;
    expect(Math.round(least)).toBe(Number(leastMib));
    const [, stateMb, factor, flushMib] =
      /(\d+) MB x (\S+), which is (\d+) MiB; with/.exec(KUBERNETES) ?? [];
    expect(Math.round((Number(stateMb) * 1e6 * Number(factor)) / MIB)).toBe(Number(flushMib));
    expect(reserveMib).toBeGreaterThanOrEqual(Number(flushMib));
    expect(limitMib).toBeGreaterThanOrEqual(least);

    const graceMs = spec.terminationGracePeriodSeconds * 1000;
    expect(graceMs).toBeGreaterThanOrEqual(deadlineMs + 5000);
    const [rule] = job.spec.podFailurePolicy.rules;
    expect(rule).toMatchObject({ onExitCodes: { containerName: agent?.name, values: [exitCode] } });
    expect(spec.restartPolicy).toBe("Never");
    expect(agent?.command.at(-1)).toBe("agent.mjs");
    const heapMib = Number(/--max-old-space-size=(\d+)/.exec(agent?.command.join(" ") ?? "")?.[1]);
    const threshold = DEFAULT_THRESHOLDS.usage;
    expect(heapMib).toBeGreaterThanOrEqual(3.4 * Number(flushMib));
    expect(threshold * heapMib + 150 + reserveMib).toBeLessThan(threshold * limitMib);
  });
});

interface Job {
  readonly spec: {
    readonly podFailurePolicy: { readonly rules: readonly object[] };
    readonly template: {
      readonly spec: {
        readonly restartPolicy: string;
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly {
          readonly name: string;
          readonly command: readonly string[];
          readonly resources: Record<"requests" | "limits", Record<"cpu" | "memory", string>>;
        }[];
      };
    };
  };
}
