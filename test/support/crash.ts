import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { usually } from "./runs.js";

const SCRIPT = fileURLToPath(new URL("../../scripts/crash.mjs", import.meta.url));

/** Kills in the middle of 100 parallel steps. */
const REPLAYS = usually(4, 10);

/** Declares the short form of the crash harness over one kind of store. */
export function crashTests(store: "sqlite" | "postgres", kills: number): void {
  const over = (counts: Readonly<Record<"kills" | "races" | "replays", number>>) =>
    crash([
      ...["--store", store],
      ...Object.entries(counts).flatMap(([name, count]) => [`--${name}`, String(count)]),
    ]);

  describe(`processes that are killed in the middle of their steps, on ${store}`, () => {
    it("lose no effect, double none, and do no sealed step again", async () => {
      const tally = await over({ kills, races: 0, replays: 0 });
      expect(tally.kills).toBeGreaterThanOrEqual(kills);
    });

    it("do each effect once when ten run one branch, and replay 100 parallel steps as they were", async () => {
      const tally = await over({ kills: 0, races: 2, replays: REPLAYS });
      expect(tally.kills).toBe(REPLAYS);
      expect(tally.effects).toBeGreaterThanOrEqual(2 * 6 + 50);
    });
  });
}

/** Runs the crash harness, expects that it found nothing wrong, and answers how much there was of it. */
async function crash(
  args: readonly string[],
): Promise<{ readonly kills: number; readonly effects: number }> {
  const child = spawn(process.execPath, [SCRIPT, "--lanes", "2", ...args]);
  onTestFinished(() => void child.kill());
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const [code] = await once(child, "close");
  expect(code, said).toBe(0);
  const [, kills, effects] = said
    .trimEnd()
    .match(
      /(\d+) kills, (\d+) effects, 0 lost, 0 doubled, 0 silently doubled, 0 steps run again, 0 faults$/,
    ) as RegExpMatchArray;
  return { kills: Number(kills), effects: Number(effects) };
}
