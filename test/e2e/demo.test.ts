import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

const DEMO = fileURLToPath(new URL("../../examples/demo/demo.mjs", import.meta.url));

describe("the demo", () => {
  it("tells of a side effect that happened once, though its agent was killed in between", () => {
    const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1" };
    delete env.FORCE_COLOR;
    const { status, stdout, stderr } = spawnSync(process.execPath, [DEMO], {
      env,
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const counts = /^agent +paid answers +requests to book +bookings made\n((?:\w+(?: +\d+)+\n)+)/m;
    expect(
      counts
        .exec(stdout)?.[1]
        ?.split("\n")
        .map((line) => line.split(/ +/)),
    ).toEqual([["room", "1", "1", "1"], ["cake", "1", "2", "1"], ["train", "1", "1", "1"], [""]]);
    expect(stdout).toContain("agent cake was killed by SIGKILL");
    expect(stdout).toMatch(/^status {3}in doubt$/m);
    expect(stdout).toMatch(/^ +\d+ {2}completed +write .* x2 {2}book$/m);
    expect(stdout).toContain('"booked": "cake: hazelnut, for twelve"');
    expect(stdout).toMatch(/^No problems\.$/m);
    // Where the demo's folder is, is up to the computer.
    const lines = stdout.split("\n").filter((line) => !line.includes("agstate-demo-"));
    for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  });
});
