import { describe, expect, it } from "vitest";
import { openStore, type TraceSpan } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";
import { tellOpenTelemetry } from "../support/tracing.js";
import { changed, edited, exported, otlpText, which } from "../tracing/edit-spans.js";

const widthOf = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

/** A store in `.agstate` with a traced step in it, and its spans. */
async function traced(cli: CliSandbox): Promise<readonly TraceSpan[]> {
  const told = tellOpenTelemetry();
  const store = await openStore(`sqlite:${cli.directory}/.agstate`);
  const workflow = await store.createWorkflow("w");
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  await branch.step({ name: "send", action: "write" }, () => 1);
  await store.close();
  return exported(told.spans());
}

describe("agstate verify --trace", () => {
  it("tells in 80 columns, in JSON, and by its exit code, of files and standard input", async () => {
    const cli = new CliSandbox();
    try {
      const spans = await traced(cli);
      cli.write("spans.json", otlpText(spans));
      const fine = cli.ok(["verify", "--trace", "spans.json"]);
      expect(fine.replace(/\s+/g, " ")).toMatch(
        /^Read \d+ spans of \d+ traces; held 3 spans of steps, commits and merges against 3 commits of workflow w\. No problems\. $/,
      );
      const sealed = which("write_checkpoint", { "step.status": "completed" });
      const forged = edited(spans, sealed, (span) => changed(span, { "step.seq": 99 }));
      cli.write("1.json", `${otlpText(forged.slice(0, 1))}\n`);
      cli.write("2.json", `${otlpText(forged.slice(1))}\n`);

      const found = cli.run(["verify", "--trace", "1.json", "2.json"]);
      expect(found.status).toBe(6);
      expect(found.stdout).toMatch(
        /^wrong-step commit [0-9a-f]{12} of w\n {2}trace [0-9a-f]{32} span [0-9a-f]{16}\n/,
      );
      expect(found.stdout).toContain("it says step.seq 99 where the commit has 1");
      expect(found.stdout).toContain("  -> ");
      expect(found.stdout).toMatch(/\n1 problem\.\n$/);
      expect(widthOf(found.stdout)).toBeLessThanOrEqual(80);

      const piped = cli.run(["--json", "-w", "w", "verify", "--trace", "-"], {
        input: otlpText(forged),
      });
      expect(piped.status).toBe(6);
      expect(JSON.parse(piped.stdout)).toMatchObject({
        spans: spans.length,
        workflows: ["w"],
        problems: [
          { kind: "wrong-step", workflow: "w", commit: expect.stringMatching(/^[0-9a-f]{64}$/) },
        ],
        notices: [],
      });
    } finally {
      cli.remove();
    }
  });

  it("says what is missing or wrong in what it is given", async () => {
    const cli = new CliSandbox();
    try {
      const spans = await traced(cli);
      const bare = cli.run(["verify"]);
      expect(bare.status).toBe(2);
      expect(bare.stderr).toContain("--trace FILE");
      const none = cli.run(["verify", "--trace", "none.json"]);
      expect(none.status).toBe(2);
      expect(none.stderr).toContain('cannot read "none.json"');
      cli.write("torn.json", `${otlpText(spans)}\n${otlpText(spans).slice(0, 50)}`);
      const torn = cli.run(["verify", "--trace", "torn.json"]);
      expect(torn.status).toBe(2);
      expect(torn.stderr).toContain("torn.json, line 2");
      cli.write("spans.json", otlpText(spans));
      const tolerance = cli.run(["verify", "--trace", "spans.json", "--tolerance", "soon"]);
      expect(tolerance.status).toBe(2);
      expect(tolerance.stderr).toContain('the tolerance "soon" is not a time');
      const late = spans.map((span) => ({
        ...span,
        start: span.start + 5_000_000_000n,
        end: span.end + 5_000_000_000n,
      }));
      cli.write("late.json", otlpText(late));
      expect(cli.run(["verify", "--trace", "late.json"]).stdout).toContain("clock-skew commit");
      cli.ok(["verify", "--trace", "late.json", "--tolerance", "10s"]);
      cli.write("other.json", otlpText([]));
      expect(cli.ok(["verify", "--trace", "other.json"])).toContain("None of the spans tells");
    } finally {
      cli.remove();
    }
  });
});
