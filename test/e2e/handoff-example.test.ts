import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

const DEMO = fileURLToPath(new URL("../../examples/handoff/handoff.mjs", import.meta.url));

describe("the example of a hand-off", () => {
  it("stops in the morning on what has changed, and goes on when somebody has agreed", () => {
    const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1" };
    delete env.FORCE_COLOR;
    const { status, stdout, stderr } = spawnSync(process.execPath, [DEMO], {
      env,
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("nothing was done; staleness-");
    expect(stdout).toMatch(/\nchanged {4}http .*\n +- etag:"monday"\n +\+ etag:"tuesday"\n/);
    expect(stdout).toContain("C3 (broken, 80): 60 refunded, at most 60");
    // The story is one, from the first step to the last, in the branch's log.
    const log = stdout.slice(stdout.indexOf("$ agstate log clerk/refunds"));
    const story = [
      "refund C3: completed",
      "refund B2: completed",
      "Resume agents/clerk/refunds: stale, approved by mara",
      "Hand off agents/clerk/refunds",
      "refund A1: completed",
    ];
    const places = story.map((line) => log.indexOf(`    ${line}\n`));
    expect(places.every((place) => place > 0)).toBe(true);
    expect([...places].sort((a, b) => a - b)).toEqual(places);
    expect(log).toMatch(/^No problems\.$/m);
    const lines = stdout.split("\n").filter((line) => !line.includes("agstate-handoff-"));
    for (const line of lines.filter((each) => !each.startsWith("$ "))) {
      expect(stringWidth(line), line).toBeLessThanOrEqual(80);
    }
  });
});
