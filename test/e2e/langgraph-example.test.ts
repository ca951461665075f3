import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

const EXAMPLE = fileURLToPath(new URL("../../examples/langgraph/langgraph.mjs", import.meta.url));

/** The lines of the example below one of its titles. */
function section(stdout: string, title: string): string[] {
  const found = stdout.split(/^== /m).find((each) => each.startsWith(title));
  return (found ?? "").split("\n").slice(1);
}

describe("the example for LangGraph", () => {
  it("asks, goes on in another process, forks twice, and shows all of it", () => {
    const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1" };
    delete env.FORCE_COLOR;
    const { status, stdout, stderr } = spawnSync(process.execPath, [EXAMPLE], {
      env,
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });

    expect(section(stdout, "One process").at(-3)).toBe(
      '  waits: May this offer be made? {"pay":0}',
    );
    const read = "  read: a kettle, 48 paid, 41 days ago";
    const assess = "  assess: bought 41 days ago, so pay 0";
    // Nodes that were done are not done again: their notes are there once.
    expect(section(stdout, "Another one").slice(2, -2)).toEqual([
      read,
      assess,
      "  ask: the clerk says no",
      "  settle: nothing is paid",
    ]);
    expect(section(stdout, "Two forks").filter((line) => line.startsWith("  "))).toEqual([
      read,
      assess,
      '  fork: offer {"pay":24}',
      "  ask: the clerk says yes",
      "  settle: the customer gets 24 in money",
      "  (tagged half)",
      read,
      assess,
      '  fork: offer {"pay":0,"voucher":48}',
      "  ask: the manager says yes",
      "  settle: the customer gets a voucher over 48",
      "  (tagged voucher)",
    ]);

    // Three ends, and two places at which a line of the graph goes back to the common checkpoint.
    const graph = section(stdout, "The thread is a history");
    for (const tag of ["refused", "half", "voucher"]) {
      expect(graph.filter((line) => line.includes(`tags/${tag})`))).toHaveLength(1);
    }
    expect(graph.filter((line) => line === "|/")).toHaveLength(2);
    expect(section(stdout, "What the two forks differ in").join("\n")).toContain(
      "~ /offer/pay\n    - 24\n    + 0\n+ /offer/voucher: 48\n",
    );
    const blamed = section(stdout, "Which checkpoint wrote").filter((line) =>
      /^[0-9a-f]/.test(line),
    );
    expect(new Set(blamed.map((line) => line.split(" ")[0])).size).toBe(5);
    expect(section(stdout, "What was offered").join("")).toContain('{  "pay": 0}');
    expect(stdout).toMatch(/^No problems\.$/m);

    // Names with a checkpoint's id in them, and the example's folder, are as long as they are.
    const lines = stdout
      .split("\n")
      .filter((line) => !/agstate-langgraph-|langgraph\/at-/.test(line));
    for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  });
});
