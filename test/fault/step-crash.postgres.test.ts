import { describe, expect, it } from "vitest";
import { crash } from "../support/crash.js";

describe("processes that are killed in the middle of their steps, on PostgreSQL", () => {
  it("lose no effect, double none, and do no sealed step again", async () => {
    const tally = await crash([
      "--store",
      "postgres",
      "--kills",
      "20",
      "--races",
      "0",
      "--replays",
      "0",
    ]);
    expect(tally.kills).toBeGreaterThanOrEqual(20);
  });

  it("do each effect once when ten run one branch, and replay 100 parallel steps as they were", async () => {
    const tally = await crash([
      "--store",
      "postgres",
      "--kills",
      "0",
      "--races",
      "2",
      "--replays",
      "10",
    ]);
    expect(tally.kills).toBe(10);
    expect(tally.effects).toBeGreaterThanOrEqual(2 * 6 + 50);
  });
});
