import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const widthOf = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

describe("agstate retention, stats and compact", () => {
  it("plan, apply and tell, in 80 columns and in JSON", async () => {
    const cli = new CliSandbox();
    try {
      cli.ok(["init"]);
      cli.ok(["workflow", "create", "w", "--retention", "payload=P30D;history=P1Y"]);
      cli.ok(["workflow", "create", "other"]);
      const doc = Array.from({ length: 300 }, (_, i) => `a line of a document, number ${i}`);
      for (const n of [1, 2, 3]) {
        const input = JSON.stringify({ n, doc: n === 1 ? doc : [] });
        cli.ok(["-w", "w", "commit", "-", "-m", `number ${n}`], { input });
      }
      cli.ok(["-w", "w", "hold", "add", "canonical~1", "--reason", "file 7", "--name", "case-7"]);
      await sleep(1100);
      const given = ["-w", "w", "--payload", "P0D", "--history", "P0D", "--grace", "0"];
      const w = (...args: string[]) => ["retention", ...args, ...given.slice(2), "-w", "w"];

      expect(cli.ok(["retention", "plan", "-w", "w"])).toContain("nothing to drop");
      const held = cli.ok(w("plan"));
      expect(held).toContain("kept by holds: 3 commits");
      expect(held).toContain("Holds: case-7");
      cli.ok(["-w", "w", "hold", "release", "case-7", "--reason", "settled"]);
      const plan = cli.ok(w("plan"));
      expect(plan.replace(/\s+/g, " ")).toMatch(
        /would drop 3 commits behind 1 boundary, with \d+ blobs?, \d+ trees? \(/,
      );
      expect(plan).toContain("agstate retention apply");
      expect(widthOf(plan)).toBeLessThanOrEqual(80);

      const [planned] = cli.json(w("plan"));
      const [applied, compacted] = cli.json(w("apply", "--compact", "--actor", "ops"));
      const {
        removed: _,
        before: __,
        ...history
      } = (applied?.history ?? {}) as Record<string, unknown>;
      expect(planned).toMatchObject({ dryRun: true, history });
      expect(applied).toMatchObject({ dryRun: false, history: { removed: { commits: 4 } } });
      const { bytesBefore, bytesAfter } = compacted as { bytesBefore: number; bytesAfter: number };
      expect(bytesAfter).toBeLessThan(bytesBefore);
      expect(cli.ok(["-w", "w", "log"])).toContain("Parent: dropped, as its retention is over");
      const gone = cli.run(["-w", "w", "diff", "canonical~1", "canonical"]);
      expect(gone.status).toBe(3);
      expect(gone.stderr).toMatch(/dropped on \d{4}-\d\d-\d\d by ops, under the retention policy/);
      const audit = cli.ok(["-w", "w", "audit"]);
      expect(audit).toMatch(/retention +audit\/retention +ops +retention: drop 3 commits/);

      const stats = cli.ok(["-w", "w", "stats"]);
      expect(stats).toMatch(/canonical +1 /);
      expect(widthOf(stats)).toBeLessThanOrEqual(80);
      expect(cli.json(["stats"]).map(({ workflow }) => workflow)).toEqual(["other", "w"]);
      expect(cli.ok(["compact"])).toMatch(/before, .* after/);
      expect(cli.json(["fsck"]).flatMap(({ problems }) => problems)).toEqual([]);

      // Of all workflows those that declare a policy; alone one that does not is an error.
      const all = cli.json(["retention", "plan", "--all"]);
      expect(all.map(({ workflow }) => workflow)).toEqual(["w"]);
      expect(cli.run(["retention", "plan", "-w", "other"]).status).toBe(2);
      const refused = cli.run(["retention", "apply", "--payload", "P1.5D", "-w", "w"]);
      expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining("P1.5D") });
    } finally {
      cli.remove();
    }
  });
});
