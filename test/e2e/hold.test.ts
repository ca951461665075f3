import { userInfo } from "node:os";
import stringWidth from "string-width";
import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const boxes: CliSandbox[] = [];
afterAll(() => {
  for (const box of boxes) box.remove();
});

function begin(): CliSandbox {
  const box = new CliSandbox();
  boxes.push(box);
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip", "--state", "-"], { input: '{"n":0}' });
  box.ok(["branch", "booker/try-1"]);
  box.ok(["commit", "-", "-b", "booker/try-1", "-m", "Evidence"], { input: '{"n":1}' });
  return box;
}

function within80(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  return lines;
}

describe("agstate hold", () => {
  it("keeps a commit over deletion and collection until it is released", () => {
    const box = begin();
    const [{ id }] = box.json<{ id: string }>(["show", "booker/try-1"]) as [{ id: string }];
    const short = id.slice(0, 10);
    expect(box.ok(["hold"])).toBe("Nothing is held.\n");
    expect(box.json(["hold", "list"])).toEqual([]);

    const name = "n".repeat(200);
    const long = "a reason that goes on and on ".repeat(10).trim();
    const added = box.ok(["hold", "add", "booker/try-1", "--name", "case-7", "--reason", long]);
    expect(within80(added)[0]).toBe(`Held ${short} as case-7.`);
    const second = ["hold", "add", id, "--name", name, "--reason", "audit", "--actor", "eve"];
    expect(box.json(second)).toEqual([
      { name, commit: id, reason: "audit", by: "eve", at: expect.any(String) },
    ]);
    const listed = within80(box.ok(["hold"]));
    expect(listed).toHaveLength(4);
    expect(listed[0]).toMatch(new RegExp(`^case-7 +${short} +\\S+ +[0-9-]{10} [0-9:]{8} UTC$`));
    expect(listed[1]).toMatch(/^ {2}a reason that goes on/);
    expect(listed[3]).toBe("  audit");
    expect(box.json(["hold", "list"])).toMatchObject([
      { name: "case-7", commit: id, reason: long, by: userInfo().username },
      { name, commit: id },
    ]);

    box.ok(["branch", "-d", "booker/try-1"]);
    expect(box.ok(["gc", "--grace", "0"])).toBe(
      "trip: nothing to remove; holds alone keep 1 commit\n",
    );
    expect(box.ok(["log", "--oneline", "--all"])).toContain("(holds/case-7) a reason that goes on");

    const released = within80(box.ok(["hold", "release", name, "--reason", "audited"]));
    expect(released[1]).toBe(`${short} still has 1 hold.`);
    const last = box.json(["hold", "release", "case-7", "--reason", "settled", "--actor", "eve"]);
    expect(last).toMatchObject([{ name: "case-7", commit: id, others: 0 }]);
    expect(box.ok(["gc", "--grace", "0"])).toMatch(/^trip: removed 3 commits/);
    expect(box.run(["show", id]).status).toBe(3);
    const log = box.ok(["reflog", "refs/holds/case-7"]);
    expect(log).toMatch(/^deleted +holds\/case-7@\{0\}: .* eve +release: settled$/m);
    expect(log).toContain("hold: a reason that goes on");
    expect(box.run(["fsck"]).status).toBe(0);
  });

  it("refuses what has no reason, is taken or is not there", () => {
    const box = begin();
    box.ok(["hold", "add", "canonical", "--name", "h", "--reason", "audit"]);
    const why = ["--reason", "audit"];
    expect(box.run(["hold", "add", "canonical"]).status).toBe(2);
    expect(box.run(["hold", "release", "h"]).status).toBe(2);
    expect(box.run(["hold", "release", "h", "--reason", " "]).status).toBe(2);
    expect(box.run(["hold", "add", "canonical", "--name", "a/b", ...why]).status).toBe(2);
    expect(box.run(["hold", "add", "canonical", "--name", "h", ...why]).status).toBe(4);
    expect(box.run(["hold", "add", "nowhere", ...why]).status).toBe(3);
    expect(box.run(["hold", "release", "other", ...why]).status).toBe(3);
    const deleted = box.run(["branch", "-d", "refs/holds/h", "--yes"]);
    expect(deleted.status).toBe(2);
    expect(deleted.stderr).toContain("agstate hold release");
    expect(box.json(["hold"])).toHaveLength(1);
    within80(box.ok(["hold", "--help"]));
    within80(box.ok(["hold", "add", "--help"]));
  });
});
