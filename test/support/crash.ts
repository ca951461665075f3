import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";

const SCRIPT = fileURLToPath(new URL("../../scripts/crash.mjs", import.meta.url));

/** Runs the crash harness, expects that it found nothing wrong, and answers how much there was of it. */
export async function crash(
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
