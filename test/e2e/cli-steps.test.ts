import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";

describe("agstate about steps", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());

  beforeAll(async () => {
    box.ok(["init"]);
    box.ok(["workflow", "create", "trip-42"]);
    const store = await openStore(`sqlite:${join(box.directory, ".agstate")}`);
    const workflow = await store.workflow("trip-42");
    const branch = await workflow.branch({ agent: "booker", branch: "try-1" });
    await branch.step({ name: "find flights", action: "inference", input: { to: "OSL" } }, () => [
      "SK 1",
    ]);
    await branch.step({ name: "hold\u001b[31m seat", action: "write" }, () => "held");
    const failing = branch.step({ name: "print" }, () => {
      throw new RangeError("no paper");
    });
    await expect(failing).rejects.toThrow("no paper");
    const open = branch.step({ name: "pay", input: { amount: 70 }, timeoutMs: 5 }, () => {
      return new Promise<never>(() => undefined);
    });
    await expect(open).rejects.toThrow(/begun and not sealed/);
    await store.close();
  });

  it("lists them, newest first, as people read them", () => {
    const { stdout } = box.run(["steps", "booker/try-1"]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => line.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/, "TIME"))).toEqual([
      "   4  in doubt   execute    TIME    pay",
      "   3  failed     execute    TIME    print",
      "   2  completed  write      TIME    hold\\u001b[31m seat",
      "   1  completed  inference  TIME    find flights",
    ]);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(box.run(["steps"]).stdout).toBe("No steps on canonical.\n");
  });

  it("filters them", () => {
    const numbers = (...options: string[]) =>
      box
        .ok(["steps", "booker/try-1", "--json", ...options])
        .trimEnd()
        .split("\n")
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { number: number }).number);
    expect(numbers("--action", "execute")).toEqual([4, 3]);
    expect(numbers("--status", "completed", "-n", "1")).toEqual([2]);
    expect(numbers("--name", "pay")).toEqual([4]);
    expect(numbers("--since", "2999-01-01")).toEqual([]);
    for (const bad of [
      ["--action", "fly"],
      ["--status", "done"],
      ["--since", "soon"],
    ]) {
      expect(box.run(["steps", "booker/try-1", ...bad])).toMatchObject({ status: 2, stdout: "" });
    }
  });

  it("shows one, and says so when there is none", () => {
    const shown = box.ok(["step", "show", "1", "booker/try-1"]);
    expect(shown).toMatch(/^step {5}1 {2}find flights$/m);
    expect(shown).toMatch(/^input {4}\{"to":"OSL"\}$/m);
    expect(shown).toMatch(/^output {3}\["SK 1"\]$/m);
    expect(box.ok(["step", "show", "3", "booker/try-1"])).toMatch(
      /^error {4}RangeError: no paper$/m,
    );
    expect(box.run(["step", "show", "9", "booker/try-1"])).toMatchObject({ status: 3, stdout: "" });
    expect(box.run(["step", "show", "x", "booker/try-1"])).toMatchObject({ status: 2, stdout: "" });
  });

  it("tells where a branch goes on and what is in doubt, and takes what became of it", () => {
    const before = box.ok(["resume", "booker/try-1"]);
    expect(before).toMatch(/^agents\/booker\/try-1 goes on with step 5$/m);
    expect(before).toMatch(/^1 step begun and not sealed/m);
    expect(before).toContain("agstate step seal 4 agents/booker/try-1 --output");
    expect(Math.max(...before.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    const json = JSON.parse(box.ok(["resume", "booker/try-1", "--json"]));
    expect(json).toMatchObject({ nextSeq: 5, inFlight: [4], inDoubt: [{ name: "pay" }] });

    const seal = ["step", "seal", "4", "booker/try-1"];
    for (const options of [[], ["--output", "1", "--error", "x"], ["--output", "{"]]) {
      expect(box.run([...seal, ...options])).toMatchObject({ status: 2, stdout: "" });
    }
    expect(box.ok([...seal, "--output", '{"paid":true}', "--author", "grace"])).toBe(
      "Step 4 (pay) of agents/booker/try-1: completed\n",
    );
    expect(box.run([...seal, "--error", "late"])).toMatchObject({ status: 2, stdout: "" });
    expect(box.ok(["resume", "booker/try-1"])).toBe(
      "agents/booker/try-1 goes on with step 5\nNo step is in doubt.\n",
    );
    const log = JSON.parse(box.ok(["log", "booker/try-1", "-n", "1", "--json"]));
    expect(log).toMatchObject({ author: "grace", message: "pay: completed", step: { number: 4 } });
  });
});
